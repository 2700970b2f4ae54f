#pragma once
// Saves and restores variables by nodes in the graph, TensorFlow's `save/Const`, `save/SaveV2`,
// `save/RestoreV2`, `save/restore_all` and `save/control_dependency`, so that a graph file carries its saver.
// One shard; checkpoints are TensorFlow's (V2). `save` also keeps the directory's `checkpoint` state file and
// deletes old checkpoints. Make it before the graph is finalized. One thread at a time.
//
//   Saver saver(g);
//   std::string path = saver.save(session, "ckpt/model", step);   // "ckpt/model-10"
//   saver.restore(session, latest_checkpoint("ckpt"));

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dsl/variable.h"
#include "graph/graphdef.h"
#include "runtime/session.h"

namespace sluice::dsl::train {

struct SaverOptions {
  /// Default: every global variable, under its own name.
  std::optional<std::vector<std::pair<std::string, Variable>>> variables = {};
  int max_to_keep = 5;  // 0: all
  bool write_meta_graph = true;
  std::string name = "save";
};

class Saver {
 public:
  /// InvalidArgument "No variables to save", or for two variables of one name.
  explicit Saver(Graph& g, const SaverOptions& o = {}, Loc loc = Loc::current());

  /// Writes `prefix` (with "-<step>" where a step is given) and returns its path. The directory must exist.
  std::string save(runtime::Session& session, const std::string& prefix,
                   std::optional<int64_t> global_step = {});
  /// Assigns every variable. One error names everything that is missing or does not fit, and then nothing is
  /// assigned.
  void restore(runtime::Session& session, const std::string& path);

  /// What a MetaGraphDef states of this saver.
  graph::SaverInfo info() const;
  /// Checkpoints kept, oldest first.
  const std::vector<std::string>& last_checkpoints() const { return kept_; }

 private:
  void add_save(const std::vector<std::pair<std::string, Variable>>& vars, Loc loc);
  void add_restore(const std::vector<std::pair<std::string, Variable>>& vars, Loc loc);
  void keep(const std::string& path);

  Graph& g_;
  SaverOptions o_;
  Output filename_, save_tensor_;
  Node* restore_all_ = nullptr;
  std::vector<std::string> kept_;
  std::vector<double> times_;
  std::string directory_;  // whose state file `kept_` mirrors
};

/// The newest checkpoint that the directory's state file names, "" when there is none.
std::string latest_checkpoint(const std::string& directory);

}  // namespace sluice::dsl::train
