// Random numbers from Philox streams (graph-and-training §1.8): one stream a node, seeded by its attrs.

#include "graph/ops/register.h"
#include "graph/ops/shapes.h"

namespace sluice::graph::ops {
namespace {

constexpr uint32_t kDraws = kStateful | kRandom | kNotDifferentiable;

void random_shape(InferContext& c) {
  c.with_rank(0, 1);
  c.set_output(0, c.shape_value(0));
}

void random_int_shape(InferContext& c) {
  static const char* const kBounds[] = {"", "minval", "maxval"};
  for (int i : {1, 2})
    require(c, !c.input(i).known_rank() || c.input(i).rank() == 0, kBounds[i],
            " must be a scalar; got a tensor of shape ", c.input(i));
  random_shape(c);
}

void add_float(OpRegistry& r, const char* name, const char* doc) {
  r.add({.name = name,
         .inputs = {"shape: T"},
         .outputs = {"output: dtype"},
         .attrs = {"seed: int = 0", "seed2: int = 0", "dtype: {half, bfloat16, float, double}",
                   "T: {int32, int64}"},
         .doc = doc,
         .traits = kDraws,
         .infer = random_shape});
}

}  // namespace

void register_random(OpRegistry& r) {
  add_float(r, "RandomUniform", "Uniform on [0, 1).");
  add_float(r, "RandomStandardNormal", "Normal with mean 0 and deviation 1.");
  add_float(r, "TruncatedNormal", "Normal with mean 0 and deviation 1, redrawn beyond two deviations.");
  r.add({.name = "RandomUniformInt",
         .inputs = {"shape: T", "minval: Tout", "maxval: Tout"},
         .outputs = {"output: Tout"},
         .attrs = {"seed: int = 0", "seed2: int = 0", "Tout: {int32, int64}", "T: {int32, int64}"},
         .doc = "Uniform integers on [minval, maxval).",
         .traits = kDraws,
         .infer = random_int_shape});
  r.add({.name = "RandomShuffle",
         .inputs = {"value: T"},
         .outputs = {"output: T"},
         .attrs = {"seed: int = 0", "seed2: int = 0", "T: type"},
         .doc = "The rows in a random order.",
         .traits = kDraws,
         .infer = same_shape});
}

}  // namespace sluice::graph::ops
