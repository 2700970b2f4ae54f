#pragma once
// Checkpoints of a run: <train_dir>/model.ckpt-<global_step>, the newest five kept. One thread.

#include <string>

#include "dsl/train/saver.h"
#include "runtime/session.h"
#include "tools/bench/model_graph.h"

namespace sluice::bench {

/// Prefix of the newest checkpoint. NotFound "Checkpoint not found in …".
std::string latest_checkpoint(const std::string& train_dir);

class Checkpointer {
 public:
  /// Adds save and restore nodes to the model's graph, which must outlive this.
  explicit Checkpointer(ModelGraph& model);

  void save(runtime::Session& session, const std::string& train_dir);
  /// Compares names, types and shapes first: one error lists what is missing (NotFound) or does not fit
  /// (InvalidArgument), and nothing is assigned then. Surplus tensors are reported in one log line (decisions
  /// #21).
  void restore(runtime::Session& session, const std::string& prefix);
  /// Restores the newest checkpoint if there is one; the global step it was taken at, else 0.
  int64_t restore_latest(runtime::Session& session, const std::string& train_dir);

 private:
  int64_t step(runtime::Session& session) const;

  ModelGraph& model_;
  dsl::train::Saver saver_;
};

}  // namespace sluice::bench
