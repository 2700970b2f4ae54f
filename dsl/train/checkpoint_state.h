#pragma once
// The text file `checkpoint` in which savers list what a directory holds, and the checkpoints it names
// (tf.train.get_checkpoint_state and its kin; graph-and-training §7.5). Paths inside the directory are stored
// relative to it, so that it may be moved. Any thread; the file is replaced whole.
//
//   if (auto state = get_checkpoint_state("run1")) resume_from(state->model_checkpoint_path);

#include <optional>
#include <string>
#include <vector>

#include "runtime/io/checkpoint.h"

namespace sluice::dsl::train {

/// model_checkpoint_path, all_model_checkpoint_paths (oldest first), timestamps, last_preserved_timestamp.
using runtime::io::CheckpointState;

/// nullopt when there is none or (with a warning) when it cannot be read. Paths come back joined to the
/// directory.
std::optional<CheckpointState> get_checkpoint_state(const std::string& directory,
                                                    const std::string& latest_filename = "checkpoint");
/// Writes the state file. The latest path is added to the list where it is missing. InvalidArgument when
/// timestamps and paths differ in number, or when the latest file's name has parts.
void update_checkpoint_state(const std::string& directory, CheckpointState state,
                             const std::string& latest_filename = "checkpoint",
                             bool save_relative_paths = true);
/// The newest checkpoint that the state file names and that exists (V1 too), "" when there is none.
std::string latest_checkpoint(const std::string& directory,
                              const std::string& latest_filename = "checkpoint");
/// The newest checkpoint of the state file that reads back whole: damaged ones are passed over with a
/// warning. Reads them all through.
std::string latest_whole_checkpoint(const std::string& directory,
                                    const std::string& latest_filename = "checkpoint");
/// True when `prefix` is a V2 checkpoint (its index exists) or a V1 one.
bool checkpoint_exists(const std::string& prefix);
/// Deletes a checkpoint's files and its `.<meta_graph_suffix>`; what cannot be deleted is a warning.
void remove_checkpoint(const std::string& prefix, const std::string& meta_graph_suffix = "meta");
/// When each was written, seconds since 1970; those that do not exist are left out.
std::vector<double> get_checkpoint_mtimes(const std::vector<std::string>& prefixes);

}  // namespace sluice::dsl::train
