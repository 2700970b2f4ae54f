// The sorted table of a checkpoint's index. Byte 0 picks what the others are: the file, or one block (of
// data, of the index, compressed) in a file whose checksums hold, so that mutants get past them.
#include "runtime/io/crc32c.h"
#include "runtime/io/table.h"
#include "runtime/io/varint.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace sluice;
using namespace sluice::runtime::io;

constexpr uint64_t kMagic = 0xdb4775248b80fb57u;
constexpr size_t kHandles = 40;  // two of them and padding

template <class T>
void put_fixed(std::string* out, T v) {
  out->append(reinterpret_cast<const char*>(&v), sizeof v);
}

// Appends a block with type and checksum; its handle.
std::string put_block(std::string* out, std::string_view contents, char type = 0) {
  std::string handle;
  put_varint(&handle, out->size());
  put_varint(&handle, contents.size());
  std::string stored(contents);
  stored.push_back(type);
  out->append(stored);
  put_fixed(out, mask_crc(crc32c(stored)));
  return handle;
}

// A block with one entry.
std::string block_of(std::string_view key, std::string_view value) {
  std::string b;
  put_varint(&b, 0);
  put_varint(&b, key.size());
  put_varint(&b, value.size());
  b.append(key);
  b.append(value);
  put_fixed<uint32_t>(&b, 0);
  put_fixed<uint32_t>(&b, 1);
  return b;
}

std::string file_around(int what, std::string_view bytes) {
  std::string out;
  const std::string data = put_block(&out, what == 2 ? block_of("a", "b") : bytes, what == 3 ? 1 : 0);
  std::string empty;
  put_fixed<uint32_t>(&empty, 0);
  put_fixed<uint32_t>(&empty, 1);
  const std::string meta = put_block(&out, empty);
  const std::string index = put_block(&out, what == 2 ? std::string(bytes) : block_of("zzz", data));
  std::string footer = meta + index;
  footer.resize(kHandles);
  put_fixed(&footer, kMagic);
  return out + footer;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::quiet();
  if (size == 0) return 0;
  const std::string_view bytes = fuzz::view(data + 1, size - 1);
  const int what = data[0] % 4;
  const std::string file = what == 0 ? std::string(bytes) : file_around(what, bytes);
  fuzz::swallow([&] {
    const TableEntries entries = read_table(file, "fuzz");
    TableBuilder again;
    for (const auto& [key, value] : entries) again.add(key, value);
    fuzz::require(read_table(again.finish(), "again") == entries, "a table is read back as it was written");
  });
  return 0;
}
