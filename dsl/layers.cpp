#include "dsl/layers.h"

#include "dsl/ops/array.h"
#include "dsl/ops/control.h"
#include "dsl/ops/math.h"
#include "dsl/ops/nn.h"
#include "dsl/require.h"
#include "dsl/variable_store.h"

namespace sluice::dsl::layers {

Tensor relu_activation(const Tensor& x, Loc loc) { return dsl::relu(x, {}, loc); }
Tensor tanh_activation(const Tensor& x, Loc loc) { return dsl::tanh(x, {}, loc); }
Tensor sigmoid_activation(const Tensor& x, Loc loc) { return dsl::sigmoid(x, {}, loc); }

namespace {

// The layer's variable scope: the given name as it is, or the kind's name made unique.
struct LayerScope {
  std::optional<VariableScope> scope;
  LayerScope(Graph& g, const std::string& name, const char* kind, Reuse reuse = Reuse::kInherit) {
    if (name.empty()) {
      scope.emplace(g, VariableScope::Default{kind}, VariableScopeOptions{.reuse = reuse});
    } else {
      scope.emplace(g, name, VariableScopeOptions{.reuse = reuse});
    }
  }
};

int64_t channels_of(const Tensor& x, const std::string& data_format, const char* layer) {
  const Shape& s = x.shape();
  bool first = data_format == "NCHW" && s.rank() == 4;
  int64_t c = s.known_rank() && s.rank() > 0 ? s.dim(first ? 1 : -1) : graph::kUnknownDim;
  SLUICE_REQUIRE(c >= 0, Code::kInvalidArgument, layer, ": the channel dimension of the inputs (", x.name(),
                 " of shape ", s, ") should be defined. Found None.");
  return c;
}

Tensor finish(const Tensor& x, const Activation& activation, Loc loc) {
  return activation ? activation(x, loc) : x;
}

// contrib.layers also enters its variables in MODEL_VARIABLES, which warm starts look through.
VariableOptions weight(Naming naming, DType dtype, const Initializer& init, const Regularizer& reg,
                       bool trainable) {
  VariableOptions o;
  if (naming == Naming::kContrib) o.collections.push_back(graph::keys::kModelVariables);
  o.dtype = dtype;
  o.initializer = init;
  o.regularizer = reg;
  o.trainable = trainable;
  return o;
}

Initializer or_zeros(const Initializer& init) { return init ? init : zeros_initializer(); }
Initializer or_ones(const Initializer& init) { return init ? init : ones_initializer(); }

}  // namespace

Tensor conv2d(const Operand& inputs, int64_t filters, std::array<int64_t, 2> kernel_size,
              const Conv2DOptions& o, Loc loc) {
  bool contrib = o.naming == Naming::kContrib;
  LayerScope scope(graph_of({&inputs}), o.name, contrib ? "Conv" : "conv2d", o.reuse);
  Tensor x = inputs.tensor();
  Graph& g = x.graph();
  int64_t in = channels_of(x, o.data_format, "conv2d");
  Variable kernel =
      get_variable(g, contrib ? "weights" : "kernel", {kernel_size[0], kernel_size[1], in, filters},
                   weight(o.naming, x.dtype(), o.kernel_initializer, o.kernel_regularizer, o.trainable), loc);
  Variable bias;
  if (o.use_bias) {
    bias = get_variable(
        g, contrib ? "biases" : "bias", {filters},
        weight(o.naming, x.dtype(), or_zeros(o.bias_initializer), o.bias_regularizer, o.trainable), loc);
  }
  Tensor y = dsl::conv2d(x, kernel,
                         {.strides = o.strides,
                          .dilations = o.dilation_rate,
                          .padding = o.padding,
                          .data_format = o.data_format},
                         loc);
  if (o.use_bias) y = bias_add(y, bias, o.data_format, {}, loc);
  return finish(y, o.activation, loc);
}

Tensor dense(const Operand& inputs, int64_t units, const DenseOptions& o, Loc loc) {
  bool contrib = o.naming == Naming::kContrib;
  LayerScope scope(graph_of({&inputs}), o.name, contrib ? "fully_connected" : "dense", o.reuse);
  Tensor x = inputs.tensor();
  Graph& g = x.graph();
  SLUICE_REQUIRE_AT(loc, x.shape().known_rank() && x.shape().rank() >= 2, Code::kInvalidArgument,
                    "dense: the inputs (", x.name(), ") need a known rank of at least 2, got ", x.shape());
  int64_t in = channels_of(x, "NHWC", "dense");
  Variable kernel =
      get_variable(g, contrib ? "weights" : "kernel", {in, units},
                   weight(o.naming, x.dtype(), o.kernel_initializer, o.kernel_regularizer, o.trainable), loc);
  Variable bias;
  if (o.use_bias) {
    bias = get_variable(
        g, contrib ? "biases" : "bias", {units},
        weight(o.naming, x.dtype(), or_zeros(o.bias_initializer), o.bias_regularizer, o.trainable), loc);
  }
  Tensor rows = x;
  int rank = x.shape().rank();
  if (rank > 2) rows = reshape(x, std::vector<int64_t>{-1, in}, {}, loc);
  Tensor y = matmul(rows, kernel, {}, loc);
  if (rank > 2) {
    int unknown = 0;
    std::vector<int64_t> dims;
    for (int i = 0; i + 1 < rank; ++i) {
      dims.push_back(x.shape().dim(i));
      unknown += dims.back() < 0;
    }
    dims.push_back(units);
    SLUICE_REQUIRE_AT(loc, unknown <= 1, Code::kInvalidArgument,
                      "dense: at most one dimension of the inputs may be unknown, got ", x.shape());
    y = reshape(y, dims, {}, loc);
  }
  if (o.use_bias) y = bias_add(y, bias, "NHWC", {}, loc);
  return finish(y, o.activation, loc);
}

Tensor batch_normalization(const Operand& inputs, const BatchNormOptions& o, Loc loc) {
  bool contrib = o.naming == Naming::kContrib;
  LayerScope scope(graph_of({&inputs}), o.name, contrib ? "BatchNorm" : "batch_normalization", o.reuse);
  Tensor x = inputs.tensor();
  Graph& g = x.graph();
  const Dims dims{channels_of(x, o.data_format, "batch_normalization")};
  // Statistics and parameters are kept in float32 whatever x is.
  DType t = x.dtype() == DType::kDouble ? DType::kDouble : DType::kFloat;
  Variable gamma, beta;
  auto make_gamma = [&] {
    if (o.scale)
      gamma = get_variable(g, "gamma", dims,
                           weight(o.naming, t, or_ones(o.gamma_initializer), {}, o.trainable), loc);
  };
  auto make_beta = [&] {
    if (o.center)
      beta = get_variable(g, "beta", dims, weight(o.naming, t, or_zeros(o.beta_initializer), {}, o.trainable),
                          loc);
  };
  if (contrib) {
    make_beta(), make_gamma();
  } else {
    make_gamma(), make_beta();
  }
  VariableOptions moving = weight(o.naming, t, or_zeros(o.moving_mean_initializer), {}, false);
  Variable mean = get_variable(g, "moving_mean", dims, moving, loc);
  moving.initializer = or_ones(o.moving_variance_initializer);
  Variable variance = get_variable(g, "moving_variance", dims, moving, loc);

  auto parameter = [&](const Variable& v, double otherwise) {
    if (v) return Operand(v, loc);
    std::vector<double> values(static_cast<size_t>(dims[0]), otherwise);
    return Operand(constant(g, Literal::from<double>(dims, std::span<const double>(values)).cast(t), {}, loc),
                   loc);
  };
  Operand scale = parameter(gamma, 1.0), offset = parameter(beta, 0.0);
  Tensor y, batch_mean, batch_variance;
  if (x.shape().rank() == 4) {
    FusedBatchNormOptions f{.epsilon = o.epsilon, .is_training = o.training, .data_format = o.data_format};
    if (!o.training) f.mean = Operand(mean, loc), f.variance = Operand(variance, loc);
    BatchNormOutputs out = fused_batch_norm(x, scale, offset, f, loc);
    y = out.y, batch_mean = out.batch_mean, batch_variance = out.batch_variance;
  } else {
    std::vector<int64_t> axes;
    for (int i = 0; i + 1 < x.shape().rank(); ++i) axes.push_back(i);
    if (o.training) {
      Moments m = moments(x, axes, false, {}, loc);
      batch_mean = m.mean, batch_variance = m.variance;
      y = dsl::batch_normalization(x, m.mean, m.variance, offset, scale, o.epsilon, {}, loc);
    } else {
      y = dsl::batch_normalization(x, Operand(mean, loc), Operand(variance, loc), offset, scale, o.epsilon,
                                   {}, loc);
    }
  }
  if (!o.training) return y;
  std::vector<Node*> updates{&assign_moving_average(mean, batch_mean, o.momentum, {}, loc),
                             &assign_moving_average(variance, batch_variance, o.momentum, {}, loc)};
  if (!o.updates_collection) return with_dependencies(updates, y, {}, loc);
  for (Node* n : updates) g.collections().add(*o.updates_collection, graph::GraphElement{n, -1});
  return y;
}

Tensor max_pooling2d(const Operand& inputs, std::array<int64_t, 2> pool_size, std::array<int64_t, 2> strides,
                     const Pooling2DOptions& o, Loc loc) {
  LayerScope scope(graph_of({&inputs}), o.name, "max_pooling2d");
  return max_pool(inputs, pool_size, strides, {.padding = o.padding, .data_format = o.data_format}, loc);
}

Tensor average_pooling2d(const Operand& inputs, std::array<int64_t, 2> pool_size,
                         std::array<int64_t, 2> strides, const Pooling2DOptions& o, Loc loc) {
  LayerScope scope(graph_of({&inputs}), o.name, "average_pooling2d");
  return avg_pool(inputs, pool_size, strides, {.padding = o.padding, .data_format = o.data_format}, loc);
}

Tensor dropout(const Operand& inputs, double rate, const DropoutLayerOptions& o, Loc loc) {
  LayerScope scope(graph_of({&inputs}), o.name, "dropout");
  if (!o.training) return identity(inputs, {}, loc);
  return dsl::dropout(inputs, rate, {.seed = o.seed}, loc);
}

Tensor flatten(const Operand& inputs, const std::string& name, Loc loc) {
  LayerScope scope(graph_of({&inputs}), name, "flatten");
  Tensor x = inputs.tensor();
  const Shape& s = x.shape();
  SLUICE_REQUIRE_AT(loc, s.known_rank() && s.rank() >= 1, Code::kInvalidArgument, "flatten: the inputs (",
                    x.name(), ") need a known rank of at least 1, got ", s);
  int64_t rest = 1;
  for (int i = 1; i < s.rank(); ++i) {
    SLUICE_REQUIRE_AT(loc, s.dim(i) >= 0 || s.dim(0) >= 0, Code::kInvalidArgument,
                      "flatten: all but one dimension must be known, got ", s);
    rest = s.dim(i) < 0 || rest < 0 ? -1 : rest * s.dim(i);
  }
  return reshape(x, std::vector<int64_t>{rest < 0 ? s.dim(0) : -1, rest}, {}, loc);
}

}  // namespace sluice::dsl::layers
