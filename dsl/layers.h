#pragma once
// Layers: an op with its variables, under TensorFlow's names. A layer without a name opens the variable scope
// of its kind, made unique ("conv2d", "conv2d_1"); a named layer opens exactly that scope, and shares its
// variables where `reuse` says so. Naming::kContrib takes the names of contrib.layers and slim (weights,
// biases, BatchNorm). Images are NHWC unless data_format is NCHW. The builder's thread.
//
//   Tensor h = layers::conv2d(x, 32, {5, 5}, {.activation = layers::kRelu});
//   h = layers::max_pooling2d(h, {2, 2}, {2, 2});
//   Tensor logits = layers::dense(layers::flatten(h), 10);

#include <array>
#include <functional>
#include <optional>
#include <string>

#include "dsl/tensor.h"
#include "dsl/variable.h"

namespace sluice::dsl::layers {

using Activation = std::function<Tensor(const Tensor&, Loc)>;
Tensor relu_activation(const Tensor& x, Loc loc);
Tensor tanh_activation(const Tensor& x, Loc loc);
Tensor sigmoid_activation(const Tensor& x, Loc loc);
inline constexpr auto kRelu = relu_activation;
inline constexpr auto kTanh = tanh_activation;
inline constexpr auto kSigmoid = sigmoid_activation;

/// kLayers: kernel, bias, batch_normalization. kContrib: weights, biases, BatchNorm, Conv, fully_connected.
enum class Naming { kLayers, kContrib };

struct Conv2DOptions {
  std::array<int64_t, 2> strides{1, 1}, dilation_rate{1, 1};
  std::string padding = "VALID";
  std::string data_format = "NHWC";
  Activation activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = {}, bias_initializer = {};  // default: the scope's or glorot; zeros
  Regularizer kernel_regularizer = {}, bias_regularizer = {};
  bool trainable = true;
  std::string name = {};
  Reuse reuse = Reuse::kInherit;
  Naming naming = Naming::kLayers;
};
/// Variables kernel [height, width, in, filters] and bias [filters]; the channel count must be known.
Tensor conv2d(const Operand& inputs, int64_t filters, std::array<int64_t, 2> kernel_size,
              const Conv2DOptions& o = {}, Loc loc = Loc::current());

struct DenseOptions {
  Activation activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = {}, bias_initializer = {};
  Regularizer kernel_regularizer = {}, bias_regularizer = {};
  bool trainable = true;
  std::string name = {};
  Reuse reuse = Reuse::kInherit;
  Naming naming = Naming::kLayers;
};
/// Variables kernel [in, units] and bias [units]; acts on the last dimension, whose size must be known.
Tensor dense(const Operand& inputs, int64_t units, const DenseOptions& o = {}, Loc loc = Loc::current());

struct BatchNormOptions {
  bool training = false;
  double momentum = 0.99, epsilon = 1e-3;
  bool center = true, scale = true;  // beta, gamma
  Initializer beta_initializer = {}, gamma_initializer = {};
  Initializer moving_mean_initializer = {}, moving_variance_initializer = {};
  std::string data_format = "NHWC";
  bool trainable = true;
  /// Where the two moving-average updates go; nullopt: they run before the output is used.
  std::optional<std::string> updates_collection = std::string(graph::keys::kUpdateOps);
  std::string name = {};
  Reuse reuse = Reuse::kInherit;
  Naming naming = Naming::kLayers;
};
/// Variables gamma, beta, moving_mean, moving_variance, one value a channel. Rank 4 is fused and keeps the
/// unbiased variance (TensorFlow's rule for its fused kernel); other ranks keep the biased one.
Tensor batch_normalization(const Operand& inputs, const BatchNormOptions& o = {}, Loc loc = Loc::current());

struct Pooling2DOptions {
  std::string padding = "VALID";
  std::string data_format = "NHWC";
  std::string name = {};
};
Tensor max_pooling2d(const Operand& inputs, std::array<int64_t, 2> pool_size, std::array<int64_t, 2> strides,
                     const Pooling2DOptions& o = {}, Loc loc = Loc::current());
Tensor average_pooling2d(const Operand& inputs, std::array<int64_t, 2> pool_size,
                         std::array<int64_t, 2> strides, const Pooling2DOptions& o = {},
                         Loc loc = Loc::current());

struct DropoutLayerOptions {
  bool training = false;
  std::optional<int64_t> seed = {};
  std::string name = {};
};
/// dsl::dropout while training, else the input.
Tensor dropout(const Operand& inputs, double rate = 0.5, const DropoutLayerOptions& o = {},
               Loc loc = Loc::current());
/// [batch, everything else].
Tensor flatten(const Operand& inputs, const std::string& name = {}, Loc loc = Loc::current());

}  // namespace sluice::dsl::layers
