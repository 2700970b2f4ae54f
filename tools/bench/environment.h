#pragma once
// Environment variables that scripts around the original program look for (benchmark-tool §1.3), and the
// signals that end a run. Process-wide: called from main, before any thread starts.

#include "tools/bench/params.h"

namespace sluice::bench {

/// Sets or removes the variables as the flags say.
void export_environment(const Params& params);

/// From here on the first SIGINT or SIGTERM is noted for stop_signal(); a second one ends the process at
/// once.
void watch_stop_signals();
/// The signal that asked the run to stop, 0 for none. Any thread.
int stop_signal();

}  // namespace sluice::bench
