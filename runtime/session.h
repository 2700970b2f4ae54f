#pragma once
// Runs a graph. A Session compiles each signature (fetches, feeds with shapes, targets, variable shapes) once
// into a Plan and keeps a bounded cache of them; variables live in the session. `run` may be called from
// several threads; `close` during a run ends it with Cancelled. The graph must outlive the session and may
// grow between runs.
//
//   Session s(g);
//   s.run({}, {}, {init});
//   std::vector<Array> out = s.run({loss}, {{x, images}}, {train_op});

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "runtime/array.h"
#include "runtime/kernel.h"
#include "runtime/resource.h"

namespace sluice::runtime {

/// Ends runs from outside; shared by value. Any thread. A token may also watch others and a deadline, so that
/// a kernel which waits has one thing to ask.
class CancelToken {
 public:
  enum class Reason { kNone, kCancelled, kClosed, kDeadline };

  CancelToken() : flag_(std::make_shared<std::atomic<int>>(0)) {}
  /// Can never be cancelled; costs nothing.
  static CancelToken none() { return CancelToken(nullptr); }
  /// Follows a caller's token and a session's, and ends at `deadline` (none: time_point::max()).
  static CancelToken watch(const CancelToken& caller, const CancelToken& session,
                           std::chrono::steady_clock::time_point deadline);

  /// FailedPrecondition on a token made by none().
  void cancel();
  /// This token, which also follows a flag that outlives it: another step's failure.
  CancelToken also(const std::atomic<int>& failed) const {
    CancelToken t = *this;
    t.failed_ = &failed;
    return t;
  }
  bool cancelled() const { return reason() != Reason::kNone; }
  /// Why; kDeadline costs a look at the clock when a deadline is set.
  Reason reason() const;
  /// Throws Cancelled "Run call was cancelled" or DeadlineExceeded "Timed out waiting for notification".
  void check() const;
  std::chrono::steady_clock::time_point deadline() const { return deadline_; }

 private:
  explicit CancelToken(std::nullptr_t) {}
  std::shared_ptr<std::atomic<int>> flag_;     // shared by all copies of one token
  std::shared_ptr<std::atomic<int>> session_;  // the closing session's
  const std::atomic<int>* failed_ = nullptr;
  std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::time_point::max();
};

enum class TraceLevel { kNone = 0, kSoftware = 1, kHardware = 2, kFull = 3 };

struct RunOptions {
  TraceLevel trace_level = TraceLevel::kNone;
  int64_t timeout_ms = 0;                    // 0: none; past it the run ends with DeadlineExceeded
  CancelToken cancel = CancelToken::none();  // assign a token of yours to be able to end the run
  bool output_partition_graphs = false;
};

/// One executed step of a plan.
struct StepStats {
  std::string name, op, kernel;
  std::vector<std::string> nodes;    // graph nodes it stands for
  int64_t start_us = 0, end_us = 0;  // since the run began
  int thread = 0;
  size_t bytes = 0;  // output bytes
};

struct RunMetadata {
  std::vector<StepStats> steps;  // filled at trace_level ≥ kSoftware
  int64_t start_unix_us = 0;
  bool compiled = false;  // this run had to build its plan
  double compile_seconds = 0;
};

class Observer;  // runtime/observer.h

/// kAuto follows SLUICE_PLAN.
enum class PlanMode { kAuto, kOptimized, kReference, kReference64 };

struct SessionOptions {
  PlanMode mode = PlanMode::kAuto;
  int intra_op_threads = 0;  // 0: measured; 1: one thread
  int inter_op_threads = 1;  // > 1: independent steps run concurrently; 0: system's choice
  bool allow_soft_placement = false;
  bool log_device_placement = false;
  bool deterministic = false;
  bool allow_winograd = true;
  bool relaxed_nan = false;
  size_t memory_limit = 0;  // bytes of arena; 0: none
  int max_cached_plans = 64;
  int64_t operation_timeout_ms = 0;
  const KernelRegistry* kernels = nullptr;  // null: standard_kernels(); must outlive the session
  std::vector<std::string> disabled_passes;
  Observer* observer = nullptr;  // told about every step; must outlive the session
  std::shared_ptr<ResourceManager> resources =
      nullptr;  // null: the session's own; see runtime/local_master.h
};

struct SessionCounters {
  int64_t runs = 0, plan_hits = 0, plan_compiles = 0;
  double compile_seconds = 0;
  size_t cached_plans = 0, arena_bytes = 0;
};

struct Feed {
  graph::Output output;
  Array value;
};

class Plan;

class Session {
 public:
  explicit Session(graph::Graph& graph, SessionOptions options = {});
  /// Waits for runs in flight (they end with Cancelled).
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Values of `fetches`, in order. Errors as TensorFlow's (graph-and-training §8.1) plus node, types and
  /// line.
  std::vector<Array> run(const std::vector<graph::Output>& fetches, const std::vector<Feed>& feeds = {},
                         const std::vector<graph::Node*>& targets = {}, const RunOptions& options = {},
                         RunMetadata* metadata = nullptr);
  /// The same into caller-owned arrays: an Array of the right dtype and dims is written in place and nothing
  /// is allocated.
  void run_into(std::vector<Array>& results, const std::vector<graph::Output>& fetches,
                const std::vector<Feed>& feeds = {}, const std::vector<graph::Node*>& targets = {},
                const RunOptions& options = {}, RunMetadata* metadata = nullptr);

  /// The plan a run with these arguments would use (compiled now if need be), for `sluice-graph explain`.
  std::shared_ptr<const Plan> plan(const std::vector<graph::Output>& fetches, const std::vector<Feed>& feeds,
                                   const std::vector<graph::Node*>& targets);

  /// Ends runs in flight with Cancelled; later runs fail with "Attempted to use a closed Session."
  void close();
  graph::Graph& graph() const;
  ResourceManager& resources() const;
  const SessionOptions& options() const;
  SessionCounters counters() const;
  /// Names of the devices, "/job:localhost/replica:0/task:0/device:CPU:0".
  std::vector<std::string> list_devices() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::runtime
