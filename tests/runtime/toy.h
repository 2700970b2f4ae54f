#pragma once
// A small world for tests of the runtime: ops with TensorFlow's names and plain kernels, so that these tests
// depend neither on the built-in ops nor on the built-in kernels.

#include <thread>

#include "graph/fold.h"
#include "graph/infer.h"
#include "runtime/session.h"

namespace sluice::runtime {

using graph::AttrMap;
using graph::Graph;
using graph::InferContext;
using graph::Literal;
using graph::Node;
using graph::OpRegistry;
using graph::Output;
using graph::Shape;

OpRegistry toy_ops();
KernelRegistry toy_kernels();

/// A graph of toy ops and short words for its nodes.
struct Toy {
  Toy() : ops(toy_ops()), kernels(toy_kernels()), g(ops) {}

  SessionOptions options() const {
    SessionOptions o;
    o.kernels = &kernels;
    o.intra_op_threads = 2;
    return o;
  }
  Output placeholder(Shape shape, const char* name = "x", DType t = DType::kFloat) {
    return g.add({.op = "Placeholder", .name = name, .attrs = {{"dtype", t}, {"shape", std::move(shape)}}})
        .output();
  }
  Output constant(Literal value, const char* name = "Const") {
    const DType t = value.dtype();
    return g.add({.op = "Const", .name = name, .attrs = {{"value", std::move(value)}, {"dtype", t}}})
        .output();
  }
  Output scalar(float v) { return constant(Literal::scalar(v)); }
  Output op(const char* type, std::vector<Output> in, std::vector<Node*> after = {}, const char* name = "") {
    return g.add({.op = type, .name = name, .inputs = std::move(in), .control_inputs = std::move(after)})
        .output();
  }
  Node* node(const char* type, std::vector<Output> in, std::vector<Node*> after = {}) {
    return &g.add({.op = type, .inputs = std::move(in), .control_inputs = std::move(after)});
  }
  Output variable(const char* name, Shape shape) {
    return g
        .add({.op = "VarHandleOp",
              .name = name,
              .attrs = {{"dtype", DType::kFloat}, {"shape", std::move(shape)}}})
        .output();
  }
  Output ref_variable(const char* name, Shape shape) {
    return g
        .add({.op = "VariableV2",
              .name = name,
              .attrs = {{"dtype", DType::kFloat}, {"shape", std::move(shape)}}})
        .output();
  }
  Output read(Output handle, std::vector<Node*> after = {}) {
    return g
        .add({.op = "ReadVariableOp",
              .inputs = {handle},
              .attrs = {{"dtype", DType::kFloat}},
              .control_inputs = std::move(after)})
        .output();
  }
  Node* assign(Output handle, Output value, std::vector<Node*> after = {}) {
    return &g.add({.op = "AssignVariableOp",
                   .inputs = {handle, value},
                   .attrs = {{"dtype", DType::kFloat}},
                   .control_inputs = std::move(after)});
  }
  Node* assign_add(Output handle, Output value, std::vector<Node*> after = {}) {
    return &g.add({.op = "AssignAddVariableOp",
                   .inputs = {handle, value},
                   .attrs = {{"dtype", DType::kFloat}},
                   .control_inputs = std::move(after)});
  }

  OpRegistry ops;
  KernelRegistry kernels;
  Graph g;
};

inline Array vec(std::vector<float> v) {
  return Array::from<float>({static_cast<int64_t>(v.size())}, std::span<const float>(v));
}
inline std::vector<float> floats(const Array& a) {
  auto s = a.as<float>();
  return {s.begin(), s.end()};
}

}  // namespace sluice::runtime
