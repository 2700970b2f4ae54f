// "Force create_train_op to NOT use ANY update_ops": the moving averages stay as they began.
#include "tests/dsl/train/scenarios/scenario.h"

using namespace scenario;

int main() {
  Folder logs("no_update_ops");
  Graph g;
  auto [images, labels] = load_data(g);
  losses::log_loss(labels, my_batch_norm_model(images));
  GradientDescentOptimizer optimizer(1.0);
  Tensor train_op =
      create_train_op(losses::get_total_loss(g), optimizer, {.update_ops = std::vector<Node*>{}});

  train::train(train_op, logs, {.hooks = stop_after(10)});

  CHECK_THAT(near(saved(logs / "model.ckpt-10", "BatchNorm/moving_mean"), {0, 0, 0, 0}, 0));
  CHECK_THAT(near(saved(logs / "model.ckpt-10", "BatchNorm/moving_variance"), {1, 1, 1, 1}, 0));
  return 0;
}
