#include "dsl/models/registry.h"

namespace sluice::dsl::models {

namespace {

constexpr ModelSpec kModels[] = {
    {"trivial", "trivial", 227, 32, 0.005, false, build_trivial},
    {"lenet", "lenet5", 28, 32, 0.005, false, build_lenet},
    {"alexnet", "alexnet", 227, 512, 0.005, false, build_alexnet},
    {"vgg11", "vgg11", 224, 64, 0.005, false, build_vgg11},
    {"vgg16", "vgg16", 224, 64, 0.005, false, build_vgg16},
    {"vgg19", "vgg19", 224, 64, 0.005, false, build_vgg19},
    {"inception3", "inception3", 299, 32, 0.005, false, build_inception3},
    {"resnet50", "resnet50", 224, 64, 0.128, true, build_resnet50},
    {"resnet50_v1.5", "resnet50_v1.5", 224, 64, 0.128, true, build_resnet50_v1_5},
    {"resnet50_v2", "resnet50_v2", 224, 64, 0.128, true, build_resnet50_v2},
    {"resnet101", "resnet101", 224, 32, 0.128, true, build_resnet101},
    {"resnet101_v2", "resnet101_v2", 224, 32, 0.128, true, build_resnet101_v2},
    {"resnet152", "resnet152", 224, 32, 0.128, true, build_resnet152},
    {"resnet152_v2", "resnet152_v2", 224, 32, 0.128, true, build_resnet152_v2},
};

}  // namespace

double LearningSchedule::at(int64_t step) const {
  if (step < warmup_steps) return rates[0] * static_cast<double>(step) / static_cast<double>(warmup_steps);
  size_t i = 0;
  while (i < boundaries.size() && step > boundaries[i]) ++i;
  return rates[i];
}

LearningSchedule ModelSpec::schedule(int64_t examples, int64_t batch) const {
  if (!stepped_rate) return {{}, {learning_rate}, 0};
  const double batches = static_cast<double>(examples) / static_cast<double>(batch);
  const double base = learning_rate * static_cast<double>(batch) / 256;
  LearningSchedule s;
  for (int epoch : {30, 60, 80, 90}) s.boundaries.push_back(static_cast<int64_t>(batches * epoch));
  s.rates = {base, base * 0.1, base * 0.01, base * 0.001, base * 0.0001};
  s.warmup_steps = static_cast<int64_t>(batches * 5);
  return s;
}

std::span<const ModelSpec> all_models() { return kModels; }

const ModelSpec* find_model(std::string_view name) {
  for (const ModelSpec& m : kModels)
    if (m.name == name) return &m;
  return nullptr;
}

}  // namespace sluice::dsl::models
