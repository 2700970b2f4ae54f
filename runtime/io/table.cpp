#include "runtime/io/table.h"

#include <snappy.h>

#include <algorithm>
#include <cstring>

#include "graph/support/check.h"
#include "runtime/io/crc32c.h"
#include "runtime/io/varint.h"

namespace sluice::runtime::io {
namespace {

constexpr size_t kBlockBytes = 262144;
constexpr size_t kFooterBytes = 48;
constexpr size_t kTrailerBytes = 5;
constexpr uint64_t kMagic = 0xdb4775248b80fb57u;
enum BlockType : char { kRaw = 0, kSnappy = 1 };

template <class T>
void put_fixed(std::string* out, T v) {
  out->append(reinterpret_cast<const char*>(&v), sizeof v);
}

template <class T>
T get_fixed(std::string_view bytes) {
  T v;
  std::memcpy(&v, bytes.data(), sizeof v);
  return v;
}

// A short key in [start, limit).
std::string separator(const std::string& start, std::string_view limit) {
  const size_t n = std::min(start.size(), limit.size());
  size_t i = 0;
  while (i < n && start[i] == limit[i]) ++i;
  if (i >= n) return start;  // one is the other's prefix
  const auto byte = static_cast<unsigned char>(start[i]);
  if (byte == 0xff || byte + 1 >= static_cast<unsigned char>(limit[i])) return start;
  std::string out = start.substr(0, i + 1);
  out[i] = static_cast<char>(byte + 1);
  return out;
}

// A short key not before `key`.
std::string successor(const std::string& key) {
  for (size_t i = 0; i < key.size(); ++i) {
    const auto byte = static_cast<unsigned char>(key[i]);
    if (byte == 0xff) continue;
    std::string out = key.substr(0, i + 1);
    out[i] = static_cast<char>(byte + 1);
    return out;
  }
  return key;
}

class TableReader {
 public:
  TableReader(std::string_view bytes, const std::string& path)
      : bytes_(bytes), path_(path), key_bytes_left_(64 * bytes.size() + (size_t{1} << 20)) {}

  TableEntries run() {
    if (bytes_.size() < kFooterBytes) fail("file is too short to be an sstable");
    std::string_view footer = bytes_.substr(bytes_.size() - kFooterBytes);
    if (get_fixed<uint64_t>(footer.substr(kFooterBytes - 8)) != kMagic)
      fail("not an sstable (bad magic number)");
    Handle meta, index;
    if (!read_handle(&footer, &meta) || !read_handle(&footer, &index)) fail("bad block handle in the footer");
    TableEntries blocks, out, ignored;
    read_entries(block(meta), &ignored);
    read_entries(block(index), &blocks);
    uint64_t end_of_last = 0;
    for (const auto& [key, value] : blocks) {
      std::string_view rest = value;
      Handle h;
      if (!read_handle(&rest, &h)) fail("bad block handle in the index");
      // Blocks come one after another; a block named twice would be read twice.
      if (h.offset < end_of_last) fail("blocks overlap");
      read_entries(block(h), &out);
      end_of_last = h.offset + h.size;
    }
    return out;
  }

 private:
  struct Handle {
    uint64_t offset = 0, size = 0;
  };

  [[noreturn]] void fail(const char* what) const { throw_error(Code::kDataLoss, cat(path_, ": ", what)); }

  static bool read_handle(std::string_view* in, Handle* h) {
    return get_varint(in, &h->offset) && get_varint(in, &h->size);
  }

  std::string_view block(Handle h) {
    if (h.offset > bytes_.size() || h.size > bytes_.size() - h.offset ||
        bytes_.size() - h.offset - h.size < kTrailerBytes)
      fail("truncated block read");
    const std::string_view stored =
        bytes_.substr(h.offset, h.size + 1);  // with the type byte, which the CRC covers
    const auto crc = get_fixed<uint32_t>(bytes_.substr(h.offset + h.size + 1));
    if (unmask_crc(crc) != crc32c(stored)) fail("block checksum mismatch");
    const std::string_view contents = stored.substr(0, h.size);
    if (stored.back() == kRaw) return contents;
    if (stored.back() != kSnappy) fail("bad block type");
    // Three bytes of snappy stand for at most 64: a larger claim is a lie.
    size_t inflated = 0;
    if (!snappy::GetUncompressedLength(contents.data(), contents.size(), &inflated) ||
        inflated > 22 * contents.size() + 64)
      fail("corrupted compressed block contents");
    inflated_.resize(inflated);
    if (!snappy::RawUncompress(contents.data(), contents.size(), inflated_.data()))
      fail("corrupted compressed block contents");
    return inflated_;
  }

