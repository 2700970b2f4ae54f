#pragma once
// Throughput from step times (benchmark-tool §8): mean is batch / mean(time), uncertainty the population
// deviation of the speeds over sqrt(n), jitter 1.4826 × the median absolute deviation. Pure; any thread.

#include <cstdint>
#include <span>

namespace sluice::bench {

struct Throughput {
  double mean = 0, uncertainty = 0, jitter = 0;  // images a second
};

/// `seconds` must not be empty.
Throughput throughput(std::span<const double> seconds, int64_t images_per_step);

}  // namespace sluice::bench
