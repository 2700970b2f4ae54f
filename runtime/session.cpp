#include "runtime/session.h"

#include <condition_variable>
#include <cstdlib>
#include <mutex>

#include "graph/support/log.h"
#include "runtime/executor.h"
#include "runtime/plan_cache.h"
#include "runtime/rest.h"
#include "runtime/run_request.h"
#include "runtime/step_pool.h"
#include "runtime/trace.h"
#include "runtime/work_queue_impl.h"

namespace sluice::runtime {
namespace {

PlanMode resolve(PlanMode mode) {
  if (mode != PlanMode::kAuto) return mode;
  const char* env = std::getenv("SLUICE_PLAN");
  const std::string text = env ? env : "";
  if (text == "reference") return PlanMode::kReference;
  if (text == "reference64") return PlanMode::kReference64;
  SLUICE_REQUIRE(text.empty() || text == "optimized", Code::kInvalidArgument, "SLUICE_PLAN=", text,
                 " is none of optimized, reference, reference64");
  return PlanMode::kOptimized;
}

}  // namespace

struct Session::Impl {
  Impl(graph::Graph& g, SessionOptions o)
      : graph(g),
        options(std::move(o)),
        mode(resolve(options.mode)),
        shared(options.resources ? options.resources : std::make_shared<ResourceManager>()),
        resources(*shared),
        cache(options.max_cached_plans) {
    const bool reference = mode != PlanMode::kOptimized;
    queue = make_default_queue(reference ? 1 : options.intra_op_threads);
    serial = make_serial_queue();
    int steps_at_once = reference ? 1 : options.inter_op_threads;
    if (steps_at_once <= 0) steps_at_once = available_cpus();
    if (steps_at_once > 1) steps = std::make_unique<StepPool>(steps_at_once);
    build.constants = &constants;
    build.kernels = options.kernels ? options.kernels : &standard_kernels();
    build.resources = &resources;
    build.threads = queue->width();
    build.inter_op_threads = steps_at_once;
    build.reference = reference;
    build.widen = mode == PlanMode::kReference64;
    build.deterministic = options.deterministic;
    build.allow_winograd = options.allow_winograd;
    build.relaxed_nan = options.relaxed_nan;
    build.allow_soft_placement = options.allow_soft_placement;
    build.log_placement = options.log_device_placement;
    build.memory_limit = options.memory_limit;
    build.disabled_passes = options.disabled_passes;
    build.plan_counter = &plan_counter;
    if (const char* dir = std::getenv("SLUICE_DUMP")) build.dump_dir = dir;
  }

  // Counts a run in, and out again.
  class InFlight {
   public:
    explicit InFlight(Impl& s) : s_(s) {
      std::lock_guard lock(s.mutex);
      SLUICE_REQUIRE(!s.closed, Code::kFailedPrecondition, "Attempted to use a closed Session.");
      ++s.in_flight;
    }
    ~InFlight() {
      std::lock_guard lock(s_.mutex);
      if (--s_.in_flight == 0) s_.idle.notify_all();
    }

   private:
    Impl& s_;
  };

  std::shared_ptr<PlanEntry> entry(const RunRequest& request, RunMetadata* metadata);
  std::shared_ptr<PlanEntry> compile(const RunRequest& request);
  void run(std::vector<Array>& results, const RunRequest& request, const RunOptions& run_options,
           RunMetadata* metadata);
  void execute(std::vector<Array>& results, const RunRequest& request, PlanEntry& entry, RunEnvironment& env);

