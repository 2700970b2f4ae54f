#include "runtime/io/bundle.h"

#include <algorithm>
#include <cstdio>

#include "graph/support/near.h"
#include "runtime/io/bundle_format.h"
#include "runtime/io/crc32c.h"
#include "runtime/io/file.h"
#include "runtime/io/table.h"

namespace sluice::runtime::io {

std::string shard_path(const std::string& prefix, int shard, int num_shards) {
  char suffix[64];
  std::snprintf(suffix, sizeof suffix, ".data-%05d-of-%05d", shard, num_shards);
  return prefix + suffix;
}

BundleReader::BundleReader(std::string prefix) : prefix_(std::move(prefix)) {
  parse_index(prefix_ + ".index");
}
BundleReader::~BundleReader() = default;

void BundleReader::parse_index(const std::string& path) {
  SLUICE_REQUIRE(file_exists(path), Code::kNotFound,
                 "Unsuccessful TensorSliceReader constructor: Failed to find any "
                 "matching files for ",
                 prefix_, " (there is no '", path, "')");
  const std::string bytes = read_file(path);
  TableEntries table = read_table(bytes, path);
  SLUICE_REQUIRE(!table.empty() && table[0].first.empty(), Code::kDataLoss, path,
                 ": there is no bundle header");
  num_shards_ = decode_bundle_header(table[0].second, path);
  for (size_t i = 1; i < table.size(); ++i) {
    auto& [key, value] = table[i];
    BundleEntry entry = decode_bundle_entry(value, key, path);
    check_entry(key, entry, path);
    // Only slice keys begin with a zero byte; no tensor name does.
    (key[0] == '\0' ? slices_ : entries_)
        .emplace_hint((key[0] == '\0' ? slices_ : entries_).end(), std::move(key), std::move(entry));
  }
}

void BundleReader::check_entry(const std::string& name, const BundleEntry& e, const std::string& path) const {
  if (!e.slices.empty()) return;
  auto fail = [&](auto&&... why) { throw_error(Code::kDataLoss, cat(path, ": ", why...)); };
  if (e.shard < 0 || e.shard >= num_shards_) fail("entry '", name, "': there is no data file ", e.shard);
  if (e.offset < 0 || e.size < 0) fail("entry '", name, "': negative offset or size");
  const int64_t elements = graph::num_elements(e.dims);
  const auto width = static_cast<int64_t>(graph::dtype_size(e.dtype));
  int64_t expected = 0;
  if (width > 0 && (__builtin_mul_overflow(elements, width, &expected) || expected != e.size))
    fail("Invalid size in bundle entry: key ", name, "; stored size ", e.size, "; expected size ",
         graph::dims_string(e.dims), " × ", width);
  if (e.dtype == DType::kString && (e.size < 4 || elements > e.size - 4))
    fail("Invalid size in bundle entry: key ", name, "; stored size ", e.size, "; ", elements,
         " strings need more");
}

const BundleEntry* BundleReader::find(std::string_view name) const {
  const auto it = entries_.find(name);
  return it == entries_.end() ? nullptr : &it->second;
}

const BundleEntry& BundleReader::get(std::string_view name) const {
  if (const BundleEntry* e = find(name)) return *e;
  std::vector<std::string> names;
  for (const auto& [key, entry] : entries_) names.push_back(key);
  throw_error(Code::kNotFound,
              cat("Key ", name, " not found in checkpoint ", prefix_, ".", did_you_mean(name, names)));
}

const RandomFile& BundleReader::shard(int index) const {
  const std::lock_guard lock(mutex_);
  auto& file = shards_[index];
  if (!file) file = std::make_unique<RandomFile>(shard_path(prefix_, index, num_shards_));
  return *file;
}

Array BundleReader::read_entry(std::string_view name, const BundleEntry& e) const {
  SLUICE_REQUIRE(graph::dtype_size(e.dtype) > 0 || e.dtype == DType::kString, Code::kUnimplemented, prefix_,
                 ": tensor '", name, "' of type ", e.dtype, " cannot be read");
  const RandomFile& file = shard(e.shard);
  SLUICE_REQUIRE(static_cast<uint64_t>(e.offset) <= file.size() &&
                     static_cast<uint64_t>(e.size) <= file.size() - static_cast<uint64_t>(e.offset),
                 Code::kDataLoss, file.path(), ": truncated: tensor '", name, "' is ", e.size,
                 " bytes at offset ", e.offset, ", the file has ", file.size());
  if (e.dtype == DType::kString) return read_strings(name, e, file);
  Array out(e.dtype, e.dims);
  file.read(static_cast<uint64_t>(e.offset), out.data(), static_cast<uint64_t>(e.size));
  const uint32_t crc = crc32c_extend(0, out.data(), static_cast<size_t>(e.size));
  SLUICE_REQUIRE(mask_crc(crc) == e.masked_crc, Code::kDataLoss, file.path(), ": tensor '", name,
                 "': Checksum does not match: stored ", unmask_crc(e.masked_crc),
                 " vs. calculated on the restored bytes ", crc);
  if (e.dtype == DType::kBool) {  // a C++ bool is 0 or 1
    auto* bytes = static_cast<unsigned char*>(out.data());
    for (int64_t i = 0; i < e.size; ++i) bytes[i] = bytes[i] != 0;
  }
  return out;
}

Array BundleReader::read_strings(std::string_view name, const BundleEntry& e, const RandomFile& file) const {
  std::string bytes(static_cast<size_t>(e.size), '\0');
  file.read(static_cast<uint64_t>(e.offset), bytes.data(), bytes.size());
  std::vector<std::string> strings;
  uint32_t crc = 0;
  const auto count = static_cast<uint64_t>(graph::num_elements(e.dims));
  if (const char* why = decode_strings(bytes, count, &strings, &crc))
    throw_error(Code::kDataLoss, cat(file.path(), ": tensor '", name, "': ", why));
  SLUICE_REQUIRE(mask_crc(crc) == e.masked_crc, Code::kDataLoss, file.path(), ": tensor '", name,
                 "': Checksum does not match: stored ", unmask_crc(e.masked_crc),
                 " vs. calculated on the restored bytes ", crc);
  return Array::strings(e.dims, std::move(strings));
}

// Puts a tensor together from its slices. Its size is bounded by what the data files hold.
Array BundleReader::assemble(std::string_view name, const BundleEntry& e) const {
  auto insufficient = [&](const char* why) {
    throw_error(Code::kInvalidArgument,
                cat(prefix_, ": Does not have sufficient slices for partitioned tensor ", name,
                    " to restore in a slice of shape ", graph::dims_string(e.dims), ": ", why));
  };
  const int64_t elements = graph::num_elements(e.dims);
  int64_t listed = 0;
  uint64_t stored_bytes = 0;
  std::vector<std::pair<TensorSlice, const BundleEntry*>> parts;
  for (const TensorSlice& slice : e.slices) {
    const auto it = slices_.find(slice_key(name, slice));
    if (it == slices_.end()) insufficient("a slice is missing");
    TensorSlice resolved = resolve_slice(slice, e.dims);
    SLUICE_REQUIRE(
        it->second.dims == slice_dims(resolved) && it->second.dtype == e.dtype && it->second.slices.empty(),
        Code::kDataLoss, prefix_, ": a slice of tensor '", name, "' does not have the shape or type listed");
    if (__builtin_add_overflow(listed, graph::num_elements(it->second.dims), &listed)) listed = INT64_MAX;
    parts.emplace_back(std::move(resolved), &it->second);
  }
  for (int i = 0; i < num_shards_; ++i) stored_bytes += shard(i).size();
  const uint64_t width = std::max<uint64_t>(graph::dtype_size(e.dtype), 1);
  if (listed < elements) insufficient("together they are smaller");
  SLUICE_REQUIRE(static_cast<uint64_t>(elements) <= stored_bytes / width && listed / 2 <= elements,
                 Code::kDataLoss, prefix_, ": the slices of tensor '", name,
                 "' overlap or are larger than the data files");
  Array whole(e.dtype, e.dims);
  Array seen = Array::zeros(DType::kBool, e.dims);
  for (const auto& [slice, entry] : parts) {
    insert_slice(read_entry(name, *entry), slice, &whole);
    Array mark(DType::kBool, entry->dims);
    std::fill(mark.as<bool>().begin(), mark.as<bool>().end(), true);
    insert_slice(mark, slice, &seen);
  }
  const auto marks = seen.as<bool>();
  if (std::find(marks.begin(), marks.end(), false) != marks.end()) insufficient("they leave a gap");
  return whole;
}

Array BundleReader::read(std::string_view name) const {
  const BundleEntry& e = get(name);
  return e.slices.empty() ? read_entry(name, e) : assemble(name, e);
}

Array BundleReader::read_slice(std::string_view name, const TensorSlice& slice) const {
  const BundleEntry& e = get(name);
  const TensorSlice resolved = resolve_slice(slice, e.dims);
  for (const TensorSlice& stored : e.slices) {
    if (resolve_slice(stored, e.dims) != resolved) continue;
    const auto it = slices_.find(slice_key(name, stored));
    if (it != slices_.end() && it->second.dims == slice_dims(resolved) && it->second.dtype == e.dtype)
      return read_entry(name, it->second);
  }
  Array whole = read(name);
  return covers(resolved, e.dims) ? whole : extract_slice(whole, resolved);
}

BundleWriter::BundleWriter(std::string prefix)
    : prefix_(std::move(prefix)), data_(std::make_unique<AtomicFile>(shard_path(prefix_, 0, 1))) {}
BundleWriter::~BundleWriter() = default;

BundleEntry BundleWriter::append(const std::string& name, const Array& value) {
  SLUICE_REQUIRE(data_, Code::kFailedPrecondition, prefix_, ": the checkpoint is already finished");
  SLUICE_REQUIRE(!name.empty() && name[0] != '\0', Code::kInvalidArgument, prefix_,
                 ": a tensor needs a name");
  SLUICE_REQUIRE(graph::dtype_size(value.dtype()) > 0 || value.dtype() == DType::kString,
                 Code::kUnimplemented, prefix_, ": tensor '", name, "' of type ", value.dtype(),
                 " cannot be saved");
  BundleEntry e{.dtype = value.dtype(), .dims = value.dims(), .offset = static_cast<int64_t>(data_->size())};
  uint32_t crc = 0;
  if (value.dtype() == DType::kString) {
    data_->append(encode_strings(value.string_values(), &crc));
  } else {
    crc = crc32c_extend(0, value.data(), value.bytes());
    data_->append({static_cast<const char*>(value.data()), value.bytes()});
  }
  e.size = static_cast<int64_t>(data_->size()) - e.offset;
  e.masked_crc = mask_crc(crc);
  return e;
}

void BundleWriter::add(const std::string& name, const Array& value) {
  SLUICE_REQUIRE(!entries_.contains(name), Code::kInvalidArgument, prefix_, ": Adding duplicate key: ", name);
  entries_.emplace(name, append(name, value));
}

void BundleWriter::add_slice(const std::string& name, const Dims& full_dims, const TensorSlice& slice,
                             const Array& value) {
  const TensorSlice resolved = resolve_slice(slice, full_dims);
  SLUICE_REQUIRE(slice_dims(resolved) == value.dims(), Code::kInvalidArgument, prefix_, ": the slice of '",
                 name, "' is ", graph::dims_string(slice_dims(resolved)), ", its value ",
                 graph::dims_string(value.dims()));
  if (covers(resolved, full_dims)) return add(name, value);
  BundleEntry& whole =
      entries_.try_emplace(name, BundleEntry{.dtype = value.dtype(), .dims = full_dims}).first->second;
  SLUICE_REQUIRE(whole.dims == full_dims && whole.dtype == value.dtype() && whole.size == 0,
                 Code::kInvalidArgument, prefix_, ": the slices of '", name,
                 "' do not agree on its shape and type");
  const std::string key = slice_key(name, slice);
  SLUICE_REQUIRE(!entries_.contains(key), Code::kInvalidArgument, prefix_,
                 ": Adding duplicate slice of: ", name);
  whole.slices.push_back(slice);
  entries_.emplace(key, append(name, value));
}

void BundleWriter::finish() {
  SLUICE_REQUIRE(data_, Code::kFailedPrecondition, prefix_, ": the checkpoint is already finished");
  TableBuilder index;
  index.add("", encode_bundle_header(1));
  for (const auto& [key, entry] : entries_) index.add(key, encode_bundle_entry(entry));
  AtomicFile index_file(prefix_ + ".index");
  index_file.append(index.finish());
  index_file.sync();  // a full disk shows before anything is replaced
  data_->commit();
  data_.reset();
  index_file.commit();
}

}  // namespace sluice::runtime::io
