// "Fine-Tuning Part of a model from a checkpoint": include and exclude patterns.
#include "tests/dsl/train/scenarios/scenario.h"

using namespace scenario;

int main() {
  Folder old_run("whole"), new_run("part");
  auto run = [&](const std::string& logs, int64_t steps, bool tune) {
    Graph g;
    auto [images, labels] = load_data(g);
    losses::log_loss(labels, my_model(my_model(images, "conv"), "fc8"));
    GradientDescentOptimizer optimizer(tune ? 1e-9 : 1.0);
    Tensor train_op = create_train_op(losses::get_total_loss(g), optimizer);
    ScaffoldOptions scaffold;
    if (tune)
      scaffold.init_fn = assign_from_checkpoint_fn(
          latest_checkpoint(old_run),
          get_variables_to_restore(g, std::vector<std::string>{"conv", "fc8"}, {"fc8/biases", "fc9"}));
    train::train(train_op, logs,
                 {.scaffold = std::make_shared<Scaffold>(scaffold), .hooks = stop_after(steps)});
  };
  run(old_run, 20, false), run(new_run, 1, true);
  std::string was = old_run / "model.ckpt-20", is = new_run / "model.ckpt-1";
  CHECK_THAT(near(saved(is, "conv/weights"), saved(was, "conv/weights"), 1e-6f));
  CHECK_THAT(near(saved(is, "fc8/weights"), saved(was, "fc8/weights"), 1e-6f));
  CHECK_THAT(near(saved(is, "fc8/biases"), {0}, 1e-6f));
  return 0;
}
