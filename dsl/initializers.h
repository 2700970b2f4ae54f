#pragma once
// Initial values of variables (graph-and-training §5.5): functions from a shape and a type to a tensor, which
// get_variable calls inside the variable's Initializer scope. Seeds follow TensorFlow's rules, so a seeded
// initializer gives TensorFlow's numbers. Values; the builder's thread.

#include <functional>
#include <optional>
#include <utility>

#include "dsl/tensor.h"

namespace sluice::dsl {

using Initializer = std::function<Tensor(Graph&, const Dims& shape, DType dtype, Loc loc)>;

Initializer zeros_initializer();
Initializer ones_initializer();
/// One value for all elements.
Initializer constant_initializer(double value);
/// These elements; their number must be the variable's (InvalidArgument when it is called otherwise).
Initializer constant_initializer(std::vector<double> values);
Initializer random_normal_initializer(double mean = 0, double stddev = 1, std::optional<int64_t> seed = {});
Initializer truncated_normal_initializer(double mean = 0, double stddev = 1,
                                         std::optional<int64_t> seed = {});
Initializer random_uniform_initializer(double minval = 0, double maxval = 1,
                                       std::optional<int64_t> seed = {});

enum class FanMode { kFanIn, kFanOut, kFanAvg };
enum class FanDistribution { kTruncatedNormal, kUntruncatedNormal, kUniform };
struct VarianceScaling {
  double scale = 1.0;
  FanMode mode = FanMode::kFanIn;
  FanDistribution distribution = FanDistribution::kTruncatedNormal;
  std::optional<int64_t> seed = {};
};
Initializer variance_scaling_initializer(const VarianceScaling& o = {});
Initializer glorot_uniform_initializer(std::optional<int64_t> seed = {});
Initializer glorot_normal_initializer(std::optional<int64_t> seed = {});
Initializer he_normal_initializer(std::optional<int64_t> seed = {});
Initializer he_uniform_initializer(std::optional<int64_t> seed = {});
Initializer lecun_normal_initializer(std::optional<int64_t> seed = {});
Initializer lecun_uniform_initializer(std::optional<int64_t> seed = {});
/// contrib.layers' variance scaling by the mean of the fans: uniform as Glorot's, or a truncated normal of
/// variance 1.3 / fan before truncation.
Initializer xavier_initializer(bool uniform = true, std::optional<int64_t> seed = {});
/// Uniform in ±factor·sqrt(3 / inputs), inputs being the product of all dimensions but the last.
Initializer uniform_unit_scaling_initializer(double factor = 1.0, std::optional<int64_t> seed = {});
/// gain on the diagonal of a matrix; InvalidArgument "Identity matrix initializer can only be used for 2D
/// matrices." for another shape.
Initializer identity_initializer(double gain = 1.0);

/// (fan_in, fan_out) of a weight shape.
std::pair<double, double> compute_fans(const Dims& shape);
/// What get_variable takes when nobody says otherwise: glorot_uniform for floats, zeros for integers, bool
/// and string; InvalidArgument for other types.
Initializer default_initializer(const std::string& variable, DType dtype);

}  // namespace sluice::dsl
