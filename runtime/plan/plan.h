#pragma once
// A frozen plan: steps in order, values with their places, constants, and what the plan was specialised for.
// Immutable once built (the cache of its later part excepted, which has its own mutex); any thread may read
// it and several may run it at once, each with its own run context. Printed by str() and json() for people
// and for `sluice-graph explain`.

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/plan/lower.h"
#include "runtime/plan/pipeline.h"

namespace sluice::runtime {

class RestCache;  // runtime/rest.h

enum class StepKind {
  kKernel,
  kRead,   // takes hold of a variable's buffer
  kShare,  // an Array under other dims (views of strings and of values of unknown size)
};

/// One step. What the executor needs first, then what explain and traces show.
struct Step {
  StepKind kind = StepKind::kKernel;
  bool may_block = false;
  const Kernel* kernel = nullptr;
  std::vector<plan::ValueId> inputs, outputs;
  int first_slot = 0;                // inputs, then outputs, in the context's slots
  size_t scratch = 0;                // arena offset
  std::vector<int> release;          // reads whose hold ends after this step
  std::vector<int> dynamic_outputs;  // outputs that are Arrays
  int hold = -1;                     // kRead: index of the hold
  bool is_ref = false;               // kRead: words of the error

  const graph::Node* node = nullptr;
  std::string name, op, candidate;
  std::vector<std::string> nodes;  // graph nodes it stands for
  std::vector<plan::Refused> refusals;
  std::shared_ptr<const RegionProgram> region;
  std::shared_ptr<const Kernel> owned;  // shared with other plans of equal ops
  std::vector<int> after;               // steps that must be done before this one
};

class Plan {
 public:
  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<plan::PlanValue>& values() const { return values_; }
  const plan::PlanValue& value(plan::ValueId v) const { return values_[static_cast<size_t>(v)]; }
  /// The value whose bytes `v` uses.
  plan::ValueId root(plan::ValueId v) const;
  const std::vector<plan::ValueId>& fetches() const { return fetches_; }
  const std::vector<plan::ValueId>& boundary() const { return boundary_; }
  const std::vector<plan::VariableUse>& variables() const { return variables_; }
  const std::vector<plan::PassTime>& passes() const { return passes_; }
  size_t arena_bytes() const { return arena_bytes_; }
  /// Largest sum of live bytes: what no placement can beat.
  size_t live_peak() const { return live_peak_; }
  double compile_seconds() const { return compile_seconds_; }
  bool forward_only() const { return forward_only_; }
  /// True when steps may run in any order that Step::after allows; successors() is then filled.
  bool concurrent() const { return !successors_.empty(); }
  const std::vector<std::vector<int>>& successors() const { return successors_; }
  /// True when the rest of the run is compiled once its shapes are known.
  bool is_cut() const { return cut_ != nullptr; }

  /// One line a step, then the arena map.
  std::string str() const;
  /// The same as one JSON object: steps (name, op, kernel, nodes, inputs, outputs, refused, region), arena,
  /// variables, passes.
  std::string json() const;

  /// Completes a plan that was just built.
  void attach(std::unique_ptr<plan::Cut> cut, std::vector<plan::VariableUse> variables,
              std::vector<plan::PassTime> passes, double seconds);
  const plan::Cut* cut() const { return cut_.get(); }
  /// Plans of the later part, of a cut plan.
  RestCache& rest() const { return *rest_; }

 private:
  friend class PlanBuilder;
  friend class Executor;
  friend struct RunContext;
  friend class ContextPool;

  std::vector<Step> steps_;
  std::vector<plan::PlanValue> values_;
  std::vector<plan::ValueId> fetches_, boundary_;
  std::vector<plan::VariableUse> variables_;
  std::vector<plan::PassTime> passes_;
  std::vector<std::vector<int>> successors_;  // by step
  std::unique_ptr<plan::Cut> cut_;
  std::shared_ptr<RestCache> rest_;  // shared for its type's sake: complete only in rest.h
  int num_slots_ = 0, num_holds_ = 0, num_feeds_ = 0;
  size_t arena_bytes_ = 0, live_peak_ = 0;
  double compile_seconds_ = 0;
  bool forward_only_ = false;
  // Which slots a value appears in, for values that get their address during the run.
  std::vector<std::vector<int>> slots_of_value_;
  std::vector<std::vector<plan::ValueId>> values_of_feed_, values_of_hold_;  // roots and their views
  std::vector<int> dynamic_of_value_;  // by ValueId: index of the Array, -1: none
  int num_dynamics_ = 0;
};

/// Lowers, optimises, chooses, orders and places. `num_feeds` is the number of feeds the run supplies.
struct PlanResult {
  std::shared_ptr<Plan> plan;
  std::vector<int> by_value;        // not empty: no plan; these given feeds must be known by value
  std::vector<graph::Node*> nodes;  // what the plan depends on
};
PlanResult build_plan(const plan::LowerRequest& request, const plan::BuildOptions& options, int num_feeds);

}  // namespace sluice::runtime
