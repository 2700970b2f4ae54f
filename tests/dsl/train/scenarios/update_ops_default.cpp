// "By default, create_train_op includes all update ops that are part of the UPDATE_OPS collection".
#include "tests/dsl/train/scenarios/scenario.h"

using namespace scenario;

int main() {
  Folder logs("update_ops");
  Graph g;
  auto [images, labels] = load_data(g);
  losses::log_loss(labels, my_batch_norm_model(images));
  GradientDescentOptimizer optimizer(1.0);
  Tensor train_op = create_train_op(losses::get_total_loss(g), optimizer);

  train::train(train_op, logs,
               {.hooks = stop_after(10)});  // with decay 0.1 the averages are the batch's then

  std::vector<float> mean(4), variance(4), x = image_values();
  for (size_t i = 0; i < 64; ++i) mean[i % 4] += x[i] / 16;
  for (size_t i = 0; i < 64; ++i) variance[i % 4] += (x[i] - mean[i % 4]) * (x[i] - mean[i % 4]) / 16;
  CHECK_THAT(near(saved(logs / "model.ckpt-10", "BatchNorm/moving_mean"), mean, 1e-5f));
  CHECK_THAT(near(saved(logs / "model.ckpt-10", "BatchNorm/moving_variance"), variance, 1e-5f));
  return 0;
}
