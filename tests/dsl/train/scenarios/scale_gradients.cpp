// "Scale the gradients by providing a map from variable name (or variable) to a scaling coefficient".
#include "tests/dsl/train/scenarios/scenario.h"

using namespace scenario;

double loss_with(double multiplier, const std::string& logs) {
  Graph g;
  g.set_seed(0);
  auto [images, labels] = load_data(g);
  losses::log_loss(labels, my_model(images));
  GradientDescentOptimizer optimizer(0.001);
  auto transform_grads_fn = [&](const GradsAndVars& grads) {
    return multiply_gradients(grads, {{"fully_connected/weights", multiplier}});
  };
  Tensor train_op =
      create_train_op(losses::get_total_loss(g), optimizer, {.transform_grads_fn = transform_grads_fn});
  return *train::train(train_op, logs, {.hooks = stop_after(10)}).loss;
}

int main() {
  Folder one("multiply1"), thousand("multiply1000");
  const double plain = loss_with(1, one), scaled = loss_with(1000, thousand);
  CHECK_THAT(scaled < plain);
  CHECK_THAT(scaled < 0.5);
  return 0;
}
