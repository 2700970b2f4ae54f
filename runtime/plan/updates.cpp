// An optimizer's update and the loop region that makes its gradient become one pass over the variable, in
// place:
//
//   w ─► Mul(wd) ─┐
//   dW ──────────AddN ─► ApplyMomentum(w, a, lr, ·, μ)   =>   _Update: a = a·μ + (dW + wd·w); w = w − lr·a
//
// "_Update" (kernels/cpu/update.cpp): the first `handles` inputs are variables, read and written by the
// program's first operands and outputs; the others are values, whole ones first. The variable's former reads
// inside the gradient become reads of the operand itself, which holds no copy of it. group_updates.cpp then
// makes one step of the updates of many variables.

#include <algorithm>

#include "graph/support/check.h"
#include "runtime/plan/fragment.h"
#include "runtime/plan/fusions.h"

namespace sluice::runtime::plan {
namespace {

// Registers of an update: state (variable, slots), then gradient, then scalars in the op's order.
using Write = void (*)(RegionWriter& w, const std::vector<int>& state, int grad, const std::vector<int>& h,
                       bool flag);

void gradient_descent(RegionWriter& w, const std::vector<int>& s, int g, const std::vector<int>& h, bool) {
  w.out(w.op("Sub", {s[0], w.op("Mul", {h[0], g})}), RegionExtent::kWhole);
}

// h: lr, momentum
void momentum(RegionWriter& w, const std::vector<int>& s, int g, const std::vector<int>& h, bool nesterov) {
  const int a = w.op("Add", {w.op("Mul", {s[1], h[1]}), g});
  const int step = nesterov
                       ? w.op("Add", {w.op("Mul", {w.op("Mul", {a, h[1]}), h[0]}), w.op("Mul", {g, h[0]})})
                       : w.op("Mul", {h[0], a});
  const int v = w.op("Sub", {s[0], step});
  w.out(v, RegionExtent::kWhole);
  w.out(a, RegionExtent::kWhole);
}

// h: lr, rho, momentum, epsilon
void rms_prop(RegionWriter& w, const std::vector<int>& s, int g, const std::vector<int>& h, bool) {
  const int rest = w.op("Sub", {w.imm(1), h[1]});
  const int ms = w.op("Add", {w.op("Mul", {w.op("Sub", {w.op("Square", {g}), s[1]}), rest}), s[1]});
  const int root = w.op("Sqrt", {w.op("Add", {ms, h[3]})});
  const int mom = w.op("Add", {w.op("Mul", {s[2], h[2]}), w.op("RealDiv", {w.op("Mul", {g, h[0]}), root})});
  w.out(w.op("Sub", {s[0], mom}), RegionExtent::kWhole);
  w.out(ms, RegionExtent::kWhole);
  w.out(mom, RegionExtent::kWhole);
}

// h: beta1_power, beta2_power, lr, beta1, beta2, epsilon
void adam(RegionWriter& w, const std::vector<int>& s, int g, const std::vector<int>& h, bool nesterov) {
  const int one = w.imm(1);
  const int alpha = w.op(
      "RealDiv", {w.op("Mul", {h[2], w.op("Sqrt", {w.op("Sub", {one, h[1]})})}), w.op("Sub", {one, h[0]})});
  const int rest1 = w.op("Sub", {one, h[3]}), rest2 = w.op("Sub", {one, h[4]});
  const int m = w.op("Add", {w.op("Mul", {w.op("Sub", {g, s[1]}), rest1}), s[1]});
  const int v = w.op("Add", {w.op("Mul", {w.op("Sub", {w.op("Square", {g}), s[2]}), rest2}), s[2]});
  const int top = nesterov ? w.op("Add", {w.op("Mul", {m, h[3]}), w.op("Mul", {rest1, g})}) : m;
  const int step = w.op("RealDiv", {w.op("Mul", {top, alpha}), w.op("Add", {w.op("Sqrt", {v}), h[5]})});
  w.out(w.op("Sub", {s[0], step}), RegionExtent::kWhole);
  w.out(m, RegionExtent::kWhole);
  w.out(v, RegionExtent::kWhole);
}

struct UpdateRule {
  const char* op;  // and "Resource" + op
  int handles;
  int scalars;
  int grad;  // input number of the gradient; the scalars are the other inputs in order
  const char* flag;
  Write write;
};

constexpr UpdateRule kRules[] = {
    {"ApplyAdam", 3, 6, 9, "use_nesterov", adam},
    {"ApplyGradientDescent", 1, 1, 2, nullptr, gradient_descent},
    {"ApplyMomentum", 2, 2, 3, "use_nesterov", momentum},
    {"ApplyRMSProp", 3, 4, 7, nullptr, rms_prop},
};

const UpdateRule* rule_of(const std::string& op) {
  constexpr std::string_view kResource = "Resource";
  std::string_view name = op;
  if (name.substr(0, kResource.size()) == kResource) name.remove_prefix(kResource.size());
  for (const UpdateRule& r : kRules)
    if (name == r.op) return &r;
  return nullptr;
}

class UpdateFusion {
 public:
  explicit UpdateFusion(PlanGraph& g) : g_(g), readers_(g.readers()), followers_(g.ops.size(), 0) {
    for (const auto& preds : g_.predecessors())
      for (OpId p : preds) ++followers_[static_cast<size_t>(p)];
    for (OpId id : g.live())
      if (g.op(id).has(graph::kWritesVariable))
        for (ValueId v : g.op(id).inputs)
          if (g.value(v).storage == Storage::kHandle) ++writers_[g.value(v).variable.get()];
  }

