#include "runtime/plan/lower.h"

#include <algorithm>
#include <unordered_set>

#include "graph/fold.h"
#include "graph/infer.h"
#include "graph/support/check.h"
#include "runtime/plan/evaluate.h"

namespace sluice::runtime::plan {

using graph::Literal;
using graph::Node;
using graph::Output;
using graph::PartialInts;
using graph::Shape;

namespace {

// What is known of a variable at one place of the walk.
struct VariableState {
  std::shared_ptr<Variable> variable;
  std::optional<ValueSpec> spec;
  const Node* node = nullptr;
  ValueId handle = -1;
  ValueId read = -1;  // a read without control edges that later readers may share
  OpId last_write = -1;
  std::vector<OpId> reads;  // since the last write
};

class Lowering {
 public:
  Lowering(const LowerRequest& request, const BuildOptions& options)
      : request_(request),
        options_(options),
        outputs_(static_cast<size_t>(request.graph->last_id()) + 2),
        done_(outputs_.size(), -1),
        deferred_(outputs_.size(), 0) {}

  Lowered run();

 private:
  PlanGraph& g() { return result_.graph; }
  ValueId value_of(const Output& o);
  void lower_node(Node* n);
  void lower_constant(Node* n, const Literal& literal, const std::vector<OpId>& after);
  void lower_variable(Node* n);
  bool lower_view(Node* n, const std::vector<OpId>& after);
  void lower_op(Node* n, std::vector<OpId> after);
  ValueId read_variable(Node* n, ValueId handle, const std::vector<OpId>& after, bool is_ref);
  bool must_wait(Node* n);
  void defer(Node* n);
  bool resolve_unknown(Node* n, const graph::InferContext& c);
  bool feeds_behind(const Output& o, std::vector<int>& feeds);
  std::vector<Shape> infer(Node* n, graph::InferContext& c);
  VariableState& state(ValueId handle) { return variables_.at(g().value(handle).variable.get()); }
  VariableState& track(const std::shared_ptr<Variable>& v, const Node* node);
  ValueId new_handle(VariableState& s, const std::string& name);
  ValueId constant(Literal literal, std::string name);
  ValueId cast_value(ValueId v, DType to, const Node* n, const std::string& name, OpId* made);
  void set_outputs(Node* n, std::vector<ValueId> v) { outputs_[static_cast<size_t>(n->id())] = std::move(v); }
  void make_cut();

