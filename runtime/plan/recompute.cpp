// Values that are cheap to make and wait long for their last readers (an activation between the forward and
// the backward pass) are made again there instead of being kept:
//
//   conv ─ x ─► relu ─ y ─► conv …………………… conv gradient (y, dy)      y lives over both passes
//   conv ─ x ─► relu ─ y ─► conv …… relu' ─ y' ─► conv gradient (y', dy)   x lives anyway, y and y' briefly
//
// Only where every large operand is alive there in any case, so that nothing else has to be kept for it; a
// value that is itself made again is not relied on. The copy is tied behind the maker of another operand of
// its reader, so that no schedule runs it early.

#include <algorithm>

#include "runtime/plan/pipeline.h"
#include "runtime/region.h"

namespace sluice::runtime::plan {
namespace {

constexpr size_t kWorthIt = size_t{256} << 10;  // bytes of one value
constexpr size_t kSmallShare = 16;              // an operand this much smaller may be kept longer
constexpr int kShortestGap = 12;                // steps without a reader

bool cheap(const PlanOp& o) {
  if (o.kind != OpKind::kKernel || o.keep || o.outputs.size() != 1 || o.has(graph::kStateful)) return false;
  if (o.region)
    return std::all_of(o.region->outputs.begin(), o.region->outputs.end(),
                       [](const RegionOutput& out) { return out.reduce == RegionReduce::kNone; });
  return o.has(graph::kElementwise) && !o.has(graph::kAggregate);
}

class Recompute {
 public:
  explicit Recompute(PlanGraph& g) : g_(g), order_(g.live()), readers_(g.readers()) {
    position_.assign(g.ops.size(), -1);
    for (size_t k = 0; k < order_.size(); ++k) position_[index(order_[k])] = static_cast<int>(k);
    root_.resize(g.values.size());
    last_.assign(g.values.size(), -1);
    again_.assign(g.values.size(), 0);
    for (size_t v = 0; v < root_.size(); ++v) root_[v] = static_cast<ValueId>(v);
    for (OpId id : order_) {
      const PlanOp& o = g.op(id);
      if (o.kind == OpKind::kView) root_[index(o.outputs[0])] = root_[index(o.inputs[0])];
      for (ValueId v : o.inputs) last_[index(root_[index(v)])] = position_[index(id)];
    }
    for (ValueId v : g.fetches)
      if (v >= 0) last_[index(root_[index(v)])] = static_cast<int>(order_.size());
  }

  void run() {
    for (OpId id : order_)
      if (!g_.op(id).removed && cheap(g_.op(id))) consider(id);
  }

 private:
  static size_t index(int i) { return static_cast<size_t>(i); }

  void consider(OpId id) {
    const ValueId v = g_.op(id).outputs[0];
    const PlanValue& value = g_.value(v);
    const size_t bytes = value.spec.bytes();
    if (value.storage != Storage::kArena || !value.known_dims || bytes < kWorthIt || g_.is_output(v)) return;
    const std::vector<OpId>& readers = readers_[index(v)];
    // The longest wait; what reads after it is late.
    int before = position_[index(id)], gap = 0, from = 0;
    for (OpId r : readers) {
      const int at = position_[index(r)];
      if (at - before > gap) gap = at - before, from = at;
      before = std::max(before, at);
    }
    const int shortest = std::max(kShortestGap, static_cast<int>(order_.size() / 50));
    if (gap < shortest) return;
    std::vector<OpId> late;
    for (OpId r : readers)
      if (position_[index(r)] >= from) late.push_back(r);
    // All readers late: the value is simply made early, which the schedule can mend.
    if (late.size() == readers.size()) return;
    for (OpId r : late)
      if (g_.op(r).kind != OpKind::kKernel) return;
    for (ValueId in : g_.op(id).inputs) {
      const ValueId root = root_[index(in)];
      const PlanValue& operand = g_.value(root);
      if (operand.storage != Storage::kArena || operand.spec.bytes() * kSmallShare <= bytes) continue;
      if (again_[index(root)] || last_[index(root)] < from) return;
    }
    const OpId anchor = latest_other_maker(late.front(), v);
    if (anchor < 0 || position_[index(anchor)] <= position_[index(id)]) return;
    again(id, v, late, anchor);
  }

  // The last op that must run before `reader` on account of its other operands.
  OpId latest_other_maker(OpId reader, ValueId v) {
    OpId latest = -1;
    for (ValueId in : g_.op(reader).inputs) {
      if (in == v) continue;
      const OpId p = g_.value(in).producer;
      if (p >= 0 && (latest < 0 || position_[index(p)] > position_[index(latest)])) latest = p;
    }
    return latest;
  }

  void again(OpId id, ValueId v, const std::vector<OpId>& late, OpId anchor) {
    PlanValue copy = g_.value(v);
    copy.producer = -1;
    const ValueId made = g_.add_value(std::move(copy));
    PlanOp op = g_.op(id);
    op.outputs = {made};
    op.after = {anchor};
    op.order = g_.op(late.front()).order - 0.125;
    g_.add(std::move(op));
    for (OpId r : late) {
      std::vector<ValueId>& inputs = g_.op(r).inputs;
      std::replace(inputs.begin(), inputs.end(), v, made);
    }
    again_[index(v)] = 1;
  }

  PlanGraph& g_;
  const std::vector<OpId> order_;
  const std::vector<std::vector<OpId>> readers_;
  std::vector<int> position_, last_;
  std::vector<ValueId> root_;
  std::vector<char> again_;
};

}  // namespace

void recompute(PlanGraph& g, const BuildOptions&) {
  if (!g.forward_only) Recompute(g).run();
}

}  // namespace sluice::runtime::plan
