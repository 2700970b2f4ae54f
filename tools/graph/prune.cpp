// sluice-graph prune: keeps what some outputs need.
#include "passes/prune.h"

#include <iostream>

#include "tools/graph/commands.h"
#include "tools/graph/files.h"
#include "tools/graph/json.h"

namespace sluice::tools {

int run_prune(const std::vector<std::string>& words) {
  Args args("prune", "Removes every node that none of the named nodes or tensors needs.");
  args.positional("FILE", "the graph")
      .repeated("keep", "node or tensor to keep, with all it needs; several with commas or repeated")
      .option("out", "file to write; required");
  if (!args.parse(words)) return 0;
  const std::string path = args.need("FILE"), out = args.need("out");
  if (args.list("keep").empty())
    throw UsageError("--keep is missing: name the nodes or tensors that must stay");
  const LoadedGraph loaded = load_graph(path);
  std::vector<graph::Node*> keep;
  for (const std::string& name : args.list("keep")) keep.push_back(&node_named(*loaded.graph, name));
  const int removed = passes::prune(*loaded.graph, keep);
  save_graph(loaded, out);
  if (args.has("json"))
    std::cout << dumped({{"kept", loaded.graph->num_nodes()}, {"removed", removed}, {"out", out}});
  else
    std::cout << "kept " << loaded.graph->num_nodes() << " nodes, removed " << removed << '\n';
  return 0;
}

}  // namespace sluice::tools
