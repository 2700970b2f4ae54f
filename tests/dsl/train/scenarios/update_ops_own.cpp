// "Use an alternative set of update ops", and a set "in addition to the default updates" by the collection.
#include "tests/dsl/train/scenarios/scenario.h"

using namespace scenario;

int main() {
  Folder first("own_update_ops"), second("added_update_ops");
  Graph g;
  auto [images, labels] = load_data(g);
  losses::log_loss(labels, my_batch_norm_model(images));
  VariableOptions counter{.initializer = zeros_initializer(), .trainable = false};
  Node& mine = assign_add_op(get_variable(g, "my_count", {}, counter), 1);
  Node& added = assign_add_op(get_variable(g, "added_count", {}, counter), 1);
  GradientDescentOptimizer optimizer(1.0);
  Tensor loss = losses::get_total_loss(g);
  Tensor own = create_train_op(loss, optimizer, {.update_ops = std::vector<Node*>{&mine}});
  g.collections().add(keys::kUpdateOps, sluice::graph::GraphElement{&added, -1});
  Tensor all = create_train_op(loss, optimizer);
  train::train(own, first, {.hooks = stop_after(5)});
  train::train(all, second, {.hooks = stop_after(5)});
  CHECK_THAT(near(saved(first / "model.ckpt-5", "my_count"), {5}, 0));
  CHECK_THAT(near(saved(first / "model.ckpt-5", "BatchNorm/moving_mean"), {0, 0, 0, 0}, 0));
  CHECK_THAT(near(saved(second / "model.ckpt-5", "added_count"), {5}, 0));
  CHECK_THAT(!near(saved(second / "model.ckpt-5", "BatchNorm/moving_mean"), {0, 0, 0, 0}, 0));
  return 0;
}
