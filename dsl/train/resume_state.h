#pragma once
// What a checkpoint holds beyond variables so that a resumed run goes on bit for bit: the counters of the
// random ops' streams and the states of registered Saveables (runtime/saveable.h), as tensors whose names
// begin with `_sluice/`. TensorFlow restores by name and never sees them. Savers call these; use them
// yourself only for checkpoints of your own. No run may be in flight.
//
//   _sluice/random/nodes         string[n]: names of the random ops that have drawn
//   _sluice/random/streams       uint64[n, 4]: seed, seed2, counter low, counter high of each
//   _sluice/state/<key>|<name>   a Saveable's array

#include <string>
#include <utility>
#include <vector>

#include "runtime/io/bundle.h"
#include "runtime/session.h"

namespace sluice::dsl::train {

inline constexpr const char* kResumePrefix = "_sluice/";

/// The state now, sorted by name. The arrays do not change later.
std::vector<std::pair<std::string, runtime::Array>> collect_resume_state(runtime::Session& session);
/// Reads and checks the state in a checkpoint without changing anything; `apply_resume_state` then cannot
/// fail halfway. DataLoss for a damaged one.
std::vector<std::pair<std::string, runtime::Array>> read_resume_state(const runtime::io::BundleReader& from);
void apply_resume_state(runtime::Session& session,
                        const std::vector<std::pair<std::string, runtime::Array>>& state);

}  // namespace sluice::dsl::train
