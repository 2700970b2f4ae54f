#pragma once
// Saves and restores variables. A Saver puts TensorFlow's nodes into the graph (`save/Const`, `save/SaveV2`,
// `save/RestoreV2`, `save/restore_all` …), so that a graph file carries its saver, and itself moves bytes
// between variables and checkpoint (V2) without them. A save takes a snapshot (references; a variable that is
// updated meanwhile goes on with a copy), writes under temporary names, checks, syncs and renames: a crash at
// any instruction leaves the previous checkpoint whole and latest. It also keeps the directory's `checkpoint`
// state file and deletes old checkpoints. A restore reads and checks everything before it assigns anything.
// Make it before the graph is finalized; one thread at a time. See docs/checkpoints.md.
//
//   Saver saver(g);
//   std::string path = saver.save(session, "ckpt/model", step);   // "ckpt/model-10"
//   SaveHandle h = saver.save_async(session, "ckpt/model", step); // the steps go on
//   saver.restore(session, latest_checkpoint("ckpt"));

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dsl/train/checkpoint_state.h"
#include "dsl/variable.h"
#include "graph/graphdef.h"
#include "runtime/session.h"

namespace sluice::dsl::train {

struct SaverOptions {
  /// Name in the checkpoint → variable. Default: every global variable, under its own name. The parts of a
  /// partitioned variable share one name.
  std::optional<std::vector<std::pair<std::string, Variable>>> variables = {};
  int max_to_keep = 5;  // 0: all, and then the state file lists only the latest
  bool write_meta_graph = true;
  std::string name = "save";
  double keep_checkpoint_every_n_hours = 10000.0;  // one in so many hours is never deleted
  bool sharded = false;                            // a data file for each device that variables lie on
  int num_shards = 0;                              // > 0: so many data files, whatever the devices
  bool allow_empty = false;                        // no variables: save and restore do nothing
  bool reshape = false;                            // restore what has as many elements but another shape
  bool pad_step_number = false;                    // "model-00000010"
  bool save_relative_paths = true;                 // false: the state file holds absolute paths
  bool defer_build = false;                        // nodes are added by build()
  bool ignore_missing = false;                     // restore what is there; the rest is a warning
  bool save_resume_state = true;                   // random streams, input positions (resume_state.h)
  int write_version = 2;                           // 1 is refused: V1 is only read
  std::string filename = "model";                  // default of the node `save/Const`
  /// Seconds since 1970; null: the system's clock.
  std::function<double()> clock = {};
};

/// One call of save.
struct SaveCall {
  std::string meta_graph_suffix = "meta";
  std::optional<bool> write_meta_graph = {};  // default: the saver's
  bool write_state = true;                    // enter it in the state file, delete old ones
  std::string latest_filename = "checkpoint";
};

/// A save under way. Copies stand for the same one; any thread.
class SaveHandle {
 public:
  /// Waits, and returns the path or throws what went wrong. As often as one likes.
  std::string wait() const;
  bool done() const;
  /// "" of a handle that stands for no save.
  const std::string& path() const { return path_; }

 private:
  friend class Saver;
  struct State;
  std::string path_;
  std::shared_ptr<State> state_;  // shared by all copies and the thread that writes
};

class Saver {
 public:
  /// InvalidArgument "No variables to save" (unless allow_empty), or for two variables of one name.
  explicit Saver(Graph& g, const SaverOptions& o = {}, Loc loc = Loc::current());
  /// The saver that a graph file brought along: its own nodes save and restore. max_to_keep and the hours are
  /// the file's.
  static std::unique_ptr<Saver> of_graph(Graph& g, const graph::SaverInfo& nodes, const SaverOptions& o = {});
  /// Waits for a save under way; its failure is then a log line.
  ~Saver();
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  /// Adds the nodes, for defer_build. A second call does nothing.
  void build(Loc loc = Loc::current());

  /// Writes `prefix` (with "-<step>" where a step is given) and returns its path. NotFound "Parent directory
  /// of … doesn't exist, can't save."; FailedPrecondition for uninitialised variables (all of them named),
  /// and when another process saves to the directory; what the disk refuses, naming the path. Throws what a
  /// background save left unsaid.
  std::string save(runtime::Session& session, const std::string& prefix,
                   std::optional<int64_t> global_step = {}, const SaveCall& call = {});
  /// Takes the snapshot and returns; a thread of low priority writes. A second one waits for the first.
  /// Errors of the snapshot are thrown here, those of writing by wait(), or by the next save when nobody
  /// waited.
  SaveHandle save_async(runtime::Session& session, const std::string& prefix,
                        std::optional<int64_t> global_step = {}, const SaveCall& call = {});
  /// Waits for a background save; throws its error.
  void wait();

  /// Assigns every variable, or none: one error lists all that is missing (with near names) or does not fit
  /// in shape or type, and what the checkpoint holds beyond them. InvalidArgument for "" and for what is no
  /// checkpoint.
  void restore(runtime::Session& session, const std::string& path);

  /// What a MetaGraphDef states of this saver.
  graph::SaverInfo info() const;
  /// Checkpoints kept, oldest first.
  std::vector<std::string> last_checkpoints() const;
  /// Replaces that list; times are those of the files, or now.
  void set_last_checkpoints(const std::vector<std::string>& paths);
  /// The same for the state file's list after a restart: those that are gone are dropped.
  void recover_last_checkpoints(const std::vector<std::string>& paths);
  Graph& graph() const { return g_; }
  const SaverOptions& options() const { return o_; }

 private:
  struct Snapshot;
  struct Kept;
  using Named = std::pair<std::string, Variable>;

  void add_nodes(Loc loc);
  std::vector<std::vector<Named>> shards() const;
  Node* add_save(const std::vector<Named>& vars, Output prefix, Loc loc);
  Node* add_restore(const std::vector<Named>& vars, const std::string& name, Loc loc);
  std::string path_of(const std::string& prefix, std::optional<int64_t> step) const;
  std::shared_ptr<Snapshot> snapshot(runtime::Session& session, const std::string& path,
                                     const SaveCall& call) const;
  void write(Snapshot& snapshot) const;
  void save_by_nodes(runtime::Session& session, const std::string& path, const SaveCall& call) const;
  void throw_pending();

  Graph& g_;
  SaverOptions o_;
  std::vector<Named> vars_;  // sorted by name, then offset
  bool built_ = false, foreign_ = false;
  Output filename_, save_tensor_;
  Node* restore_all_ = nullptr;
  std::unique_ptr<Kept> kept_;  // its own mutex: a background save enters itself
  SaveHandle pending_;
  mutable std::shared_ptr<const std::string>
      meta_;  // of graph version meta_version_; shared with saves under way
  mutable uint64_t meta_version_ = 0;
};

/// Where a variable is kept in the session's resources.
std::pair<std::string, std::string> resource_key(const Variable& v);

}  // namespace sluice::dsl::train
