#include "passes/control.h"

#include <algorithm>
#include <map>

#include "passes/emit.h"

namespace sluice::passes {

using graph::ColocateWith;
using graph::ControlDependencies;
using graph::DeviceScope;
using graph::NameScope;

namespace {

Node& no_op(Graph& g, const std::vector<Node*>& after, const std::string& device, const std::string& name,
            Loc loc) {
  ControlDependencies deps(g, after);
  DeviceScope on(g, device);
  return Emit{g, loc}.node("NoOp", {}, name);
}

Node* op_of(const GradValue& v) { return v.is_slices() ? v.slices.values.node : v.dense.node; }

}  // namespace

Node& group(Graph& g, const std::vector<Node*>& nodes, const std::string& name, Loc loc) {
  NameScope scope(g, name.empty() ? "group_deps" : name);
  std::map<std::string, std::vector<Node*>> by_device;  // sorted by device string, as TensorFlow joins them
  for (Node* n : nodes) by_device[n->device()].push_back(n);
  if (by_device.size() <= 1) {
    return no_op(g, nodes, by_device.empty() ? std::string() : by_device.begin()->first, scope.scope(), loc);
  }
  std::vector<Node*> parts;
  for (auto& [device, members] : by_device) parts.push_back(&no_op(g, members, device, {}, loc));
  return no_op(g, parts, {}, scope.scope(), loc);
}

GradValue with_dependencies(const std::vector<Node*>& after, const GradValue& value, const std::string& name,
                            Loc loc) {
  SLUICE_REQUIRE(!value.none(), Code::kInvalidArgument, "with_dependencies needs a tensor, got none");
  Output t = value.is_slices() ? value.slices.values : value.dense;
  Graph& g = t.graph();
  NameScope scope(g, name.empty() ? "control_dependency" : name);
  ColocateWith beside(g, t.node);
  ControlDependencies deps(g, after);
  Output held = Emit{g, loc}.op("Identity", {t}, scope.scope());
  if (!value.is_slices()) return held;
  graph::IndexedSlices s = value.slices;
  s.values = held;
  return s;
}

std::vector<GradValue> tuple(Graph& g, const std::vector<GradValue>& values, const std::string& name,
                             const std::vector<Node*>& controls, Loc loc) {
  NameScope scope(g, name.empty() ? "tuple" : name);
  std::vector<Node*> gating;
  for (const GradValue& v : values) {
    if (!v.none()) gating.push_back(op_of(v));
  }
  SLUICE_REQUIRE(!gating.empty(), Code::kInvalidArgument, "Must have at least one Tensor");
  gating.insert(gating.end(), controls.begin(), controls.end());
  std::sort(gating.begin(), gating.end(), [](Node* a, Node* b) { return a->id() < b->id(); });
  gating.erase(std::unique(gating.begin(), gating.end()), gating.end());
  Node& gate = group(g, gating, {}, loc);
  std::vector<GradValue> out;
  for (const GradValue& v : values) {
    out.push_back(v.none() ? v : with_dependencies({&gate}, v, {}, loc));
  }
  return out;
}

}  // namespace sluice::passes
