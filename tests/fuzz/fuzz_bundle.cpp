// Checkpoints. Byte 0: the rest is an index file as it is, or entries for one whose checksums hold:
//   u16 bytes of the data shard, the shard; then keys and values, each a byte of length (two for values) and
//   bytes
#include <map>

#include "runtime/io/bundle.h"
#include "runtime/io/table.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace sluice;
using namespace sluice::runtime::io;

// Takes a part off the front, its length before it in `width` bytes; what is there when that is too long.
std::string_view take(std::string_view* in, size_t width) {
  size_t n = 0;
  for (size_t i = 0; i < width && !in->empty(); ++i) {
    n |= static_cast<size_t>(static_cast<unsigned char>(in->front())) << (8 * i);
    in->remove_prefix(1);
  }
  const std::string_view part = in->substr(0, n);
  in->remove_prefix(part.size());
  return part;
}

std::string index_of(std::string_view entries) {
  std::map<std::string, std::string> sorted;
  while (!entries.empty()) {
    const std::string key(take(&entries, 1));
    sorted[key] = take(&entries, 2);
  }
  TableBuilder table;
  for (const auto& [key, value] : sorted) table.add(key, value);
  return table.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::quiet();
  if (size == 0) return 0;
  std::string_view bytes = fuzz::view(data + 1, size - 1);
  const std::string prefix = fuzz::scratch_path("bundle");
  fuzz::write_scratch(shard_path(prefix, 0, 1), take(&bytes, 2));
  fuzz::write_scratch(prefix + ".index", data[0] % 2 == 0 ? std::string(bytes) : index_of(bytes));
  fuzz::swallow([&] {
    BundleReader in(prefix);
    size_t read = 0;
    for (const auto& [name, entry] : in.entries()) {
      if (++read > 16) break;  // buffers are counted together
      fuzz::swallow([&] { in.read(name); });
      for (const TensorSlice& slice : entry.slices) fuzz::swallow([&] { in.read_slice(name, slice); });
    }
  });
  return 0;
}
