#pragma once
// parameters.json: the seed's 74 flags as one object, null for an unset one (benchmark-tool §19.7). Written
// by training runs into train_dir, read by --eval. One thread.

#include <string>

#include "tools/bench/flags.h"

namespace sluice::bench {

/// train_dir/parameters.json.
std::string params_path(const std::string& train_dir);

/// Writes all 74 values, indent 4, through a temporary name; creates the folder.
void save_params(const Params& params, const std::string& train_dir);

/// What an evaluation takes over from the training run's file (§5.4): model, data, format, loss factors.
/// Flags on the command line win. Returns false when there is no file. An unknown key is InvalidArgument, a
/// damaged file DataLoss, both with the path.
bool load_params(const std::string& train_dir, CommandLine& line);

}  // namespace sluice::bench
