// Networks without branches: trivial, LeNet, AlexNet, VGG (model-zoo §4.1–4.3, 4.6).

#include <array>

#include "dsl/models/registry.h"

namespace sluice::dsl::models {

namespace {

// Five groups of 3×3 convolutions, a 2×2 pool after each.
void build_vgg(ConvNetBuilder& net, const std::array<int, 5>& repetitions) {
  constexpr std::array<int, 5> kWidths = {64, 128, 256, 512, 512};
  for (size_t group = 0; group < kWidths.size(); ++group) {
    for (int i = 0; i < repetitions[group]; ++i) net.conv(kWidths[group], 3, 3);
    net.mpool(2, 2);
  }
  net.flatten();
  net.affine(4096);
  net.dropout();
  net.affine(4096);
  net.dropout();
}

}  // namespace

void build_trivial(ConvNetBuilder& net) {
  net.flatten();
  net.affine(1);
  net.affine(4096);
}

void build_lenet(ConvNetBuilder& net) {
  net.conv(32, 5, 5);
  net.mpool(2, 2);
  net.conv(64, 5, 5);
  net.mpool(2, 2);
  net.flatten();
  net.affine(512);
}

void build_alexnet(ConvNetBuilder& net) {
  net.conv(64, 11, 11, {.stride = 4, .padding = Padding::kValid});
  net.mpool(3, 3);
  net.conv(192, 5, 5);
  net.mpool(3, 3);
  net.conv(384, 3, 3);
  net.conv(384, 3, 3);
  net.conv(256, 3, 3);
  net.mpool(3, 3);
  net.flatten();
  net.affine(4096);
  net.dropout();
  net.affine(4096);
  net.dropout();
}

void build_vgg11(ConvNetBuilder& net) { build_vgg(net, {1, 1, 2, 2, 2}); }
void build_vgg16(ConvNetBuilder& net) { build_vgg(net, {2, 2, 3, 3, 3}); }
void build_vgg19(ConvNetBuilder& net) { build_vgg(net, {2, 2, 4, 4, 4}); }

}  // namespace sluice::dsl::models
