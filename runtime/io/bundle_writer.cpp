// Writing bundles: appending, checking, appearing.
#include <algorithm>
#include <cstring>

#include "runtime/io/bundle.h"
#include "runtime/io/bundle_format.h"
#include "runtime/io/crc32c.h"
#include "runtime/io/file.h"
#include "runtime/io/table.h"

namespace sluice::runtime::io {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;

}  // namespace

TensorView TensorView::of(const Array& a) {
  TensorView v{.dtype = a.dtype(), .dims = a.dims()};
  if (a.dtype() == DType::kString)
    v.strings = &a.string_values();
  else
    v.data = a.data();
  return v;
}

BundleWriter::BundleWriter(std::string prefix, int num_shards)
    : prefix_(std::move(prefix)), shards_(num_shards) {
  SLUICE_REQUIRE(num_shards >= 1 && num_shards < 100000, Code::kInvalidArgument, prefix_, ": ", num_shards,
                 " is no number of data files");
  require_parent_directory(prefix_);
  const int files = free_shard_count(prefix_, num_shards);
  for (int k = 0; k < files; ++k)
    data_.push_back(std::make_unique<AtomicFile>(shard_path(prefix_, k, files)));
}
BundleWriter::~BundleWriter() = default;

BundleEntry BundleWriter::append(const std::string& name, const TensorView& value, int shard) {
  SLUICE_REQUIRE(!finished_, Code::kFailedPrecondition, prefix_, ": the checkpoint is already finished");
  SLUICE_REQUIRE(!name.empty() && name[0] != '\0', Code::kInvalidArgument, prefix_,
                 ": a tensor needs a name");
  SLUICE_REQUIRE(graph::dtype_size(value.dtype) > 0 || value.dtype == DType::kString, Code::kUnimplemented,
                 prefix_, ": tensor '", name, "' of type ", value.dtype, " cannot be saved");
  SLUICE_CHECK(shard >= 0 && shard < shards_, "shard ", shard, " of ", shards_);
  AtomicFile& file = *data_[static_cast<size_t>(shard)];
  BundleEntry e{
      .dtype = value.dtype, .dims = value.dims, .shard = shard, .offset = static_cast<int64_t>(file.size())};
  uint32_t crc = 0;
  if (value.dtype == DType::kString) {
    file.append(encode_strings(*value.strings, &crc));
  } else {
    const char* from = static_cast<const char*>(value.data);
    const size_t bytes =
        static_cast<size_t>(graph::num_elements(value.dims)) * graph::dtype_size(value.dtype);
    // Piece by piece, so that the second of checksum and copy finds the bytes in the cache.
    for (size_t done = 0; done < bytes;) {
      const size_t n = std::min(kPieceBytes, bytes - done);
      crc = crc32c_extend(crc, from + done, n);
      file.append({from + done, n});
      done += n;
    }
  }
  e.size = static_cast<int64_t>(file.size()) - e.offset;
  e.masked_crc = mask_crc(crc);
  return e;
}

void BundleWriter::add(const std::string& name, const Array& value, int shard) {
  add(name, TensorView::of(value), shard);
}

void BundleWriter::add(const std::string& name, const TensorView& value, int shard) {
  SLUICE_REQUIRE(!entries_.contains(name), Code::kInvalidArgument, prefix_, ": Adding duplicate key: ", name);
  entries_.emplace(name, append(name, value, shard));
}

void BundleWriter::add_slice(const std::string& name, const Dims& full_dims, const TensorSlice& slice,
                             const Array& value) {
  add_slice(name, full_dims, slice, TensorView::of(value));
}

void BundleWriter::add_slice(const std::string& name, const Dims& full_dims, const TensorSlice& slice,
                             const TensorView& value, int shard) {
  const TensorSlice resolved = resolve_slice(slice, full_dims);
  SLUICE_REQUIRE(slice_dims(resolved) == value.dims, Code::kInvalidArgument, prefix_, ": the slice of '",
                 name, "' is ", graph::dims_string(slice_dims(resolved)), ", its value ",
                 graph::dims_string(value.dims));
  if (covers(resolved, full_dims)) return add(name, value, shard);
  BundleEntry& whole =
      entries_.try_emplace(name, BundleEntry{.dtype = value.dtype, .dims = full_dims}).first->second;
  SLUICE_REQUIRE(whole.dims == full_dims && whole.dtype == value.dtype && whole.size == 0,
                 Code::kInvalidArgument, prefix_, ": the slices of '", name,
                 "' do not agree on its shape and type");
  const std::string key = slice_key(name, slice);
  SLUICE_REQUIRE(!entries_.contains(key), Code::kInvalidArgument, prefix_,
                 ": Adding duplicate slice of: ", name);
  whole.slices.push_back(slice);
  entries_.emplace(key, append(name, value, shard));
}

// What the files hold must be what the index will say of them: a value that changed between its checksum and
// its copy, or a write that went wrong, shows here and not when the checkpoint is needed.
void BundleWriter::check_written() const {
  std::vector<std::unique_ptr<RandomFile>> files;
  for (const auto& f : data_) {
    f->flush();
    files.push_back(std::make_unique<RandomFile>(f->temporary_path()));
  }
  std::string piece(kPieceBytes, '\0');
  for (const auto& [key, e] : entries_) {
    if (!e.slices.empty()) continue;
    const RandomFile& file = *files[static_cast<size_t>(e.shard)];
    uint32_t crc = 0;
    if (e.dtype == DType::kString) {
      std::string bytes(static_cast<size_t>(e.size), '\0');
      file.read(static_cast<uint64_t>(e.offset), bytes.data(), bytes.size());
      std::vector<std::string> strings;
      if (const char* why =
              decode_strings(bytes, static_cast<uint64_t>(graph::num_elements(e.dims)), &strings, &crc))
        throw_error(Code::kDataLoss, cat(file.path(), ": tensor '", key, "': ", why));
    } else {
      for (int64_t done = 0; done < e.size;) {
        const auto n = std::min<int64_t>(static_cast<int64_t>(kPieceBytes), e.size - done);
        file.read(static_cast<uint64_t>(e.offset + done), piece.data(), static_cast<uint64_t>(n));
        crc = crc32c_extend(crc, piece.data(), static_cast<size_t>(n));
        done += n;
      }
    }
    SLUICE_REQUIRE(mask_crc(crc) == e.masked_crc, Code::kDataLoss, file.path(), ": tensor '", key,
                   "' does not read back as it was written; the checkpoint is given up");
  }
}

void BundleWriter::finish() {
  SLUICE_REQUIRE(!finished_, Code::kFailedPrecondition, prefix_, ": the checkpoint is already finished");
  check_written();
  const int files = static_cast<int>(data_.size());
  TableBuilder index;
  index.add("", encode_bundle_header(files));
  for (const auto& [key, entry] : entries_) index.add(key, encode_bundle_entry(entry));
  AtomicFile index_file(prefix_ + ".index");
  const std::string bytes = index.finish();
  (void)read_table(bytes, prefix_ + ".index");
  index_file.append(bytes);
  index_file.sync();  // a full disk shows before anything is replaced
  for (const auto& f : data_) f->sync();
  for (const auto& f : data_) f->commit();
  index_file.commit();
  data_.clear();
  finished_ = true;
  remove_stale_shards(prefix_, files);
}

}  // namespace sluice::runtime::io
