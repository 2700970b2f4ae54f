// TFRecord files: byte 0 picks how the others are read: plain, skipping, compressed by someone, compressed by
// us (so that mutants reach the frames), framed soundly, as an index.
#include "runtime/io/deflate.h"
#include "runtime/io/record.h"
#include "runtime/io/record_index.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace sluice;
using namespace sluice::runtime::io;

void read_all(const std::string& path, RecordReaderOptions o) {
  fuzz::swallow([&] {
    RecordReader in(path, o);
    std::string record;
    uint64_t at = 0;
    while (in.next(&record)) {
      fuzz::require(in.offset() > at, "a record takes room");
      at = in.offset();
    }
    fuzz::require(!o.torn_tail_is_end || !in.next(&record), "the end stays the end");
  });
}

std::string deflated(std::string_view bytes, Compression c) {
  std::string out;
  Deflater d(c);
  d.add(bytes, &out);
  d.finish(&out);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::quiet();
  if (size == 0) return 0;
  const std::string_view bytes = fuzz::view(data + 1, size - 1);
  const std::string path = fuzz::scratch_path("records");
  const Compression c = data[0] & 128 ? Compression::kZlib : Compression::kGzip;
  switch (data[0] % 6) {
    case 0:
      fuzz::write_scratch(path, bytes);
      read_all(path, {});
      read_all(path, {.torn_tail_is_end = true});
      break;
    case 1:
      fuzz::write_scratch(path, bytes);
      read_all(path, {.skip_damaged = true});
      break;
    case 2:
      fuzz::write_scratch(path, bytes);
      read_all(path, {.compression = c, .skip_damaged = true});
      break;
    case 3:
      fuzz::write_scratch(path, deflated(bytes, c));
      read_all(path, {.compression = c});
      read_all(path, {.compression = c, .skip_damaged = true});
      break;
    case 4: {
      std::string framed;
      append_record(&framed, bytes);
      append_record(&framed, bytes);
      fuzz::write_scratch(path, framed);
      std::string record;
      RecordReader in(path);
      fuzz::require(in.next(&record) && record == bytes && in.next(&record) && !in.next(&record),
                    "what is framed is read back");
      break;
    }
    default: {
      const std::string index = fuzz::scratch_path("index");
      fuzz::write_scratch(index, bytes);
      std::string framed;
      append_record(&framed, "abc");
      append_record(&framed, bytes);
      fuzz::write_scratch(path, framed);
      fuzz::swallow([&] {
        IndexedRecords in(path, index);
        std::string record;
        for (int64_t i = 0; i < in.size(); ++i) in.read(i, &record);
      });
    }
  }
  return 0;
}
