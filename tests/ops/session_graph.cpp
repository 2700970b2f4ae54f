#include "tests/ops/session_graph.h"

#include "passes/gradients.h"

namespace sluice::optest {

using graph::Literal;
using graph::Output;

namespace {

bool is_fed(const Array& v) { return v.dtype() == DType::kFloat || v.dtype() == DType::kDouble; }

Output constant(graph::Graph& g, Literal value) {
  const DType t = value.dtype();
  return g.add({.op = "Const", .attrs = {{"dtype", t}, {"value", std::move(value)}}}).output();
}

}  // namespace

CaseGraph::CaseGraph(const OpCase& c, const std::vector<Array>& values) {
  for (const Array& v : values)
    inputs.push_back(is_fed(v)
                         ? g.add({.op = "Placeholder",
                                  .attrs = {{"dtype", DType::kFloat}, {"shape", graph::Shape(v.dims())}}})
                               .output()
                         : constant(g, v.to_literal()));
  node = &g.add({.op = c.op, .inputs = inputs, .attrs = c.attrs});
  const Output y = node->output();
  if (y.dtype() != DType::kFloat || !y.shape().known_rank()) return;
  if (!y.shape().fully_known()) {  // as long as the values say: the sum of squares
    std::vector<int32_t> all;
    for (int d = 0; d < y.shape().rank(); ++d) all.push_back(d);
    const Output square = g.add({.op = "Square", .inputs = {y}}).output();
    loss = g.add({.op = "Sum", .inputs = {square, constant(g, Literal::vector<int32_t>(all))}}).output();
    return;
  }
  std::vector<float> weights;
  std::vector<int32_t> axes;
  for (int64_t i = 0; i < *y.shape().elements(); ++i)
    weights.push_back(0.5f + static_cast<float>(i * 37 % 64) / 64.0f);
  for (int d = 0; d < y.shape().rank(); ++d) axes.push_back(d);
  const Output w = constant(g, Literal::from<float>(y.shape().dims(), weights));
  const Output product = g.add({.op = "Mul", .inputs = {y, w}}).output();
  loss = g.add({.op = "Sum", .inputs = {product, constant(g, Literal::vector<int32_t>(axes))}}).output();
}

std::vector<runtime::Feed> CaseGraph::feeds(const std::vector<Array>& values) const {
  std::vector<runtime::Feed> f;
  for (size_t i = 0; i < values.size(); ++i)
    if (is_fed(values[i])) f.push_back({inputs[i], values[i].clone()});
  return f;
}

std::vector<Output> CaseGraph::gradients(const OpCase& c) {
  std::vector<Output> xs, dense;
  for (int i : c.gradient) xs.push_back(inputs[static_cast<size_t>(i)]);
  SLUICE_REQUIRE(static_cast<bool>(loss), Code::kInvalidArgument, "case ", c.name, " has no loss");
  for (const graph::GradValue& d : passes::gradients({loss}, xs)) {
    SLUICE_REQUIRE(!d.none(), Code::kInvalidArgument, "an input of case ", c.name, " has no gradient");
    dense.push_back(d.is_slices() ? graph::densify(g, d.slices) : d.dense);
  }
  return dense;
}

}  // namespace sluice::optest
