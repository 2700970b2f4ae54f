#pragma once
// The graph: nodes with TensorFlow op names, typed outputs, inferred shapes, control edges, collections. A
// Graph owns its nodes (stable addresses, dense ids in creation order); `Output` is a non-owning value = node
// + output index, tied to the graph's life. Building is for one thread at a time; a finished graph may be
// read by any number. Scopes (name, device, colocation, control dependencies) are RAII objects in
// graph/scopes.h.
//
//   Graph g;
//   Node& x = g.add({.op = "Placeholder", .name = "x", .attrs = {{"dtype", DType::kFloat}, {"shape", Shape{2,
//   3}}}}); Node& y = g.add({.op = "Relu", .inputs = {x.output()}});          // named "Relu"

#include <any>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/attr.h"
#include "graph/collections.h"
#include "graph/op.h"
#include "graph/shape.h"
#include "graph/support/loc.h"

namespace sluice::graph {

class Graph;
class Node;

/// One output of a node; a value. The empty Output (node == nullptr) stands for "none".
struct Output {
  Node* node = nullptr;
  int index = 0;

  explicit operator bool() const { return node != nullptr; }
  bool operator==(const Output&) const = default;
  DType dtype() const;  // base type; see Node::output_type for ref-ness
  const Shape& shape() const;
  /// "a:0": the index always printed.
  std::string name() const;
  Graph& graph() const;
};

struct OutputHash {
  size_t operator()(const Output& o) const {
    return std::hash<const void*>{}(o.node) * 31 + static_cast<size_t>(o.index);
  }
};

/// A consumer of an output: node `node`'s input number `input`.
struct Use {
  Node* node = nullptr;
  int input = 0;
  bool operator==(const Use&) const = default;
};

class Node {
 public:
  int id() const { return id_; }
  const std::string& name() const { return name_; }
  const OpDef& def() const { return *def_; }
  /// The op's type, "Conv2D".
  const std::string& op() const { return def_->name; }
  bool has(Trait t) const { return def_->has(t); }
  /// Requested device, canonical form, "" when none.
  const std::string& device() const { return device_; }
  Graph& graph() const { return *graph_; }
  Loc loc() const { return loc_; }

  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  const Output& input(int i) const { return inputs_[static_cast<size_t>(i)]; }
  std::span<const Output> inputs() const { return inputs_; }
  std::span<Node* const> control_inputs() const { return control_inputs_; }
  /// Input index range [first, last) of the named input argument of the OpDef.
  std::pair<int, int> input_range(std::string_view arg) const;

  int num_outputs() const { return static_cast<int>(output_types_.size()); }
  Output output(int i = 0) { return {this, i}; }
  DType output_type(int i) const { return output_types_[static_cast<size_t>(i)]; }  // may be a ref type
  const Shape& output_shape(int i) const { return output_shapes_[static_cast<size_t>(i)]; }
  std::span<const DType> output_types() const { return output_types_; }

  /// Consumers of all outputs through data edges, in no particular order; a node using a value twice appears
  /// twice.
  std::span<const Use> uses() const { return uses_; }
  std::span<Node* const> control_uses() const { return control_uses_; }

  const AttrMap& attrs() const { return attrs_; }
  const AttrValue* find_attr(std::string_view name) const;
  /// The attr as T (int64_t, float, bool, std::string, DType, Shape, Literal, vectors). An empty list
  /// converts to any vector. Throws InvalidArgument naming node and attr when absent or of another kind.
  template <class T>
  T attr(std::string_view name) const;
  template <class T>
  T attr_or(std::string_view name, T fallback) const {
    return find_attr(name) ? attr<T>(name) : fallback;
  }

  /// One line for people: `name = Op[T=float](a:0, b:1) : float[2,3]  {file:line}`.
  std::string str() const;

 private:
  friend class Graph;
  int id_ = 0;
  std::string name_, device_;
  std::shared_ptr<const OpDef>
      def_;  // shared with the registry: a node outlives the registry it was made from
  Graph* graph_ = nullptr;
  Loc loc_;
  std::vector<Output> inputs_;
  std::vector<Node*> control_inputs_;
  std::vector<DType> output_types_;
  std::vector<Shape> output_shapes_;
  std::vector<Use> uses_;
  std::vector<Node*> control_uses_;
  AttrMap attrs_;
};

/// What `Graph::add` is asked for. Type and number attrs that follow from the inputs may be left out.
struct NodeSpec {
  std::string op;
  std::string name = {};            // "" : the op's type; ending in '/': exactly that name, no uniquifying
  std::vector<Output> inputs = {};  // flattened in the OpDef's order
  AttrMap attrs = {};
  std::vector<Node*> control_inputs = {};  // in addition to the open control-dependency scopes
  std::string device = {};                 // merged over the open device scopes (its fields win)
  Loc loc = Loc::current();
};

/// A node as a file states it; nothing is added, renamed or inferred from scopes.
struct ImportedNode {
  std::string name, op, device;
  std::vector<Output> inputs;  // a null Output is allowed for a back edge that set_input fills later
  std::vector<Node*> control_inputs;
  AttrMap attrs;
};

/// GraphDef's version numbers.
struct Versions {
  int producer = 134;
  int min_consumer = 0;
  std::vector<int> bad_consumers;
};

struct ScopeState;  // graph/scopes.h

class Graph {
 public:
  /// `ops` must hold every op the graph will use; it is copied (definitions are shared, the copy is cheap).
  explicit Graph(const OpRegistry& ops = standard_ops());
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// Makes a node under the open scopes in TensorFlow's order (§1.2): finalized check, name, control inputs,
  /// attrs, shapes, devices, colocation. Throws Error (InvalidArgument, NotFound, FailedPrecondition) naming
  /// op, node and line.
  Node& add(NodeSpec spec);
  /// Adds a node read from a file. `producer` is the file's GraphDef producer version.
  Node& import_node(ImportedNode node, int producer = 134);

