// "A simple working training script".
#include "tests/dsl/train/scenarios/scenario.h"

using namespace scenario;

int main() {
  Folder my_log_dir("simple");
  Graph g;
  g.set_seed(0);
  auto [images, labels] = load_data(g);
  losses::log_loss(labels, my_model(images));
  GradientDescentOptimizer optimizer(1.0);
  Tensor train_op = create_train_op(losses::get_total_loss(g), optimizer);

  TrainResult result = train::train(train_op, my_log_dir, {.hooks = stop_after(300)});

  CHECK_THAT(result.loss && *result.loss < 0.015);
  CHECK_THAT(latest_checkpoint(my_log_dir) == my_log_dir / "model.ckpt-300");
  return 0;
}
