// sluice-graph run: initialise, restore, feed, run steps, print or write what was fetched, save (decisions
// #25).
#include <csignal>
#include <iostream>

#include "graph/support/file.h"
#include "runtime/io/npy.h"
#include "runtime/trace.h"
#include "tools/graph/commands.h"
#include "tools/graph/feeds.h"
#include "tools/graph/json.h"

namespace sluice::tools {
namespace {

using graph::Output;
using runtime::Array;

volatile std::sig_atomic_t g_signal = 0;  // the last SIGINT or SIGTERM; a handler can reach nothing else

// The step in hand ends; a second signal ends the program at once.
void on_signal(int number) {
  g_signal = number;
  std::signal(number, SIG_DFL);
}

struct Request {
  std::vector<Output> fetches;
  std::vector<std::string> outs;  // file of fetch i, "" when it is printed
  std::vector<graph::Node*> targets;
  std::vector<runtime::Feed> feeds;
  int64_t steps = 1;
  std::string save_prefix, trace_path;
};

Request read_request(const Args& args, const LoadedGraph& loaded) {
  Request r;
  r.fetches = outputs_named(*loaded.graph, args.list("fetch"));
  r.outs = args.all("out");
  if (r.outs.size() > r.fetches.size())
    throw UsageError(cat("there are ", r.outs.size(), " --out for ", r.fetches.size(),
                         " --fetch; the k-th --out takes the k-th --fetch"));
  for (size_t i = 0; i < r.outs.size(); ++i) {
    as_usage([&] { require_writable(r.outs[i]); });
    const graph::DType t = r.fetches[i].dtype();
    if (graph::dtype_size(t) == 0)
      throw UsageError(cat("--out ", r.outs[i], ": a ", t, " tensor has no .npy form"));
  }
  r.outs.resize(r.fetches.size());
  for (const std::string& name : args.list("target")) r.targets.push_back(&node_named(*loaded.graph, name));
  r.feeds = parse_feeds(args, *loaded.graph);
  r.steps = args.integer("steps");
  if (r.steps < 1) throw UsageError(cat("--steps ", r.steps, ": at least one step"));
  r.save_prefix = args.get("save");
  if (!r.save_prefix.empty()) as_usage([&] { require_writable(r.save_prefix + ".index"); });
  r.trace_path = args.get("trace");
  if (!r.trace_path.empty()) as_usage([&] { require_writable(r.trace_path); });
  if (r.fetches.empty() && r.targets.empty() && r.save_prefix.empty() && !args.has("init"))
    throw UsageError("nothing to run: give --fetch, --target, --init or --save");
  return r;
}

bool is_scalar(const Array& a) { return a.rank() == 0; }

// "0.25", or a string's characters.
std::string shown(const Array& a) {
  const Json values = to_json(a).value("values", Json::array());
  if (values.empty()) return a.str();
  if (values[0].is_string()) return values[0].get<std::string>();
  if (a.dtype() == graph::DType::kFloat) return cat(a.item<float>());
  if (a.dtype() == graph::DType::kDouble) return cat(a.item<double>());
  return dumped_line(values[0]).substr(0, dumped_line(values[0]).size() - 1);
}

void print_step(const Request& r, int64_t step, const std::vector<Array>& values, bool json) {
  if (json) {
    Json fetched = Json::object();
    for (size_t i = 0; i < values.size(); ++i)
      if (r.outs[i].empty() && (is_scalar(values[i]) || step == r.steps))
        fetched[r.fetches[i].name()] = to_json(values[i]);
    std::cout << dumped_line({{"step", step}, {"fetches", fetched}}) << std::flush;
    return;
  }
  std::string line;
  for (size_t i = 0; i < values.size(); ++i)
    if (is_scalar(values[i]) &&
        graph::dtype_size(values[i].dtype()) + (values[i].dtype() == graph::DType::kString) > 0)
      line += cat("  ", r.fetches[i].name(), " = ", shown(values[i]));
  if (!line.empty()) std::cout << "step " << step << line << '\n' << std::flush;
}

void print_last(const Request& r, const std::vector<Array>& values) {
  for (size_t i = 0; i < values.size(); ++i)
    if (r.outs[i].empty() && !is_scalar(values[i]))
      std::cout << r.fetches[i].name() << " = " << values[i].str() << '\n';
}

}  // namespace

int run_run(const std::vector<std::string>& words) {
  Args args("run",
            "Runs a graph: --init, then --restore, then --steps steps with the same feeds, then --save. "
            "Scalars are\n"
            "printed each step, --out keeps the last step's value. SIGINT and SIGTERM end after the step and "
            "the save.");
  args.positional("FILE", "the graph");
  declare_session_options(args);
  args.repeated("fetch", "tensor to fetch; several with commas or repeated")
      .repeated("out", "FILE.npy for the fetch of the same place in the order")
      .repeated("target", "node to run in each step; several with commas or repeated")
      .option("steps", "number of steps", "1")
      .option("save", "checkpoint prefix to write after the last step")
      .option("trace", "Chrome trace of the last step (JSON)");
  if (!args.parse(words)) return 0;
  const LoadedGraph loaded = load_graph(args.need("FILE"));
  const Request r = read_request(args, loaded);
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  const auto session = open_session(args, loaded, r.feeds);
  std::vector<Array> values;
  int64_t done = 0;
  runtime::RunMetadata metadata;
  const bool runs = !r.fetches.empty() || !r.targets.empty();
  for (; runs && done < r.steps && g_signal == 0; ++done) {
    const bool traced = !r.trace_path.empty() && done + 1 == r.steps;
    runtime::RunOptions options;
    if (traced) options.trace_level = runtime::TraceLevel::kFull;
    session->run_into(values, r.fetches, r.feeds, r.targets, options, traced ? &metadata : nullptr);
    if (!values.empty()) print_step(r, done + 1, values, args.has("json"));
  }
  if (!args.has("json")) print_last(r, values);
  for (size_t i = 0; i < values.size(); ++i)
    if (!r.outs[i].empty()) runtime::io::write_npy(r.outs[i], values[i]);
  if (!r.save_prefix.empty()) save(*session, loaded, r.save_prefix);
  if (!metadata.steps.empty()) runtime::write_chrome_trace(metadata, r.trace_path);
  if (g_signal == 0) return 0;
  std::cerr << "sluice-graph: stopped by signal " << g_signal << " after " << done << " steps\n";
  return 128 + g_signal;
}

}  // namespace sluice::tools
