#include "tools/bench/environment.h"

#include <csignal>
#include <cstdlib>
#include <string>

namespace sluice::bench {

namespace {

volatile std::sig_atomic_t g_stop_signal = 0;  // written by the handler, so it has to be global

extern "C" void note_signal(int signal) {
  g_stop_signal = signal;
  std::signal(signal, SIG_DFL);
}

void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }

}  // namespace

void export_environment(const Params& p) {
  if (p.winograd_nonfused) {
    set("TF_ENABLE_WINOGRAD_NONFUSED", "1");
  } else {
    ::unsetenv("TF_ENABLE_WINOGRAD_NONFUSED");
  }
  if (p.autotune_threshold.value_or(0) != 0)
    set("TF_AUTOTUNE_THRESHOLD", std::to_string(*p.autotune_threshold));
  set("TF_SYNC_ON_FINISH", p.sync_on_finish ? "1" : "0");
  if (!p.mkl) return;
  set("KMP_BLOCKTIME", std::to_string(p.kmp_blocktime));
  set("KMP_SETTINGS", std::to_string(p.kmp_settings));
  set("KMP_AFFINITY", p.kmp_affinity);
  if (p.num_intra_threads > 0) set("OMP_NUM_THREADS", std::to_string(p.num_intra_threads));
}

void watch_stop_signals() {
  std::signal(SIGINT, note_signal);
  std::signal(SIGTERM, note_signal);
}

int stop_signal() { return g_stop_signal; }

}  // namespace sluice::bench
