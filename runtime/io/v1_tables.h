#pragma once
// V1 checkpoints, as TensorFlow wrote them before its bundles (graph-and-training §7.4, "V1 checkpoint"): one
// table, or several, of SavedTensorSlices; data are elements of messages inside it. Reading only, through
// BundleReader; whole tables in memory. `read` may be called from several threads.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/io/bundle.h"
#include "runtime/io/table.h"

namespace sluice::runtime::io {

/// The V1 files that `prefix` stands for: itself, the files of its pattern ("m-?????-of-00002"), or its
/// shards; sorted, empty when there is none.
std::vector<std::string> v1_files(const std::string& prefix);

/// Whether a file ends as a table does.
bool is_table(const std::string& path);

class V1Tables {
 public:
  /// DataLoss naming the file when one is no such table.
  explicit V1Tables(const std::vector<std::string>& files);

  /// Enters tensors and slices as a bundle's index would name them; `shard` and `offset` of an entry are this
  /// object's own.
  void list(std::map<std::string, BundleEntry, std::less<>>* entries,
            std::map<std::string, BundleEntry, std::less<>>* slices) const;
  /// DataLoss when the data are absent or not as many as the shape says, Unimplemented for types without
  /// data.
  Array read(std::string_view name, const BundleEntry& entry) const;
  /// More elements than this cannot be in the files.
  uint64_t max_elements() const { return bytes_; }

 private:
  struct File {
    std::string path;
    TableEntries table;
  };
  std::vector<File> files_;
  uint64_t bytes_ = 0;
};

}  // namespace sluice::runtime::io
