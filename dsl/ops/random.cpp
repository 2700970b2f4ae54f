#include "dsl/ops/random.h"

#include "dsl/call.h"
#include "dsl/ops/math.h"

namespace sluice::dsl {

namespace {

AttrMap seeded(const Graph& g, const RandomOptions& o) {
  auto [seed, seed2] = g.op_seeds(o.seed);
  return {{"seed", seed}, {"seed2", seed2}};
}

Tensor uniform(const Call& c, Output shape, double minval, double maxval, const RandomOptions& o, Loc loc) {
  AttrMap attrs = seeded(c.graph(), o);
  if (minval == 0 && maxval == 1 && graph::is_floating(o.dtype)) {
    attrs["dtype"] = o.dtype;
    return c.inner("RandomUniform", {shape}, attrs);
  }
  Output low = c.scalar(o.dtype, minval, "min"), high = c.scalar(o.dtype, maxval, "max");
  if (graph::is_integer(o.dtype)) return c.make("RandomUniformInt", {shape, low, high}, attrs);
  attrs["dtype"] = o.dtype;
  Tensor unit = c.inner("RandomUniform", {shape}, attrs);
  Tensor span = subtract(Tensor(high), Tensor(low), "sub", loc);
  return c.make("AddV2", {multiply(unit, span, "mul", loc), low});
}

Tensor gaussian(const char* op, const char* fallback, Graph& g, const std::vector<int64_t>& shape,
                double mean, double stddev, const RandomOptions& o, Loc loc) {
  Call c(g, o.name, fallback, loc);
  Output dims = c.i32s(shape, "shape");
  Output m = c.scalar(o.dtype, mean, "mean"), s = c.scalar(o.dtype, stddev, "stddev");
  AttrMap attrs = seeded(g, o);
  attrs["dtype"] = o.dtype;
  Tensor unit = c.inner(op, {dims}, attrs);
  return c.make("AddV2", {multiply(unit, Tensor(s), "mul", loc), m});
}

}  // namespace

Tensor random_uniform(Graph& g, const std::vector<int64_t>& shape, double minval, double maxval,
                      const RandomOptions& o, Loc loc) {
  Call c(g, o.name, "random_uniform", loc);
  return uniform(c, c.i32s(shape, "shape"), minval, maxval, o, loc);
}
Tensor random_uniform(const Tensor& shape, double minval, double maxval, const RandomOptions& o, Loc loc) {
  Call c(shape.graph(), o.name, "random_uniform", loc);
  return uniform(c, shape, minval, maxval, o, loc);
}
Tensor random_normal(Graph& g, const std::vector<int64_t>& shape, double mean, double stddev,
                     const RandomOptions& o, Loc loc) {
  return gaussian("RandomStandardNormal", "random_normal", g, shape, mean, stddev, o, loc);
}
Tensor truncated_normal(Graph& g, const std::vector<int64_t>& shape, double mean, double stddev,
                        const RandomOptions& o, Loc loc) {
  return gaussian("TruncatedNormal", "truncated_normal", g, shape, mean, stddev, o, loc);
}

}  // namespace sluice::dsl
