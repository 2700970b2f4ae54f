// "Initializing a model from a checkpoint whose variable names don't match".
#include "tests/dsl/train/scenarios/scenario.h"

using namespace scenario;

int main() {
  Folder old_run("old_names"), new_run("new_names");
  auto run = [&](const std::string& logs, int64_t steps, const std::string& scope) {
    Graph g;
    auto [images, labels] = load_data(g);
    losses::log_loss(labels, my_model(images, scope));
    GradientDescentOptimizer optimizer(1.0);
    Tensor train_op = create_train_op(losses::get_total_loss(g), optimizer);
    ScaffoldOptions scaffold;
    if (scope == "renamed")
      scaffold.init_fn = assign_from_checkpoint_fn(
          latest_checkpoint(old_run), {{"original/weights", get_unique_variable(g, "renamed/weights")},
                                       {"original/biases", get_unique_variable(g, "renamed/biases")}});
    auto s = std::make_shared<Scaffold>(scaffold);
    return *train::train(train_op, logs, {.scaffold = s, .hooks = stop_after(steps)}).loss;
  };
  CHECK_THAT(run(old_run, 300, "original") < 0.015);
  CHECK_THAT(run(new_run, 1, "renamed") < 0.015);
  return 0;
}
