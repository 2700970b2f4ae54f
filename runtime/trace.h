#pragma once
// Traces of runs: step statistics for RunMetadata and Chrome's trace format (graph-and-training §7.9), which
// chrome://tracing and Perfetto open.

#include <mutex>
#include <string>

#include "runtime/observer.h"
#include "runtime/session.h"

namespace sluice::runtime {

/// Fills RunMetadata::steps. Any thread may report steps.
class StatsCollector final : public Observer {
 public:
  explicit StatsCollector(RunMetadata& metadata);
  void step_ran(const Plan& plan, const Step& step, const StepTime& time) override;

 private:
  RunMetadata& metadata_;
  int64_t start_ns_ = 0;
  std::mutex mutex_;  // guards metadata_.steps
};

/// {"traceEvents": [...]}: one complete event a step, with op, kernel and nodes as arguments.
std::string chrome_trace(const RunMetadata& metadata);
/// Writes it; throws with the path when the file cannot be written.
void write_chrome_trace(const RunMetadata& metadata, const std::string& path);

}  // namespace sluice::runtime
