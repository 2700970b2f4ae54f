#include "dsl/initializers.h"

#include <algorithm>
#include <cmath>

#include "dsl/ops/array.h"
#include "dsl/ops/random.h"

namespace sluice::dsl {

namespace {

// The standard deviation of a unit normal cut off at two of its standard deviations.
constexpr double kTruncatedStddev = 0.87962566103423978;

}  // namespace

Initializer zeros_initializer() {
  return [](Graph& g, const Dims& shape, DType t, Loc loc) { return zeros(g, shape, t, {}, loc); };
}

Initializer ones_initializer() {
  return [](Graph& g, const Dims& shape, DType t, Loc loc) { return ones(g, shape, t, {}, loc); };
}

Initializer constant_initializer(double value) {
  return [value](Graph& g, const Dims& shape, DType t, Loc loc) {
    std::vector<double> v(static_cast<size_t>(graph::num_elements(shape)), value);
    return constant(g, Literal::from<double>(shape, std::span<const double>(v)).cast(t), {}, loc);
  };
}

Initializer constant_initializer(std::vector<double> values) {
  return [values = std::move(values)](Graph& g, const Dims& shape, DType t, Loc loc) {
    SLUICE_REQUIRE(static_cast<int64_t>(values.size()) == graph::num_elements(shape), Code::kInvalidArgument,
                   "constant_initializer has ", values.size(), " values for shape ",
                   graph::dims_string(shape));
    return constant(g, Literal::from<double>(shape, std::span<const double>(values)).cast(t), {}, loc);
  };
}

Initializer random_normal_initializer(double mean, double stddev, std::optional<int64_t> seed) {
  return [=](Graph& g, const Dims& shape, DType t, Loc loc) {
    return random_normal(g, shape, mean, stddev, {.dtype = t, .seed = seed}, loc);
  };
}

Initializer truncated_normal_initializer(double mean, double stddev, std::optional<int64_t> seed) {
  return [=](Graph& g, const Dims& shape, DType t, Loc loc) {
    return truncated_normal(g, shape, mean, stddev, {.dtype = t, .seed = seed}, loc);
  };
}

Initializer random_uniform_initializer(double minval, double maxval, std::optional<int64_t> seed) {
  return [=](Graph& g, const Dims& shape, DType t, Loc loc) {
    return random_uniform(g, shape, minval, maxval, {.dtype = t, .seed = seed}, loc);
  };
}

std::pair<double, double> compute_fans(const Dims& shape) {
  if (shape.empty()) return {1, 1};
  if (shape.size() == 1) return {static_cast<double>(shape[0]), static_cast<double>(shape[0])};
  double receptive = 1;
  for (size_t i = 0; i + 2 < shape.size(); ++i) receptive *= static_cast<double>(shape[i]);
  return {receptive * static_cast<double>(shape[shape.size() - 2]),
          receptive * static_cast<double>(shape.back())};
}

Initializer variance_scaling_initializer(const VarianceScaling& o) {
  SLUICE_REQUIRE(o.scale > 0, Code::kInvalidArgument,
                 "Argument `scale` must be a positive float. Received: ", o.scale);
  return [o](Graph& g, const Dims& shape, DType t, Loc loc) {
    auto [in, out] = compute_fans(shape);
    double fan = o.mode == FanMode::kFanIn ? in : o.mode == FanMode::kFanOut ? out : (in + out) / 2;
    double variance = o.scale / std::max(1.0, fan);
    RandomOptions r{.dtype = t, .seed = o.seed};
    switch (o.distribution) {
      case FanDistribution::kTruncatedNormal:
        return truncated_normal(g, shape, 0, std::sqrt(variance) / kTruncatedStddev, r, loc);
      case FanDistribution::kUntruncatedNormal:
        return random_normal(g, shape, 0, std::sqrt(variance), r, loc);
      case FanDistribution::kUniform:
        break;
    }
    double limit = std::sqrt(3.0 * variance);
    return random_uniform(g, shape, -limit, limit, r, loc);
  };
}

Initializer glorot_uniform_initializer(std::optional<int64_t> seed) {
  return variance_scaling_initializer({1.0, FanMode::kFanAvg, FanDistribution::kUniform, seed});
}
Initializer glorot_normal_initializer(std::optional<int64_t> seed) {
  return variance_scaling_initializer({1.0, FanMode::kFanAvg, FanDistribution::kTruncatedNormal, seed});
}
Initializer he_normal_initializer(std::optional<int64_t> seed) {
  return variance_scaling_initializer({2.0, FanMode::kFanIn, FanDistribution::kTruncatedNormal, seed});
}
Initializer he_uniform_initializer(std::optional<int64_t> seed) {
  return variance_scaling_initializer({2.0, FanMode::kFanIn, FanDistribution::kUniform, seed});
}

Initializer default_initializer(const std::string& variable, DType dtype) {
  if (graph::is_floating(dtype)) return glorot_uniform_initializer();
  SLUICE_REQUIRE(graph::is_integer(dtype) || dtype == DType::kBool || dtype == DType::kString,
                 Code::kInvalidArgument, "An initializer for variable ", variable, " of ", dtype,
                 " is required");
  return zeros_initializer();
}

}  // namespace sluice::dsl
