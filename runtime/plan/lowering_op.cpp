#include <algorithm>

#include "graph/fold.h"
#include "graph/support/check.h"
#include "runtime/plan/evaluate.h"
#include "runtime/plan/lowering.h"

namespace sluice::runtime::plan {

namespace {

bool takes_ref(const Node* n, int input) {
  for (const graph::ArgSpec& a : n->def().input_args) {
    auto [first, last] = n->input_range(a.name);
    if (input >= first && input < last) return a.is_ref;
  }
  return false;
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

// Handles and refs have no value of their own whose shape could be asked for.
bool value_free(const Node* n) {
  return std::none_of(n->output_types().begin(), n->output_types().end(), [](DType t) {
    return graph::is_ref(t) || t == DType::kResource || t == DType::kVariant;
  });
}

bool all_known(const std::vector<Shape>& shapes) {
  return std::all_of(shapes.begin(), shapes.end(), [](const Shape& s) { return s.fully_known(); });
}

// Deletes what it writes: a variable that may be gone after the op.
bool only_clears(const OpCall& call) {
  const Node* n = call.n;
  return n->has(graph::kWritesVariable) && n->has(graph::kAllowsUninitialized) && n->num_inputs() < 2;
}

bool assigns(const OpCall& call) {
  const Node* n = call.n;
  return n->has(graph::kWritesVariable) && n->has(graph::kAllowsUninitialized) && n->num_inputs() >= 2;
}

}  // namespace

void Lowering::barrier(Node* n, std::vector<ValueId> outputs, std::vector<OpId> after) {
  if (after.empty()) return;
  done_[static_cast<size_t>(n->id())] = g().add({.op = n->op(),
                                                 .kind = OpKind::kBarrier,
                                                 .node = n,
                                                 .outputs = std::move(outputs),
                                                 .after = std::move(after),
                                                 .order = next_order_++});
}

ValueId Lowering::cast_value(ValueId v, DType to, const Node* n, const std::string& name) {
  const PlanValue& from = g().value(v);
  const DType src = from.spec.dtype;
  const ValueId out = g().add_value(ValueSpec{to, from.spec.dims, {}}, name);
  g().add({.op = "Cast",
           .node = n,
           .attrs = {{"SrcT", src}, {"DstT", to}, {"Truncate", false}},
           .inputs = {v},
           .outputs = {out},
           .order = next_order_++});
  return out;
}

// Refs become reads where the op wants a value; handles are kept apart, for the order of accesses.
void Lowering::read_inputs(OpCall& call) {
  Node* n = call.n;
  for (int i = 0; i < n->num_inputs(); ++i) {
    ValueId v = value_of(n->input(i));
    if (is_handle(g().value(v))) {
      const bool is_ref = graph::is_ref(n->input(i).node->output_type(n->input(i).index));
      if (is_ref && !takes_ref(n, i))
        v = read_variable(n, v, call.after, true);
      else
        call.handles.push_back(&state(v));
    }
    const PlanValue& value = g().value(v);
    call.shapes.push_back(is_handle(value) && n->input(i).dtype() == DType::kResource ? Shape::scalar()
                          : value.known_dims                                          ? Shape(value.spec.dims)
                                                                                      : Shape());
    call.all_known &= value.literal.has_value();
    call.in.push_back(v);
  }
}

// Shape rules' little integers: Shape, Size, Pack and their kin vanish here.
bool Lowering::fold_shapes(OpCall& call) {
  Node* n = call.n;
  call.folded.resize(static_cast<size_t>(n->num_outputs()));
  if (!n->def().fold || call.stateful || n->num_outputs() == 0) return false;
  graph::FoldContext fold(*n, [&](int i) { return known_integers(call.in[static_cast<size_t>(i)]); });
  fold.use_shapes(call.shapes);
  n->def().fold(fold);
  call.folded = fold.outputs();
  for (const auto& p : call.folded)
    if (!p || !p->fully_known()) return false;
  std::vector<ValueId> outs;
  for (int i = 0; i < n->num_outputs(); ++i)
    outs.push_back(
        constant(to_literal(*call.folded[static_cast<size_t>(i)], n->output_type(i)), n->output(i).name()));
  barrier(n, outs, std::move(call.after));
  set_outputs(n, std::move(outs));
  return true;
}

void Lowering::describe_outputs(OpCall& call) {
  const Node* n = call.n;
  if (options_.widen && !call.own) call.attrs = widened_attrs(n);
  for (int i = 0; i < n->num_outputs(); ++i) {
    const Shape& s = call.out_shapes[static_cast<size_t>(i)];
    const DType t = graph::base_dtype(n->output_type(i));
    call.specs.push_back({call.own ? t : plan_dtype(t, options_), s.fully_known() ? s.dims() : Dims{}, {}});
  }
}

// Small values whose inputs are all known are computed now; true when that was done.
bool Lowering::evaluate_now(OpCall& call) {
  Node* n = call.n;
  if (!call.all_known || call.own || call.stateful || n->num_outputs() == 0 || !value_free(n) ||
      !all_known(call.out_shapes) || is_target_[static_cast<size_t>(n->id())])
    return false;
  if (n->has(graph::kNumericCheck) || n->has(graph::kHostOnly) || n->has(graph::kRandom)) return false;
  bool integers = true;
  for (const ValueSpec& s : call.specs) {
    if (s.elements() > kEvaluateElements || s.dtype == DType::kString) return false;
    integers &= graph::is_integer(s.dtype) || s.dtype == DType::kBool;
  }
  const auto& off = options_.disabled_passes;
  if (!integers && std::find(off.begin(), off.end(), "evaluate") != off.end()) return false;

  std::vector<Literal> values;
  for (ValueId v : call.in) {
    values.push_back(*g().value(v).literal);
    if (values.back().elements() > 16 * kEvaluateElements || values.back().dtype() == DType::kString)
      return false;
  }
  auto result = evaluate(*n, call.attrs, values, call.specs, options_);
  if (!result) return false;
  std::vector<ValueId> outs;
  for (int i = 0; i < n->num_outputs(); ++i)
    outs.push_back(constant((*result)[static_cast<size_t>(i)], n->output(i).name()));
  for (ValueId v : call.in)
    if (g().value(v).producer >= 0) call.after.push_back(g().value(v).producer);
  barrier(n, outs, std::move(call.after));
  set_outputs(n, std::move(outs));
  return true;
}

// A read follows the last write; a write follows it and all reads since.
void Lowering::order_accesses(OpCall& call) {
  const Node* n = call.n;
  const bool writes = n->has(graph::kWritesVariable);
  SLUICE_REQUIRE(!writes || !call.handles.empty(), Code::kInvalidArgument, "Op '", n->op(),
                 "' writes a variable, but its input '", n->input(0).name(), "' is fed");
  for (const VariableState* s : call.handles) {
    if (!s->spec && !n->has(graph::kAllowsUninitialized))
      throw_error(Code::kFailedPrecondition,
                  cat("Attempting to use uninitialized value ", s->variable->name()), n->name(), n->loc());
    if (s->last_write >= 0) call.after.push_back(s->last_write);
    if (writes) call.after.insert(call.after.end(), s->reads.begin(), s->reads.end());
  }
}

void Lowering::emit(OpCall& call) {
  Node* n = call.n;
  std::vector<ValueId> outs;
  for (int i = 0; i < n->num_outputs(); ++i) {
    PlanValue v;
    v.spec = call.specs[static_cast<size_t>(i)];
    v.name = n->output(i).name();
    v.known_dims = call.out_shapes[static_cast<size_t>(i)].fully_known();
    const DType t = n->output_type(i);
    if (graph::is_ref(t)) {
      SLUICE_REQUIRE(!call.handles.empty(), Code::kInternal, "a ref output of an op without a ref input");
      v.storage = Storage::kHandle;
      v.variable = call.handles[0]->variable;
    } else if (t == DType::kString || !v.known_dims) {
      v.storage = Storage::kDynamic;
    }
    if (const auto& p = call.folded[static_cast<size_t>(i)])
      partial_[static_cast<ValueId>(g().values.size())] = *p;
    outs.push_back(g().add_value(std::move(v)));
  }
  const bool effect =
      call.stateful || n->has(graph::kNumericCheck) || is_target_[static_cast<size_t>(n->id())];
  const OpId id = g().add({.op = n->op(),
                           .node = n,
                           .attrs = std::move(call.attrs),
                           .inputs = call.in,
                           .outputs = outs,
                           .after = std::move(call.after),
                           .keep = effect,
                           .traits = n->def().traits,
                           .order = next_order_++});
  done_[static_cast<size_t>(n->id())] = id;
  if (call.own)
    for (int i = 0; i < n->num_outputs(); ++i)
      if (n->output_type(i) == DType::kFloat && !options_.kernels->candidates("Cast").empty())
        outs[static_cast<size_t>(i)] =
            cast_value(outs[static_cast<size_t>(i)], DType::kDouble, n, n->output(i).name());
  note_accesses(call, id);
  set_outputs(n, std::move(outs));
}

// What the op did to its variables, for whoever comes after it.
void Lowering::note_accesses(OpCall& call, OpId op) {
  const Node* n = call.n;
  for (VariableState* s : call.handles) {
    if (!n->has(graph::kWritesVariable)) {
      s->reads.push_back(op);
      continue;
    }
    s->last_write = op;
    s->reads.clear();
    s->read = -1;
  }
  if (call.handles.empty()) return;
  VariableState& first = *call.handles[0];
  if (only_clears(call)) {
    first.spec.reset();
    new_handle(first, n->name());
  } else if (assigns(call)) {
    const PlanValue& value = g().value(call.in[1]);
    first.spec.reset();
    if (value.known_dims)
      first.spec = ValueSpec{first.variable->dtype(), value.spec.dims, first.variable->preferred_layout()};
    new_handle(first, n->name());
  }
}

void Lowering::lower_op(Node* n, std::vector<OpId> after) {
  OpCall call{.n = n,
              .own = options_.widen && keeps_own_dtype(n),
              .stateful = n->has(graph::kStateful) || n->has(graph::kWritesVariable),
              .after = std::move(after)};
  read_inputs(call);
  auto literal = [&](int i) { return g().value(call.in[static_cast<size_t>(i)]).literal; };
  auto partial = [&](int i) { return known_integers(call.in[static_cast<size_t>(i)]); };
  auto handle = [&](int i) {
    const PlanValue& v = g().value(call.in[static_cast<size_t>(i)]);
    return v.known_dims ? Shape(v.spec.dims) : Shape();
  };
  graph::InferContext c(*n, call.shapes, literal, partial, handle);
  call.out_shapes = infer(n, c);
  if (fold_shapes(call)) return;
  if (!all_known(call.out_shapes) && value_free(n) && !n->has(graph::kDynamicShape)) {
    if (resolve_unknown(n, c)) return;
    throw_error(Code::kUnimplemented,
                cat("The shape of an output of node '", n->name(), "' (op: '", n->op(),
                    "') cannot be told from its inputs"),
                n->name(), n->loc());
  }
  SLUICE_REQUIRE(options_.kernels->has(n->op()), Code::kUnimplemented, "No kernel for op '", n->op(),
                 "' on CPU");
  describe_outputs(call);
  if (evaluate_now(call)) return;
  if (call.own)
    for (ValueId& v : call.in)
      if (g().value(v).spec.dtype == DType::kDouble && !is_handle(g().value(v)))
        v = cast_value(v, DType::kFloat, n, g().value(v).name);
  order_accesses(call);
  emit(call);
}

}  // namespace sluice::runtime::plan
