#pragma once
// Arithmetic, comparisons, reductions and matrix products: TensorFlow's functions, names and argument order.
// Binary ops broadcast as NumPy; both operands have one type, and a number takes the other's. Errors are
// InvalidArgument naming node and line. The builder's thread.

#include <optional>
#include <string>
#include <vector>

#include "dsl/tensor.h"

namespace sluice::dsl {

Tensor add(const Operand& x, const Operand& y, const std::string& name = {}, Loc loc = Loc::current());
Tensor subtract(const Operand& x, const Operand& y, const std::string& name = {}, Loc loc = Loc::current());
Tensor multiply(const Operand& x, const Operand& y, const std::string& name = {}, Loc loc = Loc::current());
/// RealDiv, named "truediv"; integers are cast to double first, as Python's `/`.
Tensor divide(const Operand& x, const Operand& y, const std::string& name = {}, Loc loc = Loc::current());
/// 0 where y is 0.
Tensor div_no_nan(const Operand& x, const Operand& y, const std::string& name = {}, Loc loc = Loc::current());
Tensor floordiv(const Operand& x, const Operand& y, const std::string& name = {}, Loc loc = Loc::current());
Tensor floormod(const Operand& x, const Operand& y, const std::string& name = {}, Loc loc = Loc::current());
Tensor pow(const Operand& x, const Operand& y, const std::string& name = {}, Loc loc = Loc::current());
/// Ties send the gradient to x.
Tensor maximum(const Operand& x, const Operand& y, const std::string& name = {}, Loc loc = Loc::current());
Tensor minimum(const Operand& x, const Operand& y, const std::string& name = {}, Loc loc = Loc::current());
Tensor squared_difference(const Operand& x, const Operand& y, const std::string& name = {},
                          Loc loc = Loc::current());

Tensor negative(const Operand& x, const std::string& name = {}, Loc loc = Loc::current());
Tensor square(const Operand& x, const std::string& name = {}, Loc loc = Loc::current());
Tensor sqrt(const Operand& x, const std::string& name = {}, Loc loc = Loc::current());
Tensor rsqrt(const Operand& x, const std::string& name = {}, Loc loc = Loc::current());
Tensor exp(const Operand& x, const std::string& name = {}, Loc loc = Loc::current());
Tensor log(const Operand& x, const std::string& name = {}, Loc loc = Loc::current());
Tensor log1p(const Operand& x, const std::string& name = {}, Loc loc = Loc::current());
Tensor abs(const Operand& x, const std::string& name = {}, Loc loc = Loc::current());
Tensor sign(const Operand& x, const std::string& name = {}, Loc loc = Loc::current());
Tensor floor(const Operand& x, const std::string& name = {}, Loc loc = Loc::current());
Tensor ceil(const Operand& x, const std::string& name = {}, Loc loc = Loc::current());
Tensor cos(const Operand& x, const std::string& name = {}, Loc loc = Loc::current());
Tensor tanh(const Operand& x, const std::string& name = {}, Loc loc = Loc::current());
Tensor sigmoid(const Operand& x, const std::string& name = {}, Loc loc = Loc::current());

Tensor equal(const Operand& x, const Operand& y, const std::string& name = {}, Loc loc = Loc::current());
Tensor not_equal(const Operand& x, const Operand& y, const std::string& name = {}, Loc loc = Loc::current());
Tensor less(const Operand& x, const Operand& y, const std::string& name = {}, Loc loc = Loc::current());
Tensor less_equal(const Operand& x, const Operand& y, const std::string& name = {}, Loc loc = Loc::current());
Tensor greater(const Operand& x, const Operand& y, const std::string& name = {}, Loc loc = Loc::current());
Tensor greater_equal(const Operand& x, const Operand& y, const std::string& name = {},
                     Loc loc = Loc::current());
Tensor logical_and(const Operand& x, const Operand& y, const std::string& name = {},
                   Loc loc = Loc::current());
Tensor logical_or(const Operand& x, const Operand& y, const std::string& name = {}, Loc loc = Loc::current());
Tensor logical_not(const Operand& x, const std::string& name = {}, Loc loc = Loc::current());

struct ReduceOptions {
  bool keepdims = false;
  std::string name = {};
};

/// Axes of a reduction: absent means all. A single int keeps TensorFlow's scalar constant.
struct Axes {
  std::optional<std::vector<int64_t>> list;
  bool scalar = false;
  Axes() = default;
  Axes(int axis) : list(std::vector<int64_t>{axis}), scalar(true) {}
  Axes(std::initializer_list<int64_t> axes) : list(std::vector<int64_t>(axes)) {}
  Axes(std::vector<int64_t> axes) : list(std::move(axes)) {}
};

Tensor reduce_sum(const Operand& x, const Axes& axis = {}, const ReduceOptions& o = {},
                  Loc loc = Loc::current());
Tensor reduce_mean(const Operand& x, const Axes& axis = {}, const ReduceOptions& o = {},
                   Loc loc = Loc::current());
/// Ties share the gradient equally.
Tensor reduce_max(const Operand& x, const Axes& axis = {}, const ReduceOptions& o = {},
                  Loc loc = Loc::current());
Tensor reduce_min(const Operand& x, const Axes& axis = {}, const ReduceOptions& o = {},
                  Loc loc = Loc::current());
Tensor reduce_prod(const Operand& x, const Axes& axis = {}, const ReduceOptions& o = {},
                   Loc loc = Loc::current());
Tensor reduce_all(const Operand& x, const Axes& axis = {}, const ReduceOptions& o = {},
                  Loc loc = Loc::current());
Tensor reduce_any(const Operand& x, const Axes& axis = {}, const ReduceOptions& o = {},
                  Loc loc = Loc::current());

/// Index of the first largest element along `axis`; int64 or int32.
Tensor argmax(const Operand& x, int axis = 0, const std::string& name = {}, DType output_type = DType::kInt64,
              Loc loc = Loc::current());

/// Euclidean norm over `axis` (all when absent). Scaled by the largest magnitude, so tiny and huge values
/// neither underflow nor overflow; its gradient at zero is zero.
Tensor norm(const Operand& x, const Axes& axis = {}, const ReduceOptions& o = {}, Loc loc = Loc::current());

Tensor add_n(const std::vector<Tensor>& inputs, const std::string& name = {}, Loc loc = Loc::current());

struct MatMulOptions {
  bool transpose_a = false, transpose_b = false;
  std::string name = {};
};
/// MatMul for matrices, BatchMatMulV2 where an operand has rank > 2.
Tensor matmul(const Operand& a, const Operand& b, const MatMulOptions& o = {}, Loc loc = Loc::current());

}  // namespace sluice::dsl
