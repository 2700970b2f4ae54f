#pragma once
// The networks by name: what each prints as, its input size, default batch, learning rate, and the function
// that stacks its layers (model-zoo §1.1, §4). A model is one function over ConvNetBuilder plus one line in
// registry.cpp. Immutable; any thread.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "dsl/models/builder.h"

namespace sluice::dsl::models {

/// A rate by global step: rates[i] while step ≤ boundaries[i]; over the first warmup_steps it rises linearly
/// from 0 to rates[0].
struct LearningSchedule {
  std::vector<int64_t> boundaries;
  std::vector<double> rates;
  int64_t warmup_steps = 0;
  /// The rate that step `global_step` uses.
  double at(int64_t global_step) const;
};

struct ModelSpec {
  std::string_view name, printed_name;
  int image_size = 0;
  int64_t batch_size = 32;
  double learning_rate = 0.005;
  bool stepped_rate = false;  // ResNet's schedule over the epochs instead
  /// Stacks all layers but the classifier, which the caller adds.
  void (*build)(ConvNetBuilder& net) = nullptr;

  /// The model's own rate for an epoch of `examples` in batches of `batch`.
  LearningSchedule schedule(int64_t examples, int64_t batch) const;
};

std::span<const ModelSpec> all_models();
/// Null when there is none of that name.
const ModelSpec* find_model(std::string_view name);

// The layer stacks.
void build_trivial(ConvNetBuilder& net);
void build_lenet(ConvNetBuilder& net);
void build_alexnet(ConvNetBuilder& net);
void build_vgg11(ConvNetBuilder& net);
void build_vgg16(ConvNetBuilder& net);
void build_vgg19(ConvNetBuilder& net);
void build_inception3(ConvNetBuilder& net);
void build_resnet50(ConvNetBuilder& net);
void build_resnet50_v1_5(ConvNetBuilder& net);
void build_resnet50_v2(ConvNetBuilder& net);
void build_resnet101(ConvNetBuilder& net);
void build_resnet101_v2(ConvNetBuilder& net);
void build_resnet152(ConvNetBuilder& net);
void build_resnet152_v2(ConvNetBuilder& net);

}  // namespace sluice::dsl::models