  const OpRegistry& ops() const { return ops_; }
  int num_nodes() const { return static_cast<int>(nodes_.size()) - removed_; }
  /// All live nodes in creation order.
  std::vector<Node*> nodes() const;
  /// Null when there is none.
  Node* find(std::string_view name) const;
  /// "a" or "a:1" or "^a" is refused; TF's look-up errors (§1.1 "Look-up errors"), with near names.
  Output output(std::string_view name) const;
  Node& node(std::string_view name) const;

  // Mutation. Each checks the finalized flag and bumps `version`.
  void set_attr(Node& node, std::string name, AttrValue value);
  void remove_attr(Node& node, std::string_view name);
  void set_device(Node& node, std::string device);
  /// Adds a control edge; a duplicate or self edge is ignored.
  void add_control_input(Node& node, Node& control);
  void remove_control_input(Node& node, Node& control);
  void set_input(Node& node, int index, Output value);
  /// Merges knowledge into an output's shape (tf.Tensor.set_shape); InvalidArgument when it contradicts.
  void set_shape(Output output, const Shape& shape);
  /// Replaces every data use of `from` by `to`.
  void replace_uses(Output from, Output to);
  /// Removes a node nobody uses any more (data or control); FailedPrecondition otherwise.
  void remove(Node& node);
  /// Runs shape inference again for this node from its inputs' shapes (after set_input).
  void infer_shapes(Node& node);

  /// TF's unique_name: prefixes the current name scope, case-insensitive, `_1`, `_2`…; marks the name as
  /// used.
  std::string unique_name(std::string_view name, bool mark_as_used = true);

  /// No more nodes, attrs or edges; idempotent. unsafe_unfinalize is for monitored sessions that must
  /// restore.
  void finalize() { finalized_ = true; }
  void unsafe_unfinalize() { finalized_ = false; }
  bool finalized() const { return finalized_; }
  void check_not_finalized() const;
  /// Grows with every change; sessions compare it to know when to look again.
  uint64_t version() const { return version_; }

  /// Graph-level seed (§1.8); nullopt: none.
  void set_seed(std::optional<int64_t> seed) { seed_ = seed; }
  std::optional<int64_t> seed() const { return seed_; }
  /// The (seed, seed2) pair for an op with this op-level seed, by TF's table.
  std::pair<int64_t, int64_t> op_seeds(std::optional<int64_t> op_seed) const;
  /// Id of the last op created as TensorFlow counts it (1 for the first), which op_seeds uses.
  int last_id() const { return next_id_ - 1; }

  Collections& collections() { return collections_; }
  const Collections& collections() const { return collections_; }
  Versions& versions() { return versions_; }
  const Versions& versions() const { return versions_; }
  /// FunctionDefLibrary of the file this graph came from, serialized; kept verbatim.
  std::string& function_library() { return function_library_; }
  const std::string& function_library() const { return function_library_; }

  /// State that a higher layer keeps with the graph for as long as it lives (the DSL's variable store), by
  /// key; created empty.
  std::any& attachment(std::string_view key) {
    auto it = attachments_.find(key);
    return it != attachments_.end() ? it->second : attachments_[std::string(key)];
  }

  ScopeState& scopes() { return *scopes_; }
  const ScopeState& scopes() const { return *scopes_; }

  /// The text form: one line a node, in creation order.
  std::string str() const;

 private:
  friend class Node;
  Node& emplace(Node&& draft, std::shared_ptr<const OpDef> def);
  void link(Node& node);
  void touch() { ++version_; }

  OpRegistry ops_;
  std::vector<std::unique_ptr<Node>> nodes_;  // index = id - 1; null where removed
  int removed_ = 0;
  int next_id_ = 1;
  std::unordered_map<std::string_view, Node*> by_name_;  // keys view the node's own name
  std::unordered_map<std::string, int> used_names_;      // lower-cased full name → use count
  Collections collections_;
  Versions versions_;
  std::string function_library_;
  std::map<std::string, std::any, std::less<>> attachments_;
  std::optional<int64_t> seed_;
  bool finalized_ = false;
  uint64_t version_ = 0;
  std::unique_ptr<ScopeState> scopes_;
};

/// Nodes in an order where every node follows its data and control inputs (back edges into Merge ignored),
/// ties by id. InvalidArgument naming a node on the cycle when there is one.
std::vector<Node*> topological_order(const Graph& graph);

/// Nodes from which one of `roots` is reachable backwards through data and control edges, in creation order;
/// the walk does not pass an output in `feeds`. Iterative, so depth is no limit.
std::vector<Node*> ancestors(std::span<Node* const> roots, std::span<const Output> feeds = {});

void append(std::string& s, const Output& o);

}  // namespace sluice::graph
