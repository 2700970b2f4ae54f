// Normalisation: fused batch normalization in its three versions, and local response normalization.

#include "graph/ops/grad_helpers.h"
#include "graph/ops/register.h"
#include "graph/ops/spatial.h"
#include "graph/ops/type_sets.h"

namespace sluice::graph::ops {
namespace {

// V1 has one type; V2 keeps statistics in U; V3 has a third reserve.
struct Version {
  int number;
  const char *forward, *gradient;
  const char *statistics, *scale;  // type of the statistics, and of the gradient op's scale
};
constexpr Version kVersions[] = {{1, "FusedBatchNorm", "FusedBatchNormGrad", "T", "T"},
                                 {2, "FusedBatchNormV2", "FusedBatchNormGradV2", "U", "float"},
                                 {3, "FusedBatchNormV3", "FusedBatchNormGradV3", "U", "float"}};

bool is_3d(const Node& node) {
  const auto format = node.attr_or<std::string>("data_format", "NHWC");
  return format == "NDHWC" || format == "NCDHW";
}

bool channels_first(const Node& node) {
  const auto format = node.attr_or<std::string>("data_format", "NHWC");
  return format == "NCHW" || format == "NCDHW";
}

int channel_axis(const Node& node) { return channels_first(node) ? 1 : (is_3d(node) ? 4 : 3); }

std::vector<int32_t> other_axes(const Node& node) {
  std::vector<int32_t> axes;
  for (int32_t i = 0; i < (is_3d(node) ? 5 : 4); ++i)
    if (i != channel_axis(node)) axes.push_back(i);
  return axes;
}

void batch_norm_shape(InferContext& c) {
  Shape x = c.with_rank(0, is_3d(c.node()) ? 5 : 4);
  const int axis = channel_axis(c.node());
  // In training, mean and variance are results, and what is fed for them is empty.
  const int vectors = c.attr<bool>("is_training") ? 2 : 4;
  int64_t channels = x.dim(axis);
  for (int i = 1; i <= 4; ++i) {
    const Shape v = c.with_rank(i, 1);
    if (i <= vectors) channels = c.merge_dim(channels, v.dim(0));
  }
  x.set_dim(axis, channels);
  c.set_output(0, x);
  for (int i = 1; i < c.num_outputs(); ++i) c.set_output(i, Shape{i == 5 ? 0 : channels});
}

void batch_norm_grad_shape(InferContext& c) {
  const int rank = is_3d(c.node()) ? 5 : 4, axis = channel_axis(c.node());
  Shape dy = c.with_rank(0, rank);
  int64_t channels = c.merge_dim(dy.dim(axis), c.with_rank(1, rank).dim(axis));
  for (int i = 2; i <= 4; ++i) channels = c.merge_dim(channels, c.with_rank(i, 1).dim(0));
  dy.set_dim(axis, channels);
  c.set_output(0, dy);
  c.set_output(1, Shape{channels});
  c.set_output(2, Shape{channels});
  c.set_output(3, Shape{0});
  c.set_output(4, Shape{0});
}

Output transpose(Grad& g, Output x, std::vector<int32_t> perm) {
  NameScope scope(g.graph(), "transpose");
  const Output p = g.constant_i32(std::move(perm), "perm");
  return g.op("Transpose", {x, p}, {}, scope.scope());
}

// Training hands the gradient op the batch's statistics, inference the fed ones; the latter exists for
// channels-last images only, so others are transposed around it.
GradFn batch_norm_grad(const Version& v) {
  return [v](Grad& g) {
    Gradients grads = no_gradient(g);
    if (g.raw_dy(0).none()) return grads;
    const bool training = g.attr<bool>("is_training"), turn = !training && channels_first(g.node());
    const bool deep = is_3d(g.node());
    Output x = g.x(0), dy = g.dy(0);
    AttrMap attrs = copy_attrs(g, {"epsilon", "data_format", "is_training"});
    if (turn) {
      const std::vector<int32_t> last =
          deep ? std::vector<int32_t>{0, 2, 3, 4, 1} : std::vector<int32_t>{0, 2, 3, 1};
      x = transpose(g, x, last);
      dy = transpose(g, dy, last);
      attrs["data_format"] = deep ? "NDHWC" : "NHWC";
    }
    std::vector<Output> inputs{dy, x, g.x(1), training ? g.y(3) : g.x(3), training ? g.y(4) : g.x(4)};
    if (v.number == 3) inputs.push_back(g.y(5));
    Node& node = g.node_op(v.gradient, std::move(inputs), std::move(attrs));
    Output dx = node.output(0);
    if (turn)
      dx = transpose(g, dx, deep ? std::vector<int32_t>{0, 4, 1, 2, 3} : std::vector<int32_t>{0, 3, 1, 2});
    grads[0] = dx;
    grads[1] = node.output(1);
    grads[2] = node.output(2);
    return grads;
  };
}

// Second order, per channel with m elements; A, B, C are the gradients of dx, dscale and doffset:
//   u = x − mean(x), r = rsqrt(mean(u²) + ε), P(t) = t − mean(t) − r²·u·mean(t·u)   (P is self-adjoint)
//   dx = scale·r·P(dy)   dscale = r·Σ dy·u   doffset = Σ dy
// give, with a = Σ A·u, b = Σ dy·u, q = Σ A·(dy − mean(dy)):
//   by dy:    scale·r·P(A) + r·B·u + C
//   by scale: r·(q − r²·a·b/m)
//   by x:     D − mean(D), D = r·B·dy − scale·r³·(b·A + a·dy)/m − (r³/m)·u·(scale·q − 3·scale·r²·a·b/m + B·b)
// Inference has u = x − mean and r = rsqrt(variance + ε) as constants, so P is the identity.
class BatchNormSecondOrder {
 public:
  explicit BatchNormSecondOrder(Grad& g) : g_(g), axes_(other_axes(g.node())) {
    stats_ = g.x(3).dtype();
    dy_ = cast(g, g.x(0), stats_);
    x_ = cast(g, g.x(1), stats_);
    scale_ = spread(cast(g, g.x(2), stats_));
  }

