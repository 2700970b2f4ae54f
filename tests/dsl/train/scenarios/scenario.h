#pragma once
// Data and model of the scenarios in TensorFlow's docstring of the training library (graph-and-training
// §5.4): 16 rows of 4 numbers, one of them 1, whose place says the class; a logistic classifier over them.

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "dsl/dsl.h"
#include "dsl/train/loop.h"

#define CHECK_THAT(cond)                                                                    \
  do {                                                                                      \
    if (!(cond)) {                                                                          \
      std::fprintf(stderr, "%s:%d: it does not hold that %s\n", __FILE__, __LINE__, #cond); \
      return 1;                                                                             \
    }                                                                                       \
  } while (0)

namespace scenario {

using namespace sluice::dsl;
using namespace sluice::dsl::train;
namespace keys = sluice::graph::keys;

inline std::vector<float> image_values() {
  std::vector<float> v(64, 0.0f);
  for (int i = 0; i < 16; ++i) v[static_cast<size_t>(4 * i + 2 * ((i * 7 / 3) % 2) + (i * 5 / 4) % 2)] = 1;
  return v;
}

/// images, labels
inline std::pair<Tensor, Tensor> load_data(Graph& g) {
  std::vector<float> labels(16);
  for (int i = 0; i < 16; ++i) labels[static_cast<size_t>(i)] = static_cast<float>((i * 7 / 3) % 2);
  return {constant(g, image_values(), {16, 4}), constant(g, labels, {16, 1})};
}

/// Predictions; the layer's variables are `<scope>/weights` and `<scope>/biases`.
inline Tensor my_model(const Tensor& images, const std::string& scope = "fully_connected") {
  return layers::dense(images, 1,
                       {.activation = layers::kSigmoid, .name = scope, .naming = layers::Naming::kContrib});
}

inline Tensor my_batch_norm_model(const Tensor& images) {
  return my_model(layers::batch_normalization(
      images, {.training = true, .momentum = 0.1, .scale = false, .naming = layers::Naming::kContrib}));
}

inline Hooks stop_after(int64_t steps) {
  return {std::make_shared<StopAtStepHook>(StopAtStepOptions{.num_steps = steps})};
}

/// A folder of this program's own, empty, gone at its end.
class Folder {
 public:
  explicit Folder(const std::string& name)
      : path_((std::filesystem::temp_directory_path() /
               ("sluice_scenario_" + name + std::to_string(::getpid())))
                  .string()) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~Folder() {
    FileWriterCache::clear();
    std::filesystem::remove_all(path_);
  }
  operator const std::string&() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// A variable of a checkpoint, by its name in there.
inline std::vector<float> saved(const std::string& checkpoint, const std::string& name) {
  auto tensors = sluice::runtime::io::restore_tensors(checkpoint, {name}, {}, {DType::kFloat});
  auto v = tensors[0].as<float>();
  return {v.begin(), v.end()};
}

inline bool near(const std::vector<float>& a, const std::vector<float>& b, float tolerance) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (std::fabs(a[i] - b[i]) > tolerance) return false;
  return true;
}

}  // namespace scenario
