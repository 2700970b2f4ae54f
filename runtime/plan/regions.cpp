// Memory-bound ops become loop regions. First batch normalisation is taken apart, then every elementwise op,
// broadcast and reduction is a fragment (fragment.h), and fragments that hand values to each other join where
// they share an iteration space and the joint op would close no cycle.
//
//   conv ─► x ─► FusedBatchNorm ─► Relu ─► conv          conv ─► x ─┬─► _BatchNormStats ─► mean, variance
//                                                =>                 └─► _Region: relu((x − mean)·a + offset)
//                                                ─► conv
//
//   x1 ─► FusedBatchNorm ─► Add ─► Relu                  _Region: relu((x1 − m)·a + b + shortcut): one read
//   of each shortcut ───────────────┘                    =>      operand, one write
//
//   dy1, dy2 ─► AddN ─► ReluGrad ─► FusedBatchNormGrad ─► dx, dscale, doffset
//     =>  _Region: d = reluGrad(dy1 + dy2, y); Σd; Σd·(x − mean)     one pass: reads dy1, dy2, y, x, writes d
//         _Region: dx = a·(d − Σd/m − (x − mean)·…)                  one pass: reads d, x, writes dx
//
// A joint op needs that no other op lies on a path from one part to another (it would wait for itself), and
// that no part reads what another reduces (a reduction is known only when the loop has ended).

#include <algorithm>
#include <numeric>

#include "graph/support/check.h"
#include "runtime/plan/fragment.h"
#include "runtime/plan/fusions.h"

