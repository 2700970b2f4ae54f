#include "runtime/plan/lower.h"

#include <algorithm>

#include "graph/support/check.h"
#include "runtime/plan/evaluate.h"
#include "runtime/plan/lowering.h"

namespace sluice::runtime::plan {

namespace {

// A constant node: no inputs, one output, its value an attribute.
const Literal* constant_literal(const Node* n) {
  if (n->num_inputs() != 0 || n->num_outputs() != 1 || n->has(graph::kStateful)) return nullptr;
  const graph::AttrValue* a = n->find_attr("value");
  return a ? a->get_if<Literal>() : nullptr;
}

Literal widened(const Literal& l, const BuildOptions& o) {
  const DType t = plan_dtype(l.dtype(), o);
  return t == l.dtype() ? l : l.cast(t);
}

}  // namespace

ValueId Lowering::constant(Literal literal, std::string name) {
  PlanValue v;
  v.spec = {literal.dtype(), literal.dims(), {}};
  v.storage = Storage::kConstant;
  v.literal = std::move(literal);
  v.name = std::move(name);
  return g().add_value(std::move(v));
}

// The value as integers, each known or not; nullopt when nothing is.
std::optional<PartialInts> Lowering::known_integers(ValueId v) {
  if (const auto& l = g().value(v).literal) return to_partial(*l);
  const auto it = partial_.find(v);
  return it == partial_.end() ? std::nullopt : std::optional(it->second);
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

void Lowering::lower_constant(Node* n, const Literal& literal, const std::vector<OpId>& after) {
  const ValueId v = constant(widened(literal, options_), n->output(0).name());
  barrier(n, {v}, after);
  set_outputs(n, {v});
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
    return barrier(n, {}, std::move(after));
  }
  // Reads are stateful in TensorFlow and still only look; any other effect needs its kernel.
  const bool only_looks = n->has(graph::kReadsVariable) || (!stateful && !n->has(graph::kNumericCheck));
  // A source with an input that is lowered at all was not fed: it is its input.
  const bool view = n->has(graph::kViewOf0) || n->has(graph::kSource);
  if (view && n->num_inputs() > 0 && only_looks && lower_view(n, after)) return;
  if (deferred_[static_cast<size_t>(n->id())]) return;
  lower_op(n, std::move(after));
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

Lowered lower(const LowerRequest& request, const BuildOptions& options) {
  return Lowering(request, options).run();
}

}  // namespace sluice::runtime::plan
