#include "tools/bench/statistics.h"

#include <gtest/gtest.h>

#include "tools/bench/output.h"

namespace sluice::bench {
namespace {

std::string line(std::vector<double> seconds, int64_t batch) {
  StepReport r{1, throughput(seconds, batch), 0.5, {}, {}};
  const std::string text = step_text(r);
  const size_t from = text.find('\t') + 1;
  return text.substr(from, text.rfind('\t') - from);
}

TEST(Throughput, WorkedExamples) {
  EXPECT_EQ(line({.10}, 32), "images/sec: 320.0 +/- 0.0 (jitter = 0.0)");
  EXPECT_EQ(line({.10, .11}, 32), "images/sec: 304.8 +/- 10.3 (jitter = 21.6)");
  EXPECT_EQ(line({.10, .11, .10, .12, .25}, 32), "images/sec: 235.3 +/- 31.9 (jitter = 43.1)");
  EXPECT_EQ(line({.4, .32, .32, .25, .2}, 64), "images/sec: 214.8 +/- 24.8 (jitter = 59.3)");
}

TEST(StepLine, LossAndAccuraciesFollow) {
  StepReport r{20, {100.04, 1.2, 3.4}, 6.90775, 0.25, 0.5};
  EXPECT_EQ(step_text(r), "20\timages/sec: 100.0 +/- 1.2 (jitter = 3.4)\t6.908\t0.250\t0.500");
  r.top_1.reset();
  r.loss = -__builtin_nan("");
  EXPECT_EQ(step_text(r), "20\timages/sec: 100.0 +/- 1.2 (jitter = 3.4)\tnan");
  r.loss = __builtin_inf();
  EXPECT_EQ(step_text(r), "20\timages/sec: 100.0 +/- 1.2 (jitter = 3.4)\tinf");
}

}  // namespace
}  // namespace sluice::bench
