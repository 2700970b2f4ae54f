#include "dsl/ops/control.h"

#include "dsl/call.h"
#include "passes/check_numerics.h"
#include "passes/control.h"

namespace sluice::dsl {

Node& no_op(Graph& g, const std::string& name, Loc loc) {
  return g.add({.op = "NoOp", .name = name, .loc = loc});
}

Node& group(Graph& g, const std::vector<Node*>& nodes, const std::string& name, Loc loc) {
  return passes::group(g, nodes, name, loc);
}

Tensor with_dependencies(const std::vector<Node*>& dependencies, const Tensor& output,
                         const std::string& name, Loc loc) {
  return passes::with_dependencies(dependencies, output.output(), name, loc).dense;
}

std::vector<Tensor> tuple(const std::vector<Tensor>& tensors, const std::string& name,
                          const std::vector<Node*>& control_inputs, Loc loc) {
  Graph* g = nullptr;
  std::vector<GradValue> values;
  for (const Tensor& t : tensors) {
    values.push_back(t.output());
    if (t) g = &t.graph();
  }
  SLUICE_REQUIRE(g, Code::kInvalidArgument, "Must have at least one Tensor");
  std::vector<Tensor> out;
  for (const GradValue& v : passes::tuple(*g, values, name, control_inputs, loc)) out.push_back(v.dense);
  return out;
}

Tensor print(const Operand& input, const std::vector<Operand>& data, const PrintOptions& o, Loc loc) {
  Call c(graph_of({&input}), o.name, "Print", loc);
  std::vector<Output> in{c.in(input, "input")};
  for (const Operand& d : data) in.push_back(c.in(d, "data"));
  return c.make("Print", std::move(in),
                {{"message", o.message}, {"first_n", o.first_n}, {"summarize", o.summarize}});
}

Node& assert_that(const Tensor& condition, const std::vector<Operand>& data, int summarize,
                  const std::string& name, Loc loc) {
  Call c(condition.graph(), name, "Assert", loc);
  std::vector<Output> in{condition};
  for (const Operand& d : data) in.push_back(c.in(d, "data"));
  return c.make("Assert", std::move(in), {{"summarize", summarize}});
}

Tensor check_numerics(const Operand& tensor, const std::string& message, const std::string& name, Loc loc) {
  return passes::check_numerics(tensor.tensor(), message, name, loc);
}

Tensor verify_tensor_all_finite(const Operand& tensor, const std::string& message, const std::string& name,
                                Loc loc) {
  return passes::verify_tensor_all_finite(tensor.tensor(), message, name, loc);
}

}  // namespace sluice::dsl
