#include "dsl/tensor.h"

#include "dsl/call.h"
#include "dsl/ops/math.h"
#include "dsl/variable.h"

namespace sluice::dsl {

Operand::Operand(const Variable& v, Loc loc) : variable_(v.info()), loc_(loc) {
  SLUICE_REQUIRE(variable_, Code::kInvalidArgument, "an empty Variable was used as an operand");
}

DType Operand::dtype() const {
  if (tensor_) return tensor_.dtype();
  return variable_ ? Variable(variable_).dtype() : DType::kInvalid;
}

Shape Operand::shape() const {
  if (tensor_) return tensor_.shape();
  return variable_ ? Variable(variable_).shape() : Shape::scalar();
}

Graph* Operand::graph() const {
  if (tensor_) return &tensor_.graph();
  return variable_ ? &variable_->node->graph() : nullptr;
}

Tensor Operand::tensor(Graph& g, const std::string& arg, DType like, Loc loc) const {
  if (tensor_) return tensor_;
  if (variable_) return Variable(variable_).value(loc);
  DType t = like == DType::kInvalid ? DType::kFloat : like;
  return g
      .add({.op = "Const",
            .name = arg,
            .attrs = {{"dtype", t}, {"value", Literal::scalar<double>(number_).cast(t)}},
            .loc = loc})
      .output();
}

Tensor Operand::tensor() const {
  SLUICE_REQUIRE(!is_number(), Code::kInvalidArgument, "a tensor is needed here, got the number ", number_);
  return tensor_ ? tensor_ : Variable(variable_).value(loc_);
}

namespace {

template <class List, class Get>
Graph& common_graph(const List& operands, Get get) {
  Graph* g = nullptr;
  for (const auto& o : operands) {
    Graph* other = get(o).graph();
    SLUICE_REQUIRE(!g || !other || g == other, Code::kInvalidArgument,
                   "operands must be from the same graph");
    if (!g) g = other;
  }
  SLUICE_REQUIRE(g, Code::kInvalidArgument, "at least one operand must be a tensor or a variable");
  return *g;
}

}  // namespace

Graph& graph_of(std::initializer_list<const Operand*> operands) {
  return common_graph(operands, [](const Operand* o) -> const Operand& { return *o; });
}
Graph& graph_of(const std::vector<Operand>& operands) {
  return common_graph(operands, [](const Operand& o) -> const Operand& { return o; });
}

namespace {

// As Python's overloads: a variable on the left is read outside the op's scope.
Operand left(const Operand& x) { return x.is_variable() ? Operand(x.tensor(), x.loc()) : x; }

}  // namespace

Tensor operator+(const Operand& x, const Operand& y) { return add(left(x), y, "add", x.loc()); }
Tensor operator-(const Operand& x, const Operand& y) { return subtract(left(x), y, "sub", x.loc()); }
Tensor operator*(const Operand& x, const Operand& y) { return multiply(left(x), y, "mul", x.loc()); }
Tensor operator/(const Operand& x, const Operand& y) { return divide(left(x), y, "truediv", x.loc()); }
Tensor operator%(const Operand& x, const Operand& y) { return floormod(left(x), y, "mod", x.loc()); }
Tensor operator<(const Operand& x, const Operand& y) { return less(left(x), y, {}, x.loc()); }
Tensor operator<=(const Operand& x, const Operand& y) { return less_equal(left(x), y, {}, x.loc()); }
Tensor operator>(const Operand& x, const Operand& y) { return greater(left(x), y, {}, x.loc()); }
Tensor operator>=(const Operand& x, const Operand& y) { return greater_equal(left(x), y, {}, x.loc()); }
Tensor operator-(const Operand& x) { return negative(left(x), {}, x.loc()); }

}  // namespace sluice::dsl
