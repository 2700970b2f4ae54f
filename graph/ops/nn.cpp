// Activations, biases, softmax and top-k.

#include "graph/infer.h"
#include "graph/ops/grad_helpers.h"
#include "graph/ops/register.h"
#include "graph/ops/type_sets.h"

namespace sluice::graph::ops {
namespace {

void merge_two(InferContext& c) { c.set_output(0, c.merge(c.input(0), c.input(1))); }

struct Activation {
  const char* name;
  const char* grad_name;
  const char* doc;
  const char* grad_doc;
  std::vector<std::string> attrs;
  const char* second_input;  // of the gradient op: "features" or "outputs"
  GradFn grad;               // of the activation
  GradFn grad_grad;          // of the gradient op; null: none, as in TensorFlow
};

void add_activation(OpRegistry& r, Activation a) {
  r.add({.name = a.name,
         .inputs = {"features: T"},
         .outputs = {"activations: T"},
         .attrs = a.attrs,
         .doc = a.doc,
         .traits = kElementwise,
         .infer = same_shape,
         .grad = std::move(a.grad)});
  r.add({.name = a.grad_name,
         .inputs = {"gradients: T", cat(a.second_input, ": T")},
         .outputs = {"backprops: T"},
         .attrs = std::move(a.attrs),
         .doc = a.grad_doc,
         .traits = kElementwise,
         .infer = merge_two,
         .grad = std::move(a.grad_grad)});
}

// op(dy, forward output) and op(dy, forward input).
GradFn by_output(const char* op) {
  return [op](Grad& g) { return Gradients{g.op(op, {g.dy(), g.y()})}; };
}
GradFn by_input(const char* op) {
  return [op](Grad& g) { return Gradients{g.op(op, {g.dy(), g.x()})}; };
}

// Piecewise linear: the gradient op is linear in its gradients and flat in its features.
GradFn linear_second_order(const char* op) {
  return [op](Grad& g) {
    const Output gx = g.op(op, {g.dy(), g.x(1)});
    return Gradients{gx, g.zeros_like(g.x(1))};
  };
}

// Elu and Selu: below 0 the slope is the output (plus a constant), so its derivative is dy·gradients.
GradFn exponential_second_order(const char* op) {
  return [op](Grad& g) {
    const Output outputs = g.x(1);
    const Output gx = g.op(op, {g.dy(), outputs});
    const Output below = with_scalar_right(g, "Less", "Less", outputs, 0.0);
    const Output slope = mul(g, g.dy(), g.x(0));
    return Gradients{gx, g.op("Select", {below, slope, g.zeros_like(outputs)})};
  };
}

Gradients leaky_relu_grad(Grad& g) {
  return {g.op("LeakyReluGrad", {g.dy(), g.x()}, copy_attrs(g, {"alpha"}))};
}

Gradients leaky_relu_grad_grad(Grad& g) {
  const Output gx = g.op("LeakyReluGrad", {g.dy(), g.x(1)}, copy_attrs(g, {"alpha"}));
  return {gx, g.zeros_like(g.x(1))};
}

Gradients softplus_grad(Grad& g) { return {mul(g, g.dy(), g.op("Sigmoid", {g.x()}))}; }

Gradients softplus_grad_grad(Grad& g) {
  const Output grad = g.dy(), dy = g.x(0), x = g.x(1);
  ControlDependencies after(g.graph(), {grad.node});
  const Output gdy = g.op("SoftplusGrad", {grad, x});
  const Output scaled = mul(g, grad, dy);
  const Output falling = g.op("Exp", {neg(g, x)});
  const Output plus_two = with_scalar_right(g, "AddV2", "add", falling, 2.0);
  const Output below = add(g, plus_two, g.op("Exp", {x}));
  return {gdy, truediv(g, scaled, below)};
}

void register_activations(OpRegistry& r) {
  add_activation(r, {"Relu",
                     "ReluGrad",
                     "max(features, 0); the gradient at 0 is 0.",
                     "gradients where features > 0, else 0.",
                     {"T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, "
                      "uint64, qint8}"},
                     "features",
                     by_output("ReluGrad"),
                     linear_second_order("ReluGrad")});
  add_activation(r, {"Relu6",
                     "Relu6Grad",
                     "min(max(features, 0), 6).",
                     "gradients where 0 < features < 6, else 0.",
                     {kRealTypes},
                     "features",
                     by_output("Relu6Grad"),
                     linear_second_order("Relu6Grad")});
  add_activation(r, {"LeakyRelu",
                     "LeakyReluGrad",
                     "features where positive, else alpha * features.",
                     "gradients where features > 0, else alpha * gradients.",
                     {"alpha: float = 0.2", "T: {half, bfloat16, float, double} = float"},
                     "features",
                     leaky_relu_grad,
                     leaky_relu_grad_grad});
  add_activation(r, {"Elu",
                     "EluGrad",
                     "exp(features) - 1 where negative, else features.",
                     "(outputs + 1) * gradients where outputs < 0, else gradients.",
                     {kFloatTypes},
                     "outputs",
                     by_output("EluGrad"),
                     exponential_second_order("EluGrad")});
  add_activation(r, {"Selu",
                     "SeluGrad",
                     "Scaled Elu whose fixed point is mean 0 and variance 1.",
                     "(outputs + scale * alpha) * gradients where outputs < 0, else scale * gradients.",
                     {kFloatTypes},
                     "outputs",
                     by_output("SeluGrad"),
                     exponential_second_order("SeluGrad")});
  add_activation(r, {"Softplus",
                     "SoftplusGrad",
                     "log(1 + exp(features)).",
                     "gradients / (1 + exp(-features)).",
                     {kFloatTypes},
                     "features",
                     softplus_grad,
                     softplus_grad_grad});
  add_activation(r, {"Softsign",
                     "SoftsignGrad",
                     "features / (1 + |features|).",
                     "gradients / (1 + |features|)^2.",
                     {kFloatTypes},
                     "features",
                     by_input("SoftsignGrad"),
                     nullptr});
}

// NHWC (or no format): the last axis is the channel; NCHW: axis 1.
bool channels_first(const Node& node) { return node.attr_or<std::string>("data_format", "NHWC") == "NCHW"; }

void bias_add_shape(InferContext& c) {
  const bool first = channels_first(c.node());
  Shape value = c.with_rank_at_least(0, first ? 3 : 2);
  const Shape bias = c.with_rank(1, 1);
  if (value.known_rank()) {
    const int channel = first ? 1 : value.rank() - 1;
    value.set_dim(channel, c.merge_dim(value.dim(channel), bias.dim(0)));
  }
  c.set_output(0, value);
}

void bias_add_grad_shape(InferContext& c) {
  const bool first = channels_first(c.node());
  const Shape value = c.with_rank_at_least(0, first ? 3 : 2);
  c.set_output(0, Shape{value.known_rank() ? value.dim(first ? 1 : value.rank() - 1) : kUnknownDim});
}

// Spreads the bias gradient's gradient over all but the channel axis.
Gradients bias_add_grad_grad(Grad& g) {
  const Output shape = g.shape_of(g.x()), bias_shape = g.shape_of(g.dy());
  const auto ones_and = [&](Output part) { return ones_like(g, part); };
  std::vector<Output> expanded, tiles;
  if (channels_first(g.node())) {
    const Output lead = ones_and(slice_vector(g, shape, 0, 1));
    expanded = {lead, bias_shape, ones_and(slice_vector(g, shape, 2, std::nullopt))};
    const Output batch = slice_vector(g, shape, 0, 1);
    const Output one = g.constant_i32({1});
    tiles = {batch, one, slice_vector(g, shape, 2, std::nullopt)};
  } else {
    expanded = {ones_and(slice_vector(g, shape, 0, -1)), bias_shape};
    const Output lead = slice_vector(g, shape, 0, -1);
    tiles = {lead, g.constant_i32({1})};
  }
  const Output wide_shape = concat0(g, std::move(expanded));
  const Output multiples = concat0(g, std::move(tiles));
  return {g.op("Tile", {reshape(g, g.dy(), wide_shape), multiples})};
}

void register_biases(OpRegistry& r) {
  r.add({.name = "BiasAdd",
         .inputs = {"value: T", "bias: T"},
         .outputs = {"output: T"},
         .attrs = {kNumberTypes, kDataFormat},
         .doc = "Adds a vector along the channel axis.",
         .infer = bias_add_shape,
         .grad = [](Grad& g) {
           const Output dy = g.dy();
           return Gradients{dy, g.op("BiasAddGrad", {dy}, copy_attrs(g, {"data_format"}))};
         }});
  r.add({.name = "BiasAddV1",
         .inputs = {"value: T", "bias: T"},
         .outputs = {"output: T"},
         .attrs = {kNumberTypes},
         .doc = "Adds a vector along the last axis (the old form of BiasAdd).",
         .infer = bias_add_shape,
         .grad = [](Grad& g) {
           const Output dy = g.dy();
           const Output rank = rank_of(g, dy);
           const Output axes = range_to(g, with_scalar_right(g, "Sub", "sub", rank, 1.0));
           return Gradients{dy, reduce_sum(g, dy, axes, false)};
         }});
  r.add({.name = "BiasAddGrad",
         .inputs = {"out_backprop: T"},
         .outputs = {"output: T"},
         .attrs = {kNumberTypes, kDataFormat},
         .doc = "Sum over all axes but the channel's.",
         .infer = bias_add_grad_shape,
         .grad = bias_add_grad_grad});
}

void softmax_shape(InferContext& c) { c.set_output(0, c.with_rank_at_least(0, 1)); }

void register_softmax(OpRegistry& r) {
  r.add({.name = "Softmax",
         .inputs = {"logits: T"},
         .outputs = {"softmax: T"},
         .attrs = {kFloatTypes},
         .doc = "exp(logits) over their sum along the last axis.",
         .infer = softmax_shape,
         .grad = [](Grad& g) {
           const Output y = g.y(), dy = g.dy();
           const Output total = sum_last_axis(g, mul(g, dy, y));
           return Gradients{mul(g, sub(g, dy, total), y)};
         }});
  r.add({.name = "LogSoftmax",
         .inputs = {"logits: T"},
         .outputs = {"logsoftmax: T"},
         .attrs = {kFloatTypes},
         .doc = "log(softmax(logits)) along the last axis, without overflow.",
         .infer = softmax_shape,
         .grad = [](Grad& g) {
           const Output softmax = g.op("Exp", {g.y()});
           const Output dy = g.dy();
           return Gradients{sub(g, dy, mul(g, sum_last_axis(g, dy), softmax))};
         }});
}

// k replaces the last dimension.
void top_k_shape(InferContext& c) {
  int64_t k = kUnknownDim;
  if (c.num_inputs() == 1) {
    k = c.attr<int64_t>("k");
  } else {
    const Shape& s = c.input(1);
    if (s.known_rank() && s.rank() != 0) c.fail(cat("Input must be scalar but has rank ", s.rank()));
    if (const auto value = c.value(1)) {
      k = value->to_int64s()[0];
      if (k < 0) c.fail(cat("Dimension size, given by scalar input 1, must be non-negative but is ", k));
    }
  }
  Shape out = c.with_rank_at_least(0, 1);
  if (out.known_rank()) {
    const int64_t last = out.dim(-1);
    if (k >= 0 && last >= 0 && last < k)
      c.fail(cat("input must have last dimension >= k = ", k, " but is ", last));
    out.set_dim(out.rank() - 1, k);
  }
  c.set_output(0, out);
  c.set_output(1, out);
}

// dy scattered to the positions that were chosen; the other elements get 0.
Gradients top_k_grad(Grad& g) {
  Gradients grads = no_gradient(g);
  if (!g.has_dy(0)) return grads;
  const Output in_shape = g.shape_of(g.x()), index_shape = g.shape_of(g.y(1));
  const auto last_of = [&](Output shape) {
    const Output wide = cast(g, shape, DType::kInt64);
    const Output size = shape.shape().known_rank() && shape.shape().known_dim(0)
                            ? g.scalar_i32(static_cast<int32_t>(shape.shape().dim(0)), "Size")
                            : g.op("Size", {shape});
    return gather0(g, wide, with_scalar_right(g, "Sub", "sub", size, 1.0));
  };
  const Output index_last = last_of(index_shape);
  const Output rows_shape =
      g.op("Pack", {g.constant(Literal::scalar(int64_t{-1}), "stack/0"), index_last}, {{"axis", 0}}, "stack");
  const Output rows = reshape(g, g.y(1), rows_shape);
  const Output in_last = last_of(in_shape);
  const Output row_count = cast(g, slice_vector(g, g.shape_of(rows), 0, std::nullopt, true), DType::kInt64);
  const Output end = mul(g, row_count, in_last);
  const Output zero = g.constant(Literal::scalar(int64_t{0}), "range/start");
  const Output offsets = g.op("Range", {zero, end, in_last}, {}, "range");
  const Output column = cast(g, expand_dims(g, offsets, -1), rows.dtype());
  const Output positions = expand_dims(g, reshape_to(g, add(g, rows, column), {-1}), -1);
  const Output values = reshape_to(g, g.dy(0), {-1});
  const Output elements = g.op("Prod", {in_shape, g.constant_i32({0})});
  const Output flat_shape = cast(g, g.op("Pack", {elements}, {{"axis", 0}}, "stack"), rows.dtype());
  const Output flat = g.op("ScatterNd", {positions, values, flat_shape});
  grads[0] = reshape(g, flat, in_shape);
  return grads;
}

void register_top_k(OpRegistry& r) {
  r.add({.name = "TopK",
         .inputs = {"input: T"},
         .outputs = {"values: T", "indices: int32"},
         .attrs = {"k: int >= 0", "sorted: bool = true", kRealTypes},
         .doc =
             "The k largest elements along the last axis and their indices; of equals the lower index first.",
         .infer = top_k_shape,
         .grad = top_k_grad});
  r.add({.name = "TopKV2",
         .inputs = {"input: T", "k: int32"},
         .outputs = {"values: T", "indices: int32"},
         .attrs = {"sorted: bool = true", kRealTypes},
         .doc =
             "The k largest elements along the last axis and their indices; of equals the lower index first.",
         .infer = top_k_shape,
         .grad = top_k_grad,
         .later_attrs = {"Tk: type = int32", "index_type: type = int32"}});
}

}  // namespace

void register_nn(OpRegistry& r) {
  register_activations(r);
  register_biases(r);
  register_softmax(r);
  register_top_k(r);
}

}  // namespace sluice::graph::ops
