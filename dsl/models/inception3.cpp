// Inception v3 without its auxiliary head (model-zoo §4.8). Modules are tables: columns of layers, built left
// to right, concatenated on the channels.

#include "dsl/models/registry.h"

namespace sluice::dsl::models {

namespace {

using Column = std::vector<ModuleLayer>;

ModuleLayer conv(int depth, int kh, int kw) {
  return {.kind = ModuleLayer::Kind::kConv, .depth = depth, .kh = kh, .kw = kw};
}
ModuleLayer conv_down(int depth) {
  return {.kind = ModuleLayer::Kind::kConv,
          .depth = depth,
          .kh = 3,
          .kw = 3,
          .stride = 2,
          .padding = Padding::kValid};
}
ModuleLayer avg() { return {.kind = ModuleLayer::Kind::kAveragePool, .kh = 3, .kw = 3}; }
ModuleLayer max() { return {.kind = ModuleLayer::Kind::kMaxPool, .kh = 3, .kw = 3}; }
ModuleLayer max_down() {
  return {.kind = ModuleLayer::Kind::kMaxPool, .kh = 3, .kw = 3, .stride = 2, .padding = Padding::kValid};
}
ModuleLayer share() { return {.kind = ModuleLayer::Kind::kShare}; }

void module_a(ConvNetBuilder& net, int pooled) {
  net.inception_module("incept_v3_a", {Column{conv(64, 1, 1)}, Column{conv(48, 1, 1), conv(64, 5, 5)},
                                       Column{conv(64, 1, 1), conv(96, 3, 3), conv(96, 3, 3)},
                                       Column{avg(), conv(pooled, 1, 1)}});
}

void module_b(ConvNetBuilder& net) {
  net.inception_module(
      "incept_v3_b",
      {Column{conv_down(384)}, Column{conv(64, 1, 1), conv(96, 3, 3), conv_down(96)}, Column{max_down()}});
}

void module_c(ConvNetBuilder& net, int m) {
  net.inception_module("incept_v3_c",
                       {Column{conv(192, 1, 1)}, Column{conv(m, 1, 1), conv(m, 1, 7), conv(192, 7, 1)},
                        Column{conv(m, 1, 1), conv(m, 7, 1), conv(m, 1, 7), conv(m, 7, 1), conv(192, 1, 7)},
                        Column{avg(), conv(192, 1, 1)}});
}

void module_d(ConvNetBuilder& net) {
  net.inception_module(
      "incept_v3_d",
      {Column{conv(192, 1, 1), conv_down(320)},
       Column{conv(192, 1, 1), conv(192, 1, 7), conv(192, 7, 1), conv_down(192)}, Column{max_down()}});
}

void module_e(ConvNetBuilder& net, ModuleLayer pool) {
  net.inception_module(
      "incept_v3_e",
      {Column{conv(320, 1, 1)}, Column{conv(384, 1, 1), conv(384, 1, 3)}, Column{share(), conv(384, 3, 1)},
       Column{conv(448, 1, 1), conv(384, 3, 3), conv(384, 1, 3)}, Column{share(), share(), conv(384, 3, 1)},
       Column{pool, conv(192, 1, 1)}});
}

}  // namespace

void build_inception3(ConvNetBuilder& net) {
  net.use_batch_norm({.decay = 0.999, .epsilon = 0.001, .scale = false});
  net.conv(32, 3, 3, {.stride = 2, .padding = Padding::kValid});
  net.conv(32, 3, 3, {.padding = Padding::kValid});
  net.conv(64, 3, 3);
  net.mpool(3, 3);
  net.conv(80, 1, 1, {.padding = Padding::kValid});
  net.conv(192, 3, 3, {.padding = Padding::kValid});
  net.mpool(3, 3);
  for (int pooled : {32, 64, 64}) module_a(net, pooled);
  module_b(net);
  for (int m : {128, 160, 160, 192}) module_c(net, m);
  module_d(net);
  module_e(net, avg());
  module_e(net, max());
  net.apool(8, 8);
  net.flatten();
}

}  // namespace sluice::dsl::models
