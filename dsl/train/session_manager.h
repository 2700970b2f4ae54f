#pragma once
// SessionManager: opens sessions whose variables are ready, by restoring or initialising them (the chief) or
// by waiting until the chief has (graph-and-training §6.2). One thread at a time.

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dsl/tensor.h"
#include "dsl/train/clock.h"
#include "dsl/train/saver.h"
#include "runtime/session.h"

namespace sluice::dsl::train {

struct SessionManagerOptions {
  Node* local_init_op = nullptr;
  Tensor ready_op = {};  // names what is not ready; ready when empty, or of type int32
  Tensor ready_for_local_init_op = {};
  double recovery_wait_secs = 30;  // between looks for a checkpoint or a ready model
  runtime::RunOptions local_init_run_options = {};
  Clock* clock = nullptr;  // null: the system's
};

struct PrepareOptions {
  std::string master = {};
  runtime::SessionOptions config = {};
  Node* init_op = nullptr;
  std::vector<runtime::Feed> init_feed_dict = {};
  std::function<void(runtime::Session&)> init_fn = {};
  Saver* saver = nullptr;
  std::string checkpoint_dir = {};  // restores what its state file calls the latest
  std::string checkpoint_filename_with_path = {};
  bool wait_for_checkpoint = false;
  double max_wait_secs = 7200;
};

class SessionManager {
 public:
  explicit SessionManager(Graph& g, const SessionManagerOptions& o = {});

  /// Restored when there is a checkpoint, else initialised; then local init. Throws when the model is not
  /// ready afterwards, with what is missing.
  std::unique_ptr<runtime::Session> prepare_session(const PrepareOptions& o);
  /// As prepare_session but never initialises; second: whether the session was restored and is ready.
  std::pair<std::unique_ptr<runtime::Session>, bool> recover_session(const PrepareOptions& o);
  /// Opens sessions until one is ready. DeadlineExceeded "Session was not ready after waiting N secs." as
  /// soon as the time left does not cover another wait.
  std::unique_ptr<runtime::Session> wait_for_session(
      const std::string& master, const runtime::SessionOptions& config = {},
      double max_wait_secs = std::numeric_limits<double>::infinity());

 private:
  struct Probe {
    bool ready = true;
    std::string message;
  };
  std::unique_ptr<runtime::Session> open(const std::string& master, runtime::SessionOptions config);
  std::pair<std::unique_ptr<runtime::Session>, bool> restore_checkpoint(const PrepareOptions& o);
  Probe probe(const Tensor& op, runtime::Session& session, const char* what);
  Probe try_run_local_init_op(runtime::Session& session);

  Graph& g_;
  SessionManagerOptions o_;
  Clock& clock_;
};

}  // namespace sluice::dsl::train
