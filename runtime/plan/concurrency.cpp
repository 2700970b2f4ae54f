#include "runtime/plan/concurrency.h"

#include <algorithm>
#include <map>

#include "runtime/plan/stages.h"

namespace sluice::runtime::plan {
namespace {

constexpr size_t kMostBuffers = 8192;  // pairs are looked at

struct Range {
  size_t begin = 0, end = 0;
  std::vector<int> steps;  // that touch it, in serial order
};

}  // namespace

void allow_concurrency(const PlanGraph& g, std::vector<Step>& steps,
                       std::vector<std::vector<int>>& successors) {
  std::map<ValueId, Range> buffers;
  std::vector<Range> ranges;
  std::map<ValueId, std::vector<int>> variable_readers;
  std::vector<ValueId> hold_roots;
  const int n = static_cast<int>(steps.size());
  for (int k = 0; k < n; ++k) {
    Step& s = steps[static_cast<size_t>(k)];
    if (s.kind == StepKind::kRead) {
      if (static_cast<size_t>(s.hold) >= hold_roots.size())
        hold_roots.resize(static_cast<size_t>(s.hold) + 1, -1);
      hold_roots[static_cast<size_t>(s.hold)] = s.outputs[0];
    }
    for (const auto* list : {&s.inputs, &s.outputs})
      for (ValueId v : *list) {
        const ValueId root = buffer_root(g, v);
        const PlanValue& r = g.value(root);
        if (r.storage == Storage::kVariable) variable_readers[root].push_back(k);
        if (r.storage != Storage::kArena || r.spec.bytes() == 0) continue;
        Range& b = buffers[root];
        b.begin = r.offset, b.end = r.offset + r.spec.bytes();
        if (b.steps.empty() || b.steps.back() != k) b.steps.push_back(k);
        // In place: whoever read the bytes before must be done.
        if (list == &s.outputs && root != v)
          s.after.insert(s.after.end(), b.steps.begin(), b.steps.end() - 1);
      }
    if (s.kernel && s.kernel->scratch_bytes > 0)
      ranges.push_back({s.scratch, s.scratch + s.kernel->scratch_bytes, {k}});
  }
  for (auto& [root, range] : buffers) ranges.push_back(std::move(range));
  if (ranges.size() > kMostBuffers) return;
  for (const Range& a : ranges)
    for (const Range& b : ranges) {
      if (a.steps.back() >= b.steps.front() || a.end <= b.begin || b.end <= a.begin) continue;
      std::vector<int>& after = steps[static_cast<size_t>(b.steps.front())].after;
      after.insert(after.end(), a.steps.begin(), a.steps.end());
    }
  for (int k = 0; k < n; ++k)
    for (int h : steps[static_cast<size_t>(k)].release)
      for (int r : variable_readers[hold_roots[static_cast<size_t>(h)]])
        if (r != k) steps[static_cast<size_t>(k)].after.push_back(r);
  successors.assign(steps.size(), {});
  for (int k = 0; k < n; ++k) {
    std::vector<int>& after = steps[static_cast<size_t>(k)].after;
    std::sort(after.begin(), after.end());
    after.erase(std::unique(after.begin(), after.end()), after.end());
    for (int p : after) successors[static_cast<size_t>(p)].push_back(k);
  }
}

}  // namespace sluice::runtime::plan
