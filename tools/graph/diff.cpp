// sluice-graph diff: what two graph files differ in.
#include <iostream>

#include "tools/graph/commands.h"
#include "tools/graph/files.h"
#include "tools/graph/json.h"

namespace sluice::tools {
namespace {

using namespace graph;

struct Change {
  std::string what, a, b;
};

std::string input_list(const Node& n) {
  std::string s;
  for (const Output& in : n.inputs()) s += cat(s.empty() ? "" : ", ", in.name());
  for (const Node* c : n.control_inputs()) s += cat(s.empty() ? "^" : ", ^", c->name());
  return s;
}

std::string output_list(const Node& n) {
  std::string s;
  for (int i = 0; i < n.num_outputs(); ++i) s += cat(i ? ", " : "", n.output_type(i), n.output_shape(i));
  return s;
}

std::vector<Change> changes(const Node& a, const Node& b) {
  std::vector<Change> out;
  auto compare = [&](const std::string& what, const std::string& x, const std::string& y) {
    if (x != y) out.push_back({what, x, y});
  };
  compare("op", a.op(), b.op());
  compare("device", a.device(), b.device());
  compare("inputs", input_list(a), input_list(b));
  compare("outputs", output_list(a), output_list(b));
  for (const auto& [name, value] : a.attrs()) {
    const AttrValue* other = b.find_attr(name);
    if (!other)
      out.push_back({"attr " + name, value.str(), "absent"});
    else if (!(*other == value))
      out.push_back({"attr " + name, value.str(), other->str()});
  }
  for (const auto& [name, value] : b.attrs())
    if (!a.find_attr(name)) out.push_back({"attr " + name, "absent", value.str()});
  return out;
}

}  // namespace

int run_diff(const std::vector<std::string>& words) {
  Args args("diff",
            "Compares two graph files node by node, by name. Exit code 0 when they are equal, 1 when not.");
  args.positional("A", "one graph").positional("B", "the other");
  if (!args.parse(words)) return 0;
  const LoadedGraph a = load_graph(args.need("A")), b = load_graph(args.need("B"));
  Json only_a = Json::array(), only_b = Json::array(), changed = Json::array();
  std::string text;
  for (const Node* n : a.graph->nodes()) {
    const Node* other = b.graph->find(n->name());
    if (!other) {
      only_a.push_back(n->name());
      text += cat("- ", n->name(), "  ", n->op(), '\n');
      continue;
    }
    const auto list = changes(*n, *other);
    if (list.empty()) continue;
    text += cat("! ", n->name(), "  ", n->op(), '\n');
    Json entries = Json::array();
    for (const Change& c : list) {
      text += cat("    ", c.what, ": ", c.a, " → ", c.b, '\n');
      entries.push_back({{"what", c.what}, {"a", c.a}, {"b", c.b}});
    }
    changed.push_back({{"name", n->name()}, {"changes", entries}});
  }
  for (const Node* n : b.graph->nodes()) {
    if (a.graph->find(n->name())) continue;
    only_b.push_back(n->name());
    text += cat("+ ", n->name(), "  ", n->op(), '\n');
  }
  const bool equal = text.empty();
  if (args.has("json"))
    std::cout << dumped({{"equal", equal}, {"only_a", only_a}, {"only_b", only_b}, {"changed", changed}});
  else
    std::cout << (equal ? "equal\n" : text);
  return equal ? 0 : 1;
}

}  // namespace sluice::tools
