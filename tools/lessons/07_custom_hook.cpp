// Lesson 7: a hook of your own.
//
// Hooks see every run of the loop: they may fetch more, feed, look at values, and ask to stop. What you see
// here:
//   * before_run returns what to fetch besides; make it once, so that a step costs nothing more;
//   * after_run gets exactly those values;
//   * request_stop ends the loop after this run, and `end` is the place for last words.

#include <iostream>

#include "dsl/dsl.h"
#include "dsl/train/loop.h"
#include "tools/lessons/lesson.h"

using namespace sluice::dsl;
using namespace sluice::dsl::train;

namespace {

// Stops when the loss has not got better by a hundredth for ten steps.
class StopOnPlateau final : public SessionRunHook {
 public:
  explicit StopOnPlateau(Tensor loss) { args_.fetches = {loss}; }
  const SessionRunArgs* before_run(SessionRunContext&) override { return &args_; }
  void after_run(SessionRunContext& context, const SessionRunValues& values) override {
    const float loss = values[0].item<float>();
    ++steps;
    waited_ = loss < 0.99f * best ? 0 : waited_ + 1;
    best = std::min(best, loss);
    if (waited_ == 10) context.request_stop();
  }
  void end(Session& session) override {
    std::cout << "stopped at step " << global_step(session) << ", best loss " << best << '\n';
  }

  int64_t steps = 0;
  float best = INFINITY;

 private:
  SessionRunArgs args_;
  int waited_ = 0;
};

}  // namespace

int main() {
  Graph g;
  g.set_seed(5);
  Tensor x = constant(g, std::vector<float>{0, 1, 2, 3}, {4, 1}), y = square(x);
  Tensor h = layers::dense(x, 8, {.activation = layers::kTanh});
  losses::mean_squared_error(y, layers::dense(h, 1));
  Tensor loss = losses::get_total_loss(g);
  AdamOptimizer optimizer(0.05);
  Tensor train_op = create_train_op(loss, optimizer);

  auto plateau = std::make_shared<StopOnPlateau>(loss);
  auto limit = std::make_shared<StopAtStepHook>(StopAtStepOptions{.last_step = 5000});
  TrainResult r = train::train(train_op, "",
                               {.hooks = {plateau, limit},
                                .save_checkpoint_secs = std::nullopt,
                                .save_summaries_steps = std::nullopt});
  EXPECT_THAT_HERE(plateau->steps == r.steps);
  EXPECT_THAT_HERE(r.steps < 5000 && plateau->best < 0.5f);
  return 0;
}
