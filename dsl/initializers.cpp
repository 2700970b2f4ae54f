#include "dsl/initializers.h"

#include <algorithm>
#include <cmath>

#include "dsl/ops/array.h"
#include "dsl/ops/random.h"
#include "dsl/require.h"

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

Initializer lecun_normal_initializer(std::optional<int64_t> seed) {
  return variance_scaling_initializer({1.0, FanMode::kFanIn, FanDistribution::kTruncatedNormal, seed});
}
Initializer lecun_uniform_initializer(std::optional<int64_t> seed) {
  return variance_scaling_initializer({1.0, FanMode::kFanIn, FanDistribution::kUniform, seed});
}

Initializer xavier_initializer(bool uniform, std::optional<int64_t> seed) {
  if (uniform) return glorot_uniform_initializer(seed);
  return [seed](Graph& g, const Dims& shape, DType t, Loc loc) {
    auto [in, out] = compute_fans(shape);
    return truncated_normal(g, shape, 0, std::sqrt(1.3 * 2 / (in + out)), {.dtype = t, .seed = seed}, loc);
  };
}

Initializer uniform_unit_scaling_initializer(double factor, std::optional<int64_t> seed) {
  return [factor, seed](Graph& g, const Dims& shape, DType t, Loc loc) {
    double inputs = 1;
    for (size_t d = 0; d + 1 < shape.size(); ++d) inputs *= static_cast<double>(shape[d]);
    const double limit = std::sqrt(3 / std::max(1.0, inputs)) * factor;
    return random_uniform(g, shape, -limit, limit, {.dtype = t, .seed = seed}, loc);
  };
}

Initializer identity_initializer(double gain) {
  return [gain](Graph& g, const Dims& shape, DType t, Loc loc) {
    SLUICE_REQUIRE_AT(loc, shape.size() == 2, Code::kInvalidArgument,
                      "Identity matrix initializer can only be used for 2D matrices.");
    std::vector<double> v(static_cast<size_t>(graph::num_elements(shape)));
    for (int64_t i = 0; i < std::min(shape[0], shape[1]); ++i)
      v[static_cast<size_t>(i * shape[1] + i)] = gain;
    return constant(g, Literal::from<double>(shape, std::span<const double>(v)).cast(t), {}, loc);
  };
}

Initializer default_initializer(const std::string& variable, DType dtype) {
  if (graph::is_floating(dtype)) return glorot_uniform_initializer();
  SLUICE_REQUIRE(graph::is_integer(dtype) || dtype == DType::kBool || dtype == DType::kString,
                 Code::kInvalidArgument, "An initializer for variable ", variable, " of ", dtype,
                 " is required");
  return zeros_initializer();
}

}  // namespace sluice::dsl
