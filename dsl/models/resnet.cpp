// Residual networks for ImageNet, versions 1, 1.5 and 2 (model-zoo §4.10). The versions differ in where batch
// norm and ReLU stand (2 puts them before the convolutions) and in which convolution carries the stride (1.5:
// the 3×3).

#include <array>

#include "dsl/models/registry.h"
#include "dsl/ops/math.h"
#include "dsl/ops/nn.h"
#include "dsl/variable.h"

namespace sluice::dsl::models {

namespace {

enum class Version { kV1, kV15, kV2 };

constexpr BatchNormConfig kBatchNorm{.decay = 0.9, .epsilon = 1e-5, .scale = true};
// A convolution of version 2 that leaves normalisation to the next unit.
constexpr ConvOptions bare(int stride) {
  return {.stride = stride, .batch_norm = false, .relu = false, .bias = std::nullopt};
}

Tensor same_depth_shortcut(ConvNetBuilder& net, const Tensor& input, int depth, int stride) {
  return stride == 1 ? input : net.apool_of(input, depth, 1, 1, {.stride = stride});
}

void unit_v1(ConvNetBuilder& net, int depth, int bottleneck, int stride, Version version) {
  const Tensor input = net.top();
  const int width = net.width();
  VariableScope scope(net.graph(), net.next_name(version == Version::kV15 ? "resnet_v1.5" : "resnet_v1"));
  const Tensor shortcut = depth == width
                              ? same_depth_shortcut(net, input, width, stride)
                              : net.conv_of(input, width, depth, 1, 1, {.stride = stride, .relu = false});
  const int stride_a = version == Version::kV15 ? 1 : stride,
            stride_b = version == Version::kV15 ? stride : 1;
  net.conv_of(input, width, bottleneck, 1, 1, {.stride = stride_a});
  net.conv(bottleneck, 3, 3, {.stride = stride_b, .padding = Padding::kSameResnet});
  const Tensor residual = net.conv(depth, 1, 1, {.relu = false});
  net.set_top(relu(add(shortcut, residual)), depth);
}

void unit_v2(ConvNetBuilder& net, int depth, int bottleneck, int stride) {
  const Tensor input = net.top();
  const int width = net.width();
  const Tensor normalized = net.batch_norm();
  VariableScope scope(net.graph(), net.next_name("resnet_v2"));
  const Tensor active = relu(normalized);
  const Tensor shortcut = depth == width ? same_depth_shortcut(net, input, width, stride)
                                         : net.conv_of(active, width, depth, 1, 1, bare(stride));
  net.conv_of(active, width, bottleneck, 1, 1, {.stride = stride});
  net.conv(bottleneck, 3, 3, {.padding = Padding::kSameResnet});
  const Tensor residual = net.conv(depth, 1, 1, bare(1));
  net.set_top(add(shortcut, residual), depth);
}

void build_resnet(ConvNetBuilder& net, Version version, const std::array<int, 4>& units) {
  net.use_batch_norm(kBatchNorm);
  net.conv(64, 7, 7, {.stride = 2, .padding = Padding::kSameResnet});
  net.mpool(3, 3, {.stride = 2, .padding = Padding::kSame});
  for (size_t stage = 0; stage < units.size(); ++stage) {
    const int bottleneck = 64 << stage, depth = 4 * bottleneck;
    for (int i = 0; i < units[stage]; ++i) {
      const int stride = stage > 0 && i == 0 ? 2 : 1;
      if (version == Version::kV2) {
        unit_v2(net, depth, bottleneck, stride);
      } else {
        unit_v1(net, depth, bottleneck, stride, version);
      }
    }
  }
  if (version == Version::kV2) net.set_top(relu(net.batch_norm()), net.width());
  net.spatial_mean();
}

constexpr std::array<int, 4> kUnits50 = {3, 4, 6, 3}, kUnits101 = {3, 4, 23, 3}, kUnits152 = {3, 8, 36, 3};

}  // namespace

void build_resnet50(ConvNetBuilder& net) { build_resnet(net, Version::kV1, kUnits50); }
void build_resnet50_v1_5(ConvNetBuilder& net) { build_resnet(net, Version::kV15, kUnits50); }
void build_resnet50_v2(ConvNetBuilder& net) { build_resnet(net, Version::kV2, kUnits50); }
void build_resnet101(ConvNetBuilder& net) { build_resnet(net, Version::kV1, kUnits101); }
void build_resnet101_v2(ConvNetBuilder& net) { build_resnet(net, Version::kV2, kUnits101); }
void build_resnet152(ConvNetBuilder& net) { build_resnet(net, Version::kV1, kUnits152); }
void build_resnet152_v2(ConvNetBuilder& net) { build_resnet(net, Version::kV2, kUnits152); }

}  // namespace sluice::dsl::models
