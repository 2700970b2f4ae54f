// What a monitored step costs over a bare run:
//   monitored_bench [steps]
// One small training step (a scalar weight), three ways: Session::run_into, a monitored session without
// hooks, one with the default hooks of train() (step counter, summaries, checkpoints) between their due
// times. Goals: 5 µs more without a hook due, 20 µs more amortised with the default hooks, their due steps
// included.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "dsl/dsl.h"
#include "dsl/train/loop.h"
#include "graph/support/log.h"

using namespace sluice::dsl;
using namespace sluice::dsl::train;

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Net {
  Graph g;
  Variable w = get_variable(g, "w", {8}, {.initializer = ones_initializer()});
  Tensor loss = reduce_sum(Operand(w) * Operand(w));
  GradientDescentOptimizer optimizer{0.0001};
  Tensor train_op = create_train_op(loss, optimizer);
  Tensor summary = summary::scalar("loss", loss);
};

// Microseconds a step: the median of `rounds`, so that a busy machine's odd round does not count.
template <class F>
double measure(int rounds, int steps, F&& step) {
  std::vector<double> all;
  for (int i = 0; i < 200; ++i) step();
  for (int r = 0; r < rounds; ++r) {
    const double t0 = now();
    for (int i = 0; i < steps; ++i) step();
    all.push_back((now() - t0) / steps * 1e6);
  }
  std::nth_element(all.begin(), all.begin() + rounds / 2, all.end());
  return all[static_cast<size_t>(rounds / 2)];
}

}  // namespace

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 5000;
  sluice::set_log_level(sluice::LogLevel::kWarning);
  const std::string dir = (std::filesystem::temp_directory_path() / "sluice_monitored_bench").string();
  std::filesystem::remove_all(dir);
  constexpr int kRounds = 9;
  std::vector<Array> values;

  Net bare_net;
  const std::vector<Output> bare_fetches{bare_net.train_op};
  Session bare(bare_net.g);
  bare.run({}, {}, {&global_variables_initializer(bare_net.g)});
  Net plain_net;
  const std::vector<Output> plain_fetches{plain_net.train_op};
  MonitoredTrainingSession plain(plain_net.g);
  Net full_net;
  const std::vector<Output> full_fetches{full_net.train_op};
  MonitoredTrainingSessionOptions o;
  o.checkpoint_dir = dir;
  MonitoredTrainingSession full(full_net.g, o);

  const double t_bare = measure(kRounds, steps, [&] { bare.run_into(values, bare_fetches); });
  const double t_plain = measure(kRounds, steps, [&] {
    if (!plain.should_stop()) plain.run_into(values, plain_fetches);
  });
  const double t_full = measure(kRounds, steps, [&] {
    if (!full.should_stop()) full.run_into(values, full_fetches);
  });
  std::printf("bare run             %8.2f us/step\n", t_bare);
  std::printf("monitored, no hook   %8.2f us/step  +%.2f us (goal 5)\n", t_plain, t_plain - t_bare);
  std::printf("default hooks        %8.2f us/step  +%.2f us (goal 20, due steps included)\n", t_full,
              t_full - t_bare);
  plain.close();
  full.close();
  FileWriterCache::clear();
  std::filesystem::remove_all(dir);
  return 0;
}
