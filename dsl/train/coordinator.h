#pragma once
// Stops a group of threads together (graph-and-training §6.4). Whoever sees a reason to stop calls
// request_stop; all others notice by should_stop or wait_for_stop; join waits for them and throws what the
// first of them reported. Every function may be called from any thread. The destructor requests a stop and
// waits for the threads it started.
//
//   Coordinator coord;
//   coord.start_thread([&] { while (!coord.should_stop()) work(); });
//   …
//   coord.request_stop();
//   coord.join();

#include <atomic>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "graph/support/check.h"

namespace sluice::dsl::train {

struct JoinOptions {
  double stop_grace_period_secs = 120;  // how long threads have to end once a stop is requested
  bool ignore_live_threads = false;     // log stragglers instead of throwing
};

class Coordinator {
 public:
  /// Errors of the kinds `clean_stop` stop the threads but are not reported by join.
  explicit Coordinator(std::vector<Code> clean_stop = {Code::kOutOfRange});
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  /// Starts a thread that join waits for; an exception that leaves `body` is reported as by request_stop.
  void start_thread(std::function<void()> body);

  /// Asks all to stop. The first exception is kept for join, unless it is a clean one. After join an
  /// exception is thrown at once, as nobody would see it.
  void request_stop(std::exception_ptr exception = nullptr);
  bool should_stop() const { return stop_.load(std::memory_order_acquire); }
  /// Forgets the stop and its exception.
  void clear_stop();
  /// Runs `body` (once); an exception out of it stops the threads instead of going on.
  void stop_on_exception(const std::function<void()>& body);
  /// Waits until a stop is requested, at most `timeout_secs`; true when it was.
  bool wait_for_stop(std::optional<double> timeout_secs = {});
  /// Waits until all threads have ended or a stop is requested, then gives them the grace period. Throws the
  /// first reported exception, else FailedPrecondition "Coordinator stopped with threads still running: …".
  void join(const JoinOptions& o = {});
  bool joined() const;
  /// Throws what was reported, if anything was; costs one load when nothing was.
  void raise_requested_exception() const {
    if (failed_.load(std::memory_order_acquire)) rethrow();
  }

 private:
  struct Impl;
  void rethrow() const;
  std::exception_ptr filter(std::exception_ptr e) const;

  std::atomic<bool> stop_{false}, failed_{false};
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::dsl::train
