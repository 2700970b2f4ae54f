#include "passes/gradients.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "graph/scopes.h"
#include "passes/aggregation.h"
#include "passes/control.h"
#include "passes/emit.h"

namespace sluice::passes {

using graph::base_dtype;
using graph::ColocateWith;
using graph::DeviceScope;
using graph::GradFn;
using graph::Gradients;
using graph::NameScope;
using graph::Shape;
using graph::Trait;

namespace {

bool flows(const Output& o) { return graph::is_trainable(o.dtype()); }

// Colocates with `node` for as long as it lives, where asked to.
struct MaybeColocate {
  std::optional<ColocateWith> with;
  MaybeColocate(bool wanted, Node& node) {
    if (wanted) with.emplace(node.graph(), &node);
  }
};

// The gradient function of a node, overrides first; null when there is none.
const GradFn* gradient_function(const Node& node) {
  const graph::OpRegistry& ops = node.graph().ops();
  if (const graph::AttrValue* attr = node.find_attr("_gradient_op_type")) {
    const std::string* type = attr->get_if<std::string>();
    SLUICE_REQUIRE(type, Code::kInvalidArgument, "_gradient_op_type of '", node.name(),
                   "' must be a string, is ", attr->str());
    if (const GradFn* fn = ops.find_gradient(*type)) return fn;
    const graph::OpDef* def = ops.find(*type);
    return def && def->grad ? &def->grad : nullptr;
  }
  if (const GradFn* fn = ops.find_gradient(node.op())) return fn;
  return node.def().grad ? &node.def().grad : nullptr;
}

// An op that acts as a constant whatever its registered functions say.
bool explicitly_none(const Node& node) {
  return node.has(Trait::kNotDifferentiable) && !node.find_attr("_gradient_op_type");
}

class Pass {
 public:
  Pass(Graph& g, const std::vector<Output>& ys, const std::vector<Output>& xs, const GradientOptions& options)
      : g_(g), ys_(ys), xs_(xs), o_(options), state_(static_cast<size_t>(g.last_id()) + 1) {}

  std::vector<GradValue> run() {
    NameScope scope(g_, o_.name.empty() ? "gradients" : o_.name);
    g_.unique_name("uid");  // TensorFlow spends this name to tag the call
    std::vector<GradValue> initial = initial_gradients();
    count_pending();
    for (size_t i = 0; i < ys_.size(); ++i) push(ys_[i], initial[i]);
    mark_stops();
    std::deque<Node*> queue;
    for (const Output& y : ys_) {
      State& s = at(*y.node);
      if (s.between && s.pending == 0 && !s.queued) s.queued = true, queue.push_back(y.node);
    }
    while (!queue.empty()) {
      Node& node = *queue.front();
      queue.pop_front();
      visit(node);
      for (const Output& in : node.inputs()) {
        State& s = at(*in.node);
        if (--s.pending == 0 && s.between) queue.push_back(in.node);
      }
    }
    return results();
  }

 private:
  struct State {
    bool reached = false, between = false, queued = false, stop = false, done = false;
    int pending = 0;
    std::vector<std::vector<GradValue>> parts;  // per output
  };

  State& at(const Node& n) { return state_[static_cast<size_t>(n.id())]; }

  void push(const Output& to, GradValue grad) {
    State& s = at(*to.node);
    if (s.parts.empty()) s.parts.resize(static_cast<size_t>(to.node->num_outputs()));
    s.parts[static_cast<size_t>(to.index)].push_back(std::move(grad));
  }

  GradValue initial_gradient(size_t i) {
    const Output& y = ys_[i];
    MaybeColocate beside(o_.colocate_gradients_with_ops, *y.node);
    Emit e{g_, o_.loc};
    std::string name = cat("grad_ys_", i);
    const GradValue given = o_.grad_ys.empty() ? GradValue() : o_.grad_ys[i];
    const DType t = y.dtype();
    if (given.none()) {
      SLUICE_REQUIRE(!graph::is_complex(t), Code::kInvalidArgument, "Gradients of complex tensors (",
                     y.name(), ") must set grad_ys");
      Output shape = e.shape(y);
      NameScope scope(g_, name);
      return e.op("Fill", {shape, e.scalar(t, 1.0)}, scope.scope());
    }
    DType have = given.is_slices() ? given.slices.values.dtype() : given.dense.dtype();
    auto real = [](DType d) { return graph::is_floating(d) || graph::is_integer(d); };
    SLUICE_REQUIRE(graph::is_complex(t) ? graph::is_complex(have) : (!real(t) || real(have)),
                   Code::kInvalidArgument, "Gradient type ", have, " given for tensor ", y.name(),
                   " with type ", t, " must be ", graph::is_complex(t) ? "complex" : "real or integer");
    if (!given.is_slices()) return e.op("Identity", {given.dense}, name);
    graph::IndexedSlices s;
    s.indices = e.op("Identity", {given.slices.indices}, name + "_indices");
    s.values = e.op("Identity", {given.slices.values}, name + "_values");
    if (given.slices.dense_shape)
      s.dense_shape = e.op("Identity", {given.slices.dense_shape}, name + "_shape");
    return s;
  }

