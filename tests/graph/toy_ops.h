#pragma once
// A handful of ops for tests of the graph itself, so that they do not depend on the built-in definitions.

#include "graph/grad.h"
#include "graph/infer.h"

namespace sluice::graph {

inline OpRegistry toy_ops() {
  OpRegistry r;
  r.add({.name = "In",
         .outputs = {"out: dtype"},
         .attrs = {"dtype: type", "shape: shape = {unknown_rank: true}"},
         .doc = "A source.",
         .traits = kSource,
         .infer = [](InferContext& c) { c.set_output(0, c.attr<Shape>("shape")); }});
  r.add({.name = "Const",
         .outputs = {"out: dtype"},
         .attrs = {"value: tensor", "dtype: type"},
         .doc = "A constant.",
         .infer = [](InferContext& c) { c.set_output(0, c.attr<Literal>("value").shape()); }});
  r.add({.name = "Plus",
         .inputs = {"x: T", "y: T"},
         .outputs = {"z: T"},
         .attrs = {"T: {float, int32}"},
         .doc = "x + y.",
         .traits = kElementwise,
         .infer = broadcast_binary});
  r.add({.name = "Join",
         .inputs = {"values: N * T", "axis: int32"},
         .outputs = {"out: T"},
         .attrs = {"N: int >= 2", "T: type"},
         .doc = "Concatenation.",
         .infer = unknown_outputs});
  r.add({.name = "Many",
         .inputs = {"xs: T"},
         .outputs = {"ys: T"},
         .attrs = {"T: list(type) >= 1"},
         .doc = "A tuple.",
         .infer = unknown_outputs});
  r.add({.name = "Var",
         .outputs = {"ref: Ref(dtype)"},
         .attrs = {"dtype: type", "shape: shape"},
         .doc = "A variable.",
         .traits = kVariable | kStateful,
         .infer = [](InferContext& c) { c.set_output(0, c.attr<Shape>("shape")); }});
  r.add({.name = "Set",
         .inputs = {"ref: Ref(T)", "value: T"},
         .outputs = {"out: Ref(T)"},
         .attrs = {"T: type"},
         .doc = "Assigns.",
         .traits = kStateful,
         .infer = same_shape});
  r.add({.name = "Nothing", .doc = "Does nothing.", .infer = no_outputs});
  return r;
}

inline Output in(Graph& g, Shape shape, const char* name = "x", DType t = DType::kFloat) {
  return g.add({.op = "In", .name = name, .attrs = {{"dtype", t}, {"shape", std::move(shape)}}}).output();
}

}  // namespace sluice::graph
