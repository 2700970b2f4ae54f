// Signals: the only state outside objects, because a handler can reach nothing else.

#include <csignal>
#include <mutex>

#include "dsl/train/coordinator.h"
#include "dsl/train/more_hooks.h"
#include "graph/support/log.h"

namespace sluice::dsl::train {

namespace {

volatile std::sig_atomic_t g_signal = 0;

constexpr int kSignals[] = {SIGINT, SIGTERM};

std::mutex g_mutex;  // guards g_users, g_former
int g_users = 0;
struct sigaction g_former[2];

// Async-signal-safe. The second signal gets the default action: the process dies.
void on_signal(int number) {
  if (g_signal != 0) {
    ::signal(number, SIG_DFL);
    ::raise(number);
    return;
  }
  g_signal = number;
}

}  // namespace

StopOnSignalHook::StopOnSignalHook() {
  std::lock_guard lock(g_mutex);
  if (g_users++ > 0) return;
  g_signal = 0;
  for (int i = 0; i < 2; ++i) {
    struct sigaction now {};
    now.sa_handler = on_signal;
    now.sa_flags = SA_RESTART;
    sigemptyset(&now.sa_mask);
    sigaction(kSignals[i], nullptr, &g_former[i]);
    // A process started with the signal ignored (nohup, a background job) keeps it so.
    if (g_former[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &now, nullptr);
  }
}

StopOnSignalHook::~StopOnSignalHook() {
  std::lock_guard lock(g_mutex);
  if (--g_users > 0) return;
  for (int i = 0; i < 2; ++i) sigaction(kSignals[i], &g_former[i], nullptr);
}

int StopOnSignalHook::signal() const { return g_signal; }

void StopOnSignalHook::after_create_session(Session&, Coordinator& coord) {
  if (g_signal != 0) coord.request_stop();
}

void StopOnSignalHook::after_run(SessionRunContext& context, const SessionRunValues&) {
  if (g_signal == 0 || context.stop_requested()) return;
  log_info("Signal ", static_cast<int>(g_signal), " came: training stops after this step.");
  context.request_stop();
}

}  // namespace sluice::dsl::train