  Gradients run() {
    const bool training = g_.attr<bool>("is_training");
    const Output variance = training ? square_mean() : spread(g_.x(4));
    if (!training) u_ = sub(g_, x_, spread(g_.x(3)));
    r_ = g_.op("Rsqrt", {with_scalar_right(g_, "AddV2", "add", variance, g_.attr<float>("epsilon"))});
    if (g_.has_dy(0)) by_dx(training);
    if (g_.has_dy(1)) by_dscale();
    if (g_.has_dy(2)) by_dy_.push_back(add(g_, g_.zeros_like(dy_), spread(cast(g_, g_.dy(2), stats_))));
    Gradients grads = no_gradient(g_);
    if (!by_dy_.empty()) grads[0] = cast(g_, total(by_dy_), g_.x(0).dtype());
    if (!by_x_.empty()) {
      const Output d = total(by_x_);
      grads[1] = cast(g_, training ? sub(g_, d, mean(d)) : d, g_.x(1).dtype());
    }
    if (by_scale_) grads[2] = cast(g_, flat(by_scale_), g_.x(2).dtype());
    return grads;
  }

 private:
  Output mean(Output t) { return reduce(g_, "Mean", t, axes_, true); }
  Output sum(Output t) { return reduce(g_, "Sum", t, axes_, true); }
  Output total(const std::vector<Output>& parts) {
    return parts.size() == 1 ? parts[0] : g_.op("AddN", parts);
  }
  // A vector of channels as a tensor that broadcasts against images, and back.
  Output spread(Output v) {
    std::vector<int32_t> shape(axes_.size() + 1, 1);
    shape[static_cast<size_t>(channel_axis(g_.node()))] = -1;
    return reshape_to(g_, v, shape);
  }
  Output flat(Output v) { return reshape_to(g_, v, {-1}); }

  Output square_mean() {
    u_ = sub(g_, x_, mean(x_));
    return mean(g_.op("Square", {u_}));
  }
  Output cube_over_count() {
    // r³/m as a mean of r³ broadcast: m need not be known.
    const Output cube = mul(g_, r_, g_.op("Square", {r_}));
    return truediv(g_, cube, sum(ones_like(g_, x_)));
  }

  void by_dx(bool training) {
    const Output a_grad = cast(g_, g_.dy(0), stats_);
    const Output scaled = mul(g_, scale_, r_);
    if (!training) {
      by_dy_.push_back(mul(g_, scaled, a_grad));
      by_scale_ = mul(g_, r_, sum(mul(g_, a_grad, dy_)));
      return;
    }
    const Output r2 = g_.op("Square", {r_});
    const Output a = sum(mul(g_, a_grad, u_)), b = sum(mul(g_, dy_, u_));
    const Output q = sum(mul(g_, a_grad, sub(g_, dy_, mean(dy_))));
    const Output a_mean = mean(mul(g_, a_grad, u_));
    const Output centred = sub(g_, a_grad, mean(a_grad));
    by_dy_.push_back(mul(g_, scaled, sub(g_, centred, mul(g_, mul(g_, r2, u_), a_mean))));
    const Output coupling = mul(g_, mul(g_, r2, a_mean), b);  // r²·a·b/m
    by_scale_ = mul(g_, r_, sub(g_, q, coupling));
    const Output factor = neg(g_, mul(g_, scale_, cube_over_count()));
    const Output cross = add(g_, mul(g_, b, a_grad), mul(g_, a, dy_));
    const Output inner = sub(g_, q, with_scalar_left(g_, "Mul", "mul", 3.0, coupling));
    by_x_.push_back(mul(g_, factor, add(g_, cross, mul(g_, u_, inner))));
  }

