// MetaGraphDef and GraphDef files, binary. What was read is written and read again: the bytes must be the
// same. The repetition that constants may ask for is lowered to what the memory rule leaves room for.
#include "graph/graphdef.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_graph.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sluice::fuzz::quiet();
  sluice::fuzz::read_graphs(sluice::fuzz::view(data, size), sluice::graph::FileFormat::kBinary);
  return 0;
}
