#include "runtime/io/bundle.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <set>

#include "graph/support/near.h"
#include "runtime/io/bundle_format.h"
#include "runtime/io/crc32c.h"
#include "runtime/io/file.h"
#include "runtime/io/table.h"
#include "runtime/io/v1_tables.h"

namespace sluice::runtime::io {
namespace {
constexpr int64_t kPieceBytes = int64_t{1} << 20;
}  // namespace

std::string shard_path(const std::string& prefix, int shard, int num_shards) {
  char suffix[64];
  std::snprintf(suffix, sizeof suffix, ".data-%05d-of-%05d", shard, num_shards);
  return prefix + suffix;
}

BundleReader::BundleReader(std::string prefix) : prefix_(std::move(prefix)) {
  const std::string index = prefix_ + ".index";
  if (file_exists(index)) {
    parse_index(index);
    return;
  }
  const std::vector<std::string> files = v1_files(prefix_);
  SLUICE_REQUIRE(!files.empty(), Code::kNotFound,
                 "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for ",
                 prefix_, " (there is no '", index, "')");
  v1_ = std::make_unique<V1Tables>(files);
  v1_->list(&entries_, &slices_);
}
BundleReader::~BundleReader() = default;

void BundleReader::parse_index(const std::string& path) {
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

void BundleReader::check_extent(std::string_view name, const BundleEntry& e, const RandomFile& file) const {
  SLUICE_REQUIRE(static_cast<uint64_t>(e.offset) <= file.size() &&
                     static_cast<uint64_t>(e.size) <= file.size() - static_cast<uint64_t>(e.offset),
                 Code::kDataLoss, file.path(), ": truncated: tensor '", name, "' is ", e.size,
                 " bytes at offset ", e.offset, ", the file has ", file.size());
}

// In pieces that are still in the cache when their checksum is taken. Null `to`: only checked.
void BundleReader::read_bytes(std::string_view name, const BundleEntry& e, void* to) const {
  const RandomFile& file = shard(e.shard);
  check_extent(name, e, file);
  uint32_t crc = 0;
  std::string piece(to ? 0 : std::min<size_t>(kPieceBytes, static_cast<size_t>(e.size)), '\0');
  for (int64_t done = 0; done < e.size;) {
    const int64_t n = std::min<int64_t>(kPieceBytes, e.size - done);
    char* out = to ? static_cast<char*>(to) + done : piece.data();
    file.read(static_cast<uint64_t>(e.offset + done), out, static_cast<uint64_t>(n));
    crc = crc32c_extend(crc, out, static_cast<size_t>(n));
    if (to && e.dtype == DType::kBool)  // a C++ bool is 0 or 1
      for (int64_t i = 0; i < n; ++i) out[i] = out[i] != 0;
    done += n;
  }
  SLUICE_REQUIRE(mask_crc(crc) == e.masked_crc, Code::kDataLoss, file.path(), ": tensor '", name,
                 "': Checksum does not match: stored ", unmask_crc(e.masked_crc),
                 " vs. calculated on the restored bytes ", crc);
}

Array BundleReader::read_entry(std::string_view name, const BundleEntry& e) const {
  if (v1_) return v1_->read(name, e);
  SLUICE_REQUIRE(graph::dtype_size(e.dtype) > 0 || e.dtype == DType::kString, Code::kUnimplemented, prefix_,
                 ": tensor '", name, "' of type ", e.dtype, " cannot be read");
  const RandomFile& file = shard(e.shard);
  check_extent(name, e, file);
  if (e.dtype == DType::kString) return read_strings(name, e, file);
  Array out(e.dtype, e.dims);
  read_bytes(name, e, out.data());
  return out;
}

void BundleReader::read_into(std::string_view name, void* to) const {
  const BundleEntry& e = get(name);
  SLUICE_REQUIRE(graph::dtype_size(e.dtype) > 0, Code::kInvalidArgument, prefix_, ": tensor '", name,
                 "' of type ", e.dtype, " has no bytes to read into memory");
  if (e.slices.empty() && !v1_) return read_bytes(name, e, to);
  const Array whole = read(name);
  if (whole.bytes() > 0) std::memcpy(to, whole.data(), whole.bytes());
}

void BundleReader::verify() const {
  for (const auto* map : {&entries_, &slices_}) {
    for (const auto& [key, e] : *map) {
      if (!e.slices.empty()) continue;
      const std::string name = map == &slices_ ? cat("(a slice, shard ", e.shard, ")") : key;
      if (!v1_ && graph::dtype_size(e.dtype) > 0)
        read_bytes(name, e, nullptr);
      else
        (void)read_entry(name, e);
    }
  }
  for (const auto& [key, e] : entries_)
    for (const TensorSlice& slice : e.slices)
      SLUICE_REQUIRE(slices_.contains(slice_key(key, slice)), Code::kDataLoss, prefix_,
                     ": a slice of tensor '", key, "' is missing");
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
  const uint64_t width = std::max<uint64_t>(graph::dtype_size(e.dtype), 1);
  if (v1_) stored_bytes = width * v1_->max_elements();
  std::set<int> shards;
  for (const auto& [slice, entry] : parts) shards.insert(entry->shard);
  if (!v1_)
    for (int i : shards) stored_bytes += shard(i).size();
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
    if (it != slices_.end() && it->second.dims == slice_dims(resolved) && it->second.dtype == e.dtype &&
        it->second.slices.empty())
      return read_entry(name, it->second);
  }
  Array whole = read(name);
  return covers(resolved, e.dims) ? whole : extract_slice(whole, resolved);
}

}  // namespace sluice::runtime::io
