// MetaGraphDef and GraphDef files as text (.pbtxt); otherwise as fuzz_meta_graph.cpp.
#include "graph/graphdef.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_graph.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sluice::fuzz::quiet();
  sluice::fuzz::read_graphs(sluice::fuzz::view(data, size), sluice::graph::FileFormat::kText);
  return 0;
}
