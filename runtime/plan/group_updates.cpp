// The updates of all variables by one formula become one step, which the team walks in equal chunks:
//
//   dW₁ ─► _Update(w₁, a₁, ·, lr, μ)          dW₁ … dWₙ ─► _Update(w₁, a₁, dW₁, … wₙ, aₙ, dWₙ, lr, μ)
//   dW₂ ─► _Update(w₂, a₂, ·, lr, μ)    =>
//
// Joined are updates with the same loop program (the optimizer's formula and what makes the gradient) and
// the same scalar operands, none of which has to run before another: an update that waits for another one,
// or reads what it wrote, stays a later step. Every other order is kept: the joint step runs after all that
// each part ran after, and whoever ran after a part runs after it.
//
// Price: gradients that were consumed as they arrived are kept until the last of them is there. Where that
// would raise the plan's peak by more than a sixteenth (or at all, where memory_limit is set), the updates
// run in several steps instead, each over neighbours in time, the fewest that stay under it.

#include <algorithm>
#include <map>

#include "graph/support/check.h"
#include "runtime/plan/fusions.h"
#include "runtime/plan/stages.h"
#include "runtime/region.h"

namespace sluice::runtime::plan {
namespace {

constexpr int64_t kMayGrow = 16;                      // by this part of the peak
constexpr int64_t kAlwaysAllowed = int64_t{1} << 20;  // bytes: not worth a second step
constexpr size_t kMostSteps = 16;                     // for one formula; then they stay as they are

int64_t tensors_of(const PlanOp& o) { return *o.attrs.at("tensors").get_if<int64_t>(); }

// Program, scalars and op: what updates of one step have in common.
std::string formula(const PlanOp& o) {
  std::string text = o.region->str();
  std::string key = cat(o.node ? o.node->op() : "", ' ', *o.attrs.at("handles").get_if<int64_t>(), '\n',
                        text.substr(text.find('\n')));
  size_t scalars = 0;
  for (const RegionInput& in : o.region->inputs) scalars += in.extent != RegionExtent::kWhole;
  for (size_t i = o.inputs.size() - scalars; i < o.inputs.size(); ++i) key += cat(' ', o.inputs[i]);
  return key;
}

class Grouping {
 public:
  Grouping(PlanGraph& g, const BuildOptions& options)
      : g_(g), limited_(options.memory_limit > 0), order_(schedule(g, options)), position_(g.ops.size(), -1) {
    for (size_t k = 0; k < order_.size(); ++k) position_[at(order_[k])] = static_cast<int>(k);
  }

  void run() {
    const std::vector<std::vector<OpId>> groups = candidates();
    if (groups.empty()) return;
    lifetimes();
    const int64_t before = peak({});
    const int64_t allowed = limited_ ? before : before + std::max(before / kMayGrow, kAlwaysAllowed);
    std::vector<std::vector<OpId>> chosen;
    for (const std::vector<OpId>& all : groups)
      for (size_t steps = 1; steps <= kMostSteps; ++steps) {
        std::vector<std::vector<OpId>> with = chosen;
        for (std::vector<OpId>& part : split(all, steps)) with.push_back(std::move(part));
        if (peak(with) > allowed) continue;
        chosen = std::move(with);
        break;
      }
    for (const std::vector<OpId>& group : chosen)
      if (group.size() > 1) join(group);
  }

 private:
  static size_t at(int i) { return static_cast<size_t>(i); }

  // Updates of one formula, in order, several each. Two with equally many updates on the longest way to them
  // cannot depend on each other.
  std::vector<std::vector<OpId>> candidates() const {
    const auto preds = g_.predecessors();
    std::vector<int> level(g_.ops.size(), 0);
    std::map<std::pair<int, std::string>, std::vector<OpId>> by_key;
    for (OpId id : order_) {
      for (OpId p : preds[at(id)]) level[at(id)] = std::max(level[at(id)], level[at(p)] + is_update(p));
      if (is_update(id)) by_key[{level[at(id)], formula(g_.op(id))}].push_back(id);
    }
    std::vector<std::vector<OpId>> groups;
    for (auto& [key, ops] : by_key)
      if (ops.size() > 1) groups.push_back(std::move(ops));
    return groups;
  }

  bool is_update(OpId id) const { return g_.op(id).op == "_Update"; }

  // Parts of about equally many bytes of gradients.
  std::vector<std::vector<OpId>> split(const std::vector<OpId>& all, size_t steps) const {
    int64_t sum = 0, so_far = 0;
    for (OpId id : all) sum += gradient_bytes(id);
    std::vector<std::vector<OpId>> parts(1);
    for (OpId id : all) {
      const auto made = static_cast<int64_t>(parts.size());
      if (parts.size() < steps && !parts.back().empty() && so_far * static_cast<int64_t>(steps) >= sum * made)
        parts.emplace_back();
      parts.back().push_back(id);
      so_far += gradient_bytes(id);
    }
    return parts;
  }

