#pragma once
// For tests of op definitions: makes one node over placeholders of given shapes and tells what inference
// said.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/fold.h"
#include "graph/graph.h"
#include "graph/ops/register.h"

namespace sluice::graph {

/// An input of the node under test: a placeholder of some shape, or a constant.
struct Arg {
  Shape shape;
  DType type = DType::kFloat;
  Literal value;

  Arg(Shape s, DType t = DType::kFloat) : shape(std::move(s)), type(t) {}
  Arg(Literal v) : shape(v.shape()), type(v.dtype()), value(std::move(v)) {}
};

inline Arg ints(std::vector<int32_t> values) {
  return Literal::vector<int32_t>(std::span<const int32_t>(values));
}
inline Arg int_scalar(int32_t value) { return Literal::scalar(value); }

inline Output make_input(Graph& g, const Arg& arg) {
  if (arg.value) return g.add({.op = "Const", .attrs = {{"value", arg.value}, {"dtype", arg.type}}}).output();
  return g.add({.op = "Placeholder", .attrs = {{"dtype", arg.type}, {"shape", arg.shape}}}).output();
}

class OpTest : public ::testing::Test {
 protected:
  Node& make(const std::string& op, const std::vector<Arg>& args, AttrMap attrs = {}) {
    NodeSpec spec{.op = op, .attrs = std::move(attrs)};
    for (const Arg& arg : args) spec.inputs.push_back(make_input(g, arg));
    return g.add(std::move(spec));
  }
  /// Shape of the first output, as text.
  std::string shape(const std::string& op, const std::vector<Arg>& args, AttrMap attrs = {}) {
    return make(op, args, std::move(attrs)).output_shape(0).str();
  }
  /// The refusal, or "(accepted)".
  std::string refusal(const std::string& op, const std::vector<Arg>& args, AttrMap attrs = {}) {
    try {
      make(op, args, std::move(attrs));
    } catch (const Error& e) {
      return e.message();
    }
    return "(accepted)";
  }

  Graph g;
};

}  // namespace sluice::graph