namespace sluice::runtime::plan {
namespace {

constexpr size_t kMaxInstructions = 64, kMaxOperands = 48;
constexpr int64_t kWorthARegion = 64;  // elements; below, a single op stays what it is

// ---- batch normalisation taken apart ----

bool wanted(const PlanGraph& g, const std::vector<std::vector<OpId>>& readers, ValueId v) {
  return !readers[static_cast<size_t>(v)].empty() || g.is_output(v);
}

struct BatchNormOp {
  int64_t rows = 0, cols = 0;
  bool nchw = false, training = true;
  float epsilon = 0;
};

std::optional<BatchNormOp> batch_norm_op(const PlanGraph& g, const PlanOp& op) {
  if (!op.node) return std::nullopt;
  for (ValueId v : op.inputs)
    if (!g.value(v).known_dims || g.value(v).spec.dtype != DType::kFloat) return std::nullopt;
  const Dims& x = g.value(op.inputs[0]).spec.dims;
  if (x.size() != 4 || graph::num_elements(x) == 0) return std::nullopt;
  if (op.node->attr_or<float>("exponential_avg_factor", 1.f) != 1.f) return std::nullopt;
  BatchNormOp b;
  b.nchw = op.node->attr_or<std::string>("data_format", "NHWC") == "NCHW";
  b.training = op.node->attr_or<bool>("is_training", true);
  b.epsilon = op.node->attr_or<float>("epsilon", 1e-4f);
  b.cols = x[b.nchw ? 1 : 3];
  b.rows = graph::num_elements(x) / b.cols;
  return b;
}

OpId add_region(PlanGraph& g, const PlanOp& like, RegionProgram program, std::vector<ValueId> inputs,
                std::vector<ValueId> outputs, bool channels_last) {
  PlanOp op{.op = "_Region",
            .node = like.node,
            .inputs = std::move(inputs),
            .outputs = std::move(outputs),
            .after = like.after,
            .nodes = like.nodes,
            .order = like.order};
  if (channels_last) op.attrs["channels_last"] = true;
  op.region = std::make_shared<const RegionProgram>(std::move(program));
  return g.add(std::move(op));
}

// Gradients first: V3's reads a sixth output of its forward op, which only then is free.
void split_batch_norm(PlanGraph& g, bool gradients) {
  const auto readers = g.readers();
  for (OpId id : g.live()) {
    const PlanOp op = g.op(id);  // a copy: adding ops moves them
    const bool forward =
        op.op == "FusedBatchNorm" || op.op == "FusedBatchNormV2" || op.op == "FusedBatchNormV3";
    const bool backward =
        op.op == "FusedBatchNormGrad" || op.op == "FusedBatchNormGradV2" || op.op == "FusedBatchNormGradV3";
    if (gradients ? !backward : !forward) continue;
    std::optional<BatchNormOp> b = batch_norm_op(g, op);
    if (!b || (op.outputs.size() > 5 && wanted(g, readers, op.outputs[5]))) continue;
    const ValueSpec column{DType::kFloat, {b->cols}, {}};
    if (forward) {
      ValueId mean = op.inputs[3], variance = op.inputs[4];
      if (b->training) {
        mean = op.outputs[1], variance = op.outputs[4];
        PlanOp stats{.op = "_BatchNormStats",
                     .node = op.node,
                     .inputs = {op.inputs[0]},
                     .outputs = {mean, variance},
                     .after = op.after,
                     .nodes = op.nodes,
                     .order = op.order};
        if (wanted(g, readers, op.outputs[2])) stats.outputs.push_back(op.outputs[2]);
        g.add(std::move(stats));
      } else {
        for (int o : {1, 2, 4}) g.replace_uses(op.outputs[static_cast<size_t>(o)], o == 1 ? mean : variance);
      }
      g.replace_uses(op.outputs[3], mean);
      const OpId apply =
          add_region(g, op, batch_norm_apply(b->rows, b->cols, b->epsilon),
                     {op.inputs[0], op.inputs[1], op.inputs[2], mean, variance}, {op.outputs[0]}, b->nchw);
      g.remove(id, apply);
      continue;
    }
    if (wanted(g, readers, op.outputs[3]) || wanted(g, readers, op.outputs[4])) continue;
    const ValueId dy = op.inputs[0], x = op.inputs[1], scale = op.inputs[2], mean = op.inputs[3],
                  variance = op.inputs[4];
    const ValueId product_sum = g.add_value(column, g.value(op.outputs[1]).name + "/product_sum");
    add_region(g, op, batch_norm_grad_sums(b->rows, b->cols), {dy, x, mean}, {op.outputs[2], product_sum},
               b->nchw);
    const OpId apply =
        b->training ? add_region(g, op, batch_norm_grad_apply(b->rows, b->cols, b->epsilon),
                                 {dy, x, scale, mean, variance, op.outputs[2], product_sum},
                                 {op.outputs[0], op.outputs[1]}, b->nchw)
                    : add_region(g, op, batch_norm_grad_inference(b->rows, b->cols, b->epsilon),
                                 {dy, scale, variance, product_sum}, {op.outputs[0], op.outputs[1]}, b->nchw);
    g.remove(id, apply);
  }
}

// ---- joining ----

struct Group {
  std::vector<OpId> members;  // in live order
  RegionSpace space;
  size_t instructions = 0, operands = 0;
  int first = 0, last = 0;  // positions
};

class Grouping {
 public:
  Grouping(PlanGraph& g, const BuildOptions& options) : g_(g), options_(options) {
    order_ = g.live();
    preds_ = g.predecessors();
    readers_ = g.readers();
    position_.assign(g.ops.size(), -1);
    group_.assign(g.ops.size(), -1);
    seen_.assign(g.ops.size(), 0);
    fragments_.resize(g.ops.size());
    for (size_t k = 0; k < order_.size(); ++k)
      position_[static_cast<size_t>(order_[k])] = static_cast<int>(k);
  }

  void run() {
    for (OpId id : order_) {
      const auto k = static_cast<size_t>(id);
      fragments_[k] = fragment_of(g_, g_.op(id), options_);
      if (!fragments_[k]) continue;
      Group group{{id},
                  fragments_[k]->space,
                  fragments_[k]->program.insts.size(),
                  fragments_[k]->inputs.size() + fragments_[k]->outputs.size(),
                  position_[k],
                  position_[k]};
      group_[k] = static_cast<int>(groups_.size());
      groups_.push_back(std::move(group));
      for (ValueId v : fragments_[k]->inputs) {
        for (ValueId u : {v, source_of(g_, v)}) {
          const OpId p = g_.value(u).producer;
          if (p < 0 || group_[static_cast<size_t>(p)] < 0) continue;
          const int a = group_[static_cast<size_t>(p)], b = group_[k];
          if (a != b && may_join(a, b)) join(a, b);
        }
      }
    }
    for (size_t k = 0; k < groups_.size(); ++k)
      if (!groups_[k].members.empty()) emit(groups_[k]);
  }

