#pragma once
// One run of the tool, from the info block to the last line (benchmark-tool §5, §6). One thread, the
// caller's, besides those of the session and of the input.

#include "runtime/session.h"
#include "tools/bench/output.h"
#include "tools/bench/settings.h"

namespace sluice::bench {

/// Runs what the settings say and returns the exit code: 0, or 130/143 when a signal ended the run after its
/// state was saved. Failures are thrown.
int run(const Settings& settings, Output& out);

/// Session options that the flags ask for.
runtime::SessionOptions session_options(const Settings& settings);

}  // namespace sluice::bench
