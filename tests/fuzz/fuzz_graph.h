#pragma once
// Reading a graph file both ways it may be meant. One thread.

#include "graph/graphdef.h"
#include "tests/fuzz/fuzz.h"

namespace sluice::fuzz {

inline void read_graphs(std::string_view bytes, graph::FileFormat format) {
  const graph::ImportOptions options{.source = "fuzz", .max_repeat_bytes = uint64_t{4} << 20};
  swallow([&] {
    graph::Graph g, again;
    const graph::MetaGraphInfo info = graph::meta_graph_from_bytes(g, bytes, format, options);
    const std::string once = graph::meta_graph_to_bytes(g, info, format);
    const graph::MetaGraphInfo read = graph::meta_graph_from_bytes(again, once, format);
    require(graph::meta_graph_to_bytes(again, read, format) == once,
            "a meta graph is read back as it was written");
  });
  swallow([&] {
    graph::Graph g;
    graph::graph_from_bytes(g, bytes, format, options);
    graph::graph_to_bytes(g, format);
  });
}

}  // namespace sluice::fuzz
