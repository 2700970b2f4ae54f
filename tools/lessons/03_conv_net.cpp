// Lesson 3: a convolutional network with batch norm.
//
// Batch norm keeps moving averages that training must update and evaluation must use. What you see here:
//   * one function builds the network; the second call, for evaluation, shares the variables (reuse);
//   * the updates are ops in the UPDATE_OPS collection, and create_train_op runs them with every step, so
//   that
//     evaluation never finds stale averages;
//   * train() is the whole loop: it initialises, runs, counts steps, and stops when a hook says so.

#include <iostream>
#include <random>

#include "dsl/dsl.h"
#include "dsl/train/loop.h"
#include "tools/lessons/lesson.h"

using namespace sluice::dsl;

namespace {

Tensor network(Graph& g, const Tensor& images, bool training) {
  VariableScope scope(g, "net", {.reuse = training ? Reuse::kFalse : Reuse::kTrue});
  Tensor h = layers::conv2d(images, 8, {3, 3}, {.padding = "SAME", .use_bias = false, .name = "conv"});
  h = layers::batch_normalization(h, {.training = training, .momentum = 0.9, .name = "norm"});
  h = layers::max_pooling2d(relu(h), {2, 2}, {2, 2});
  return layers::dense(layers::flatten(h), 2, {.name = "logits"});
}

// Stripes: class 0 across, class 1 down.
std::pair<Array, Array> stripes(int count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> pixels;
  std::vector<int64_t> labels;
  for (int n = 0; n < count; ++n) {
    const bool down = random() % 2 == 1;
    const unsigned phase = random() % 4;
    for (unsigned i = 0; i < 8; ++i)
      for (unsigned j = 0; j < 8; ++j)
        pixels.push_back((((down ? j : i) + phase) % 4 < 2 ? 1.0f : 0.0f) +
                         static_cast<float>(random() % 100) / 100.0f);
    labels.push_back(down);
  }
  return {Array::from<float>({count, 8, 8, 1}, pixels), Array::from<int64_t>({count}, labels)};
}

}  // namespace

int main() {
  Graph g;
  g.set_seed(1);
  auto [images, labels] = stripes(64, 1);
  Tensor x = constant(g, images.to_literal(), "images"), y = constant(g, labels.to_literal(), "labels");
  losses::sparse_softmax_cross_entropy(y, network(g, x, true));
  train::MomentumOptimizer optimizer(0.1, 0.9);
  Tensor train_op = train::create_train_op(losses::get_total_loss(g), optimizer);

  auto [test_images, test_labels] = stripes(200, 2);
  Tensor test_x = constant(g, test_images.to_literal(), "test_images");
  Tensor test_y = constant(g, test_labels.to_literal(), "test_labels");
  Tensor accuracy = metrics::accuracy(test_y, network(g, test_x, false));

  // FinalOpsHook fetches once, at the end of training.
  auto stop = std::make_shared<train::StopAtStepHook>(train::StopAtStepOptions{.last_step = 60});
  auto final = std::make_shared<train::FinalOpsHook>(std::vector<Output>{accuracy});
  train::TrainResult r = train::train(
      train_op, "",
      {.hooks = {stop, final}, .save_checkpoint_secs = std::nullopt, .save_summaries_steps = std::nullopt});
  const float share = final->final_ops_values()[0].item<float>();
  std::cout << r.steps << " steps, loss " << *r.loss << ", accuracy on new images " << share << '\n';
  EXPECT_THAT_HERE(r.steps == 60);
  EXPECT_THAT_HERE(share > 0.95f);
  return 0;
}
