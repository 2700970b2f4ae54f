#pragma once
// Constants, placeholders, shapes and rearrangement: TensorFlow's functions, names and argument order. Axes
// may be negative (from the end). Lists of ints become int32 constants under TensorFlow's names; where a list
// is given as a Tensor it is used as it is. Errors are InvalidArgument naming node and line. The builder's
// thread.

#include <string>
#include <utility>
#include <vector>

#include "dsl/tensor.h"

namespace sluice::dsl {

Tensor constant(Graph& g, Literal value, const std::string& name = {}, Loc loc = Loc::current());
/// A scalar; float32 unless another dtype is given.
Tensor constant(Graph& g, double value, DType dtype = DType::kFloat, const std::string& name = {},
                Loc loc = Loc::current());
/// A scalar; int32 unless another dtype is given.
Tensor constant(Graph& g, int value, DType dtype = DType::kInt32, const std::string& name = {},
                Loc loc = Loc::current());
Tensor constant(Graph& g, const char* value, const std::string& name = {}, Loc loc = Loc::current());
/// A vector, or `dims` where given (the product must be the number of values).
template <class T>
Tensor constant(Graph& g, const std::vector<T>& values, const Dims& dims = {}, const std::string& name = {},
                Loc loc = Loc::current()) {
  Dims d = dims.empty() ? Dims{static_cast<int64_t>(values.size())} : dims;
  return constant(g, Literal::from<T>(std::move(d), std::span<const T>(values)), name, loc);
}

/// -1 in `shape` is any size; Shape() is any rank.
Tensor placeholder(Graph& g, DType dtype, Shape shape = {}, const std::string& name = {},
                   Loc loc = Loc::current());
Tensor placeholder_with_default(const Operand& input, Shape shape, const std::string& name = {},
                                Loc loc = Loc::current());

Tensor identity(const Operand& input, const std::string& name = {}, Loc loc = Loc::current());
std::vector<Tensor> identity_n(const std::vector<Operand>& inputs, const std::string& name = {},
                               Loc loc = Loc::current());
Tensor stop_gradient(const Operand& input, const std::string& name = {}, Loc loc = Loc::current());

/// A constant where the shape is known.
Tensor shape(const Operand& input, const std::string& name = {}, Loc loc = Loc::current());
std::vector<Tensor> shape_n(const std::vector<Operand>& inputs, const std::string& name = {},
                            Loc loc = Loc::current());
Tensor rank(const Operand& input, const std::string& name = {}, Loc loc = Loc::current());
Tensor size(const Operand& input, const std::string& name = {}, Loc loc = Loc::current());

/// One entry may be -1.
Tensor reshape(const Operand& tensor, const std::vector<int64_t>& shape, const std::string& name = {},
               Loc loc = Loc::current());
Tensor reshape(const Operand& tensor, const Tensor& shape, const std::string& name = {},
               Loc loc = Loc::current());
Tensor expand_dims(const Operand& input, int axis, const std::string& name = {}, Loc loc = Loc::current());
/// Empty `axis`: every dimension of size 1.
Tensor squeeze(const Operand& input, const std::vector<int64_t>& axis = {}, const std::string& name = {},
               Loc loc = Loc::current());
Tensor concat(const std::vector<Operand>& values, int axis, const std::string& name = {},
              Loc loc = Loc::current());
std::vector<Tensor> split(const Operand& value, int num_splits, int axis = 0, const std::string& name = {},
                          Loc loc = Loc::current());
std::vector<Tensor> split(const Operand& value, const std::vector<int64_t>& sizes, int axis = 0,
                          const std::string& name = {}, Loc loc = Loc::current());
/// size -1: to the end.
Tensor slice(const Operand& input, const std::vector<int64_t>& begin, const std::vector<int64_t>& size,
             const std::string& name = {}, Loc loc = Loc::current());

struct StridedSliceMasks {
  int64_t begin = 0, end = 0, ellipsis = 0, new_axis = 0, shrink_axis = 0;
};
Tensor strided_slice(const Operand& input, const std::vector<int64_t>& begin, const std::vector<int64_t>& end,
                     const std::vector<int64_t>& strides = {}, const StridedSliceMasks& masks = {},
                     const std::string& name = {}, Loc loc = Loc::current());
/// x[i]: the i-th part along the first dimension, which goes.
Tensor at(const Operand& x, int64_t i, const std::string& name = {}, Loc loc = Loc::current());

/// (before, after) a dimension; zeros.
Tensor pad(const Operand& tensor, const std::vector<std::pair<int64_t, int64_t>>& paddings,
           const std::string& name = {}, Loc loc = Loc::current());
/// Empty `perm`: reversed; the rank must be known then.
Tensor transpose(const Operand& a, const std::vector<int64_t>& perm = {}, const std::string& name = {},
                 Loc loc = Loc::current());
Tensor tile(const Operand& input, const std::vector<int64_t>& multiples, const std::string& name = {},
            Loc loc = Loc::current());
Tensor invert_permutation(const Operand& x, const std::string& name = {}, Loc loc = Loc::current());

Tensor fill(const Tensor& dims, const Operand& value, const std::string& name = {}, Loc loc = Loc::current());
/// A Const below 1000 elements, else a Fill.
Tensor zeros(Graph& g, const Dims& shape, DType dtype = DType::kFloat, const std::string& name = {},
             Loc loc = Loc::current());
Tensor ones(Graph& g, const Dims& shape, DType dtype = DType::kFloat, const std::string& name = {},
            Loc loc = Loc::current());
Tensor zeros_like(const Operand& x, const std::string& name = {}, Loc loc = Loc::current());
Tensor ones_like(const Operand& x, const std::string& name = {}, Loc loc = Loc::current());

Tensor stack(const std::vector<Operand>& values, int axis = 0, const std::string& name = {},
             Loc loc = Loc::current());
/// num 0: taken from the shape, which must be known along `axis`.
std::vector<Tensor> unstack(const Operand& value, int num = 0, int axis = 0, const std::string& name = {},
                            Loc loc = Loc::current());
/// x itself when it has that type already.
Tensor cast(const Operand& x, DType dtype, const std::string& name = {}, Loc loc = Loc::current());

struct OneHotOptions {
  double on_value = 1.0, off_value = 0.0;
  int axis = -1;
  DType dtype = DType::kFloat;
  std::string name = {};
};
Tensor one_hot(const Operand& indices, int depth, const OneHotOptions& o = {}, Loc loc = Loc::current());
Tensor gather(const Operand& params, const Operand& indices, int axis = 0, const std::string& name = {},
              Loc loc = Loc::current());
/// Rows of a resource variable are read without the rest of it (axis 0); the gradient is IndexedSlices.
Tensor gather(const Variable& params, const Operand& indices, int axis = 0, const std::string& name = {},
              Loc loc = Loc::current());
/// output[id] = sum of the rows of `data` with that id; ids are below num_segments, negative ones are
/// dropped.
Tensor unsorted_segment_sum(const Operand& data, const Operand& segment_ids, int64_t num_segments,
                            const std::string& name = {}, Loc loc = Loc::current());
/// output[indices[m][i]] = data[m][i]; a later one wins.
Tensor dynamic_stitch(const std::vector<Operand>& indices, const std::vector<Operand>& data,
                      const std::string& name = {}, Loc loc = Loc::current());
/// int32, or float32 where an argument has a fraction.
Tensor range(Graph& g, double start, double limit, double delta = 1, const std::string& name = {},
             Loc loc = Loc::current());
/// x where `condition`, else y; all of one shape (condition may be a vector over rows).
Tensor where(const Operand& condition, const Operand& x, const Operand& y, const std::string& name = {},
             Loc loc = Loc::current());

}  // namespace sluice::dsl