  const LowerRequest& request_;
  const BuildOptions& options_;
  Lowered result_;
  FedSet given_;                               // Output → index into request.given
  std::vector<ValueId> given_values_;          // made when first used
  std::vector<std::vector<ValueId>> outputs_;  // by node id
  std::vector<OpId> done_;                     // by node id: the op that completes it, -1: from the start
  std::vector<char> deferred_;                 // by node id
  std::vector<Node*> order_, waiting_;         // waiting_: deferred, in order
  std::unordered_set<Output, graph::OutputHash> wanted_by_value_;
  std::unordered_map<const Variable*, VariableState> variables_;
  std::unordered_set<const Variable*> waiting_reads_, waiting_writes_;
  std::unordered_map<ValueId, PartialInts> partial_;
  std::vector<char> is_target_;  // by node id
  double next_order_ = 0;
};

// A constant node: no inputs, one output, its value an attribute.
const Literal* constant_literal(const Node* n) {
  if (n->num_inputs() != 0 || n->num_outputs() != 1 || n->has(graph::kStateful)) return nullptr;
  const graph::AttrValue* a = n->find_attr("value");
  return a ? a->get_if<Literal>() : nullptr;
}

bool takes_ref(const Node* n, int input) {
  for (const graph::ArgSpec& a : n->def().input_args) {
    auto [first, last] = n->input_range(a.name);
    if (input >= first && input < last) return a.is_ref;
  }
  return false;
}

bool is_handle(const PlanValue& v) { return v.storage == Storage::kHandle; }

Literal widened(const Literal& l, const BuildOptions& o) {
  const DType t = plan_dtype(l.dtype(), o);
  return t == l.dtype() ? l : l.cast(t);
}

graph::AttrMap widened_attrs(const Node* n) {
  graph::AttrMap changed;
  for (const auto& [name, value] : n->attrs()) {
    if (const DType* t = value.get_if<DType>(); t && *t == DType::kFloat) changed[name] = DType::kDouble;
    if (const auto* list = value.get_if<std::vector<DType>>()) {
      std::vector<DType> wide = *list;
      std::replace(wide.begin(), wide.end(), DType::kFloat, DType::kDouble);
      if (wide != *list) changed[name] = wide;
    }
  }
  return changed;
}

// In reference64, ops that draw or read float values from outside, or only hand them outside, keep float;
// their values are widened or narrowed around them.
bool keeps_own_dtype(const Node* n) {
  if (!n->has(graph::kHostOnly) && !n->has(graph::kRandom) && !n->has(graph::kStateful)) return false;
  if (n->has(graph::kReadsVariable) || n->has(graph::kWritesVariable)) return false;
  bool in = false, out = false;
  for (const Output& o : n->inputs()) in |= graph::base_dtype(o.dtype()) == DType::kFloat;
  for (DType t : n->output_types()) out |= t == DType::kFloat;
  return !(in && out);
}

ValueId Lowering::constant(Literal literal, std::string name) {
  PlanValue v;
  v.spec = {literal.dtype(), literal.dims(), {}};
  v.storage = Storage::kConstant;
  v.literal = std::move(literal);
  v.name = std::move(name);
  return g().add_value(std::move(v));
}

ValueId Lowering::value_of(const Output& o) {
  if (const auto it = given_.find(o); it != given_.end()) {
    ValueId& id = given_values_[static_cast<size_t>(it->second)];
    if (id >= 0) return id;
    const Given& given = request_.given[static_cast<size_t>(it->second)];
    PlanValue v;
    v.spec = given.spec;
    v.name = value_name(o);
    v.literal = given.value;
    if (given.variable) {
      VariableState& s = track(given.variable, o.node);
      return id = s.handle;
    }
    v.storage = given.feed >= 0 ? Storage::kFeed : Storage::kConstant;
    v.feed = given.feed;
    return id = g().add_value(std::move(v));
  }
  const auto& outs = outputs_[static_cast<size_t>(o.node->id())];
  SLUICE_CHECK(static_cast<size_t>(o.index) < outs.size(), "output ", o.name(), " is not lowered yet");
  ValueId v = outs[static_cast<size_t>(o.index)];
  // A handle's shape follows the assignments seen so far.
  if (v >= 0 && is_handle(g().value(v))) v = state(v).handle;
  return v;
}

VariableState& Lowering::track(const std::shared_ptr<Variable>& variable, const Node* node) {
  auto [it, fresh] = variables_.try_emplace(variable.get());
  VariableState& s = it->second;
  if (fresh) {
    s.variable = variable;
    s.node = node;
    // The hash first: a change in between makes the plan miss, never match wrongly.
    result_.variables.push_back({variable, variable->spec_hash()});
    s.spec = variable->spec();
    if (!s.spec && node && node->has(graph::kVariable)) {
      const Shape shape = node->attr_or<Shape>("shape", Shape());
      if (shape.fully_known()) s.spec = ValueSpec{variable->dtype(), shape.dims(), {}};
    }
    new_handle(s, node ? node->name() : variable->name());
  }
  return s;
}

ValueId Lowering::new_handle(VariableState& s, const std::string& name) {
  PlanValue v;
  v.storage = Storage::kHandle;
  v.variable = s.variable;
  v.name = name;
  v.known_dims = s.spec.has_value();
  v.spec = s.spec ? *s.spec : ValueSpec{s.variable->dtype(), {}, {}};
  return s.handle = g().add_value(std::move(v));
}

void Lowering::lower_variable(Node* n) {
  std::string name = n->attr_or<std::string>("shared_name", "");
  if (name.empty()) name = n->name();
  const DType dtype = plan_dtype(n->attr<DType>("dtype"), options_);
  auto variable = options_.resources->variable(n->attr_or<std::string>("container", ""), name, dtype);
  set_outputs(n, {track(variable, n).handle});
}

void Lowering::lower_constant(Node* n, const Literal& literal, const std::vector<OpId>& after) {
  const ValueId v = constant(widened(literal, options_), n->output(0).name());
  if (!after.empty()) {
    done_[static_cast<size_t>(n->id())] = g().add({.op = n->op(),
                                                   .kind = OpKind::kBarrier,
                                                   .node = n,
                                                   .outputs = {v},
                                                   .after = after,
                                                   .order = next_order_++});
  }
  set_outputs(n, {v});
}

ValueId Lowering::read_variable(Node* n, ValueId handle, const std::vector<OpId>& after, bool is_ref) {
  VariableState& s = state(handle);
  if (s.read >= 0 && after.empty()) return s.read;
  if (!s.spec) {
    throw_error(Code::kFailedPrecondition,
                is_ref ? cat("Attempting to use uninitialized value ", s.variable->name())
                       : cat("Error while reading resource variable ", s.variable->name(),
                             " from Container: localhost. This could mean that the variable was "
                             "uninitialized. Not found: Resource localhost/",
                             s.variable->name(), " does not exist."),
                n->name(), n->loc());
  }
  PlanValue v;
  v.spec = *s.spec;
  v.storage = v.spec.dtype == DType::kString ? Storage::kDynamic : Storage::kVariable;
  v.variable = s.variable;
  v.name = n->num_outputs() > 0 ? n->output(0).name() : n->name();
  const ValueId out = g().add_value(std::move(v));
  PlanOp op{.op = "_Read",
            .kind = OpKind::kRead,
            .node = n,
            .attrs = {{"is_ref", is_ref}},
            .inputs = {s.handle},
            .outputs = {out},
            .after = after,
            .order = next_order_++};
  if (s.last_write >= 0) op.after.push_back(s.last_write);
  const OpId id = g().add(std::move(op));
  s.reads.push_back(id);
  if (after.empty()) s.read = out;
  return out;
}

// Identity, Reshape, ReadVariableOp …; false when this one needs a kernel after all.
bool Lowering::lower_view(Node* n, const std::vector<OpId>& after) {
  ValueId in = value_of(n->input(0));
  if (is_handle(g().value(in))) {
    const bool is_ref = graph::is_ref(n->input(0).node->output_type(n->input(0).index));
    if (graph::is_ref(n->output_type(0)) || n->output_type(0) == DType::kResource) {
      set_outputs(n, {in});
      if (!after.empty())
        done_[static_cast<size_t>(n->id())] = g().add(
            {.op = n->op(), .kind = OpKind::kBarrier, .node = n, .after = after, .order = next_order_++});
      return true;
    }
    const ValueId read = read_variable(n, in, after, is_ref);
    done_[static_cast<size_t>(n->id())] = g().value(read).producer;
    if (n->has(graph::kReadsVariable) || n->num_outputs() == 1) {
      in = read;
      if (n->has(graph::kReadsVariable)) {
        set_outputs(n, {read});
        return true;
      }
    }
  }
  if (!g().value(in).known_dims || n->num_outputs() != 1) return false;
  std::vector<Shape> shapes(static_cast<size_t>(n->num_inputs()));
  for (int i = 0; i < n->num_inputs(); ++i) {
    const PlanValue& v = g().value(i == 0 ? in : value_of(n->input(i)));
    if (v.known_dims) shapes[static_cast<size_t>(i)] = Shape(v.spec.dims);
  }
  auto literal = [&](int i) -> std::optional<Literal> {
    return g().value(i == 0 ? in : value_of(n->input(i))).literal;
  };
  auto partial = [&](int i) -> std::optional<PartialInts> {
    auto l = literal(i);
    return l ? to_partial(*l) : std::nullopt;
  };
  graph::InferContext c(*n, shapes, literal, partial, nullptr);
  const std::vector<Shape> out = infer(n, c);
  if (!out[0].fully_known()) {
    if (!resolve_unknown(n, c)) return false;
    return true;
  }
  const PlanValue source = g().value(in);
  SLUICE_REQUIRE(graph::num_elements(out[0].dims()) == source.spec.elements(), Code::kInvalidArgument,
                 "Input to '", n->name(), "' is a tensor with ", source.spec.elements(),
                 " values, but the requested shape has ", graph::num_elements(out[0].dims()));
  if (source.literal && after.empty() && source.producer < 0) {
    set_outputs(n, {constant(source.literal->reshaped(out[0].dims()), n->output(0).name())});
    return true;
  }
  PlanValue v;
  v.spec = {source.spec.dtype, out[0].dims(), {}};
  v.name = n->output(0).name();
  v.storage = source.storage == Storage::kDynamic || source.spec.dtype == DType::kString ? Storage::kDynamic
                                                                                         : Storage::kArena;
  if (source.literal) v.literal = source.literal->reshaped(out[0].dims());
  const ValueId id = g().add_value(std::move(v));
  done_[static_cast<size_t>(n->id())] = g().add({.op = n->op(),
                                                 .kind = OpKind::kView,
                                                 .node = n,
                                                 .inputs = {in},
                                                 .outputs = {id},
                                                 .after = after,
                                                 .traits = n->def().traits,
                                                 .order = next_order_++});
  set_outputs(n, {id});
  return true;
}

std::vector<Shape> Lowering::infer(Node* n, graph::InferContext& c) {
  if (n->def().infer) n->def().infer(c);
  std::vector<Shape> out = c.outputs();
  for (int i = 0; i < n->num_outputs(); ++i) {
    Shape& s = out[static_cast<size_t>(i)];
    // set_shape may have told the graph what the rule cannot know.
    if (!s.fully_known() && s.compatible(n->output_shape(i))) s = s.merge(n->output_shape(i));
  }
  return out;
}

ValueId Lowering::cast_value(ValueId v, DType to, const Node* n, const std::string& name, OpId* made) {
  const PlanValue& from = g().value(v);
  const DType src = from.spec.dtype;
  const ValueId out = g().add_value(ValueSpec{to, from.spec.dims, {}}, name);
  const OpId id = g().add({.op = "Cast",
                           .node = n,
                           .attrs = {{"SrcT", src}, {"DstT", to}, {"Truncate", false}},
                           .inputs = {v},
                           .outputs = {out},
                           .order = next_order_++});
  if (made) *made = id;
  return out;
}

void Lowering::lower_op(Node* n, std::vector<OpId> after) {
  const bool own = options_.widen && keeps_own_dtype(n);
  const int num_inputs = n->num_inputs(), num_outputs = n->num_outputs();
  std::vector<ValueId> in;
  std::vector<Shape> shapes;
  std::vector<VariableState*> handles;
  bool all_known = true;
  for (int i = 0; i < num_inputs; ++i) {
    ValueId v = value_of(n->input(i));
    if (is_handle(g().value(v))) {
      const bool is_ref = graph::is_ref(n->input(i).node->output_type(n->input(i).index));
      if (is_ref && !takes_ref(n, i))
        v = read_variable(n, v, after, true);
      else
        handles.push_back(&state(v));
    }
    const PlanValue& value = g().value(v);
    shapes.push_back(is_handle(value) && n->input(i).dtype() == DType::kResource ? Shape::scalar()
                     : value.known_dims                                          ? Shape(value.spec.dims)
                                                                                 : Shape());
    all_known &= value.literal.has_value();
    in.push_back(v);
  }
  auto literal = [&](int i) { return g().value(in[static_cast<size_t>(i)]).literal; };
  auto partial = [&](int i) -> std::optional<PartialInts> {
    const ValueId v = in[static_cast<size_t>(i)];
    if (const auto& l = g().value(v).literal) return to_partial(*l);
    const auto it = partial_.find(v);
    return it == partial_.end() ? std::nullopt : std::optional(it->second);
  };
  auto handle = [&](int i) {
    const PlanValue& v = g().value(in[static_cast<size_t>(i)]);
    return v.known_dims ? Shape(v.spec.dims) : Shape();
  };
  graph::InferContext c(*n, shapes, literal, partial, handle);
  const std::vector<Shape> out_shapes = infer(n, c);
  const bool stateful = n->has(graph::kStateful) || n->has(graph::kWritesVariable);

  // Shape rules' little integers: Shape, Size, Pack and their kin vanish here.
  std::vector<std::optional<PartialInts>> folded(static_cast<size_t>(num_outputs));
  if (n->def().fold && !stateful && num_outputs > 0) {
    graph::FoldContext fold(*n, partial);
    fold.use_shapes(shapes);
    n->def().fold(fold);
    folded = fold.outputs();
    const bool whole =
        std::all_of(folded.begin(), folded.end(), [](const auto& p) { return p && p->fully_known(); });
    if (whole) {
      std::vector<ValueId> outs;
      for (int i = 0; i < num_outputs; ++i)
        outs.push_back(
            constant(to_literal(*folded[static_cast<size_t>(i)], n->output_type(i)), n->output(i).name()));
      if (!after.empty())
        done_[static_cast<size_t>(n->id())] = g().add({.op = n->op(),
                                                       .kind = OpKind::kBarrier,
                                                       .node = n,
                                                       .outputs = outs,
                                                       .after = std::move(after),
                                                       .order = next_order_++});
      set_outputs(n, std::move(outs));
      return;
    }
  }

  const bool dims_known =
      std::all_of(out_shapes.begin(), out_shapes.end(), [](const Shape& s) { return s.fully_known(); });
  const bool value_free = std::none_of(n->output_types().begin(), n->output_types().end(), [](DType t) {
    return graph::is_ref(t) || t == DType::kResource || t == DType::kVariant;
  });
  if (!dims_known && value_free && !n->has(graph::kDynamicShape)) {
    if (resolve_unknown(n, c)) return;
    throw_error(Code::kUnimplemented,
                cat("The shape of an output of node '", n->name(), "' (op: '", n->op(),
                    "') cannot be told from its inputs"),
                n->name(), n->loc());
  }
  SLUICE_REQUIRE(options_.kernels->has(n->op()), Code::kUnimplemented, "No kernel for op '", n->op(),
                 "' on CPU");

  graph::AttrMap attrs;
  if (options_.widen && !own) attrs = widened_attrs(n);

  std::vector<ValueSpec> specs;
  bool small = dims_known && value_free && num_outputs > 0;
  for (int i = 0; i < num_outputs; ++i) {
    const Shape& s = out_shapes[static_cast<size_t>(i)];
    const DType t = graph::base_dtype(n->output_type(i));
    specs.push_back({own ? t : plan_dtype(t, options_), s.fully_known() ? s.dims() : Dims{}, {}});
    small &= specs.back().elements() <= kEvaluateElements && t != DType::kString;
  }
  const auto& off = options_.disabled_passes;
  const bool integers = std::all_of(specs.begin(), specs.end(), [](const ValueSpec& s) {
    return graph::is_integer(s.dtype) || s.dtype == DType::kBool;
  });
  const bool may_evaluate = integers || std::find(off.begin(), off.end(), "evaluate") == off.end();
  if (all_known && small && may_evaluate && !own && !stateful && !n->has(graph::kNumericCheck) &&
      !n->has(graph::kHostOnly) && !n->has(graph::kRandom) && !is_target_[static_cast<size_t>(n->id())]) {
    std::vector<Literal> values;
    bool fits = true;
    for (int i = 0; i < num_inputs; ++i) {
      values.push_back(*literal(i));
      fits &= values.back().elements() <= 16 * kEvaluateElements && values.back().dtype() != DType::kString;
    }
    if (fits) {
      if (auto result = evaluate(*n, attrs, values, specs, options_)) {
        std::vector<ValueId> outs;
        for (int i = 0; i < num_outputs; ++i)
          outs.push_back(constant((*result)[static_cast<size_t>(i)], n->output(i).name()));
        std::vector<OpId> deps = after;
        for (ValueId v : in)
          if (g().value(v).producer >= 0) deps.push_back(g().value(v).producer);
        if (!deps.empty())
          done_[static_cast<size_t>(n->id())] = g().add({.op = n->op(),
                                                         .kind = OpKind::kBarrier,
                                                         .node = n,
                                                         .outputs = outs,
                                                         .after = std::move(deps),
                                                         .order = next_order_++});
        set_outputs(n, std::move(outs));
        return;
      }
    }
  }

  if (own)
    for (ValueId& v : in)
      if (g().value(v).spec.dtype == DType::kDouble && !is_handle(g().value(v)))
        v = cast_value(v, DType::kFloat, n, g().value(v).name, nullptr);

  const bool writes = n->has(graph::kWritesVariable);
  SLUICE_REQUIRE(!writes || !handles.empty(), Code::kInvalidArgument, "Op '", n->op(),
                 "' writes a variable, but its input '", n->input(0).name(), "' is fed");
  const bool assigns = writes && n->has(graph::kAllowsUninitialized) && num_inputs >= 2;
  if (!n->has(graph::kAllowsUninitialized))
    for (VariableState* s : handles)
      if (!s->spec)
        throw_error(Code::kFailedPrecondition,
                    cat("Attempting to use uninitialized value ", s->variable->name()), n->name(), n->loc());
  for (VariableState* s : handles) {
    if (s->last_write >= 0) after.push_back(s->last_write);
    if (writes) after.insert(after.end(), s->reads.begin(), s->reads.end());
  }

  std::vector<ValueId> outs, results;
  for (int i = 0; i < num_outputs; ++i) {
    PlanValue v;
    v.spec = specs[static_cast<size_t>(i)];
    v.name = n->output(i).name();
    v.known_dims = out_shapes[static_cast<size_t>(i)].fully_known();
    const DType t = n->output_type(i);
    if (graph::is_ref(t)) {
      SLUICE_REQUIRE(!handles.empty(), Code::kInternal, "a ref output of an op without a ref input");
      v.storage = Storage::kHandle;
      v.variable = handles[0]->variable;
    } else if (t == DType::kString || !v.known_dims) {
      v.storage = Storage::kDynamic;
    }
    if (const auto& p = folded[static_cast<size_t>(i)])
      partial_[static_cast<ValueId>(g().values.size())] = *p;
    outs.push_back(g().add_value(std::move(v)));
  }
  const bool effect = stateful || n->has(graph::kNumericCheck) || is_target_[static_cast<size_t>(n->id())];
  const OpId id = g().add({.op = n->op(),
                           .node = n,
                           .attrs = std::move(attrs),
                           .inputs = in,
                           .outputs = outs,
                           .after = std::move(after),
                           .keep = effect,
                           .traits = n->def().traits,
                           .order = next_order_++});
  done_[static_cast<size_t>(n->id())] = id;
  results = outs;
  if (own)
    for (int i = 0; i < num_outputs; ++i)
      if (n->output_type(i) == DType::kFloat && !options_.kernels->candidates("Cast").empty())
        results[static_cast<size_t>(i)] =
            cast_value(outs[static_cast<size_t>(i)], DType::kDouble, n, n->output(i).name(), nullptr);
  for (VariableState* s : handles) {
    if (!writes) {
      s->reads.push_back(id);
      continue;
    }
    s->last_write = id;
    s->reads.clear();
    s->read = -1;
  }
  if (writes && n->has(graph::kAllowsUninitialized) && !assigns && !handles.empty()) {
    handles[0]->spec.reset();  // it may be gone now
    new_handle(*handles[0], n->name());
  }
  if (assigns && !handles.empty()) {
    VariableState& s = *handles[0];
    const PlanValue& value = g().value(in[1]);
    ValueSpec spec{s.variable->dtype(), value.spec.dims, s.variable->preferred_layout()};
    if (!value.known_dims)
      s.spec.reset();
    else
      s.spec = spec;
    new_handle(s, n->name());
  }
  set_outputs(n, std::move(results));
}

// True when the run must know more before this node's shape is fixed: more feeds by value, or a cut.
bool Lowering::resolve_unknown(Node* n, const graph::InferContext& c) {
  if (c.unknown_values_asked().empty()) return false;
  std::vector<int> feeds;
  bool from_feeds = true;
  for (int i : c.unknown_values_asked()) from_feeds &= feeds_behind(n->input(i), feeds);
  if (from_feeds && !feeds.empty()) {
    result_.by_value.insert(result_.by_value.end(), feeds.begin(), feeds.end());
  } else {
    // Known already and still not enough: the rule itself cannot tell.
    for (int i : c.unknown_values_asked())
      if (value_of(n->input(i)) >= 0 && g().value(value_of(n->input(i))).literal) return false;
    for (int i : c.unknown_values_asked()) wanted_by_value_.insert(n->input(i));
  }
  defer(n);
  return true;
}

// Collects the feeds that alone (with constants) decide a value; false when something else does.
bool Lowering::feeds_behind(const Output& start, std::vector<int>& feeds) {
  constexpr size_t kMaxNodes = 10'000;
  std::vector<Output> stack{start};
  std::unordered_set<Output, graph::OutputHash> seen{start};
  while (!stack.empty()) {
    const Output o = stack.back();
    stack.pop_back();
    if (const auto it = given_.find(o); it != given_.end()) {
      const Given& given = request_.given[static_cast<size_t>(it->second)];
      if (given.value) continue;
      if (given.feed < 0 || given.spec.elements() > kEvaluateElements || given.spec.dtype == DType::kString)
        return false;
      feeds.push_back(it->second);
      continue;
    }
    Node* n = o.node;
    const auto& outs = outputs_[static_cast<size_t>(n->id())];
    if (static_cast<size_t>(o.index) < outs.size() && g().value(outs[static_cast<size_t>(o.index)]).literal)
      continue;
    if (n->has(graph::kStateful) || n->has(graph::kVariable) || n->has(graph::kReadsVariable) ||
        n->num_inputs() == 0 || seen.size() > kMaxNodes)
      return false;
    for (const Output& in : n->inputs())
      if (seen.insert(in).second) stack.push_back(in);
  }
  return true;
}

// True when the node needs something that only a later part of the run makes.
bool Lowering::must_wait(Node* n) {
  auto late = [&](Node* m) { return deferred_[static_cast<size_t>(m->id())] != 0; };
  for (Node* c : n->control_inputs())
    if (late(c)) return true;
  for (const Output& in : n->inputs()) {
    if (given_.count(in)) continue;
    if (late(in.node)) return true;
    const ValueId v = value_of(in);
    if (v < 0) continue;
    const PlanValue& value = g().value(v);
    if (is_handle(value)) {
      const Variable* var = value.variable.get();
      const bool writes = n->has(graph::kWritesVariable);
      if (waiting_writes_.count(var) || (writes && waiting_reads_.count(var))) return true;
      // Assigned a value of unknown shape in this part: its readers come later.
      if (!value.known_dims && !n->has(graph::kAllowsUninitialized) && state(v).last_write >= 0) return true;
    } else if (!value.known_dims) {
      return true;
    }
  }
  return false;
}

void Lowering::defer(Node* n) {
  deferred_[static_cast<size_t>(n->id())] = 1;
  waiting_.push_back(n);
  for (const Output& in : n->inputs()) {
    if (!given_.count(in) && deferred_[static_cast<size_t>(in.node->id())]) continue;
    const ValueId v = value_of(in);
    if (v < 0 || !is_handle(g().value(v))) continue;
    (n->has(graph::kWritesVariable) ? waiting_writes_ : waiting_reads_).insert(g().value(v).variable.get());
  }
}

void Lowering::lower_node(Node* n) {
  if (must_wait(n)) return defer(n);
  std::vector<OpId> after;
  for (Node* c : n->control_inputs()) {
    const OpId d = done_[static_cast<size_t>(c->id())];
    if (d >= 0 && std::find(after.begin(), after.end(), d) == after.end()) after.push_back(d);
  }
  if (n->has(graph::kVariable)) return lower_variable(n);
  if (const Literal* l = constant_literal(n)) return lower_constant(n, *l, after);
  if (n->has(graph::kSource) && n->num_inputs() == 0) {
    const Shape shape = n->num_outputs() > 0 ? n->output_shape(0) : Shape();
    throw_error(Code::kInvalidArgument,
                cat("You must feed a value for placeholder tensor '", n->name(), "' with dtype ",
                    n->num_outputs() > 0 ? n->output_type(0) : DType::kInvalid,
                    shape.known_rank() ? cat(" and shape ", shape) : std::string()),
                n->name(), n->loc());
  }
  if (n->has(graph::kControlFlow))
    throw_error(Code::kUnimplemented,
                cat("Op '", n->op(), "' of node '", n->name(), "': TF1 control flow cannot be run yet"),
                n->name(), n->loc());
  const bool stateful = n->has(graph::kStateful) || n->has(graph::kMayBlock);
  if (n->num_outputs() == 0 && n->num_inputs() == 0 && !stateful) {
    if (!after.empty())
      done_[static_cast<size_t>(n->id())] = g().add(
          {.op = n->op(), .kind = OpKind::kBarrier, .node = n, .after = after, .order = next_order_++});
    return;
  }
  // Reads are stateful in TensorFlow and still only look; any other effect needs its kernel.
  const bool only_looks = n->has(graph::kReadsVariable) || (!stateful && !n->has(graph::kNumericCheck));
  if (n->has(graph::kViewOf0) && n->num_inputs() > 0 && only_looks && lower_view(n, after)) return;
  if (deferred_[static_cast<size_t>(n->id())]) return;
  lower_op(n, std::move(after));
}

void Lowering::make_cut() {
  auto cut = std::make_unique<Cut>();
  std::unordered_set<Output, graph::OutputHash> seen;
  auto need = [&](const Output& in) {
    if (!seen.insert(in).second) return;
    if (const auto it = given_.find(in); it != given_.end()) {
      const Given& given = request_.given[static_cast<size_t>(it->second)];
      if (given.feed >= 0)
        cut->feeds.push_back(it->second);
      else
        cut->given.push_back(given);
      return;
    }
    if (deferred_[static_cast<size_t>(in.node->id())]) return;
    const ValueId v = value_of(in);
    const PlanValue& value = g().value(v);
    if (is_handle(value)) {
      cut->given.push_back({in, value.spec, -1, std::nullopt, value.variable});
    } else if (value.literal) {
      cut->given.push_back({in, value.spec, -1, value.literal, nullptr});
    } else {
      cut->boundary.push_back(in);
      cut->by_value.push_back(wanted_by_value_.count(in) ? 1 : 0);
      g().boundary.push_back(v);
    }
  };
  for (Node* n : waiting_)
    for (const Output& in : n->inputs()) need(in);
  cut->nodes = std::move(waiting_);
  result_.cut = std::move(cut);
}

Lowered Lowering::run() {
  for (size_t i = 0; i < request_.given.size(); ++i)
    given_.emplace(request_.given[i].output, static_cast<int>(i));
  given_values_.assign(request_.given.size(), -1);
  is_target_.assign(outputs_.size(), 0);
  for (Node* n : request_.targets) is_target_[static_cast<size_t>(n->id())] = 1;
  result_.nodes = request_.only.empty()
                      ? needed_nodes(*request_.graph, request_.fetches, request_.targets, given_)
                      : request_.only;
  order_ = lowering_order(result_.nodes, given_);
  for (Node* n : order_) {
    try {
      lower_node(n);
    } catch (const Error& e) {
      if (!e.node().empty()) throw;
      throw_error(e.code(), e.message(), n->name(), n->loc());
    }
  }
  if (!result_.by_value.empty()) return std::move(result_);
  for (const Output& o : request_.fetches) {
    const bool late = !given_.count(o) && deferred_[static_cast<size_t>(o.node->id())];
    ValueId v = late ? -1 : value_of(o);
    if (v >= 0 && is_handle(g().value(v))) {
      SLUICE_REQUIRE(graph::is_ref(o.node->output_type(o.index)), Code::kInvalidArgument, "Tried to fetch '",
                     o.name(), "', a resource handle, which has no value");
      if (waiting_writes_.count(g().value(v).variable.get()) || !state(v).spec) {
        // Fetching a ref reads it at the end of the run.
        SLUICE_REQUIRE(waiting_writes_.empty(), Code::kUnimplemented, "Fetching the ref '", o.name(),
                       "' of a variable that is written behind a value of unknown shape");
      }
      OpId made = done_[static_cast<size_t>(o.node->id())];
      v = read_variable(o.node, v, made >= 0 ? std::vector<OpId>{made} : std::vector<OpId>{}, true);
    }
    g().fetches.push_back(v);
  }
  if (!waiting_.empty()) make_cut();
  g().forward_only = std::none_of(g().ops.begin(), g().ops.end(),
                                  [](const PlanOp& o) { return o.has(graph::kWritesVariable); });
  return std::move(result_);
}

}  // namespace

Lowered lower(const LowerRequest& request, const BuildOptions& options) {
  return Lowering(request, options).run();
}

}  // namespace sluice::runtime::plan
