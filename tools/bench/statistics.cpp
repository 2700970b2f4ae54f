#include "tools/bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "graph/support/check.h"

namespace sluice::bench {

namespace {

double mean_of(std::span<const double> v) {
  return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
}

double median_of(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  const size_t mid = v.size() / 2;
  return v.size() % 2 == 1 ? v[mid] : (v[mid - 1] + v[mid]) / 2;
}

}  // namespace

Throughput throughput(std::span<const double> seconds, int64_t images_per_step) {
  SLUICE_CHECK(!seconds.empty(), "throughput of no steps");
  const auto images = static_cast<double>(images_per_step);
  std::vector<double> speeds;
  for (double s : seconds) speeds.push_back(images / s);
  const double speed_mean = mean_of(speeds);
  double squares = 0;
  for (double v : speeds) squares += (v - speed_mean) * (v - speed_mean);
  const auto n = static_cast<double>(speeds.size());
  const double median = median_of(speeds);
  std::vector<double> deviations;
  for (double v : speeds) deviations.push_back(std::abs(v - median));
  return {images / mean_of(seconds), std::sqrt(squares / n) / std::sqrt(n), 1.4826 * median_of(deviations)};
}

}  // namespace sluice::bench