  graph::Graph& graph;
  const SessionOptions options;
  const PlanMode mode;
  plan::BuildOptions build;
  plan::ConstantPool constants;
  const std::shared_ptr<ResourceManager> shared;  // several sessions may work on one set of variables
  ResourceManager& resources;
  ArenaPool arenas;
  PlanCache cache;
  std::unique_ptr<WorkQueue> queue, serial;
  std::unique_ptr<StepPool> steps;  // null: one step at a time
  std::mutex team;           // held by the run that computes with `queue`; others compute on their own thread
  std::mutex compile_mutex;  // one compilation at a time
  std::mutex mutex;          // guards closed, in_flight, compile_seconds
  std::condition_variable idle;
  bool closed = false;
  int in_flight = 0;
  double compile_seconds = 0;
  CancelToken closing;
  std::atomic<int> plan_counter{0};
  std::atomic<int64_t> runs{0}, hits{0}, compiles{0}, step_id{0};
};

std::shared_ptr<PlanEntry> Session::Impl::entry(const RunRequest& request, RunMetadata* metadata) {
  if (auto found = cache.find(request, graph.version())) {
    hits.fetch_add(1, std::memory_order_relaxed);
    return found;
  }
  std::lock_guard lock(compile_mutex);
  if (auto found = cache.find(request, graph.version())) {
    hits.fetch_add(1, std::memory_order_relaxed);
    return found;
  }
  const auto start = std::chrono::steady_clock::now();
  auto made = compile(request);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  compiles.fetch_add(1, std::memory_order_relaxed);
  {
    std::lock_guard guard(mutex);
    compile_seconds += took.count();
  }
  if (metadata) metadata->compiled = true, metadata->compile_seconds = took.count();
  cache.insert(request, made);
  return made;
}

std::shared_ptr<PlanEntry> Session::Impl::compile(const RunRequest& request) {
  check_request(graph, request, build.widen);
  plan::LowerRequest lower;
  lower.graph = &graph;
  lower.fetches = request.fetches;
  lower.targets = request.targets;
  for (size_t i = 0; i < request.feeds.size(); ++i) {
    const Array& value = request.feeds[i].value;
    lower.given.push_back({request.feeds[i].output,
                           {plan::plan_dtype(value.dtype(), build), value.dims(), {}},
                           static_cast<int>(i),
                           std::nullopt,
                           nullptr});
  }
  std::vector<int> by_value;
  // Each round knows at least one more feed by value, so this ends.
  for (;;) {
    PlanResult result = build_plan(lower, build, static_cast<int>(request.feeds.size()));
    if (result.plan) {
      {
        // Touched now, by all threads where the team is free, so that the first run is a normal one.
        std::unique_lock<std::mutex> team_lock(team, std::try_to_lock);
        arenas.give_back(arenas.lease(result.plan->arena_bytes(), team_lock.owns_lock() ? *queue : *serial));
      }
      return std::make_shared<PlanEntry>(request, std::move(by_value), std::move(result.plan),
                                         std::move(result.nodes), graph.version());
    }
    for (int k : result.by_value) {
      plan::Given& given = lower.given[static_cast<size_t>(k)];
      if (given.value) continue;
      given.value = request.feeds[static_cast<size_t>(k)].value.cast(given.spec.dtype).to_literal();
      by_value.push_back(k);
    }
  }
}

void Session::Impl::execute(std::vector<Array>& results, const RunRequest& request, PlanEntry& entry,
                            RunEnvironment& env) {
  const Plan& plan = entry.contexts.plan();
  std::unique_ptr<Arena> arena = arenas.lease(plan.arena_bytes(), *env.queue);
  std::unique_ptr<RunContext> context = entry.contexts.lease();
  struct Return {
    Session::Impl& s;
    PlanEntry& entry;
    std::unique_ptr<Arena>& arena;
    std::unique_ptr<RunContext>& context;
    ~Return() {
      entry.contexts.give_back(std::move(context));
      s.arenas.give_back(std::move(arena));
    }
  } give_back{*this, entry, arena, context};
  context->bind_arena(arena->data());
  std::vector<Array> wide;  // reference64 only
  if (build.widen) wide.reserve(request.feeds.size());
  for (size_t i = 0; i < request.feeds.size(); ++i) {
    const Array& value = request.feeds[i].value;
    context->feeds[i] = &value;
    if (build.widen && value.dtype() == DType::kFloat) {
      wide.push_back(value.cast(DType::kDouble));
      context->feeds[i] = &wide.back();
    }
  }
  context->bind_feeds();
  if (!plan.concurrent() || !steps || !steps->run(plan, *context, env, *serial))
    Executor::run(plan, *context, env);
  results.resize(request.fetches.size());
  for (size_t k = 0; k < plan.fetches().size(); ++k)
    if (plan.fetches()[k] >= 0) Executor::store(plan, *context, plan.fetches()[k], results[k]);
  if (plan.is_cut()) run_rest({graph, build, arenas}, request, plan, *context, env, results);
}

void Session::Impl::run(std::vector<Array>& results, const RunRequest& request, const RunOptions& run_options,
                        RunMetadata* metadata) {
  InFlight guard(*this);
  runs.fetch_add(1, std::memory_order_relaxed);
  if (metadata) *metadata = {};
  auto deadline = std::chrono::steady_clock::time_point::max();
  const int64_t timeout = run_options.timeout_ms > 0 ? run_options.timeout_ms : options.operation_timeout_ms;
  if (timeout > 0) deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout);
  const CancelToken cancel = CancelToken::watch(run_options.cancel, closing, deadline);
  cancel.check();
  std::shared_ptr<PlanEntry> found = entry(request, metadata);

