// "Create the train_op and clip the gradient norms": the gradient of 4·x is 4, clipped 3.
#include "tests/dsl/train/scenarios/scenario.h"

using namespace scenario;

int main() {
  Folder logs("clip");
  Graph g;
  Variable x = get_variable(g, "x", {1}, {.initializer = zeros_initializer()});
  GradientDescentOptimizer optimizer(1.0);
  Tensor train_op = create_train_op(reduce_sum(4.0 * Operand(x)), optimizer,
                                    {.transform_grads_fn = clip_gradient_norms_fn(3)});

  train::train(train_op, logs, {.hooks = stop_after(1)});

  CHECK_THAT(near(saved(logs / "model.ckpt-1", "x"), {-3}, 1e-6f));
  return 0;
}
