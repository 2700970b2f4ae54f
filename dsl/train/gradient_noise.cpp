#include "dsl/train/gradient_noise.h"

#include "dsl/ops/array.h"
#include "dsl/ops/math.h"
#include "dsl/ops/random.h"
#include "dsl/require.h"
#include "passes/emit.h"

namespace sluice::dsl::train {

namespace {

// A truncated normal of t's shape, also where that is known only in the run.
Tensor noise_like(const Tensor& t, std::optional<int64_t> seed, Loc loc) {
  Graph& g = t.graph();
  if (t.shape().fully_known())
    return truncated_normal(g, t.shape().dims(), 0, 1, {.dtype = t.dtype(), .seed = seed}, loc);
  graph::NameScope scope(g, "truncated_normal");
  const Tensor dims = shape(t, {}, loc);
  const auto [seed1, seed2] = g.op_seeds(seed);
  return passes::Emit{g, loc}.op("TruncatedNormal", {dims}, {},
                                 {{"dtype", t.dtype()}, {"seed", seed1}, {"seed2", seed2}});
}

}  // namespace

GradsAndVars add_gradient_noise(const GradsAndVars& grads_and_vars, const Operand& scale,
                                std::optional<int64_t> seed, Loc loc) {
  GradsAndVars out = grads_and_vars;
  for (GradVar& p : out) {
    if (p.grad.none()) continue;
    const Tensor values = p.grad.is_slices() ? p.grad.slices.values : p.grad.dense;
    Operand by = scale;
    if (!scale.is_number() && scale.dtype() != values.dtype())
      by = Operand(cast(scale, values.dtype(), {}, loc), loc);
    const Tensor noisy = add(values, multiply(noise_like(values, seed, loc), by, "mul", loc), "add", loc);
    if (p.grad.is_slices())
      p.grad.slices.values = noisy;
    else
      p.grad = GradValue(noisy.output());
  }
  return out;
}

TransformGrads gradient_noise_fn(const Operand& scale, std::optional<int64_t> seed) {
  return [scale, seed](const GradsAndVars& pairs) { return add_gradient_noise(pairs, scale, seed); };
}

Tensor annealed_noise_scale(const Operand& global_step, double eta, double gamma, Loc loc) {
  SLUICE_REQUIRE_AT(loc, !global_step.is_number(), Code::kInvalidArgument,
                    "annealed_noise_scale needs the global step");
  Graph& g = graph_of({&global_step});
  graph::NameScope scope(g, "gradient_noise_scale");
  const Tensor step = cast(global_step.tensor(g), DType::kFloat, {}, loc);
  return sqrt(divide(eta, pow(add(step, 1.0, "add", loc), gamma, {}, loc), {}, loc), {}, loc);
}

}  // namespace sluice::dsl::train
