#include "dsl/ops/nn.h"

#include "dsl/call.h"
#include "dsl/ops/array.h"
#include "dsl/ops/random.h"
#include "dsl/require.h"

namespace sluice::dsl {

namespace {

// Height and width put into a list of four, in data-format order.
std::vector<int64_t> four(std::array<int64_t, 2> hw, const std::string& data_format) {
  SLUICE_REQUIRE(data_format == "NHWC" || data_format == "NCHW", Code::kInvalidArgument,
                 "data_format must be NHWC or NCHW, got '", data_format, "'");
  if (data_format == "NCHW") return {1, 1, hw[0], hw[1]};
  return {1, hw[0], hw[1], 1};
}

Tensor unary(const char* op, const Operand& x, const std::string& name, Loc loc) {
  Call c(graph_of({&x}), name, op, loc);
  return c.make(op, {c.in(x, "features")});
}

AttrMap conv_attrs(const Conv2DOptions& o) {
  AttrMap attrs{{"strides", four(o.strides, o.data_format)},
                {"padding", o.padding},
                {"data_format", o.data_format},
                {"dilations", four(o.dilations, o.data_format)}};
  if (!o.explicit_paddings.empty()) attrs["explicit_paddings"] = o.explicit_paddings;
  return attrs;
}

Tensor pool(const char* op, const Operand& value, std::array<int64_t, 2> ksize,
            std::array<int64_t, 2> strides, const PoolOptions& o, Loc loc) {
  Call c(graph_of({&value}), o.name, op, loc);
  return c.make(op, {c.in(value, "value")},
                {{"ksize", four(ksize, o.data_format)},
                 {"strides", four(strides, o.data_format)},
                 {"padding", o.padding},
                 {"data_format", o.data_format}});
}

}  // namespace

Tensor conv2d(const Operand& input, const Operand& filter, const Conv2DOptions& o, Loc loc) {
  Call c(graph_of({&input, &filter}), o.name, "Conv2D", loc);
  Output in = c.in(input, "input");
  return c.make("Conv2D", {in, c.in(filter, "filter")}, conv_attrs(o));
}

Tensor depthwise_conv2d(const Operand& input, const Operand& filter, const Conv2DOptions& o, Loc loc) {
  Call c(graph_of({&input, &filter}), o.name, "depthwise", loc);
  Output in = c.in(input, "input");
  return c.make("DepthwiseConv2dNative", {in, c.in(filter, "filter")}, conv_attrs(o));
}

Tensor max_pool(const Operand& value, std::array<int64_t, 2> ksize, std::array<int64_t, 2> strides,
                const PoolOptions& o, Loc loc) {
  return pool("MaxPool", value, ksize, strides, o, loc);
}
Tensor avg_pool(const Operand& value, std::array<int64_t, 2> ksize, std::array<int64_t, 2> strides,
                const PoolOptions& o, Loc loc) {
  return pool("AvgPool", value, ksize, strides, o, loc);
}

Tensor bias_add(const Operand& value, const Operand& bias, const std::string& data_format,
                const std::string& name, Loc loc) {
  Call c(graph_of({&value, &bias}), name, "BiasAdd", loc);
  Output v = c.in(value, "value");
  return c.make("BiasAdd", {v, c.in(bias, "bias")}, {{"data_format", data_format}});
}

BatchNormOutputs fused_batch_norm(const Operand& x, const Operand& scale, const Operand& offset,
                                  const FusedBatchNormOptions& o, Loc loc) {
  SLUICE_REQUIRE_AT(loc, o.is_training || (o.mean && o.variance), Code::kInvalidArgument,
                    "fused_batch_norm needs mean and variance when it is not training");
  Graph& g = graph_of({&x, &scale, &offset});
  Tensor empty_mean, empty_variance;
  // While training the running statistics are not inputs: TensorFlow passes empty constants.
  if (o.is_training) {
    Literal none = Literal::zeros(DType::kFloat, {0});
    empty_mean = constant(g, none, {}, loc), empty_variance = constant(g, none, {}, loc);
  }
  Call c(g, o.name, "FusedBatchNormV3", loc);
  Output in = c.in(x, "x"), s = c.in(scale, "scale"), b = c.in(offset, "offset");
  Output mean = o.is_training ? empty_mean.output() : c.in(*o.mean, "mean");
  Output variance = o.is_training ? empty_variance.output() : c.in(*o.variance, "variance");
  Node& n = c.make("FusedBatchNormV3", {in, s, b, mean, variance},
                   {{"epsilon", o.epsilon}, {"is_training", o.is_training}, {"data_format", o.data_format}});
  return {n.output(0), n.output(1), n.output(2)};
}

Moments moments(const Operand& x, const std::vector<int64_t>& axes, bool keepdims, const std::string& name,
                Loc loc) {
  Call c(graph_of({&x}), name, "moments", loc);
  Tensor t = c.in(x, "x");
  Tensor mean = reduce_mean(t, axes, {.keepdims = true, .name = "mean"}, loc);
  Tensor deviation = squared_difference(t, stop_gradient(mean, {}, loc), {}, loc);
  Tensor variance = reduce_mean(deviation, axes, {.keepdims = true, .name = "variance"}, loc);
  if (keepdims) return {mean, variance};
  Tensor flat = squeeze(mean, axes, {}, loc);
  return {flat, squeeze(variance, axes, {}, loc)};
}

Tensor batch_normalization(const Operand& x, const Operand& mean, const Operand& variance,
                           const Operand& offset, const Operand& scale, double variance_epsilon,
                           const std::string& name, Loc loc) {
  Call c(graph_of({&x, &mean, &variance}), name, "batchnorm", loc);
  Tensor inv = multiply(rsqrt(add(variance, variance_epsilon, "add", loc), {}, loc), scale, "mul", loc);
  Tensor scaled = multiply(x, inv, "mul", loc);
  Tensor shift = subtract(offset, multiply(mean, inv, "mul", loc), "sub", loc);
  return c.make("AddV2", {scaled, shift});
}

Tensor local_response_normalization(const Operand& input, const LrnOptions& o, Loc loc) {
  Call c(graph_of({&input}), o.name, "LRN", loc);
  return c.make("LRN", {c.in(input, "input")},
                {{"depth_radius", o.depth_radius}, {"bias", o.bias}, {"alpha", o.alpha}, {"beta", o.beta}});
}

Tensor relu(const Operand& features, const std::string& name, Loc loc) {
  return unary("Relu", features, name, loc);
}
Tensor relu6(const Operand& features, const std::string& name, Loc loc) {
  return unary("Relu6", features, name, loc);
}
Tensor elu(const Operand& features, const std::string& name, Loc loc) {
  return unary("Elu", features, name, loc);
}
Tensor softplus(const Operand& features, const std::string& name, Loc loc) {
  return unary("Softplus", features, name, loc);
}
Tensor softmax(const Operand& logits, const std::string& name, Loc loc) {
  return unary("Softmax", logits, name, loc);
}
Tensor log_softmax(const Operand& logits, const std::string& name, Loc loc) {
  return unary("LogSoftmax", logits, name, loc);
}

Tensor sparse_softmax_cross_entropy_with_logits(const Operand& labels, const Operand& logits,
                                                const std::string& name, Loc loc) {
  Call c(graph_of({&labels, &logits}), name, "SparseSoftmaxCrossEntropyWithLogits", loc);
  Output x = c.in(logits, "logits"), z = c.in(labels, "labels", DType::kInt32);
  const Shape &xs = x.shape(), &zs = z.shape();
  SLUICE_REQUIRE_AT(loc, !xs.known_rank() || !zs.known_rank() || xs.rank() == zs.rank() + 1,
                    Code::kInvalidArgument, "Rank mismatch: Rank of labels (received ", zs.rank(),
                    ") should equal rank of logits minus 1 (received ", xs.rank(), ").");
  return c.inner("SparseSoftmaxCrossEntropyWithLogits", {x, z});
}

Tensor softmax_cross_entropy_with_logits(const Operand& labels, const Operand& logits,
                                         const std::string& name, Loc loc) {
  Call c(graph_of({&labels, &logits}), name, "softmax_cross_entropy_with_logits", loc);
  Output x = c.in(logits, "logits"), z = c.in(labels, "labels", logits.dtype());
  return c.make("SoftmaxCrossEntropyWithLogits", {x, z});
}

Tensor sigmoid_cross_entropy_with_logits(const Operand& labels, const Operand& logits,
                                         const std::string& name, Loc loc) {
  Call c(graph_of({&labels, &logits}), name, "logistic_loss", loc);
  Tensor x = c.in(logits, "logits"), z = c.in(labels, "labels", logits.dtype());
  Tensor zero = zeros_like(x, {}, loc);
  Tensor positive = greater_equal(x, zero, {}, loc);
  Tensor relu_x = where(positive, x, zero, {}, loc);
  Tensor minus_abs = where(positive, negative(x, {}, loc), x, {}, loc);
  Tensor linear = subtract(relu_x, multiply(x, z, "mul", loc), "sub", loc);
  return c.make("AddV2", {linear, log1p(exp(minus_abs, {}, loc), {}, loc)});
}

Tensor l2_loss(const Operand& t, const std::string& name, Loc loc) { return unary("L2Loss", t, name, loc); }

Tensor in_top_k(const Operand& predictions, const Operand& targets, int k, const std::string& name, Loc loc) {
  Call outer(graph_of({&predictions, &targets}), name, "in_top_k", loc);
  Output p = outer.in(predictions, "predictions"), t = outer.in(targets, "targets", DType::kInt32);
  Call c(outer.graph(), {}, "InTopKV2", loc);
  Output count = t.dtype() == DType::kInt64 ? c.scalar(DType::kInt64, k, "k") : c.i32(k, "k");
  return c.make("InTopKV2", {p, t, count});
}

TopK top_k(const Operand& input, int k, bool sorted, const std::string& name, Loc loc) {
  Call c(graph_of({&input}), name, "TopKV2", loc);
  Output in = c.in(input, "input");
  Node& n = c.make("TopKV2", {in, c.i32(k, "k")}, {{"sorted", sorted}});
  return {n.output(0), n.output(1)};
}

Tensor dropout(const Operand& x, double rate, const DropoutOptions& o, Loc loc) {
  SLUICE_REQUIRE_AT(loc, graph::is_floating(x.dtype()), Code::kInvalidArgument,
                    "x has to be a floating point tensor since it's going to be scaled. Got a ", x.dtype(),
                    " tensor instead.");
  SLUICE_REQUIRE_AT(loc, rate >= 0 && rate < 1, Code::kInvalidArgument,
                    "rate must be a scalar tensor or a float in the range [0, 1), got ", rate);
  if (rate == 0) return x.tensor();
  Call c(graph_of({&x}), o.name, "dropout", loc);
  Tensor t = c.in(x, "x");
  Tensor dims = o.noise_shape.empty() ? shape(t, {}, loc) : Tensor(c.i32s(o.noise_shape, "noise_shape"));
  Tensor uniform = random_uniform(dims, 0, 1, {.dtype = t.dtype(), .seed = o.seed}, loc);
  Tensor keep = greater_equal(uniform, rate, {}, loc);
  Tensor scaled = multiply(t, 1.0 / (1.0 - rate), "mul", loc);
  return c.make("Mul", {scaled, cast(keep, t.dtype(), {}, loc)});
}

}  // namespace sluice::dsl
