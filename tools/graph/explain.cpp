// sluice-graph explain: the plan that a run with these feeds and fetches would use.
#include <iostream>

#include "runtime/plan/plan.h"
#include "tools/graph/commands.h"
#include "tools/graph/feeds.h"

namespace sluice::tools {

int run_explain(const std::vector<std::string>& words) {
  Args args("explain",
            "Compiles the run that these options describe, without running it, and prints its plan: steps, "
            "regions,\n"
            "layouts, the arena's map, the kernel of each step and why the other candidates were not taken.");
  args.positional("FILE", "the graph")
      .repeated("fetch", "tensor to fetch; several with commas or repeated")
      .repeated("target", "node to run; several with commas or repeated");
  declare_session_options(args);
  if (!args.parse(words)) return 0;
  const LoadedGraph loaded = load_graph(args.need("FILE"));
  const auto fetches = outputs_named(*loaded.graph, args.list("fetch"));
  std::vector<graph::Node*> targets;
  for (const std::string& name : args.list("target")) targets.push_back(&node_named(*loaded.graph, name));
  if (fetches.empty() && targets.empty()) throw UsageError("nothing to run: give --fetch or --target");
  const auto feeds = parse_feeds(args, *loaded.graph);
  const auto session = open_session(args, loaded, feeds);
  const auto plan = session->plan(fetches, feeds, targets);
  std::cout << (args.has("json") ? plan->json() + "\n" : plan->str());
  return 0;
}

}  // namespace sluice::tools