  void run() {
    for (OpId id : g_.live())
      if (const UpdateRule* rule = rule_of(g_.op(id).op)) fuse(id, *rule);
  }

 private:
  bool fits(const PlanOp& op, const UpdateRule& rule) const {
    if (static_cast<int>(op.inputs.size()) != rule.handles + rule.scalars + 1) return false;
    const PlanValue& grad = g_.value(op.inputs[static_cast<size_t>(rule.grad)]);
    if (!grad.known_dims || grad.spec.elements() == 0) return false;
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      const PlanValue& v = g_.value(op.inputs[i]);
      if (v.spec.dtype != DType::kFloat || !v.known_dims) return false;
      const bool handle = static_cast<int>(i) < rule.handles;
      if ((v.storage == Storage::kHandle) != handle || v.storage == Storage::kDynamic) return false;
      if (handle && (v.spec.dims != grad.spec.dims || !v.spec.layout.plain())) return false;
      if (!handle && static_cast<int>(i) != rule.grad && v.spec.elements() != 1) return false;
    }
    for (int i = 0; i < rule.handles; ++i)
      for (int j = 0; j < i; ++j)
        if (g_.value(op.inputs[static_cast<size_t>(i)]).variable ==
            g_.value(op.inputs[static_cast<size_t>(j)]).variable)
          return false;
    return true;
  }

  // The region that makes the gradient and nothing else, for nobody else.
  OpId gradient_region(ValueId read, ValueId grad) const {
    // Nobody else may read it, or wait for it, anywhere on the way.
    for (ValueId v = read;; v = g_.op(g_.value(v).producer).inputs[0]) {
      const OpId made_by = g_.value(v).producer;
      if (made_by < 0 || readers_[static_cast<size_t>(v)].size() != 1 || g_.is_output(v) ||
          followers_[static_cast<size_t>(made_by)] != 1)
        return -1;
      if (v == grad) break;
    }
    const OpId p = g_.value(grad).producer;
    if (p < 0 || g_.op(p).op != "_Region" || g_.op(p).outputs.size() != 1 || g_.op(p).keep) return -1;
    if (g_.op(p).attrs.count("channels_last") || readers_[static_cast<size_t>(grad)].size() != 1 ||
        g_.is_output(grad))
      return -1;
    const RegionProgram& program = *g_.op(p).region;
    if (program.outputs[0].reduce != RegionReduce::kNone) return -1;
    for (const RegionInput& in : program.inputs)
      if (in.extent != RegionExtent::kWhole && in.extent != RegionExtent::kScalar) return -1;
    return p;
  }

