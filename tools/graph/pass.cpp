// sluice-graph pass: one insertion pass on a graph file, its nodes visible in the file it writes.
#include <iostream>
#include <limits>

#include "passes/check_numerics.h"
#include "passes/clip_gradients.h"
#include "passes/gradients.h"
#include "tools/graph/commands.h"
#include "tools/graph/files.h"
#include "tools/graph/json.h"

namespace sluice::tools {
namespace {

using graph::GradValue;
using graph::Graph;
using graph::Output;

// What a pass made, to be printed: a name for each role.
using Results = std::vector<std::pair<std::string, std::string>>;

std::string shown(const GradValue& g) {
  if (g.none()) return "none";
  if (!g.is_slices()) return g.dense.name();
  return cat("IndexedSlices(values=", g.slices.values.name(), ", indices=", g.slices.indices.name(), ")");
}

std::vector<Output> tensors(const Args& args, const Graph& g, const std::string& option) {
  const std::vector<std::string> names = args.list(option);
  if (names.empty()) throw UsageError(cat("--", option, " is missing"));
  return outputs_named(g, names);
}

Results run_gradients(const Args& args, const Graph& g) {
  passes::GradientOptions o;
  o.name = args.has("name") ? args.get("name") : "gradients";
  o.colocate_gradients_with_ops = args.has("colocate");
  o.gate_gradients = args.has("gate");
  o.stop_gradients = outputs_named(g, args.list("stop"));
  if (args.has("zero")) o.unconnected_gradients = passes::UnconnectedGradients::kZero;
  const std::string method = args.get("aggregation");
  if (method == "tree")
    o.aggregation_method = passes::AggregationMethod::kExperimentalTree;
  else if (method == "accumulate_n")
    o.aggregation_method = passes::AggregationMethod::kExperimentalAccumulateN;
  else if (method != "add_n")
    throw UsageError(cat("--aggregation is add_n, tree or accumulate_n, not '", method, "'"));
  const std::vector<Output> xs = tensors(args, g, "xs");
  const auto grads = passes::gradients(tensors(args, g, "ys"), xs, o);
  Results out;
  for (size_t i = 0; i < xs.size(); ++i) out.emplace_back(xs[i].name(), shown(grads[i]));
  return out;
}

Results run_check_numerics(const Args& args, Graph& g) {
  if (!args.has("tensors")) return {{"check", passes::add_check_numerics_ops(g).name()}};
  Results out;
  for (const Output& t : tensors(args, g, "tensors"))
    out.emplace_back(t.name(),
                     passes::check_numerics(t, args.has("message") ? args.get("message") : t.name()).name());
  return out;
}

Results run_clip(const std::string& pass, const Args& args, Graph& g) {
  const std::vector<Output> ts = tensors(args, g, "tensors");
  const std::string name = args.get("name");
  Results out;
  if (pass == "clip_by_global_norm") {
    const auto [clipped, norm] =
        passes::clip_by_global_norm({ts.begin(), ts.end()}, args.number("limit"), Output{}, name);
    for (size_t i = 0; i < ts.size(); ++i) out.emplace_back(ts[i].name(), shown(clipped[i]));
    out.emplace_back("global_norm", norm.name());
    return out;
  }
  for (const Output& t : ts) {
    if (pass == "clip_by_value")
      out.emplace_back(t.name(), shown(passes::clip_by_value(t, args.number("lo"), args.number("hi"), name)));
    else if (pass == "clip_by_norm")
      out.emplace_back(t.name(), shown(passes::clip_by_norm(t, args.number("limit"), nullptr, name)));
    else
      out.emplace_back(t.name(), passes::clip_by_average_norm(t, args.number("limit"), name).name());
  }
  return out;
}

Results dispatch(const std::string& pass, const Args& args, Graph& g) {
  if (pass == "gradients") return run_gradients(args, g);
  if (pass == "check_numerics") return run_check_numerics(args, g);
  for (const char* clip : {"clip_by_value", "clip_by_norm", "clip_by_global_norm", "clip_by_average_norm"})
    if (pass == clip) return run_clip(pass, args, g);
  throw UsageError(
      cat("unknown pass '", pass,
          "'; there are gradients, check_numerics, clip_by_value, clip_by_norm, clip_by_global_norm, "
          "clip_by_average_norm"));
}

}  // namespace

int run_pass(const std::vector<std::string>& words) {
  Args args("pass",
            "Runs one insertion pass and writes the graph with its nodes:\n"
            "  gradients            --ys --xs [--stop --aggregation --gate --colocate --zero]\n"
            "  check_numerics       checks of --tensors, or of every floating-point op\n"
            "  clip_by_value        --tensors --lo --hi\n"
            "  clip_by_norm, clip_by_average_norm, clip_by_global_norm   --tensors --limit");
  args.positional("FILE", "the graph")
      .positional("PASS", "the pass")
      .repeated("ys", "tensors to differentiate")
      .repeated("xs", "tensors to differentiate by")
      .repeated("stop", "tensors that gradients do not pass")
      .option("aggregation", "add_n, tree or accumulate_n", "add_n")
      .flag("gate", "gradients of one op are made together before any is used")
      .flag("colocate", "gradients sit where their forward op sits")
      .flag("zero", "zeros where x does not reach y, instead of none")
      .repeated("tensors", "tensors to clip or check")
      .option("limit", "largest norm")
      .option("lo", "least value")
      .option("hi", "largest value")
      .option("message", "begins the error text of a check")
      .option("name", "name scope of the new nodes")
      .option("out", "file to write; required");
  if (!args.parse(words)) return 0;
  const std::string path = args.need("FILE"), pass = args.need("PASS"), out = args.need("out");
  const LoadedGraph loaded = load_graph(path);
  const int before = loaded.graph->num_nodes();
  const Results results = dispatch(pass, args, *loaded.graph);
  save_graph(loaded, out);
  if (args.has("json")) {
    Json map = Json::object();
    for (const auto& [role, name] : results) map[role] = name;
    std::cout << dumped({{"pass", pass}, {"added", loaded.graph->num_nodes() - before}, {"results", map}});
  } else {
    for (const auto& [role, name] : results) std::cout << role << " → " << name << '\n';
  }
  return 0;
}

}  // namespace sluice::tools
