#include "graph/graph.h"

#include <algorithm>
#include <set>

#include "graph/fold.h"
#include "graph/infer.h"
#include "graph/node_resolve.h"
#include "graph/scopes.h"
#include "graph/support/check.h"
#include "graph/support/near.h"

namespace sluice::graph {
namespace {

std::string lower(std::string_view s) {
  std::string r(s);
  for (char& c : r) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return r;
}

bool contains(std::span<Node* const> list, const Node* n) {
  return std::find(list.begin(), list.end(), n) != list.end();
}

template <class T>
void erase_first(std::vector<T>& list, const T& value) {
  const auto it = std::find(list.begin(), list.end(), value);
  SLUICE_CHECK(it != list.end(), "edge lists out of step");
  *it = list.back();  // order among uses carries no meaning
  list.pop_back();
}

// §1.3: a controller adds its ops unless one of the inputs was made inside its block.
void add_scope_controls(const ScopeState& scopes, std::span<const Output> inputs,
                        std::vector<Node*>& controls) {
  for (const Controller& c : scopes.controllers) {
    const bool dominated =
        std::any_of(inputs.begin(), inputs.end(), [&](const Output& o) { return c.seen.contains(o.node); });
    if (dominated) continue;
    for (Node* n : c.controls) {
      const bool is_input =
          std::any_of(inputs.begin(), inputs.end(), [&](const Output& o) { return o.node == n; });
      if (!is_input && !contains(controls, n)) controls.push_back(n);
    }
  }
}

std::string scoped_device(const ScopeState& scopes, const std::string& own) {
  if (own.empty() && scopes.devices.empty()) return {};
  DeviceSpec d = DeviceSpec::parse(own);
  for (auto it = scopes.devices.rbegin(); it != scopes.devices.rend(); ++it) {
    if (!*it) break;
    d.merge_under(**it);
  }
  return d.str();
}

// What an op reads from or writes to a variable has the variable's type. TensorFlow checks it in the shape
// rules of most resource ops; here one place does for all.
void check_handle_types(const Node& n, const InferContext& c) {
  if (!n.has(kReadsVariable) && !n.has(kWritesVariable)) return;
  const AttrValue* value = n.find_attr("dtype");
  if (!value) value = n.find_attr("T");
  const DType* type = value ? value->get_if<DType>() : nullptr;
  if (!type) return;
  for (const Output& in : n.inputs()) {
    if (!in || in.dtype() != DType::kResource) continue;
    const Node* variable = variable_behind(in);
    const DType held = variable ? variable->attr_or<DType>("dtype", DType::kInvalid) : DType::kInvalid;
    if (held != DType::kInvalid && held != *type)
      c.fail(cat("Trying to read variable with wrong dtype. Expected ", held, " got ", *type));
  }
}

}  // namespace

Graph::Graph(const OpRegistry& ops) : ops_(ops), scopes_(std::make_unique<ScopeState>()) {}
Graph::~Graph() = default;

void Graph::check_not_finalized() const {
  SLUICE_REQUIRE(!finalized_, Code::kFailedPrecondition, "Graph is finalized and cannot be modified.");
}

Node& Graph::emplace(Node&& draft, std::shared_ptr<const OpDef> def) {
  auto owned = std::make_unique<Node>(std::move(draft));
  Node& n = *owned;
  n.def_ = std::move(def);
  n.graph_ = this;
  n.id_ = next_id_++;
  n.output_shapes_.resize(n.output_types_.size());
  nodes_.push_back(std::move(owned));
  by_name_.emplace(n.name_, &n);
  return n;
}

void Graph::link(Node& n) {
  for (int i = 0; i < n.num_inputs(); ++i)
    if (const Output& in = n.inputs_[static_cast<size_t>(i)]) in.node->uses_.push_back({&n, i});
  for (Node* c : n.control_inputs_) c->control_uses_.push_back(&n);
  touch();
}

Node& Graph::add(NodeSpec spec) {
  if (finalized_)
    throw_error(
        Code::kFailedPrecondition,
        cat("Graph is finalized and cannot be modified. Node '", spec.name.empty() ? spec.op : spec.name,
            "' (op: '", spec.op, "') comes too late: build the whole graph before it is run."),
        {}, spec.loc);
  auto def = ops_.find_shared(spec.op);
  if (!def) {
    throw_error(Code::kNotFound,
                cat("Op type not registered '", spec.op, "'.", did_you_mean(spec.op, ops_.names())), {},
                spec.loc);
  }
  Node draft;
  draft.loc_ = spec.loc;
  const std::string_view wanted =
      spec.name.empty() ? std::string_view(def->name) : std::string_view(spec.name);
  if (wanted.ends_with('/')) {
    draft.name_ = wanted.substr(0, wanted.size() - 1);
    SLUICE_REQUIRE(!by_name_.contains(draft.name_), Code::kAlreadyExists, "Node name '", draft.name_,
                   "' already exists in the Graph");
    used_names_.try_emplace(lower(draft.name_), 1);
  } else {
    SLUICE_REQUIRE(is_valid_scope_name(wanted, !scopes_->name_scope.empty()), Code::kInvalidArgument, "'",
                   wanted, "' is not a valid node name");
    draft.name_ = unique_name(wanted);
  }
  if (!is_valid_op_name(draft.name_))
    throw_error(Code::kInvalidArgument, cat("'", draft.name_, "' is not a valid node name"), {}, spec.loc);
  for (const Output& in : spec.inputs) {
    if (!in)
      throw_error(Code::kInvalidArgument,
                  cat("node '", draft.name_, "' (op '", def->name, "') has an empty input"), draft.name_,
                  spec.loc);
    if (&in.node->graph() != this)
      throw_error(Code::kInvalidArgument,
                  cat("Tensor ", in.name(), " must be from the same graph as ", draft.name_, "."),
                  draft.name_, spec.loc);
  }
  try {
    ResolvedNode r = resolve_node(*def, draft.name_, spec.inputs, std::move(spec.attrs));
    draft.attrs_ = std::move(r.attrs);
    draft.output_types_ = std::move(r.output_types);
  } catch (const Error& e) {
    throw Error(e.code(), e.message(), draft.name_, spec.loc);
  }
  draft.inputs_ = std::move(spec.inputs);
  for (Node* c : spec.control_inputs)
    if (c && !contains(draft.control_inputs_, c)) draft.control_inputs_.push_back(c);
  add_scope_controls(*scopes_, draft.inputs_, draft.control_inputs_);
  for (auto it = scopes_->attrs.rbegin(); it != scopes_->attrs.rend(); ++it)
    draft.attrs_.try_emplace(it->first, it->second);
  draft.device_ = scoped_device(*scopes_, spec.device);
  if (!scopes_->colocation.empty()) {
    std::set<std::string> groups;
    for (Node* c : scopes_->colocation) {
      const auto own = c->attr_or<std::vector<std::string>>("_class", {});
      bool any = false;
      for (const std::string& g : own)
        if (g.starts_with("loc:@")) groups.insert(g), any = true;
      if (!any) groups.insert("loc:@" + c->name());
      if (!c->device().empty()) draft.device_ = c->device();
    }
    draft.attrs_.insert_or_assign("_class",
                                  AttrValue(std::vector<std::string>(groups.begin(), groups.end())));
  }
  Node& n = emplace(std::move(draft), std::move(def));
  try {
    infer_shapes(n);
  } catch (...) {
    // The node was never visible: take it back so that a caller who catches finds the graph as it was.
    by_name_.erase(n.name_);
    nodes_.pop_back();
    --next_id_;
    throw;
  }
  for (Controller& c : scopes_->controllers) c.seen.insert(&n);
  link(n);
  return n;
}

Node& Graph::import_node(ImportedNode node, int producer) {
  check_not_finalized();
  auto def = ops_.find_shared(node.op);
  if (!def)
    throw_error(Code::kNotFound,
                cat("Op type not registered '", node.op, "'.", did_you_mean(node.op, ops_.names())),
                node.name);
  SLUICE_REQUIRE(is_valid_op_name(node.name), Code::kInvalidArgument, "'", node.name,
                 "' is not a valid node name");
  SLUICE_REQUIRE(!by_name_.contains(node.name), Code::kInvalidArgument, "Node '", node.name,
                 "' is not unique");
  std::erase_if(node.attrs, [&](const auto& a) { return def->ignores_attr(a.first, a.second); });
  Node draft;
  draft.name_ = node.name;
  used_names_.try_emplace(lower(node.name), 1);
  try {
    ResolvedNode r = resolve_node(*def, node.name, node.inputs, std::move(node.attrs));
    draft.attrs_ = std::move(r.attrs);
    draft.output_types_ = std::move(r.output_types);
  } catch (const Error& e) {
    throw Error(e.code(), e.message(), node.name);
  }
  // Before version 22 a placeholder's empty shape attr meant "unknown".
  if (producer < 22 && def->has(kSource) && def->input_args.empty()) {
    const auto it = draft.attrs_.find("shape");
    if (it != draft.attrs_.end() && it->second.get_if<Shape>() &&
        *it->second.get_if<Shape>() == Shape::scalar())
      it->second = Shape();
  }
  draft.inputs_ = std::move(node.inputs);
  for (Node* c : node.control_inputs)
    if (c && !contains(draft.control_inputs_, c)) draft.control_inputs_.push_back(c);
  draft.device_ = DeviceSpec::parse(node.device).str();
  Node& n = emplace(std::move(draft), std::move(def));
  try {
    infer_shapes(n);
  } catch (...) {
    by_name_.erase(n.name_);
    nodes_.pop_back();
    --next_id_;
    throw;
  }
  link(n);
  return n;
}

std::vector<Node*> Graph::nodes() const {
  std::vector<Node*> out;
  out.reserve(nodes_.size());
  for (const auto& n : nodes_)
    if (n) out.push_back(n.get());
  return out;
}

Node* Graph::find(std::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

Node& Graph::node(std::string_view name) const {
  if (Node* n = find(name)) return *n;
  std::vector<std::string> names;
  for (const auto& n : nodes_)
    if (n) names.push_back(n->name_);
  throw_error(Code::kNotFound, cat("The name '", name, "' refers to an Operation not in the graph.",
                                   did_you_mean(name, names)));
}

Output Graph::output(std::string_view name) const {
  const size_t colon = name.find(':');
  const std::string_view op = name.substr(0, colon);
  int index = -1;
  bool well_formed = colon != std::string_view::npos && !op.empty();
  if (well_formed) {
    const std::string_view digits = name.substr(colon + 1);
    const auto r = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    well_formed = r.ec == std::errc() && r.ptr == digits.data() + digits.size() && index >= 0;
  }
  if (colon == std::string_view::npos && find(name))
    throw_error(Code::kInvalidArgument, cat("The name '", name,
                                            "' refers to an Operation, not a Tensor. Tensor names "
                                            "must be of the form \"<op_name>:<output_index>\"."));
  SLUICE_REQUIRE(
      well_formed, Code::kInvalidArgument, "The name '", name,
      "' looks like an (invalid) Tensor name: it must be of the form \"<op_name>:<output_index>\".");
  Node* n = find(op);
  if (!n) {
    std::vector<std::string> names;
    for (const auto& m : nodes_)
      if (m) names.push_back(m->name_);
    throw_error(Code::kNotFound,
                cat("The name '", name, "' refers to a Tensor which does not exist. The operation, '", op,
                    "', does not exist in the graph.", did_you_mean(op, names)));
  }
  SLUICE_REQUIRE(index < n->num_outputs(), Code::kNotFound, "The name '", name,
                 "' refers to a Tensor which does not exist. The operation, '", op, "', exists but only has ",
                 n->num_outputs(), " outputs.");
  return {n, index};
}

void Graph::set_attr(Node& node, std::string name, AttrValue value) {
  check_not_finalized();
  node.attrs_.insert_or_assign(std::move(name), std::move(value));
  touch();
}

void Graph::remove_attr(Node& node, std::string_view name) {
  check_not_finalized();
  if (const auto it = node.attrs_.find(name); it != node.attrs_.end()) node.attrs_.erase(it);
  touch();
}

void Graph::set_device(Node& node, std::string device) {
  check_not_finalized();
  node.device_ = DeviceSpec::parse(device).str();
  touch();
}

void Graph::add_control_input(Node& node, Node& control) {
  check_not_finalized();
  if (&node == &control || contains(node.control_inputs_, &control)) return;
  node.control_inputs_.push_back(&control);
  control.control_uses_.push_back(&node);
  touch();
}

void Graph::remove_control_input(Node& node, Node& control) {
  check_not_finalized();
  const auto it = std::find(node.control_inputs_.begin(), node.control_inputs_.end(), &control);
  if (it == node.control_inputs_.end()) return;
  node.control_inputs_.erase(it);
  erase_first(control.control_uses_, &node);
  touch();
}

void Graph::set_input(Node& node, int index, Output value) {
  check_not_finalized();
  SLUICE_REQUIRE(index >= 0 && index < node.num_inputs(), Code::kInvalidArgument, "node '", node.name(),
                 "' has no input ", index);
  Output& slot = node.inputs_[static_cast<size_t>(index)];
  if (slot) {
    SLUICE_REQUIRE(!value || value.dtype() == slot.dtype(), Code::kInvalidArgument, "input ", index, " of '",
                   node.name(), "' is ", slot.dtype(), "; '", value.name(), "' is ", value.dtype());
    erase_first(slot.node->uses_, Use{&node, index});
  }
  slot = value;
  if (value) value.node->uses_.push_back({&node, index});
  touch();
}

void Graph::set_shape(Output output, const Shape& shape) {
  Shape& have = output.node->output_shapes_[static_cast<size_t>(output.index)];
  have = have.merge(shape);
  touch();
}

void Graph::replace_uses(Output from, Output to) {
  const std::vector<Use> uses(from.node->uses_.begin(), from.node->uses_.end());
  for (const Use& u : uses)
    if (u.node->input(u.input) == from && u.node != to.node) set_input(*u.node, u.input, to);
}

void Graph::remove(Node& node) {
  check_not_finalized();
  SLUICE_REQUIRE(node.uses_.empty() && node.control_uses_.empty(), Code::kFailedPrecondition, "node '",
                 node.name(), "' is still used and cannot be removed");
  for (int i = 0; i < node.num_inputs(); ++i)
    if (const Output& in = node.input(i)) erase_first(in.node->uses_, Use{&node, i});
  for (Node* c : node.control_inputs_) erase_first(c->control_uses_, &node);
  by_name_.erase(node.name_);
  nodes_[static_cast<size_t>(node.id_ - 1)].reset();
  ++removed_;
  touch();
}

void Graph::infer_shapes(Node& n) {
  std::vector<Shape> inputs;
  inputs.reserve(n.inputs_.size());
  for (const Output& in : n.inputs_) inputs.push_back(in ? in.shape() : Shape());
  if (!n.def_->infer) return;
  InferContext c(
      n, std::move(inputs),
      [&](int i) { return n.inputs_[static_cast<size_t>(i)] ? constant_value(n.input(i)) : std::nullopt; },
      [&](int i) { return n.inputs_[static_cast<size_t>(i)] ? partial_value(n.input(i)) : std::nullopt; },
      [&](int i) { return n.inputs_[static_cast<size_t>(i)] ? handle_shape(n.input(i)) : Shape(); });
  try {
    check_handle_types(n, c);
    n.def_->infer(c);
  } catch (const Error& e) {
    if (!e.node().empty()) throw;
    throw Error(e.code(), cat(e.message(), " (op: '", n.op(), "')"), n.name_, n.loc_);
  }
  n.output_shapes_ = std::move(c.outputs());
}

std::string Graph::unique_name(std::string_view name, bool mark_as_used) {
  std::string full = cat(scopes_->name_scope, name);
  std::string key = lower(full);
  const auto it = used_names_.find(key);
  int i = it == used_names_.end() ? 0 : it->second;
  if (mark_as_used) used_names_[key] = i + 1;
  if (i == 0) return full;
  std::string probe = cat(key, "_", i);
  while (used_names_.contains(probe)) probe = cat(key, "_", ++i);
  if (mark_as_used) {
    used_names_[key] = i + 1;
    used_names_[probe] = 1;
  }
  return cat(full, "_", i);
}

std::pair<int64_t, int64_t> Graph::op_seeds(std::optional<int64_t> op_seed) const {
  constexpr int64_t kDefaultGraphSeed = 87654321, kMax = (int64_t{1} << 31) - 1;
  auto wrap = [](int64_t v) { return ((v % kMax) + kMax) % kMax; };
  std::pair<int64_t, int64_t> s;
  if (seed_)
    s = {*seed_, op_seed ? *op_seed : last_id()};
  else if (op_seed)
    s = {kDefaultGraphSeed, *op_seed};
  else
    return {0, 0};
  s = {wrap(s.first), wrap(s.second)};
  return s == std::pair<int64_t, int64_t>{0, 0} ? std::pair<int64_t, int64_t>{0, kMax} : s;
}

std::string Graph::str() const {
  std::string s;
  for (const auto& n : nodes_)
    if (n) s += n->str() + "\n";
  return s;
}

}  // namespace sluice::graph
