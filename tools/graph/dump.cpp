// sluice-graph dump: prints or converts a graph file.
#include "tools/graph/commands.h"
#include "tools/graph/dot.h"
#include "tools/graph/files.h"
#include "tools/graph/json.h"

namespace sluice::tools {
namespace {

std::string format_of(const Args& args, const std::string& out) {
  if (args.has("format")) return args.get("format");
  if (args.has("json")) return "json";
  if (out.ends_with("txt")) return "pbtxt";
  for (const char* known : {"pb", "meta", "dot", "json"})
    if (out.ends_with(cat(".", known))) return known;
  return "text";
}

std::string rendered(const LoadedGraph& loaded, const std::string& format) {
  if (format == "text") return loaded.graph->str();
  if (format == "pb") return graph::graph_to_bytes(*loaded.graph);
  if (format == "pbtxt") return graph::graph_to_bytes(*loaded.graph, graph::FileFormat::kText);
  if (format == "meta") return graph::meta_graph_to_bytes(*loaded.graph, loaded.info);
  if (format == "dot") return to_dot(*loaded.graph);
  if (format == "json") return dumped(graph_json(*loaded.graph));
  throw UsageError(cat("--format is text, pb, pbtxt, meta, dot or json, not '", format, "'"));
}

}  // namespace

int run_dump(const std::vector<std::string>& words) {
  Args args("dump", "Prints a graph file (GraphDef or MetaGraphDef, binary or text), or converts it.");
  args.positional("FILE", "the graph")
      .option("format",
              "text (one line a node), pb, pbtxt, meta, dot or json; by default what --out's name says")
      .option("out", "write here instead of standard output");
  if (!args.parse(words)) return 0;
  const LoadedGraph loaded = load_graph(args.need("FILE"));
  const std::string out = args.get("out"), format = format_of(args, out);
  const bool graph_file = format == "pb" || format == "pbtxt";
  if (!out.empty() && graph_file && out.ends_with("txt") == (format == "pbtxt") && !out.ends_with(".meta"))
    save_graph(loaded, out);
  else
    emit(rendered(loaded, format), out);
  return 0;
}

}  // namespace sluice::tools
