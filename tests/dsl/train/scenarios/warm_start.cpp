// "Initializing a model from a checkpoint": trained 300 steps, the next run starts from its loss.
#include "tests/dsl/train/scenarios/scenario.h"

using namespace scenario;

int main() {
  Folder old_run("old"), new_run("warm");
  auto run = [](const std::string& logs, int64_t steps, const std::string& checkpoint_path) {
    Graph g;
    auto [images, labels] = load_data(g);
    losses::log_loss(labels, my_model(images));
    GradientDescentOptimizer optimizer(1.0);
    Tensor train_op = create_train_op(losses::get_total_loss(g), optimizer);
    ScaffoldOptions scaffold;
    if (!checkpoint_path.empty())
      scaffold.init_fn = assign_from_checkpoint_fn(checkpoint_path, get_model_variables(g));
    auto s = std::make_shared<Scaffold>(scaffold);
    return *train::train(train_op, logs, {.scaffold = s, .hooks = stop_after(steps)}).loss;
  };
  CHECK_THAT(run(old_run, 300, "") < 0.015);
  CHECK_THAT(run(new_run, 1, latest_checkpoint(old_run)) < 0.015);
  return 0;
}
