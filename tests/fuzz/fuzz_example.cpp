// Example and SequenceExample messages. What was read is written and read again: it must be the same.
#include "runtime/io/example.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sluice;
  using namespace sluice::runtime::io;
  fuzz::quiet();
  const std::string_view bytes = fuzz::view(data, size);
  fuzz::swallow([&] {
    const std::string once = serialize_example(parse_example(bytes));
    fuzz::require(serialize_example(parse_example(once)) == once,
                  "an Example is read back as it was written");
  });
  fuzz::swallow([&] {
    const std::string once = serialize_sequence_example(parse_sequence_example(bytes));
    fuzz::require(serialize_sequence_example(parse_sequence_example(once)) == once,
                  "a SequenceExample is read back as it was written");
  });
  return 0;
}
