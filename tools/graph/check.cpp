// sluice-graph check: does a file hold a sound graph?
#include <iostream>

#include "graph/support/file.h"
#include "graph/verify.h"
#include "tools/graph/commands.h"
#include "tools/graph/files.h"
#include "tools/graph/json.h"

namespace sluice::tools {

int run_check(const std::vector<std::string>& words) {
  Args args("check",
            "Reads a graph file and verifies it. Exit code 0 when it is sound, 3 when it is damaged.");
  args.positional("FILE", "the graph");
  if (!args.parse(words)) return 0;
  const std::string path = args.need("FILE");
  if (!file_exists(path)) throw UsageError(cat(path, "; No such file or directory"));
  graph::Graph g(graph::standard_ops());
  std::vector<graph::Violation> found;
  try {
    graph::read_graph_file(g, path);
    found = graph::verify(g);
  } catch (const Error& e) {
    // Not being allowed to look is no damage.
    if (e.code() == Code::kPermissionDenied || e.code() == Code::kFailedPrecondition)
      throw UsageError(e.message());
    found.push_back({e.node(), e.message()});
  }
  if (args.has("json")) {
    Json list = Json::array();
    for (const auto& v : found) list.push_back({{"node", v.node}, {"rule", v.rule}});
    std::cout << dumped({{"ok", found.empty()}, {"nodes", g.num_nodes()}, {"violations", list}});
  } else if (found.empty()) {
    std::cout << path << ": sound, " << g.num_nodes() << " nodes\n";
  }
  for (const auto& v : found) {
    const bool named = v.node.empty() || v.rule.find(cat("'", v.node, "'")) != std::string::npos;
    std::cerr << "sluice-graph: " << (named ? "" : cat("node '", v.node, "': ")) << v.rule << '\n';
  }
  return found.empty() ? 0 : 3;
}

}  // namespace sluice::tools