  std::unique_lock<std::mutex> team_lock(team, std::try_to_lock);
  const TeamWidth width(team_lock.owns_lock() ? queue->width() : 1);
  RunEnvironment env;
  env.queue = team_lock.owns_lock() ? queue.get() : serial.get();
  env.team = &team_lock;
  env.state.cancel = &cancel;
  env.state.resources = &resources;
  env.state.step_id = step_id.fetch_add(1, std::memory_order_relaxed) + 1;
  if (metadata && run_options.trace_level != TraceLevel::kNone) {
    StatsCollector collector(*metadata);
    env.observer = &collector;
    execute(results, request, *found, env);
    return;
  }
  env.observer = options.observer;
  execute(results, request, *found, env);
}

Session::Session(graph::Graph& graph, SessionOptions options)
    : impl_(std::make_unique<Impl>(graph, std::move(options))) {}

Session::~Session() {
  close();
  std::unique_lock lock(impl_->mutex);
  impl_->idle.wait(lock, [&] { return impl_->in_flight == 0; });
}

std::vector<Array> Session::run(const std::vector<graph::Output>& fetches, const std::vector<Feed>& feeds,
                                const std::vector<graph::Node*>& targets, const RunOptions& options,
                                RunMetadata* metadata) {
  std::vector<Array> results;
  impl_->run(results, {fetches, feeds, targets}, options, metadata);
  return results;
}

void Session::run_into(std::vector<Array>& results, const std::vector<graph::Output>& fetches,
                       const std::vector<Feed>& feeds, const std::vector<graph::Node*>& targets,
                       const RunOptions& options, RunMetadata* metadata) {
  impl_->run(results, {fetches, feeds, targets}, options, metadata);
}

std::shared_ptr<const Plan> Session::plan(const std::vector<graph::Output>& fetches,
                                          const std::vector<Feed>& feeds,
                                          const std::vector<graph::Node*>& targets) {
  Impl::InFlight guard(*impl_);
  return impl_->entry({fetches, feeds, targets}, nullptr)->contexts.shared_plan();
}

void Session::close() {
  std::lock_guard lock(impl_->mutex);
  impl_->closed = true;
  impl_->closing.cancel();
}

graph::Graph& Session::graph() const { return impl_->graph; }
ResourceManager& Session::resources() const { return impl_->resources; }
const SessionOptions& Session::options() const { return impl_->options; }

SessionCounters Session::counters() const {
  SessionCounters c;
  c.runs = impl_->runs.load();
  c.plan_hits = impl_->hits.load();
  c.plan_compiles = impl_->compiles.load();
  c.cached_plans = impl_->cache.size();
  c.arena_bytes = impl_->arenas.bytes();
  std::lock_guard lock(impl_->mutex);
  c.compile_seconds = impl_->compile_seconds;
  return c;
}

std::vector<std::string> Session::list_devices() const {
  return {"/job:localhost/replica:0/task:0/device:CPU:0"};
}

}  // namespace sluice::runtime
