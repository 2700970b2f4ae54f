#pragma once
// ConvNetBuilder stacks the layers of a convolutional network: each call adds one layer on top of the last,
// makes its variables under tf_cnn_benchmarks' names ("v/cg/conv0/conv2d/kernel") and records its output
// shape. Layer counters run over the whole network. It holds tensors of a graph that the caller owns; one
// thread, the graph's builder.
//
//   ConvNetBuilder net(g, images, {.training = true});
//   net.conv(32, 5, 5);
//   net.mpool(2, 2);
//   net.flatten();
//   Tensor logits = net.affine(10, {.relu = false});

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dsl/tensor.h"
#include "graph/scopes.h"

namespace sluice::dsl::models {

enum class DataFormat { kNhwc, kNchw };

/// kSameResnet: SAME at stride 1; else zeros (k−1)/2 before and the rest after, then VALID.
enum class Padding { kSame, kValid, kSameResnet };

struct BatchNormConfig {
  double decay = 0.999, epsilon = 0.001;
  bool scale = false;  // with a gamma
};

struct ConvOptions {
  int stride = 1;
  Padding padding = Padding::kSame;
  std::optional<bool> batch_norm = {};  // none: as use_batch_norm said
  bool relu = true;
  std::optional<double> bias = 0.0;   // initial value; none: no bias. Without batch norm only.
  std::optional<double> stddev = {};  // of the kernel; none: fan-in scaling
};

struct PoolingOptions {
  int stride = 2;
  Padding padding = Padding::kValid;
};

struct AffineOptions {
  bool relu = true;
  double bias = 0.0;
  std::optional<double> stddev = {};  // none: sqrt(2/in) with ReLU, sqrt(1/in) without
};

/// One layer of an inception module's column.
struct ModuleLayer {
  enum class Kind { kConv, kMaxPool, kAveragePool, kShare };
  Kind kind = Kind::kConv;
  int depth = 0, kh = 1, kw = 1, stride = 1;
  Padding padding = Padding::kSame;
};

/// A layer as built, for tests and tables; `dims` without the batch, in NHWC order.
struct LayerRecord {
  std::string name;
  std::vector<int64_t> dims;
};

struct NetOptions {
  bool training = true;  // batch statistics and dropout
  DataFormat format = DataFormat::kNhwc;
};

class ConvNetBuilder {
 public:
  /// `images` are NHWC [batch, height, width, channels]; for NCHW they are transposed here, once.
  ConvNetBuilder(Graph& graph, const Tensor& images, const NetOptions& options);

  const Tensor& top() const { return top_; }
  /// Channels (or features) of the top layer.
  int width() const { return width_; }
  void set_top(const Tensor& top, int width);
  Graph& graph() const { return graph_; }
  bool training() const { return options_.training; }
  /// "conv0", "conv1", …: the next name of a kind, counted over the whole network.
  std::string next_name(const std::string& kind);

  /// From here on convolutions normalise with this configuration and have no bias.
  void use_batch_norm(const BatchNormConfig& config);

  // Layers on the top layer; each returns its output, which becomes the top.
  Tensor conv(int depth, int kh, int kw, const ConvOptions& o = {});
  Tensor mpool(int kh, int kw, const PoolingOptions& o = {});
  Tensor apool(int kh, int kw, const PoolingOptions& o = {});
  Tensor affine(int width, const AffineOptions& o = {});
  /// Active in training only.
  Tensor dropout(double keep = 0.5);
  /// Stand-alone, with the defaults of BatchNormConfig.
  Tensor batch_norm();
  Tensor spatial_mean();
  /// [batch, height·width·channels] in NHWC order, whatever the format.
  Tensor flatten();
  Tensor inception_module(const std::string& name, const std::vector<std::vector<ModuleLayer>>& columns);

  // The same on another input of `width` channels.
  Tensor conv_of(const Tensor& input, int width, int depth, int kh, int kw, const ConvOptions& o = {});
  Tensor apool_of(const Tensor& input, int width, int kh, int kw, const PoolingOptions& o = {});

  const std::vector<LayerRecord>& layers() const { return layers_; }

 private:
  Tensor pool(bool maximum, const Tensor& input, int width, int kh, int kw, const PoolingOptions& o);
  Tensor normalize(const Tensor& input, int width, const BatchNormConfig& config);
  Tensor record(const std::string& name, const Tensor& output, int width);
  Tensor module_layer(const ModuleLayer& layer, const Tensor& input, int width);
  /// In a seeded graph each random op has a seed of its own, by its place among them: the same variables
  /// start with the same values whatever else the graph holds.
  std::optional<int64_t> next_seed();
  std::string format() const { return options_.format == DataFormat::kNhwc ? "NHWC" : "NCHW"; }

  Graph& graph_;
  NetOptions options_;
  Tensor top_;
  int width_ = 0;
  std::optional<BatchNormConfig> batch_norm_config_;
  std::map<std::string, int> counts_;
  int64_t seeds_ = 0;
  std::vector<LayerRecord> layers_;
};

}  // namespace sluice::dsl::models
