#pragma once
// Standard output of a run, line by line, in upstream's layout (benchmark-tool §7, decisions #2). Nothing
// else in the tool writes to stdout. One thread.

#include <cstdio>
#include <optional>
#include <string>

#include "tools/bench/settings.h"
#include "tools/bench/statistics.h"

namespace sluice::bench {

/// What one timed step reports.
struct StepReport {
  int64_t step = 0;
  Throughput speed;
  double loss = 0;
  std::optional<double> top_1, top_5;
};

class Output {
 public:
  /// `out` stays the caller's; tests pass a temporary file.
  explicit Output(std::FILE* out, bool flush) : out_(out), flush_(flush) {}

  void line(const std::string& text);
  void info_block(const Settings& settings);
  void header(bool accuracies);
  void step(const StepReport& report);
  void total(double images_per_second);
  void eval_progress(int64_t step, double examples_per_second);
  void accuracy(double top_1, double top_5, int64_t examples);

 private:
  std::FILE* out_;
  bool flush_;
};

std::string step_text(const StepReport& report);

}  // namespace sluice::bench