 private:
  ValueId canonical(ValueId v, const RegionSpace& s) const { return s.channels_last ? v : source_of(g_, v); }

  bool may_join(int a, int b) {
    const Group &x = groups_[static_cast<size_t>(a)], &y = groups_[static_cast<size_t>(b)];
    std::optional<RegionSpace> space = join_spaces(x.space, y.space);
    if (!space) return false;
    if (x.instructions + y.instructions > kMaxInstructions || x.operands + y.operands > kMaxOperands)
      return false;
    if (!channels_fit(x, *space) || !channels_fit(y, *space)) return false;
    return hands_over(x, y, *space) && hands_over(y, x, *space) && !path(a, b) && !path(b, a);
  }

  // Whole operands of a group that will run channels-last are NCHW images of the same dims, or the group does
  // not know it yet and its values must be so.
  bool channels_fit(const Group& group, const RegionSpace& space) const {
    if (!space.channels_last || group.space.channels_last) return true;
    for (OpId id : group.members) {
      const Fragment& f = *fragments_[static_cast<size_t>(id)];
      for (size_t i = 0; i < f.inputs.size(); ++i)
        if (f.program.inputs[i].extent == RegionExtent::kWhole &&
            g_.value(f.inputs[i]).spec.dims != space.dims)
          return false;
      for (size_t i = 0; i < f.outputs.size(); ++i)
        if (f.program.outputs[i].extent == RegionExtent::kWhole &&
            g_.value(f.outputs[i]).spec.dims != space.dims)
          return false;
    }
    return true;
  }

  // What `from` makes and `to` reads must be known inside the loop, in the extent that `to` expects.
  bool hands_over(const Group& from, const Group& to, const RegionSpace& space) const {
    for (OpId reader : to.members) {
      const Fragment& r = *fragments_[static_cast<size_t>(reader)];
      for (size_t i = 0; i < r.inputs.size(); ++i) {
        const ValueId v = canonical(r.inputs[i], space);
        // Seen through a view that the joint loop could not look through: no.
        const OpId p = g_.value(v).producer, deep = g_.value(source_of(g_, v)).producer;
        if (deep >= 0 && deep != p && member(from, deep)) return false;
        if (p < 0 || !member(from, p)) continue;
        const Fragment& f = *fragments_[static_cast<size_t>(p)];
        for (size_t o = 0; o < f.outputs.size(); ++o)
          if (f.outputs[o] == v && (f.program.outputs[o].reduce != RegionReduce::kNone ||
                                    f.program.outputs[o].extent != r.program.inputs[i].extent))
            return false;
      }
    }
    return true;
  }

  bool member(const Group& group, OpId id) const {
    return group_[static_cast<size_t>(id)] >= 0 &&
           &groups_[static_cast<size_t>(group_[static_cast<size_t>(id)])] == &group;
  }

  // Is there a way from group a to group b through ops of neither? Groups count as one op.
  bool path(int a, int b) {
    const Group &x = groups_[static_cast<size_t>(a)], &y = groups_[static_cast<size_t>(b)];
    ++mark_;
    std::vector<OpId> stack;
    auto push = [&](OpId id) {
      const int group = group_[static_cast<size_t>(id)];
      if (group == b || seen_[static_cast<size_t>(id)] == mark_) return;
      const int last =
          group >= 0 ? groups_[static_cast<size_t>(group)].last : position_[static_cast<size_t>(id)];
      if (last < x.first) return;  // too early to depend on a
      seen_[static_cast<size_t>(id)] = mark_;
      stack.push_back(id);
    };
    for (OpId m : y.members)
      for (OpId p : preds_[static_cast<size_t>(m)])
        if (group_[static_cast<size_t>(p)] != a) push(p);
    while (!stack.empty()) {
      const OpId id = stack.back();
      stack.pop_back();
      const int group = group_[static_cast<size_t>(id)];
      if (group == a) return true;
      if (group >= 0) {
        for (OpId m : groups_[static_cast<size_t>(group)].members) {
          seen_[static_cast<size_t>(m)] = mark_;
          for (OpId p : preds_[static_cast<size_t>(m)]) push(p);
        }
      } else {
        for (OpId p : preds_[static_cast<size_t>(id)]) push(p);
      }
    }
    return false;
  }