  int64_t gradient_bytes(OpId id) const {
    int64_t n = 0;
    for (ValueId v : g_.op(id).inputs) n += bytes_of(root_[at(v)]);
    return n;
  }

  int64_t bytes_of(ValueId v) const {
    const PlanValue& value = g_.value(v);
    return value.storage == Storage::kArena ? static_cast<int64_t>(value.spec.bytes()) : 0;
  }

  void lifetimes() {
    root_.resize(g_.values.size());
    for (size_t v = 0; v < root_.size(); ++v) root_[v] = static_cast<ValueId>(v);
    first_.assign(root_.size(), -1);
    last_.assign(root_.size(), -1);
    for (OpId id : order_) {
      const PlanOp& o = g_.op(id);
      if (o.kind == OpKind::kView) root_[at(o.outputs[0])] = root_[at(o.inputs[0])];
      for (ValueId v : o.outputs)
        if (root_[at(v)] == v) first_[at(v)] = last_[at(v)] = position_[at(id)];
      for (ValueId v : o.inputs) last_[at(root_[at(v)])] = position_[at(id)];
    }
    for (const auto* list : {&g_.fetches, &g_.boundary})
      for (ValueId v : *list)
        if (v >= 0) last_[at(root_[at(v)])] = static_cast<int>(order_.size());
  }

  // Bytes alive at the worst place when each group runs where its last part ran.
  int64_t peak(const std::vector<std::vector<OpId>>& groups) const {
    std::vector<int> last = last_;
    for (const std::vector<OpId>& group : groups)
      for (OpId id : group)
        for (ValueId v : g_.op(id).inputs) {
          int& l = last[at(root_[at(v)])];
          l = std::max(l, position_[at(group.back())]);
        }
    std::vector<int64_t> change(order_.size() + 2, 0);
    for (size_t v = 0; v < root_.size(); ++v) {
      if (first_[v] < 0) continue;
      const int64_t bytes = bytes_of(static_cast<ValueId>(v));
      change[at(first_[v])] += bytes;
      change[at(last[v]) + 1] -= bytes;
    }
    int64_t live = 0, most = 0;
    for (int64_t c : change) live += c, most = std::max(most, live);
    return most;
  }

  void join(const std::vector<OpId>& group) {
    PlanOp joint = g_.op(group.front());
    size_t scalars = 0;
    for (const RegionInput& in : joint.region->inputs) scalars += in.extent != RegionExtent::kWhole;
    RegionProgram program = *joint.region;
    std::vector<ValueId> shared(joint.inputs.end() - static_cast<long>(scalars), joint.inputs.end());
    joint.inputs.clear();
    joint.outputs.clear();
    joint.after.clear();
    joint.nodes.clear();
    program.nodes.clear();
    program.cols = 0;
    int64_t tensors = 0;
    for (OpId id : group) {
      const PlanOp& part = g_.op(id);
      joint.inputs.insert(joint.inputs.end(), part.inputs.begin(),
                          part.inputs.end() - static_cast<long>(scalars));
      joint.outputs.insert(joint.outputs.end(), part.outputs.begin(), part.outputs.end());
      joint.after.insert(joint.after.end(), part.after.begin(), part.after.end());
      joint.nodes.insert(joint.nodes.end(), part.nodes.begin(), part.nodes.end());
      joint.order = std::max(joint.order, part.order);
      program.nodes.insert(program.nodes.end(), part.region->nodes.begin(), part.region->nodes.end());
      program.cols += part.region->cols;
      tensors += tensors_of(part);
    }
    joint.inputs.insert(joint.inputs.end(), shared.begin(), shared.end());
    joint.attrs["tensors"] = tensors;
    joint.region = std::make_shared<const RegionProgram>(std::move(program));
    const OpId made = g_.add(std::move(joint));
    for (OpId id : group) g_.remove(id, made);
  }

  PlanGraph& g_;
  const bool limited_;             // memory_limit is set: not a byte more than necessary
  const std::vector<OpId> order_;  // as it would run now: what decides how long gradients live
  std::vector<int> position_, first_, last_;
  std::vector<ValueId> root_;
};

}  // namespace

void group_updates(PlanGraph& g, const BuildOptions& options) {
  const auto updates = std::count_if(g.ops.begin(), g.ops.end(),
                                     [](const PlanOp& o) { return !o.removed && o.op == "_Update"; });
  if (updates > 1) Grouping(g, options).run();
}

}  // namespace sluice::runtime::plan
