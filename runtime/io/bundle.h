#pragma once
// TensorBundle checkpoints, V2 (graph-and-training §7.4): `P.index`, a sorted table of entries, and one or
// more data shards `P.data-00000-of-00001` of raw little-endian elements. Both ways with TensorFlow, strings
// and slices of partitioned variables included; V1 checkpoints (tables of SavedTensorSlices) are read too. A
// writer goes through temporary files, reads back what it wrote, and renames data first, index last; a save
// over an existing checkpoint takes other data files, so a crash at any instruction leaves the former one
// whole. A reader checks each entry against the shard's size before it allocates. A writer belongs to one
// thread; `read` may be called from several.
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
class V1Tables;

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
  /// `prefix`.index, else the V1 files `prefix`, `prefix`-?????-of-????? or a pattern of them. NotFound when
  /// there is none; DataLoss or InvalidArgument naming file and entry when one is damaged.
  explicit BundleReader(std::string prefix);
  ~BundleReader();

  const std::string& prefix() const { return prefix_; }
  /// Every tensor by its name, sorted; stored slices are not listed.
  const std::map<std::string, BundleEntry, std::less<>>& entries() const { return entries_; }
  /// Stored slices by their encoded key (slice_key).
  const std::map<std::string, BundleEntry, std::less<>>& slice_entries() const { return slices_; }
  int num_shards() const { return num_shards_; }
  bool is_v1() const { return v1_ != nullptr; }
  const BundleEntry* find(std::string_view name) const;
  /// NotFound "Key <name> not found in checkpoint", with near names.
  const BundleEntry& get(std::string_view name) const;
  /// The whole tensor, put together when it was stored in slices. DataLoss when its bytes do not match.
  Array read(std::string_view name) const;
  /// The same into memory of the tensor's size, without another copy where it was stored whole. Not strings.
  void read_into(std::string_view name, void* to) const;
  /// Reads everything and keeps nothing; DataLoss names the first damaged tensor.
  void verify() const;
  /// A part of it, however it was stored.
  Array read_slice(std::string_view name, const TensorSlice& slice) const;

 private:
  void parse_index(const std::string& path);
  void check_entry(const std::string& name, const BundleEntry& entry, const std::string& path) const;
  const RandomFile& shard(int index) const;
  void check_extent(std::string_view name, const BundleEntry& entry, const RandomFile& file) const;
  void read_bytes(std::string_view name, const BundleEntry& entry, void* to) const;
  Array read_entry(std::string_view name, const BundleEntry& entry) const;
  Array read_strings(std::string_view name, const BundleEntry& entry, const RandomFile& file) const;
  Array assemble(std::string_view name, const BundleEntry& entry) const;

  std::string prefix_;
  int num_shards_ = 1;
  std::map<std::string, BundleEntry, std::less<>> entries_, slices_;  // slices_: by encoded key
  mutable std::mutex mutex_;                                          // guards shards_
  mutable std::map<int, std::unique_ptr<RandomFile>> shards_;         // opened when first read
  std::unique_ptr<V1Tables> v1_;                                      // holds the data of a V1 checkpoint
};

/// A value to write, borrowed: elements in row-major order, or strings.
struct TensorView {
  DType dtype = DType::kInvalid;
  Dims dims;
  const void* data = nullptr;
  const std::vector<std::string>* strings = nullptr;
  static TensorView of(const Array& a);
};

class BundleWriter {
 public:
  /// NotFound when the directory of `prefix` does not exist.
  explicit BundleWriter(std::string prefix, int num_shards = 1);
  ~BundleWriter();

  /// Appends a tensor to a shard. InvalidArgument for a name already added or empty, Unimplemented for types
  /// without bytes.
  void add(const std::string& name, const Array& value, int shard = 0);
  void add(const std::string& name, const TensorView& value, int shard = 0);
  /// Appends a part of the tensor `name` of shape `full_dims`.
  void add_slice(const std::string& name, const Dims& full_dims, const TensorSlice& slice,
                 const Array& value);
  void add_slice(const std::string& name, const Dims& full_dims, const TensorSlice& slice,
                 const TensorView& value, int shard = 0);
  /// Checks what was written, syncs it and makes the checkpoint appear. Without it, nothing remains. DataLoss
  /// when the file does not hold what was written, or a value changed while it was.
  void finish();

 private:
  BundleEntry append(const std::string& name, const TensorView& value, int shard);
  void check_written() const;

  std::string prefix_;
  std::vector<std::unique_ptr<AtomicFile>> data_;  // one a shard, an empty one behind where names were taken
  int shards_;                                     // those that take tensors
  bool finished_ = false;
  std::map<std::string, BundleEntry, std::less<>> entries_;
};

/// MergeV2Checkpoints: one checkpoint of several, whose data files are renamed, not rewritten; the parts'
/// index files go. InvalidArgument "Duplicate tensor keyed by …" leaves everything as it was.
void merge_bundles(const std::vector<std::string>& prefixes, const std::string& destination);

/// "P.data-00000-of-00001".
std::string shard_path(const std::string& prefix, int shard, int num_shards);
/// Of an object-based checkpoint (tf.train.Checkpoint): a variable's name → the key its tensor has; empty for
/// others. DataLoss when its object graph cannot be read.
std::map<std::string, std::string> object_graph_names(const BundleReader& reader);

/// The number of data files to write a new checkpoint at `prefix` with, at least `wanted`: one more where the
/// index that is there refers to files of the same names.
int free_shard_count(const std::string& prefix, int wanted);
/// Deletes data files of `prefix` that are none of the current `num_shards`.
void remove_stale_shards(const std::string& prefix, int num_shards);
/// Deletes a checkpoint's files: index first, data, .meta; of a V1 one the file itself. What cannot be
/// deleted is a warning.
void remove_checkpoint_files(const std::string& prefix);

}  // namespace sluice::runtime::io
