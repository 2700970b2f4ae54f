#include "runtime/plan/lowering.h"

#include "graph/support/check.h"
#include "runtime/plan/evaluate.h"

namespace sluice::runtime::plan {

// Identity, Reshape, ReadVariableOp …; false when this one needs a kernel after all.
bool Lowering::lower_view(Node* n, const std::vector<OpId>& after) {
  ValueId in = value_of(n->input(0));
  if (is_handle(g().value(in))) {
    const bool is_ref = graph::is_ref(n->input(0).node->output_type(n->input(0).index));
    if (graph::is_ref(n->output_type(0)) || n->output_type(0) == DType::kResource) {
      set_outputs(n, {in});
      barrier(n, {}, after);
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
  std::vector<Shape> out = infer(n, c);
  if (n->has(graph::kSource)) out[0] = shapes[0];
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

}  // namespace sluice::runtime::plan
