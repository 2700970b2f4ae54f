#pragma once
// A directory that checkpoints are saved to, as a saver sees it: one process at a time, no files left behind
// by killed ones, and a list of checkpoints to keep. Private to dsl/train; SaveDirectory is used by one
// thread at a time, its owner locks.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dsl/train/checkpoint_state.h"

namespace sluice::dsl::train {

/// "." for a bare name.
std::string directory_of(const std::string& prefix);

/// Holds the directory for this process as long as the result lives; savers of one process share it.
/// FailedPrecondition when another process holds it. File systems without locks are trusted.
std::shared_ptr<void> hold_directory(const std::string& directory);

/// Deletes temporary checkpoint files of processes that are gone.
void remove_abandoned_files(const std::string& directory);

struct KeepRules {
  int max_to_keep = 5;
  double every_n_hours = 10000;
  bool relative_paths = true;
  std::string meta_graph_suffix = "meta";
  std::string latest_filename = "checkpoint";
};

/// The checkpoints of one directory, oldest first, and which of them go.
class SaveDirectory {
 public:
  explicit SaveDirectory(double now) : built_(now) {}

  /// Takes the directory and learns what it holds, earlier processes' checkpoints included. Cheap when
  /// nothing changed.
  void enter(const std::string& directory, const KeepRules& rules, double now);
  /// Enters a checkpoint as the latest, writes the state file, and then deletes what is too old.
  void keep(const std::string& path, const KeepRules& rules, double now);

  std::vector<std::string> paths() const;
  void set(std::vector<std::pair<std::string, double>> checkpoints) { kept_ = std::move(checkpoints); }

 private:
  void load(const KeepRules& rules, double now);

  const double built_;
  double next_keep_ = 0, last_preserved_ = 0;
  std::string directory_, latest_filename_;
  std::shared_ptr<void> hold_;  // shared with the other savers of this process
  std::vector<std::pair<std::string, double>> kept_;
  std::optional<CheckpointState> written_;  // what the state file said when this object last looked
};

}  // namespace sluice::dsl::train
