// Restoring and saving: by the graph's own saver nodes, or straight between checkpoint and variables.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <set>
#include <string_view>

#include "runtime/io/checkpoint.h"
#include "tools/graph/feeds.h"

namespace sluice::tools {
namespace {

using namespace graph;
using runtime::Array;
using runtime::Session;
namespace io = runtime::io;

std::string resource_name(const Node& n) {
  const auto shared = n.attr_or<std::string>("shared_name", "");
  return shared.empty() ? n.name() : shared;
}

std::vector<Node*> variables(const Graph& g) {
  std::vector<Node*> out;
  for (Node* n : g.nodes())
    if (n->has(kVariable)) out.push_back(n);
  std::sort(out.begin(), out.end(), [](const Node* a, const Node* b) { return a->name() < b->name(); });
  return out;
}

// Sessions of SLUICE_PLAN=reference64 hold float variables as doubles.
DType held_as(DType declared) {
  const char* mode = std::getenv("SLUICE_PLAN");
  return declared == DType::kFloat && mode && std::string_view(mode) == "reference64" ? DType::kDouble
                                                                                      : declared;
}

void restore_directly(Session& session, const Graph& g, const std::string& prefix) {
  const std::vector<Node*> nodes = variables(g);
  std::vector<std::string> names;
  std::vector<DType> types;
  for (const Node* n : nodes) {
    names.push_back(n->name());
    types.push_back(n->attr<DType>("dtype"));
  }
  // All are read and checked before the first is set.
  const std::vector<Array> values = io::restore_tensors(prefix, names, {}, types);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Shape shape = nodes[i]->attr_or<Shape>("shape", Shape());
    SLUICE_REQUIRE(shape.compatible(Shape(values[i].dims())), Code::kInvalidArgument, prefix, ": variable '",
                   names[i], "': Assign requires shapes of both tensors to match. lhs shape= ", shape,
                   " rhs shape= ", dims_string(values[i].dims()));
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    const DType held = held_as(types[i]);
    session.resources()
        .variable(nodes[i]->attr_or<std::string>("container", ""), resource_name(*nodes[i]), held)
        ->assign(held == types[i] ? values[i] : values[i].cast(held));
  }
  // Surplus entries (moving averages, slots) are told, not refused (decisions #21).
  const io::BundleReader reader(prefix);
  const std::set<std::string> used(names.begin(), names.end());
  int surplus = 0;
  for (const auto& [name, entry] : reader.entries()) surplus += !used.contains(name);
  if (surplus)
    std::cerr << "note: " << prefix << " holds " << surplus
              << " tensors that no variable of the graph takes\n";
}

void save_directly(Session& session, const Graph& g, const std::string& prefix) {
  std::vector<std::string> names;
  std::vector<Array> values;
  for (const Node* n : variables(g)) {
    const auto v =
        session.resources().find_variable(n->attr_or<std::string>("container", ""), resource_name(*n));
    if (!v || !v->initialized()) continue;
    names.push_back(n->name());
    values.push_back(v->value());
  }
  SLUICE_REQUIRE(!names.empty(), Code::kFailedPrecondition, "No variables to save: none is initialised");
  io::save_tensors(prefix, names, {}, values);
}

runtime::Feed file_name_feed(const Graph& g, const SaverInfo& saver, const std::string& prefix) {
  return {output_named(g, saver.filename_tensor), Array::strings({}, {prefix})};
}

}  // namespace

std::optional<SaverInfo> find_saver(const LoadedGraph& loaded) {
  if (loaded.info.saver) return loaded.info.saver;
  const SaverInfo usual{.filename_tensor = "save/Const:0",
                        .save_tensor = "save/control_dependency:0",
                        .restore_op = "save/restore_all"};
  const Graph& g = *loaded.graph;
  if (g.find("save/Const") && g.find("save/control_dependency") && g.find("save/restore_all")) return usual;
  return std::nullopt;
}

void restore(Session& session, const LoadedGraph& loaded, const std::string& prefix) {
  const Graph& g = *loaded.graph;
  try {
    const auto saver = find_saver(loaded);
    if (!saver) return restore_directly(session, g, prefix);
    session.run({}, {file_name_feed(g, *saver, prefix)}, {&node_named(g, saver->restore_op)});
  } catch (const Error& e) {
    // The checkpoint was named on the command line: what is wrong with it is wrong use.
    if (e.code() == Code::kNotFound || e.code() == Code::kDataLoss || e.code() == Code::kInvalidArgument)
      throw UsageError(cat("Restoring from checkpoint failed. ", e.what()));
    throw;
  }
}

void save(Session& session, const LoadedGraph& loaded, const std::string& prefix) {
  const Graph& g = *loaded.graph;
  if (const auto saver = find_saver(loaded))
    session.run({output_named(g, saver->save_tensor)}, {file_name_feed(g, *saver, prefix)});
  else
    save_directly(session, g, prefix);
  const size_t slash = prefix.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : prefix.substr(0, slash + 1);
  const std::string inside = slash == std::string::npos ? prefix : prefix.substr(slash + 1);
  io::CheckpointState state = io::read_checkpoint_state(directory).value_or(io::CheckpointState{});
  const std::string joined = slash == std::string::npos ? "./" + inside : prefix;
  auto& all = state.all_model_checkpoint_paths;
  std::erase(all, joined);
  // Files that are gone are forgotten; timestamps would no longer fit the list.
  std::erase_if(all, [](const std::string& p) { return !io::checkpoint_exists(p); });
  all.push_back(joined);
  state.model_checkpoint_path = joined;
  state.timestamps.clear();
  io::write_checkpoint_state(directory, state);
  std::cerr << "saved " << prefix << '\n';
}

}  // namespace sluice::tools
