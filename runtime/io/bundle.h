#pragma once
// TensorBundle checkpoints, V2 (graph-and-training §7.4): `P.index`, a sorted table of entries, and one or
// more data shards `P.data-00000-of-00001` of raw little-endian elements. Both ways with TensorFlow, strings
// and slices of partitioned variables included. A writer goes through temporary files and renames data first,
// index last, so a crash leaves the former checkpoint. A reader checks each entry against the shard's size
// before it allocates. A writer belongs to one thread; `read` may be called from several.
//
//   BundleWriter w("/ckpt/model-10");  w.add("w", array);  w.finish();
//   Array w = BundleReader("/ckpt/model-10").read("w");

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/array.h"
#include "runtime/io/slice.h"

namespace sluice {
class AtomicFile;
}
namespace sluice::runtime::io {

class RandomFile;

struct BundleEntry {
  DType dtype = DType::kInvalid;
  Dims dims;
  int shard = 0;
  int64_t offset = 0, size = 0;
  uint32_t masked_crc = 0;
  std::vector<TensorSlice>
      slices;  // of a tensor stored in parts; then the fields above but dtype and dims are unused
};

class BundleReader {
 public:
  /// NotFound when there is no `prefix`.index; DataLoss or InvalidArgument naming file and entry when it is
  /// damaged.
  explicit BundleReader(std::string prefix);
  ~BundleReader();

  const std::string& prefix() const { return prefix_; }
  /// Every tensor by its name, sorted; stored slices are not listed.
  const std::map<std::string, BundleEntry, std::less<>>& entries() const { return entries_; }
  const BundleEntry* find(std::string_view name) const;
  /// NotFound "Key <name> not found in checkpoint", with near names.
  const BundleEntry& get(std::string_view name) const;
  /// The whole tensor, put together when it was stored in slices. DataLoss when its bytes do not match.
  Array read(std::string_view name) const;
  /// A part of it, however it was stored.
  Array read_slice(std::string_view name, const TensorSlice& slice) const;

 private:
  void parse_index(const std::string& path);
  void check_entry(const std::string& name, const BundleEntry& entry, const std::string& path) const;
  const RandomFile& shard(int index) const;
  Array read_entry(std::string_view name, const BundleEntry& entry) const;
  Array read_strings(std::string_view name, const BundleEntry& entry, const RandomFile& file) const;
  Array assemble(std::string_view name, const BundleEntry& entry) const;

  std::string prefix_;
  int num_shards_ = 1;
  std::map<std::string, BundleEntry, std::less<>> entries_, slices_;  // slices_: by encoded key
  mutable std::mutex mutex_;                                          // guards shards_
  mutable std::map<int, std::unique_ptr<RandomFile>> shards_;         // opened when first read
};

class BundleWriter {
 public:
  /// NotFound when the directory of `prefix` does not exist.
  explicit BundleWriter(std::string prefix);
  ~BundleWriter();

  /// Appends a tensor. InvalidArgument for a name already added or empty, Unimplemented for types without
  /// bytes.
  void add(const std::string& name, const Array& value);
  /// Appends a part of the tensor `name` of shape `full_dims`.
  void add_slice(const std::string& name, const Dims& full_dims, const TensorSlice& slice,
                 const Array& value);
  /// Makes the checkpoint appear. Without it, nothing remains.
  void finish();

 private:
  BundleEntry append(const std::string& name, const Array& value);

  std::string prefix_;
  std::unique_ptr<AtomicFile> data_;
  std::map<std::string, BundleEntry, std::less<>> entries_;
};

/// "P.data-00000-of-00001".
std::string shard_path(const std::string& prefix, int shard, int num_shards);

}  // namespace sluice::runtime::io