  void join(int a, int b) {
    Group &x = groups_[static_cast<size_t>(a)], &y = groups_[static_cast<size_t>(b)];
    y.space = *join_spaces(x.space, y.space);
    y.instructions += x.instructions;
    y.operands += x.operands;
    y.first = std::min(x.first, y.first);
    y.last = std::max(x.last, y.last);
    for (OpId m : x.members) group_[static_cast<size_t>(m)] = b;
    y.members.insert(y.members.end(), x.members.begin(), x.members.end());
    std::sort(y.members.begin(), y.members.end(), [&](OpId p, OpId q) {
      return position_[static_cast<size_t>(p)] < position_[static_cast<size_t>(q)];
    });
    x.members.clear();
  }

  bool needed_outside(ValueId v, const Group& group) const {
    if (g_.is_output(v)) return true;
    for (OpId r : readers_[static_cast<size_t>(v)]) {
      if (member(group, r)) continue;
      if (g_.op(r).kind == OpKind::kView && g_.op(r).after.empty() && !group.space.channels_last) {
        if (needed_outside(g_.op(r).outputs[0], group)) return true;
      } else {
        return true;
      }
    }
    return false;
  }

  void emit(const Group& group) {
    if (group.members.size() == 1) {
      const PlanOp& only = g_.op(group.members[0]);
      // One reduction has its own kernel, which also knows shapes that a region does not.
      if (group.operands > kMaxOperands || group.instructions > kMaxInstructions) return;
      if (only.op == "_Region" || only.has(graph::kReduction) || group.space.count < kWorthARegion) return;
      if (fragments_[static_cast<size_t>(group.members[0])]->program.outputs[0].reduce != RegionReduce::kNone)
        return;
    }
    RegionJoiner joiner(g_, group.space);
    PlanOp op{.op = "_Region"};
    for (OpId id : group.members) {
      joiner.add(*fragments_[static_cast<size_t>(id)]);
      const PlanOp& part = g_.op(id);
      op.node = part.node;
      op.nodes.insert(op.nodes.end(), part.nodes.begin(), part.nodes.end());
      op.after.insert(op.after.end(), part.after.begin(), part.after.end());
      op.order = std::max(op.order, part.order);
    }
    std::erase_if(op.after, [&](OpId id) { return member(group, id); });
    for (OpId id : group.members)
      for (ValueId v : fragments_[static_cast<size_t>(id)]->outputs)
        if (needed_outside(v, group)) joiner.emit(v);
    RegionProgram program = joiner.take(op.inputs, op.outputs);
    if (op.outputs.empty()) return;  // dead: drop_dead will take its parts
    for (const graph::Node* n : op.nodes) program.nodes.push_back(n->name());
    if (group.space.channels_last) op.attrs["channels_last"] = true;
    op.region = std::make_shared<const RegionProgram>(std::move(program));
    const OpId joint = g_.add(std::move(op));
    for (OpId id : group.members) g_.remove(id, joint);
    // Values that stay inside lose their producer with it.
    for (OpId id : group.members)
      for (ValueId v : fragments_[static_cast<size_t>(id)]->outputs)
        if (g_.value(v).producer == id) g_.value(v).producer = -1;
    group_.resize(g_.ops.size(), -1);
  }

  PlanGraph& g_;
  const BuildOptions& options_;
  std::vector<OpId> order_;
  std::vector<std::vector<OpId>> preds_, readers_;
  std::vector<int> position_, group_, seen_;
  int mark_ = 0;
  std::vector<std::optional<Fragment>> fragments_;
  std::vector<Group> groups_;
};

}  // namespace

void form_regions(PlanGraph& g, const BuildOptions& options) {
  if (!options.kernels->has("_Region")) return;
  if (options.kernels->has("_BatchNormStats")) {
    split_batch_norm(g, true);
    split_batch_norm(g, false);
  }
  Grouping(g, options).run();
}

}  // namespace sluice::runtime::plan
