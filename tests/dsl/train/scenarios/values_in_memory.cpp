// "Initializing model variables from values in memory".
#include "tests/dsl/train/scenarios/scenario.h"

using namespace scenario;

int main() {
  Folder logs("memory");
  Graph g;
  auto [images, labels] = load_data(g);
  losses::log_loss(labels, my_model(images));
  GradientDescentOptimizer optimizer(1e-9);
  Tensor train_op = create_train_op(losses::get_total_loss(g), optimizer);
  Array weights = Array::from<float>({4, 1}, {-9, -9, 9, 9}), biases = Array::from<float>({1}, {0});

  auto init_fn =
      assign_from_values_fn(g, {{"fully_connected/weights", weights}, {"fully_connected/biases", biases}});
  auto scaffold = std::make_shared<Scaffold>(ScaffoldOptions{.init_fn = init_fn});
  TrainResult result = train::train(train_op, logs, {.scaffold = scaffold, .hooks = stop_after(1)});

  CHECK_THAT(*result.loss < 0.001);
  CHECK_THAT(near(saved(logs / "model.ckpt-1", "fully_connected/weights"), {-9, -9, 9, 9}, 1e-5f));
  return 0;
}