  std::vector<GradValue> initial_gradients() {
    SLUICE_REQUIRE(o_.grad_ys.empty() || o_.grad_ys.size() == ys_.size(), Code::kInvalidArgument, "Passed ",
                   o_.grad_ys.size(), " grad_ys for ", ys_.size(), " ys");
    std::vector<GradValue> out;
    for (size_t i = 0; i < ys_.size(); ++i) out.push_back(initial_gradient(i));
    return out;
  }

  // Marks the ops between xs and ys and counts, per op, the inputs of such ops that its outputs feed.
  void count_pending() {
    state_.resize(static_cast<size_t>(g_.last_id()) + 1);  // the initial gradients are nodes too
    std::vector<Node*> work;
    for (const Output& x : xs_) work.push_back(x.node);
    while (!work.empty()) {
      Node& n = *work.back();
      work.pop_back();
      if (at(n).reached) continue;
      at(n).reached = true;
      for (const graph::Use& use : n.uses()) {
        if (flows(use.node->input(use.input)) && !at(*use.node).reached) work.push_back(use.node);
      }
    }
    std::vector<Node*> between;
    std::deque<Node*> queue;
    for (const Output& y : ys_) queue.push_back(y.node);
    while (!queue.empty()) {
      Node& n = *queue.front();
      queue.pop_front();
      if (!at(n).reached || at(n).between) continue;
      at(n).between = true;
      between.push_back(&n);
      for (const Output& in : n.inputs()) queue.push_back(in.node);
    }
    for (Node* n : between) {
      for (const Output& in : n->inputs()) {
        if (at(*in.node).between) ++at(*in.node).pending;
      }
    }
    between_ = std::move(between);
  }

  void mark_stops() {
    for (const Output& x : xs_) {
      bool inner = false;
      for (const Output& in : x.node->inputs()) inner = inner || at(*in.node).pending > 0;
      if (!inner) at(*x.node).stop = true;
    }
    for (const Output& s : o_.stop_gradients) at(*s.node).stop = true;
  }

  void visit(Node& node) {
    MaybeColocate beside(o_.colocate_gradients_with_ops, node);
    State& s = at(node);
    s.done = true;
    bool any = false;
    for (auto& parts : s.parts) {
      if (parts.size() > 1) parts = {aggregate(node, parts, o_.aggregation_method, o_.loc)};
      any = any || !parts.empty();
    }
    if (!any || s.stop || node.num_inputs() == 0 || explicitly_none(node)) return;
    const GradFn* fn = gradient_function(node);
    if (!fn) fail_missing(node);
    Gradients in_grads = call(node, *fn);
    for (int i = 0; i < node.num_inputs(); ++i) {
      const GradValue& grad = in_grads[static_cast<size_t>(i)];
      if (grad.none()) continue;
      const Output& input = node.input(i);
      if (!grad.is_slices() && input.dtype() != DType::kResource) check_shape(node, i, grad.dense);
      push(input, grad);
    }
  }

  Gradients call(Node& node, const GradFn& fn) {
    State& s = at(node);
    std::vector<GradValue> dys(static_cast<size_t>(node.num_outputs()));
    for (size_t i = 0; i < dys.size(); ++i) {
      if (!s.parts[i].empty()) {
        dys[i] = s.parts[i][0];
        continue;
      }
      Output y = node.output(static_cast<int>(i));
      // The loss does not depend on this output: its gradient is zero, not unknown.
      if (graph::is_floating(y.dtype()) || graph::is_complex(y.dtype())) {
        dys[i] = Emit{g_, node.loc()}.op("ZerosLike", {y}, "zeros_like");
        dys[i].filler = true;
      }
    }
    NameScope scope(g_, node.name() + "_grad");
    std::vector<bool> needed;
    for (const Output& in : node.inputs()) needed.push_back(at(*in.node).between);
    graph::Grad grad(g_, node, std::move(dys), std::move(needed));
    Gradients out = fn(grad);
    SLUICE_REQUIRE(out.size() == static_cast<size_t>(node.num_inputs()), Code::kInvalidArgument,
                   "Num gradients ", out.size(), " generated for op ", node.str(),
                   " do not match num inputs ", node.num_inputs());
    auto present = std::count_if(out.begin(), out.end(), [](const GradValue& v) { return !v.none(); });
    if (o_.gate_gradients && present > 1) {
      DeviceScope anywhere(g_, std::nullopt);
      ColocateWith free(g_, nullptr, /*ignore_existing=*/true);
      out = tuple(g_, out, {}, {}, node.loc());
    }
    return out;
  }

  void check_shape(Node& node, int i, Output grad) {
    const Shape& want = node.input(i).shape();
    if (grad.shape().compatible(want)) {
      g_.set_shape(grad, want);
      return;
    }
    throw_error(Code::kInvalidArgument,
                cat("Incompatible shapes between op input and calculated input gradient. Forward operation: ",
                    node.name(), ". Input index: ", i, ". Original input shape: ", want,
                    ". Calculated input gradient shape: ", grad.shape()),
                node.name(), node.loc());
  }

