#pragma once
// Runs a frozen plan. Per run there is a context: the slots that kernels see, holds on variable buffers, and
// Arrays of values outside the arena. Contexts are made once and leased, so that a run allocates nothing;
// several runs of one plan use one context each. The first error ends the run and names node, op, input types
// and the author's line.

#include <memory>
#include <mutex>
#include <vector>

#include "runtime/arena.h"
#include "runtime/observer.h"
#include "runtime/plan/plan.h"
#include "runtime/session.h"

namespace sluice::runtime {

struct RunContext {
  explicit RunContext(const Plan& plan);
  /// Points the arena slots at `base`; cheap when it is the one of last time.
  void bind_arena(char* base);
  /// Points the feed slots at `feeds`.
  void bind_feeds();
  /// Drops what the run held: variable buffers, values of a size of their own.
  void release();

  const Plan& plan;
  std::vector<Slot> slots;
  std::vector<std::shared_ptr<const VariableBuffer>>
      holds;  // shared with the variable while a read is in use
  std::vector<Array> dynamics;
  std::vector<ValueSpec> dynamic_specs;
  std::vector<const Array*> feeds;  // set by the caller before bind_feeds
  char* arena = nullptr;
  std::vector<int> pending;  // of a concurrent run: predecessors not done, by step
};

/// A plan with its idle contexts.
class ContextPool {
 public:
  explicit ContextPool(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {}
  const Plan& plan() const { return *plan_; }
  std::shared_ptr<const Plan> shared_plan() const { return plan_; }
  std::unique_ptr<RunContext> lease();
  void give_back(std::unique_ptr<RunContext> context);

 private:
  std::shared_ptr<const Plan> plan_;  // shared with those who look at it
  std::mutex mutex_;                  // guards idle_
  std::vector<std::unique_ptr<RunContext>> idle_;
};

/// What a run has besides its context.
struct RunEnvironment {
  WorkQueue* queue = nullptr;
  std::unique_lock<std::mutex>* team = nullptr;  // held while the queue is the team; let go in blocking steps
  RunState state;
  Observer* observer = nullptr;
};

class Executor {
 public:
  /// Runs every step, in order; throws the first error.
  static void run(const Plan& plan, RunContext& context, RunEnvironment& env);
  /// One step with everything around it: cancellation, errors in the author's terms, the observer, the end of
  /// holds. `thread` is for the observer.
  static void run_step(const Plan& plan, RunContext& context, const Step& step, RunEnvironment& env,
                       int thread);
  /// Writes a fetched value: in place where `out` has its dtype and dims and is not shared.
  static void store(const Plan& plan, const RunContext& context, plan::ValueId v, Array& out);
  /// The value as an Array of its own.
  static Array value(const Plan& plan, const RunContext& context, plan::ValueId v) {
    Array a;
    store(plan, context, v, a);
    return a;
  }

 private:
  static void step(const Plan& plan, RunContext& context, const Step& step, RunEnvironment& env);
  static void read(const Plan& plan, RunContext& context, const Step& step);
};

}  // namespace sluice::runtime
