// Lesson 6: kill a run and go on.
//
// train() saves checkpoints into its folder and, started again, goes on from the newest. What you see here:
//   * a run that is killed in the middle (SIGKILL: nobody can clean up) loses only the steps since its last
//     save;
//   * the second run needs no flag and no other code: the same program, the same folder;
//   * its results are those of a run that nobody disturbed, bit for bit: optimizer slots, step and random
//     streams are in the checkpoint too.

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <iostream>

#include "dsl/dsl.h"
#include "dsl/train/loop.h"
#include "tools/lessons/lesson.h"

using namespace sluice::dsl;
using namespace sluice::dsl::train;

namespace {

// Kills its own process at a step, as a power cut would.
struct PowerCut final : SessionRunHook {
  explicit PowerCut(int64_t steps) : left(steps) {}
  void after_run(SessionRunContext&, const SessionRunValues&) override {
    if (--left == 0) ::kill(::getpid(), SIGKILL);
  }
  int64_t left;
};

// Twenty steps in all, however many there were before; the loss of the last.
double run(const std::string& logs, std::shared_ptr<SessionRunHook> extra = nullptr) {
  Graph g;
  g.set_seed(3);
  Tensor x = random_normal(g, {16, 4});  // new rows every step
  Tensor y = reduce_sum(x, {1}, {.keepdims = true});
  losses::mean_squared_error(y, layers::dense(x, 1));
  AdamOptimizer optimizer(0.05);
  Tensor train_op = create_train_op(losses::get_total_loss(g), optimizer);
  auto saver = std::make_shared<CheckpointSaverHook>(CheckpointSaverOptions{
      .checkpoint_dir = logs, .save_steps = 5, .scaffold = std::make_shared<Scaffold>()});
  Hooks hooks{std::make_shared<StopAtStepHook>(StopAtStepOptions{.last_step = 20})};
  if (extra) hooks.push_back(extra);
  TrainResult r =
      train::train(train_op, logs, {.hooks = hooks, .chief_only_hooks = {saver}, .save_checkpoint_secs = {}});
  return r.loss.value_or(NAN);
}

}  // namespace

int main() {
  lesson::Folder undisturbed, killed;
  const double expected = run(undisturbed);

  const pid_t child = ::fork();
  if (child == 0) {
    run(killed, std::make_shared<PowerCut>(13));
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_THAT_HERE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  std::cout << "killed at step 13; the newest checkpoint is " << latest_checkpoint(killed) << '\n';

  const double resumed = run(killed);
  std::cout << "loss at step 20: " << resumed << ", undisturbed " << expected << '\n';
  EXPECT_THAT_HERE(resumed == expected);
  return 0;
}