  void by_dscale() {
    const Output b_grad = spread(cast(g_, g_.dy(1), stats_));
    const Output scaled = mul(g_, r_, b_grad);
    by_dy_.push_back(mul(g_, scaled, u_));
    by_x_.push_back(mul(g_, scaled, dy_));
    if (!g_.attr<bool>("is_training")) return;
    const Output b = sum(mul(g_, dy_, u_));
    const Output slope = mul(g_, mul(g_, cube_over_count(), b_grad), b);
    by_x_.push_back(neg(g_, mul(g_, slope, u_)));
  }

  Grad& g_;
  std::vector<int32_t> axes_;
  DType stats_ = DType::kFloat;
  Output dy_, x_, scale_, u_, r_;
  std::vector<Output> by_dy_, by_x_;
  Output by_scale_;
};

constexpr const char* kFactor = "exponential_avg_factor: float = 1";

void register_batch_norm(OpRegistry& r, const Version& v) {
  const std::string u = v.statistics;
  const std::string format =
      v.number == 3 ? "data_format: {'NHWC', 'NCHW', 'NDHWC', 'NCDHW'} = 'NHWC'" : kDataFormat;
  std::vector<std::string> types{v.number == 1 ? "T: {float}" : "T: {half, bfloat16, float}"};
  if (v.number == 2) types.push_back("U: {float}");
  if (v.number == 3) types.push_back("U: {bfloat16, float}");
  const auto attrs = [&](std::initializer_list<std::string> more) {
    std::vector<std::string> all = types;
    all.insert(all.end(), more);
    return all;
  };
  std::vector<std::string> outputs{"y: T", "batch_mean: " + u, "batch_variance: " + u,
                                   "reserve_space_1: " + u, "reserve_space_2: " + u};
  std::vector<std::string> grad_inputs{"y_backprop: T", "x: T", cat("scale: ", v.scale),
                                       "reserve_space_1: " + u, "reserve_space_2: " + u};
  if (v.number == 3) {
    outputs.push_back("reserve_space_3: " + u);
    grad_inputs.push_back("reserve_space_3: " + u);
  }
  const std::string third = v.number == 3 ? "reserve_space_4: " : "reserve_space_3: ";
  const std::string fourth = v.number == 3 ? "reserve_space_5: " : "reserve_space_4: ";
  r.add({.name = v.forward,
         .inputs = {"x: T", "scale: " + u, "offset: " + u, "mean: " + u, "variance: " + u},
         .outputs = outputs,
         .attrs = attrs({"epsilon: float = 0.0001", kFactor, format, "is_training: bool = true"}),
         .doc = "Batch normalization of images. batch_variance is unbiased; reserve_space_1 and 2 are the "
                "mean and "
                "the biased variance for the gradient.",
         .infer = batch_norm_shape,
         .grad = batch_norm_grad(v),
         .later_attrs = {kFactor}});
  r.add({.name = v.gradient,
         .inputs = grad_inputs,
         .outputs = {"x_backprop: T", "scale_backprop: " + u, "offset_backprop: " + u, third + u, fourth + u},
         .attrs = attrs({"epsilon: float = 0.0001", format, "is_training: bool = true"}),
         .doc = "Batch normalization's gradient by x, scale and offset.",
         .infer = batch_norm_grad_shape,
         .grad = [](Grad& g) { return BatchNormSecondOrder(g).run(); }});
}

void register_lrn(OpRegistry& r) {
  const std::vector<std::string> attrs = {"depth_radius: int = 5", "bias: float = 1", "alpha: float = 1",
                                          "beta: float = 0.5", "T: {half, bfloat16, float} = float"};
  r.add(
      {.name = "LRN",
       .inputs = {"input: T"},
       .outputs = {"output: T"},
       .attrs = attrs,
       .doc =
           "input / (bias + alpha * sum of squares over 2 * depth_radius + 1 neighbouring channels) ^ beta.",
       .infer = [](InferContext& c) { c.set_output(0, c.with_rank(0, 4)); },
       .grad =
           [](Grad& g) {
             return Gradients{g.op("LRNGrad", {g.dy(), g.x(), g.y()},
                                   copy_attrs(g, {"depth_radius", "bias", "alpha", "beta"}))};
           }});
  r.add({.name = "LRNGrad",
         .inputs = {"input_grads: T", "input_image: T", "output_image: T"},
         .outputs = {"output: T"},
         .attrs = attrs,
         .doc = "LRN's gradient.",
         .infer = [](InferContext& c) {
           for (int i = 0; i < 3; ++i) c.with_rank(i, 4);
           c.set_output(0, c.merge(c.merge(c.input(0), c.input(1)), c.input(2)));
         }});
}

}  // namespace

void register_nn_norm(OpRegistry& r) {
  for (const Version& v : kVersions) register_batch_norm(r, v);
  register_lrn(r);
}

}  // namespace sluice::graph::ops
