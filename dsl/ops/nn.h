#pragma once
// Neural-network ops: TensorFlow's tf.nn functions, names and argument order. Images are NHWC unless
// data_format says NCHW; strides and windows are given for height and width. Errors are InvalidArgument
// naming node and line. The builder's thread.

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "dsl/ops/math.h"
#include "dsl/tensor.h"

namespace sluice::dsl {

struct Conv2DOptions {
  std::array<int64_t, 2> strides{1, 1}, dilations{1, 1};
  std::string padding = "SAME";                 // "SAME", "VALID" or "EXPLICIT"
  std::vector<int64_t> explicit_paddings = {};  // 8 numbers in data-format order, with "EXPLICIT"
  std::string data_format = "NHWC";
  std::string name = {};
};
/// filter is [height, width, in, out].
Tensor conv2d(const Operand& input, const Operand& filter, const Conv2DOptions& o = {},
              Loc loc = Loc::current());
/// filter is [height, width, in, multiplier]; named "depthwise".
Tensor depthwise_conv2d(const Operand& input, const Operand& filter, const Conv2DOptions& o = {},
                        Loc loc = Loc::current());

struct PoolOptions {
  std::string padding = "VALID";
  std::string data_format = "NHWC";
  std::string name = {};
};
/// The gradient goes to the first maximum of a window, in row-major order.
Tensor max_pool(const Operand& value, std::array<int64_t, 2> ksize, std::array<int64_t, 2> strides,
                const PoolOptions& o = {}, Loc loc = Loc::current());
/// Divides by the cells inside the image.
Tensor avg_pool(const Operand& value, std::array<int64_t, 2> ksize, std::array<int64_t, 2> strides,
                const PoolOptions& o = {}, Loc loc = Loc::current());

Tensor bias_add(const Operand& value, const Operand& bias, const std::string& data_format = "NHWC",
                const std::string& name = {}, Loc loc = Loc::current());

struct FusedBatchNormOptions {
  std::optional<Operand> mean = {}, variance = {};  // required when not training
  double epsilon = 1e-3;
  bool is_training = true;
  std::string data_format = "NHWC";
  std::string name = {};
};
struct BatchNormOutputs {
  Tensor y, batch_mean, batch_variance;  // the variance is the unbiased one
};
BatchNormOutputs fused_batch_norm(const Operand& x, const Operand& scale, const Operand& offset,
                                  const FusedBatchNormOptions& o = {}, Loc loc = Loc::current());

struct Moments {
  Tensor mean, variance;
};
/// Mean and (biased) variance over `axes`, which are dropped unless keepdims.
Moments moments(const Operand& x, const std::vector<int64_t>& axes, bool keepdims = false,
                const std::string& name = {}, Loc loc = Loc::current());
/// (x - mean)·rsqrt(variance + epsilon)·scale + offset, not fused.
Tensor batch_normalization(const Operand& x, const Operand& mean, const Operand& variance,
                           const Operand& offset, const Operand& scale, double variance_epsilon,
                           const std::string& name = {}, Loc loc = Loc::current());

struct LrnOptions {
  int depth_radius = 5;
  double bias = 1, alpha = 1, beta = 0.5;
  std::string name = {};
};
Tensor local_response_normalization(const Operand& input, const LrnOptions& o = {}, Loc loc = Loc::current());

Tensor relu(const Operand& features, const std::string& name = {}, Loc loc = Loc::current());
Tensor relu6(const Operand& features, const std::string& name = {}, Loc loc = Loc::current());
Tensor elu(const Operand& features, const std::string& name = {}, Loc loc = Loc::current());
Tensor softplus(const Operand& features, const std::string& name = {}, Loc loc = Loc::current());
/// Over the last axis.
Tensor softmax(const Operand& logits, const std::string& name = {}, Loc loc = Loc::current());
Tensor log_softmax(const Operand& logits, const std::string& name = {}, Loc loc = Loc::current());

/// One loss a row; labels are int32 or int64 class numbers in [0, classes).
Tensor sparse_softmax_cross_entropy_with_logits(const Operand& labels, const Operand& logits,
                                                const std::string& name = {}, Loc loc = Loc::current());
/// One loss a row; labels are probabilities and receive a gradient (stop it where they should not).
Tensor softmax_cross_entropy_with_logits(const Operand& labels, const Operand& logits,
                                         const std::string& name = {}, Loc loc = Loc::current());
/// max(x, 0) - x·z + log(1 + exp(-|x|)), element by element.
Tensor sigmoid_cross_entropy_with_logits(const Operand& labels, const Operand& logits,
                                         const std::string& name = {}, Loc loc = Loc::current());
/// sum(t²) / 2.
Tensor l2_loss(const Operand& t, const std::string& name = {}, Loc loc = Loc::current());
/// One bool a row: the target is among the k highest predictions.
Tensor in_top_k(const Operand& predictions, const Operand& targets, int k, const std::string& name = {},
                Loc loc = Loc::current());
struct TopK {
  Tensor values, indices;
};
TopK top_k(const Operand& input, int k = 1, bool sorted = true, const std::string& name = {},
           Loc loc = Loc::current());

struct DropoutOptions {
  std::optional<int64_t> seed = {};
  std::vector<int64_t> noise_shape = {};  // empty: x's shape
  std::string name = {};
};
/// Keeps an element with probability 1 - rate and scales it by 1/(1 - rate); rate in [0, 1), 0 is x itself.
Tensor dropout(const Operand& x, double rate, const DropoutOptions& o = {}, Loc loc = Loc::current());

}  // namespace sluice::dsl
