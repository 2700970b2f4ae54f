// sluice-bench: the benchmark program. Exit codes: 0 done, 1 the run failed, 2 the command line or a path on
// it is wrong, 130/143 stopped by a signal after a clean save.

#include <cstdio>
#include <exception>

#include "graph/support/check.h"
#include "graph/support/log.h"
#include "tools/bench/benchmark.h"
#include "tools/bench/checkpoint.h"
#include "tools/bench/environment.h"
#include "tools/bench/flags.h"
#include "tools/bench/params_json.h"
#include "tools/bench/settings.h"

namespace {

using namespace sluice::bench;

int usage_error(const std::exception& e) {
  const auto* error = dynamic_cast<const sluice::Error*>(&e);
  std::fprintf(stderr, "sluice-bench: %s\n", error ? error->message().c_str() : e.what());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  CommandLine line;
  Settings settings;
  try {
    line = parse_command_line(std::vector<std::string>(argv + 1, argv + argc));
    if (line.help) {
      std::fputs(help_text().c_str(), stdout);
      return 0;
    }
    if (line.version) {
      std::printf("sluice-bench %s\n", SLUICE_BENCH_VERSION);
      return 0;
    }
    if (line.params.eval && line.params.train_dir) {
      const bool found = load_params(*line.params.train_dir, line);
      sluice::log_info(found ? "Loading parameters into: " : "No directory specified to load parameters: ",
                       params_path(*line.params.train_dir), ".");
    }
    settings = resolve(line);
    if (settings.mode == RunMode::kEvaluation) latest_checkpoint(settings.train_dir);
  } catch (const std::exception& e) {
    return usage_error(e);
  }
  try {
    export_environment(line.params);
    for (const std::string& note : neutral_notes(line.params)) sluice::log_info(note);
    if (!line.params.device) sluice::log_info("--device is not set: computing on the CPU");
    if (settings.mode == RunMode::kTraining && !settings.train_dir.empty()) {
      save_params(line.params, settings.train_dir);
      sluice::log_info("Saving parameters into: ", params_path(settings.train_dir), ".");
    }
    watch_stop_signals();
    Output out(stdout, settings.flush_stdout);
    return run(settings, out);
  } catch (const std::exception& e) {
    std::fflush(stdout);
    std::fprintf(stderr, "sluice-bench: %s\n", e.what());
    return 1;
  }
}