  // Every op the walk would still meet that has no gradient, so that the author mends them in one go.
  [[noreturn]] void fail_missing(Node& first) {
    std::vector<Node*> missing;
    for (Node* n : between_) {
      State& s = at(*n);
      bool met = n == &first || !s.done;
      if (met && !s.stop && n->num_inputs() > 0 && !explicitly_none(*n) && !gradient_function(*n)) {
        missing.push_back(n);
      }
    }
    std::string text =
        cat("No gradient defined for operation '", first.name(), "' (op type: ", first.op(), ")");
    if (missing.size() > 1) text = cat("No gradient defined for ", missing.size(), " operations");
    std::sort(missing.begin(), missing.end(), [](Node* a, Node* b) { return a->id() < b->id(); });
    for (Node* n : missing) {
      text += cat("\n  '", n->name(), "' (op type: ", n->op(), ")");
      if (n->loc().known()) text += cat(" made at ", n->loc().str());
    }
    text +=
        "\nGive the op a gradient (OpDef::grad, OpRegistry::add_gradient), or make it a constant with "
        "stop_gradient.";
    throw_error(Code::kInvalidArgument, std::move(text), first.name(), first.loc());
  }

  std::vector<GradValue> results() {
    std::vector<GradValue> out;
    for (const Output& x : xs_) {
      State& s = at(*x.node);
      GradValue v;
      if (s.done && !s.parts.empty() && !s.parts[static_cast<size_t>(x.index)].empty()) {
        v = s.parts[static_cast<size_t>(x.index)][0];
      }
      out.push_back(v);
    }
    return out;
  }

  Graph& g_;
  const std::vector<Output>& ys_;
  const std::vector<Output>& xs_;
  const GradientOptions& o_;
  std::vector<State> state_;  // by node id
  std::vector<Node*> between_;
};

}  // namespace

std::vector<GradValue> gradients(const std::vector<Output>& ys, const std::vector<Output>& xs,
                                 const GradientOptions& options) {
  SLUICE_REQUIRE(!ys.empty(), Code::kInvalidArgument, "gradients needs at least one y");
  SLUICE_REQUIRE(ys[0], Code::kInvalidArgument, "gradients: y 0 is none");
  Graph& g = ys[0].graph();
  auto check = [&](const std::vector<Output>& list, const char* what) {
    for (size_t i = 0; i < list.size(); ++i) {
      SLUICE_REQUIRE(list[i], Code::kInvalidArgument, "gradients: ", what, " ", i, " is none");
      SLUICE_REQUIRE(&list[i].graph() == &g, Code::kInvalidArgument, "Tensor ", list[i].name(),
                     " must be from the same graph as ", ys[0].name(), ".");
    }
  };
  check(ys, "y");
  check(xs, "x");
  check(options.stop_gradients, "stop_gradients");
  g.check_not_finalized();
  std::vector<GradValue> out = Pass(g, ys, xs, options).run();
  if (options.unconnected_gradients == UnconnectedGradients::kZero) {
    Emit e{g, options.loc};
    for (size_t i = 0; i < xs.size(); ++i) {
      if (!out[i].none()) continue;
      if (xs[i].dtype() != DType::kResource) {
        out[i] = e.op("ZerosLike", {xs[i]}, "zeros_like");
        continue;
      }
      DType t = xs[i].node->attr<DType>("dtype");
      NameScope scope(g, "zeros");
      Output shape = e.op("VariableShape", {xs[i]});
      out[i] = e.op("Fill", {shape, e.scalar(t, 0.0)}, scope.scope());
    }
  }
  return out;
}

std::vector<Node*> cutting_ops(const std::vector<Output>& ys, Output x) {
  Graph& g = x.graph();
  std::vector<char> reached(static_cast<size_t>(g.last_id()) + 1), seen(reached.size());
  std::vector<Node*> work{x.node};
  while (!work.empty()) {
    Node& n = *work.back();
    work.pop_back();
    if (std::exchange(reached[static_cast<size_t>(n.id())], 1)) continue;
    for (const graph::Use& use : n.uses()) work.push_back(use.node);
  }
  std::deque<Node*> queue;
  for (const Output& y : ys) queue.push_back(y.node);
  std::vector<Node*> cuts;
  while (!queue.empty()) {
    Node& n = *queue.front();
    queue.pop_front();
    size_t id = static_cast<size_t>(n.id());
    if (!reached[id] || std::exchange(seen[id], 1)) continue;
    bool integer = n.num_outputs() > 0;
    for (int i = 0; i < n.num_outputs(); ++i) integer = integer && !flows(n.output(i));
    if (n.num_inputs() > 0 && (explicitly_none(n) || integer)) {
      cuts.push_back(&n);
      continue;
    }
    for (const Output& in : n.inputs()) queue.push_back(in.node);
  }
  return cuts;
}

}  // namespace sluice::passes
