#include "dsl/models/builder.h"

#include <cmath>

#include "dsl/ops/array.h"
#include "dsl/ops/math.h"
#include "dsl/ops/nn.h"
#include "dsl/variable.h"
#include "graph/support/check.h"

namespace sluice::dsl::models {

namespace {

std::string padding_text(Padding padding) { return padding == Padding::kValid ? "VALID" : "SAME"; }

Variable statistic(Graph& g, const char* name, int width, double value) {
  return get_variable(
      g, name, {width},
      {.initializer = value == 0 ? zeros_initializer() : ones_initializer(), .trainable = false});
}

}  // namespace

ConvNetBuilder::ConvNetBuilder(Graph& graph, const Tensor& images, const NetOptions& options)
    : graph_(graph), options_(options), top_(images) {
  const Shape& shape = images.shape();
  SLUICE_REQUIRE(shape.rank() == 4 && shape.known_dim(1) && shape.known_dim(2) && shape.known_dim(3),
                 Code::kInvalidArgument, "a network's images are [batch, height, width, channels], got ",
                 shape);
  width_ = static_cast<int>(shape.dim(3));
  if (options_.format == DataFormat::kNchw) top_ = transpose(images, {0, 3, 1, 2});
}

void ConvNetBuilder::set_top(const Tensor& top, int width) {
  top_ = top;
  width_ = width;
}

void ConvNetBuilder::use_batch_norm(const BatchNormConfig& config) { batch_norm_config_ = config; }

std::string ConvNetBuilder::next_name(const std::string& kind) { return cat(kind, counts_[kind]++); }

std::optional<int64_t> ConvNetBuilder::next_seed() {
  ++seeds_;
  return graph_.seed() ? std::optional<int64_t>(seeds_) : std::nullopt;
}

Tensor ConvNetBuilder::record(const std::string& name, const Tensor& output, int width) {
  set_top(output, width);
  std::vector<int64_t> dims(output.shape().dims().begin() + 1, output.shape().dims().end());
  if (dims.size() == 3 && options_.format == DataFormat::kNchw) dims = {dims[1], dims[2], dims[0]};
  layers_.push_back({name, dims});
  return output;
}

Tensor ConvNetBuilder::normalize(const Tensor& input, int width, const BatchNormConfig& config) {
  VariableScope scope(graph_, next_name("batchnorm"));
  const Variable beta = get_variable(graph_, "beta", {width}, {.initializer = zeros_initializer()});
  const Operand gamma =
      config.scale ? Operand(get_variable(graph_, "gamma", {width}, {.initializer = ones_initializer()}))
                   : Operand(ones(graph_, {width}));
  const Variable mean = statistic(graph_, "moving_mean", width, 0);
  const Variable variance = statistic(graph_, "moving_variance", width, 1);
  FusedBatchNormOptions o{
      .epsilon = config.epsilon, .is_training = options_.training, .data_format = format()};
  if (!options_.training) {
    o.mean = Operand(mean);
    o.variance = Operand(variance);
  }
  const BatchNormOutputs out = fused_batch_norm(input, gamma, beta, o);
  if (options_.training) {
    for (Node* update : {&assign_moving_average(mean, out.batch_mean, config.decay),
                         &assign_moving_average(variance, out.batch_variance, config.decay)})
      graph_.collections().add(graph::keys::kUpdateOps, graph::GraphElement{update, -1});
  }
  return out.y;
}

Tensor ConvNetBuilder::conv_of(const Tensor& input, int width, int depth, int kh, int kw,
                               const ConvOptions& o) {
  const std::string name = next_name("conv");
  VariableScope scope(graph_, name);
  Tensor x;
  {
    VariableScope inner(graph_, "conv2d");
    const std::optional<int64_t> seed = next_seed();
    const Variable kernel =
        get_variable(graph_, "kernel", {kh, kw, width, depth},
                     {.initializer = o.stddev ? truncated_normal_initializer(0, *o.stddev, seed)
                                              : variance_scaling_initializer({.seed = seed})});
    Tensor padded = input;
    std::string padding = padding_text(o.padding);
    if (o.padding == Padding::kSameResnet && o.stride > 1) {
      const std::pair<int64_t, int64_t> none{0, 0}, high{(kh - 1) / 2, kh - 1 - (kh - 1) / 2},
          wide{(kw - 1) / 2, kw - 1 - (kw - 1) / 2};
      padded = options_.format == DataFormat::kNhwc ? pad(input, {none, high, wide, none})
                                                    : pad(input, {none, none, high, wide});
      padding = "VALID";
    }
    x = conv2d(padded, kernel,
               {.strides = {o.stride, o.stride}, .padding = padding, .data_format = format()});
  }
  if (o.batch_norm.value_or(batch_norm_config_.has_value())) {
    x = normalize(x, depth, batch_norm_config_.value_or(BatchNormConfig{}));
  } else if (o.bias) {
    const Variable biases =
        get_variable(graph_, "biases", {depth}, {.initializer = constant_initializer(*o.bias)});
    x = bias_add(x, biases, format());
  }
  if (o.relu) x = relu(x);
  return record(name, x, depth);
}

Tensor ConvNetBuilder::conv(int depth, int kh, int kw, const ConvOptions& o) {
  return conv_of(top_, width_, depth, kh, kw, o);
}

Tensor ConvNetBuilder::pool(bool maximum, const Tensor& input, int width, int kh, int kw,
                            const PoolingOptions& o) {
  const std::string name = next_name(maximum ? "mpool" : "apool");
  graph::NameScope scope(graph_, name);
  const PoolOptions options{.padding = padding_text(o.padding), .data_format = format()};
  return record(name,
                maximum ? max_pool(input, {kh, kw}, {o.stride, o.stride}, options)
                        : avg_pool(input, {kh, kw}, {o.stride, o.stride}, options),
                width);
}

Tensor ConvNetBuilder::mpool(int kh, int kw, const PoolingOptions& o) {
  return pool(true, top_, width_, kh, kw, o);
}
Tensor ConvNetBuilder::apool(int kh, int kw, const PoolingOptions& o) {
  return pool(false, top_, width_, kh, kw, o);
}
Tensor ConvNetBuilder::apool_of(const Tensor& input, int width, int kh, int kw, const PoolingOptions& o) {
  return pool(false, input, width, kh, kw, o);
}

Tensor ConvNetBuilder::affine(int width, const AffineOptions& o) {
  const std::string name = next_name("affine");
  VariableScope scope(graph_, name);
  const double stddev = o.stddev.value_or(std::sqrt((o.relu ? 2.0 : 1.0) / width_));
  const Variable weights =
      get_variable(graph_, "weights", {width_, width},
                   {.initializer = truncated_normal_initializer(0, stddev, next_seed())});
  const Variable biases =
      get_variable(graph_, "biases", {width}, {.initializer = constant_initializer(o.bias)});
  Tensor x;
  {
    graph::NameScope inner(graph_, "xw_plus_b");
    const Tensor product = matmul(top_, weights);
    x = bias_add(product, biases, "NHWC", inner.scope());
  }
  if (o.relu) x = relu(x);
  return record(name, x, width);
}

Tensor ConvNetBuilder::dropout(double keep) {
  const std::string name = next_name("dropout");
  const std::optional<int64_t> seed = next_seed();
  if (!options_.training) return top_;
  graph::NameScope scope(graph_, name);
  return record(name, dsl::dropout(top_, 1 - keep, {.seed = seed}), width_);
}

Tensor ConvNetBuilder::batch_norm() {
  top_ = normalize(top_, width_, BatchNormConfig{});
  return top_;
}

Tensor ConvNetBuilder::spatial_mean() {
  const std::string name = next_name("spatial_mean");
  const Axes axes = options_.format == DataFormat::kNhwc ? Axes{1, 2} : Axes{2, 3};
  return record(name, reduce_mean(top_, axes, {.keepdims = false, .name = name}), width_);
}

Tensor ConvNetBuilder::flatten() {
  Tensor x = top_;
  const Shape& s = x.shape();
  if (options_.format == DataFormat::kNchw && s.rank() == 4 && s.dim(2) * s.dim(3) != 1)
    x = transpose(x, {0, 2, 3, 1});
  int64_t features = 1;
  for (int i = 1; i < s.rank(); ++i) features *= s.dim(i);
  return record("reshape", reshape(x, {-1, features}), static_cast<int>(features));
}

Tensor ConvNetBuilder::module_layer(const ModuleLayer& layer, const Tensor& input, int width) {
  const PoolingOptions pooling{.stride = layer.stride, .padding = layer.padding};
  switch (layer.kind) {
    case ModuleLayer::Kind::kConv:
      return conv_of(input, width, layer.depth, layer.kh, layer.kw,
                     {.stride = layer.stride, .padding = layer.padding});
    case ModuleLayer::Kind::kMaxPool:
      return pool(true, input, width, layer.kh, layer.kw, pooling);
    case ModuleLayer::Kind::kAveragePool:
      return pool(false, input, width, layer.kh, layer.kw, pooling);
    case ModuleLayer::Kind::kShare:
      break;
  }
  throw_internal("module layer", __FILE__, __LINE__, "a shared layer is taken from the column before");
}

Tensor ConvNetBuilder::inception_module(const std::string& name,
                                        const std::vector<std::vector<ModuleLayer>>& columns) {
  // The originals' module counter never counts; checkpoints depend on the name.
  const std::string full = name + "0";
  VariableScope scope(graph_, full);
  const Tensor input = top_;
  const int input_width = width_;
  std::vector<std::pair<Tensor, int>> previous;
  std::vector<Operand> ends;
  int total = 0;
  for (const auto& column : columns) {
    std::vector<std::pair<Tensor, int>> outputs;
    for (size_t row = 0; row < column.size(); ++row) {
      if (column[row].kind == ModuleLayer::Kind::kShare) {
        SLUICE_REQUIRE(row < previous.size(), Code::kInvalidArgument, "module ", name, " shares row ", row,
                       " of a column that has ", previous.size());
        outputs.push_back(previous[row]);
        continue;
      }
      const auto& [from, from_width] = row == 0 ? std::pair(input, input_width) : outputs.back();
      const Tensor out = module_layer(column[row], from, from_width);
      outputs.emplace_back(out, width_);
    }
    ends.emplace_back(outputs.back().first);
    total += outputs.back().second;
    previous = std::move(outputs);
  }
  return record(full, concat(ends, options_.format == DataFormat::kNhwc ? 3 : 1), total);
}

}  // namespace sluice::dsl::models