  void read_entries(std::string_view block, TableEntries* out) {
    if (block.size() < 4) fail("bad block contents");
    const uint64_t restarts = get_fixed<uint32_t>(block.substr(block.size() - 4));
    if (restarts > (block.size() - 4) / 4) fail("bad block contents");
    std::string_view rest = block.substr(0, block.size() - 4 - 4 * restarts);
    std::string key;
    bool first = true;
    while (!rest.empty()) {
      uint64_t shared = 0, unshared = 0, length = 0;
      if (!get_varint(&rest, &shared) || !get_varint(&rest, &unshared) || !get_varint(&rest, &length) ||
          shared > key.size() || unshared > rest.size() || length > rest.size() - unshared)
        fail("bad entry in block");
      std::string next = key.substr(0, shared);
      next.append(rest.substr(0, unshared));
      if ((!first && next <= key) || (!out->empty() && next <= out->back().first)) fail("keys out of order");
      // Keys share prefixes in the file; what they unfold to is bounded too.
      if (next.size() > key_bytes_left_) fail("keys take far more room than the file");
      key_bytes_left_ -= next.size();
      out->emplace_back(next, rest.substr(unshared, length));
      rest.remove_prefix(unshared + length);
      key = std::move(next);
      first = false;
    }
  }

  const std::string_view bytes_;
  const std::string& path_;
  size_t key_bytes_left_;
  std::string inflated_;
};

}  // namespace

void TableBuilder::Block::add(std::string_view key, std::string_view value) {
  size_t shared = 0;
  if (since_restart < restart_interval) {
    const size_t n = std::min(last_key.size(), key.size());
    while (shared < n && last_key[shared] == key[shared]) ++shared;
  } else {
    restarts.push_back(static_cast<uint32_t>(bytes.size()));
    since_restart = 0;
  }
  put_varint(&bytes, shared);
  put_varint(&bytes, key.size() - shared);
  put_varint(&bytes, value.size());
  bytes.append(key.substr(shared));
  bytes.append(value);
  last_key = key;
  ++since_restart;
}

std::string TableBuilder::Block::finish() {
  for (uint32_t r : restarts) put_fixed(&bytes, r);
  put_fixed(&bytes, static_cast<uint32_t>(restarts.size()));
  std::string out = std::move(bytes);
  bytes.clear(), last_key.clear(), restarts.assign(1, 0), since_restart = 0;
  return out;
}

std::string TableBuilder::write_block(const std::string& block) {
  std::string handle;
  put_varint(&handle, out_.size());
  put_varint(&handle, block.size());
  out_.append(block);
  out_.push_back(kRaw);
  put_fixed(&out_, mask_crc(crc32c(std::string_view(out_).substr(out_.size() - block.size() - 1))));
  return handle;
}

void TableBuilder::flush() {
  if (data_.bytes.empty()) return;
  pending_handle_ = write_block(data_.finish());
  pending_ = true;
}

void TableBuilder::add(std::string_view key, std::string_view value) {
  SLUICE_CHECK(!finished_, "the table is finished");
  SLUICE_REQUIRE(!any_ || key > last_key_, Code::kInvalidArgument, "key '", key, "' does not come after '",
                 last_key_, "'");
  if (key.size() + value.size() >= 2 * kBlockBytes) flush();
  // A block's index entry waits for the next key, so that it can be the shortest that separates the two.
  if (pending_) {
    index_.add(separator(last_key_, key), pending_handle_);
    pending_ = false;
  }
  data_.add(key, value);
  last_key_ = key;
  any_ = true;
  if (data_.estimate() >= kBlockBytes) flush();
}

std::string TableBuilder::finish() {
  SLUICE_CHECK(!finished_, "the table is finished");
  finished_ = true;
  flush();
  std::string footer = write_block(Block(16).finish());
  if (pending_) index_.add(successor(last_key_), pending_handle_);
  footer += write_block(index_.finish());
  footer.resize(kFooterBytes - 8, '\0');
  put_fixed(&footer, kMagic);
  out_ += footer;
  return std::move(out_);
}

TableEntries read_table(std::string_view bytes, const std::string& path) {
  return TableReader(bytes, path).run();
}

}  // namespace sluice::runtime::io
