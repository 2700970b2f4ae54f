#include "dsl/train/schedule.h"

#include <cmath>

#include "dsl/call.h"
#include "dsl/ops/array.h"
#include "dsl/ops/math.h"
#include "dsl/ops/random.h"
#include "dsl/require.h"

namespace sluice::dsl::train {

namespace {

constexpr double kPi = 3.14159265358979323846;

// The rate and the step as tensors of one float type, in the schedule's scope.
struct Schedule {
  Call call;
  Tensor rate, step;

  Schedule(const Operand& learning_rate, const Operand& global_step, const std::string& name,
           const char* fallback, Loc loc)
      : call(graph_checked(global_step, fallback), name, fallback, loc) {
    rate = call.in(learning_rate, "initial_learning_rate");
    Tensor s = call.in(global_step, "global_step");
    step = cast(s, rate.dtype(), {}, loc);
  }

  static Graph& graph_checked(const Operand& step, const char* what) {
    SLUICE_REQUIRE(!step.is_number(), Code::kInvalidArgument, "global_step is required for ", what, ".");
    return graph_of({&step});
  }

  Loc loc() const { return call.loc(); }
  Tensor number(double v, const char* name) const { return call.scalar(rate.dtype(), v, name); }
  /// step / n, floored where asked.
  Tensor progress(double n, bool staircase) const {
    Tensor p = divide(step, number(n, "decay_steps"), {}, loc());
    return staircase ? floor(p, {}, loc()) : p;
  }
  /// rate · factor under the schedule's name.
  Tensor times(const Tensor& factor) const { return call.make("Mul", {rate, factor}); }
};

void check_steps(double n, const char* what) {
  SLUICE_REQUIRE(n > 0, Code::kInvalidArgument, what, ": decay_steps must be positive, got ", n);
}

}  // namespace

Tensor exponential_decay(const Operand& learning_rate, const Operand& global_step, double decay_steps,
                         double decay_rate, bool staircase, const std::string& name, Loc loc) {
  check_steps(decay_steps, "exponential_decay");
  Schedule s(learning_rate, global_step, name, "ExponentialDecay", loc);
  Tensor base = s.number(decay_rate, "decay_rate");
  return s.times(pow(base, s.progress(decay_steps, staircase), {}, loc));
}

Tensor natural_exp_decay(const Operand& learning_rate, const Operand& global_step, double decay_steps,
                         double decay_rate, bool staircase, const std::string& name, Loc loc) {
  check_steps(decay_steps, "natural_exp_decay");
  Schedule s(learning_rate, global_step, name, "NaturalExpDecay", loc);
  Tensor exponent =
      multiply(s.progress(decay_steps, staircase), s.number(-decay_rate, "decay_rate"), {}, loc);
  return s.times(exp(exponent, {}, loc));
}

Tensor inverse_time_decay(const Operand& learning_rate, const Operand& global_step, double decay_steps,
                          double decay_rate, bool staircase, const std::string& name, Loc loc) {
  check_steps(decay_steps, "inverse_time_decay");
  Schedule s(learning_rate, global_step, name, "InverseTimeDecay", loc);
  Tensor p = multiply(s.number(decay_rate, "decay_rate"), s.progress(decay_steps, staircase), {}, loc);
  return s.call.make("RealDiv", {s.rate, add(s.number(1.0, "Const"), p, {}, loc)});
}

Tensor polynomial_decay(const Operand& learning_rate, const Operand& global_step, double decay_steps,
                        const PolynomialDecayOptions& o, Loc loc) {
  check_steps(decay_steps, "polynomial_decay");
  Schedule s(learning_rate, global_step, o.name, "PolynomialDecay", loc);
  Tensor end = s.number(o.end_learning_rate, "end_learning_rate");
  Tensor n = s.number(decay_steps, "decay_steps");
  Tensor at = s.step;
  if (o.cycle) {
    // At step 0 the first cycle has begun: ceil(0) would be no cycle at all.
    Tensor cycles = maximum(ceil(divide(s.step, n, {}, loc), {}, loc), 1.0, {}, loc);
    n = multiply(n, cycles, {}, loc);
  } else {
    at = minimum(s.step, n, {}, loc);
  }
  Tensor left = subtract(1.0, divide(at, n, {}, loc), "sub", loc);
  Tensor shape = pow(left, s.number(o.power, "power"), {}, loc);
  Tensor span = multiply(subtract(s.rate, end, "sub", loc), shape, {}, loc);
  return s.call.make("AddV2", {span, end});
}

Tensor piecewise_constant(const Operand& x, const std::vector<double>& boundaries,
                          const std::vector<double>& values, const std::string& name, Loc loc) {
  SLUICE_REQUIRE_AT(loc, boundaries.size() + 1 == values.size(), Code::kInvalidArgument,
                    "The length of boundaries should be 1 less than the length of values, got ",
                    boundaries.size(), " and ", values.size());
  SLUICE_REQUIRE_AT(loc, !x.is_number(), Code::kInvalidArgument,
                    "global_step is required for PiecewiseConstant.");
  for (size_t i = 0; i < boundaries.size(); ++i) {
    double b = boundaries[i];
    SLUICE_REQUIRE_AT(loc, graph::is_floating(x.dtype()) || std::trunc(b) == b, Code::kInvalidArgument,
                      "Boundaries (", b, ") must have the same dtype as x (", x.dtype(), ").");
    SLUICE_REQUIRE_AT(loc, i == 0 || boundaries[i - 1] < b, Code::kInvalidArgument,
                      "boundaries must grow, got ", boundaries[i > 0 ? i - 1 : 0], " before ", b);
  }
  Call c(graph_of({&x}), name, "PiecewiseConstant", loc);
  Tensor at = c.in(x, "x");
  Tensor result = c.scalar(DType::kFloat, values.back(), "Const");
  for (size_t i = boundaries.size(); i-- > 0;) {
    Tensor here = less_equal(at, c.scalar(at.dtype(), boundaries[i], "boundary"), {}, loc);
    result = where(here, c.scalar(DType::kFloat, values[i], "Const"), result, {}, loc);
  }
  return c.make("Identity", {result});
}

Tensor cosine_decay(const Operand& learning_rate, const Operand& global_step, double decay_steps,
                    double alpha, const std::string& name, Loc loc) {
  check_steps(decay_steps, "cosine_decay");
  Schedule s(learning_rate, global_step, name, "CosineDecay", loc);
  Tensor n = s.number(decay_steps, "decay_steps");
  Tensor part = divide(minimum(s.step, n, {}, loc), n, {}, loc);
  Tensor wave =
      multiply(add(cos(multiply(part, kPi, "mul", loc), {}, loc), 1.0, "add", loc), 0.5, "mul", loc);
  return s.times(add(multiply(wave, 1.0 - alpha, "mul", loc), alpha, "add", loc));
}

Tensor cosine_decay_restarts(const Operand& learning_rate, const Operand& global_step,
                             double first_decay_steps, const CosineRestartOptions& o, Loc loc) {
  check_steps(first_decay_steps, "cosine_decay_restarts");
  Schedule s(learning_rate, global_step, o.name, "SGDRDecay", loc);
  Tensor done = divide(s.step, s.number(first_decay_steps, "first_decay_steps"), {}, loc);
  Tensor period, part;
  if (o.t_mul == 1.0) {
    period = floor(done, {}, loc);
    part = subtract(done, period, "sub", loc);
  } else {
    // Period i begins at (1 - t^i)/(1 - t) of the first period's length and lasts t^i of it.
    Tensor inside = subtract(1.0, multiply(done, 1.0 - o.t_mul, "mul", loc), "sub", loc);
    period = floor(divide(log(inside, {}, loc), std::log(o.t_mul), {}, loc), {}, loc);
    Tensor length = pow(s.number(o.t_mul, "t_mul"), period, {}, loc);
    Tensor begun = divide(subtract(1.0, length, "sub", loc), 1.0 - o.t_mul, {}, loc);
    part = divide(subtract(done, begun, "sub", loc), length, {}, loc);
  }
  Tensor height = multiply(pow(s.number(o.m_mul, "m_mul"), period, {}, loc), 0.5, "mul", loc);
  Tensor wave = add(cos(multiply(part, kPi, "mul", loc), {}, loc), 1.0, "add", loc);
  Tensor scaled = multiply(multiply(height, wave, "mul", loc), 1.0 - o.alpha, "mul", loc);
  return s.times(add(scaled, o.alpha, "add", loc));
}

Tensor linear_cosine_decay(const Operand& learning_rate, const Operand& global_step, double decay_steps,
                           const LinearCosineOptions& o, Loc loc) {
  check_steps(decay_steps, "linear_cosine_decay");
  Schedule s(learning_rate, global_step, o.name, "LinearCosineDecay", loc);
  Tensor n = s.number(decay_steps, "decay_steps");
  Tensor at = minimum(s.step, n, {}, loc);
  Tensor linear = divide(subtract(n, at, "sub", loc), n, {}, loc);
  Tensor phase = multiply(divide(at, n, {}, loc), 2.0 * kPi * o.num_periods, "mul", loc);
  Tensor wave = multiply(add(cos(phase, {}, loc), 1.0, "add", loc), 0.5, "mul", loc);
  Tensor decayed = multiply(add(linear, o.alpha, "add", loc), wave, "mul", loc);
  return s.times(add(decayed, o.beta, "add", loc));
}

Tensor noisy_linear_cosine_decay(const Operand& learning_rate, const Operand& global_step, double decay_steps,
                                 const NoisyLinearCosineOptions& o, Loc loc) {
  check_steps(decay_steps, "noisy_linear_cosine_decay");
  Schedule s(learning_rate, global_step, o.name, "NoisyLinearCosineDecay", loc);
  Tensor n = s.number(decay_steps, "decay_steps");
  Tensor at = minimum(s.step, n, {}, loc);
  Tensor linear = divide(subtract(n, at, "sub", loc), n, {}, loc);
  Tensor spread = pow(add(at, 1.0, "add", loc), o.variance_decay, {}, loc);
  Tensor deviation = sqrt(divide(o.initial_variance, spread, {}, loc), {}, loc);
  Tensor noise = random_normal(s.call.graph(), {}, 0, 1, {.dtype = s.rate.dtype(), .seed = o.seed}, loc);
  Tensor noisy = add(linear, multiply(noise, deviation, "mul", loc), "add", loc);
  Tensor phase = multiply(divide(at, n, {}, loc), 2.0 * kPi * o.num_periods, "mul", loc);
  Tensor wave = multiply(add(cos(phase, {}, loc), 1.0, "add", loc), 0.5, "mul", loc);
  Tensor decayed = multiply(add(noisy, o.alpha, "add", loc), wave, "mul", loc);
  return s.times(add(decayed, o.beta, "add", loc));
}

}  // namespace sluice::dsl::train