  void fuse(OpId id, const UpdateRule& rule) {
    const PlanOp op = g_.op(id);
    if (!fits(op, rule)) return;
    const ValueId grad = source_of(g_, op.inputs[static_cast<size_t>(rule.grad)]);
    const int64_t count = g_.value(grad).spec.elements();
    const auto handles = static_cast<size_t>(rule.handles);

    Fragment update;
    update.space.count = count;
    RegionWriter w(1, count);
    std::vector<int> state, scalars;
    for (size_t i = 0; i < handles; ++i) state.push_back(w.in(RegionExtent::kWhole));
    const int grad_reg = w.in(RegionExtent::kWhole);
    update.inputs.assign(op.inputs.begin(), op.inputs.begin() + rule.handles);
    update.inputs.push_back(grad);
    for (size_t i = handles; i < op.inputs.size(); ++i) {
      if (static_cast<int>(i) == rule.grad) continue;
      scalars.push_back(w.in(RegionExtent::kScalar));
      update.inputs.push_back(op.inputs[i]);
    }
    const bool flag = rule.flag && op.node && op.node->attr_or<bool>(rule.flag, false);
    rule.write(w, state, grad_reg, scalars, flag);
    update.program = w.take();
    // Outputs of the loop are the state's new values; they have no value of their own in the plan.
    for (size_t i = 0; i < handles; ++i)
      update.outputs.push_back(g_.add_value(g_.value(op.inputs[i]).spec, "state"));

    RegionJoiner joiner(g_, update.space);
    for (size_t i = 0; i < handles; ++i) joiner.add_input(op.inputs[i], RegionExtent::kWhole, DType::kFloat);
    PlanOp joint{.op = "_Update",
                 .node = op.node,
                 .attrs = {{"handles", int64_t{rule.handles}}, {"tensors", int64_t{1}}},
                 .outputs = op.outputs,
                 .after = op.after,
                 .nodes = op.nodes,
                 .keep = true,
                 .traits = op.traits,
                 .order = op.order};
    const OpId region = gradient_region(op.inputs[static_cast<size_t>(rule.grad)], grad);
    if (region >= 0) {
      const PlanOp& from = g_.op(region);
      Fragment f;
      f.space.count = count;
      f.program = *from.region;
      f.outputs = from.outputs;
      for (ValueId v : from.inputs) f.inputs.push_back(own_read(v, op, handles));
      joiner.add(f);
      joint.nodes.insert(joint.nodes.end(), from.nodes.begin(), from.nodes.end());
      joint.after.insert(joint.after.end(), from.after.begin(), from.after.end());
    }
    joiner.add(update);
    for (ValueId v : update.outputs) joiner.emit(v);
    std::vector<ValueId> ignored;
    std::vector<ValueId> inputs;
    RegionProgram program = joiner.take(inputs, ignored);
    for (const bool whole : {true, false})
      for (size_t i = 0; i < inputs.size(); ++i)
        if ((program.inputs[i].extent == RegionExtent::kWhole) == whole) joint.inputs.push_back(inputs[i]);
    // Formulas that differ in the order of two terms alone are one.
    for (RegionInst& inst : program.insts)
      if (inst.args.size() == 2 &&
          (inst.op == "Add" || inst.op == "AddV2" || inst.op == "AddN" || inst.op == "Mul"))
        std::sort(inst.args.begin(), inst.args.end());
    for (const graph::Node* n : joint.nodes) program.nodes.push_back(n->name());
    joint.region = std::make_shared<const RegionProgram>(std::move(program));
    const OpId made = g_.add(std::move(joint));
    g_.remove(id, made);
    if (region >= 0) {
      g_.value(grad).producer = -1;
      g_.remove(region, made);
    }
  }

  // A read of a variable that this op alone writes is the variable itself: reads come before the write.
  ValueId own_read(ValueId v, const PlanOp& update, size_t handles) const {
    const ValueId read = source_of(g_, v);
    const OpId p = g_.value(read).producer;
    if (p < 0 || g_.op(p).kind != OpKind::kRead || !g_.op(p).after.empty()) return v;
    for (size_t i = 0; i < handles; ++i) {
      const PlanValue& handle = g_.value(update.inputs[i]);
      const auto it = writers_.find(handle.variable.get());
      if (g_.value(read).variable == handle.variable && it != writers_.end() && it->second == 1)
        return update.inputs[i];
    }
    return v;
  }

  PlanGraph& g_;
  std::vector<std::vector<OpId>> readers_;
  std::vector<int> followers_;  // ops that wait for each op, by data or order
  std::map<const Variable*, int> writers_;
};

}  // namespace

void fuse_updates(PlanGraph& g, const BuildOptions& options) {
  if (options.kernels->has("_Update")) UpdateFusion(g).run();
}

}  // namespace sluice::runtime::plan
