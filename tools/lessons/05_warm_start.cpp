// Lesson 5: start from another model's checkpoint.
//
// The old model calls its layer "encoder", the new one "body", and the new one has a fresh "head". What you
// see here:
//   * get_variables_to_restore picks variables by scope;
//   * a list of (name in the checkpoint, variable) renames; renamed_by_regex does it by a rule;
//   * a Scaffold's init_fn runs once, when the run's own folder holds no checkpoint yet;
//   * restoring is all or nothing, and one error lists everything that is missing or does not fit.

#include <iostream>

#include "dsl/dsl.h"
#include "dsl/train/loop.h"
#include "tools/lessons/lesson.h"

using namespace sluice::dsl;
using namespace sluice::dsl::train;

namespace {

std::shared_ptr<StopAtStepHook> after(int64_t steps) {
  return std::make_shared<StopAtStepHook>(StopAtStepOptions{.num_steps = steps});
}

Tensor rows(Graph& g) { return constant(g, std::vector<float>{1, 0, 0, 1, 1, 1, 0, 0}, {4, 2}, "rows"); }

void train_old(const std::string& logs) {
  Graph g;
  Tensor out = layers::dense(rows(g), 1, {.name = "encoder"});
  losses::mean_squared_error(constant(g, std::vector<float>{1, 2, 3, 0}, {4, 1}), out);
  GradientDescentOptimizer optimizer(0.2);
  train::train(create_train_op(losses::get_total_loss(g), optimizer), logs, {.hooks = {after(200)}});
}

}  // namespace

int main() {
  lesson::Folder old_logs, new_logs;
  train_old(old_logs);

  Graph g;
  Tensor body = layers::dense(rows(g), 1, {.name = "body"});
  Tensor out = layers::dense(body, 1, {.name = "head"});
  losses::mean_squared_error(constant(g, std::vector<float>{2, 4, 6, 0}, {4, 1}), out);
  // Only the head learns; the body keeps what it brought along.
  MomentumOptimizer optimizer(0.01, 0.9);
  Tensor train_op = create_train_op(losses::get_total_loss(g), optimizer,
                                    {.variables_to_train = trainable_variables(g, "head")});

  RestoreList renamed = renamed_by_regex(get_variables_to_restore(g, {{"body"}}), "^body/(.*)", "encoder/$1");
  auto scaffold = std::make_shared<Scaffold>(
      ScaffoldOptions{.init_fn = assign_from_checkpoint_fn(latest_checkpoint(old_logs), renamed)});
  TrainResult r = train::train(train_op, new_logs, {.scaffold = scaffold, .hooks = {after(200)}});
  std::cout << "loss " << *r.loss << '\n';
  EXPECT_THAT_HERE(*r.loss < 0.05);

  // A wrong name is one error that names it, and what is near.
  try {
    Session session(g);
    assign_from_checkpoint_fn(latest_checkpoint(old_logs),
                              {{"encoder/kernels", get_unique_variable(g, "body/kernel")}})(session);
    return 1;
  } catch (const sluice::Error& e) {
    std::cout << e.what() << '\n';
    EXPECT_THAT_HERE(std::string(e.what()).find("encoder/kernel") != std::string::npos);
  }
  return 0;
}
