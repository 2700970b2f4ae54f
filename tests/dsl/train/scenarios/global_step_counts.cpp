// The step is 10 after 10 runs, and stays 0 with global_step = None.
#include "tests/dsl/train/scenarios/scenario.h"

using namespace scenario;

int main() {
  Graph g;
  auto [images, labels] = load_data(g);
  losses::log_loss(labels, my_model(images));
  GradientDescentOptimizer optimizer(1.0);
  Tensor loss = losses::get_total_loss(g);
  get_or_create_global_step(g);
  Tensor counted = create_train_op(loss, optimizer);
  Tensor uncounted = create_train_op(loss, optimizer, {.global_step = GlobalStep::none()});
  for (auto [train_op, step] : {std::pair(counted, 10), std::pair(uncounted, 0)}) {
    SingularMonitoredSession session(g);
    for (int i = 0; i < 10; ++i) session.run({train_op});
    CHECK_THAT(global_step(session.raw_session()) == step);
  }
  return 0;
}
