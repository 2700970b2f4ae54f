#pragma once
// What the gradient functions of array and state ops share, on top of grad_helpers.h: TensorFlow's Python
// wrappers as graph fragments under the names those wrappers give. Internal to graph/ops; the builder's
// thread.

#include "graph/fold.h"
#include "graph/grad.h"
#include "graph/ops/grad_helpers.h"

namespace sluice::graph::ops {

/// dy of output i goes to input i as it came (dense, slices or none); other inputs get none.
Gradients pass_gradient(Grad& g);
/// reshape(dy, shape(x)) for input 0.
Gradients reshape_gradient(Grad& g);
/// dy(i), or zeros where output i has no gradient.
Output dy_or_zeros(Grad& g, int i);

/// shape(x) as `type`: a constant named `name` when the shape is known, else a Shape node.
Output shape_of(Grad& g, Output x, DType type = DType::kInt32, std::string name = "Shape");
/// size(x) likewise.
Output size_of(Grad& g, Output x);
Output concat(Grad& g, std::vector<Output> values, int32_t axis);
Output stack(Grad& g, std::vector<Output> values, int64_t axis = 0, std::string name = "stack");
/// op(x, y) named `name`, with y the constant "<name>/y" of x's type.
Output with_constant(Grad& g, const char* op, const char* name, Output x, int32_t y);
/// [0, delta, 2·delta …) below limit.
Output range_by(Grad& g, Output limit, int32_t delta);
/// transpose(x, perm) with a perm known now.
Output transpose(Grad& g, Output x, std::vector<int32_t> perm);

}  // namespace sluice::graph::ops
