#pragma once
// Scopes that act on every node made while they are open: name, device, colocation, control dependencies,
// attributes (graph-and-training §1.1–1.5). RAII: a scope ends with its C++ block, innermost first. One
// thread builds a graph.
//
//   NameScope s(g, "tower_0");
//   DeviceScope d(g, "/cpu:0");
//   ControlDependencies after(g, {update_op});

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "graph/graph.h"

namespace sluice::graph {

/// A partial device specification "/job:j/replica:0/task:1/device:GPU:0".
struct DeviceSpec {
  std::string job, type;
  int replica = -1, task = -1, index = -1;  // -1: unspecified
  bool any_index = false;                   // "/device:GPU:*"

  /// Reads any order and the legacy "/cpu:0"; InvalidArgument naming the unknown part.
  static DeviceSpec parse(std::string_view text);
  /// Fields already set here win; the others come from `outer`.
  void merge_under(const DeviceSpec& outer);
  /// Canonical order: job, replica, task, device; "" when nothing is set.
  std::string str() const;
  bool operator==(const DeviceSpec&) const = default;
};

/// One open control_dependencies block: its control ops and the nodes made inside it.
struct Controller {
  std::vector<Node*> controls;
  std::unordered_set<const Node*> seen;
};

/// The stacks behind the RAII objects; owned by the Graph.
struct ScopeState {
  std::string name_scope;                          // "" or "a/b/"
  std::vector<std::optional<DeviceSpec>> devices;  // nullopt: the walk stops here
  std::vector<Node*> colocation;
  std::vector<Controller> controllers;
  std::vector<std::pair<std::string, AttrValue>> attrs;
};

/// Opens a name scope (§1.1): uniquified under the current one; "x/" re-enters exactly "x/"; "" is the root.
class NameScope {
 public:
  NameScope(Graph& graph, std::string_view name);
  ~NameScope();
  NameScope(const NameScope&) = delete;
  NameScope& operator=(const NameScope&) = delete;
  /// "a/b/" or "".
  const std::string& scope() const { return scope_; }

 private:
  Graph& graph_;
  std::string scope_, former_;
};

/// nullopt device hides the outer device scopes.
class DeviceScope {
 public:
  DeviceScope(Graph& graph, std::optional<std::string> device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  Graph& graph_;
};

/// New nodes get `_class` of `node` and its device; the device scopes are hidden (§1.5). Null node needs
/// ignore_existing.
class ColocateWith {
 public:
  ColocateWith(Graph& graph, Node* node, bool ignore_existing = false);
  ~ColocateWith();
  ColocateWith(const ColocateWith&) = delete;
  ColocateWith& operator=(const ColocateWith&) = delete;

 private:
  Graph& graph_;
  std::vector<Node*> former_colocation_;
  std::vector<std::optional<DeviceSpec>> former_devices_;
};

/// New nodes run after `controls` (§1.3).
class ControlDependencies {
 public:
  ControlDependencies(Graph& graph, std::vector<Node*> controls);
  /// Hides every open control-dependency scope.
  struct Clear {};
  ControlDependencies(Graph& graph, Clear);
  ~ControlDependencies();
  ControlDependencies(const ControlDependencies&) = delete;
  ControlDependencies& operator=(const ControlDependencies&) = delete;

 private:
  Graph& graph_;
  bool clear_ = false;
  std::vector<Controller> former_;
};

/// New nodes get this attr unless they have it.
class AttrScope {
 public:
  AttrScope(Graph& graph, std::string name, AttrValue value);
  ~AttrScope();
  AttrScope(const AttrScope&) = delete;
  AttrScope& operator=(const AttrScope&) = delete;

 private:
  Graph& graph_;
};

/// True for a legal op name; §1.1's regex.
bool is_valid_op_name(std::string_view name);
/// True for a legal scope name (nested scopes may start with '_' or '-').
bool is_valid_scope_name(std::string_view name, bool nested);

}  // namespace sluice::graph
