#pragma once
// Session creators: how a monitored session gets its session, the first time and after each recovery
// (graph-and-training §6.3). One thread at a time.

#include <memory>
#include <optional>
#include <string>

#include "dsl/train/clock.h"
#include "dsl/train/scaffold.h"
#include "runtime/session.h"

namespace sluice::dsl::train {

class SessionCreator {
 public:
  virtual ~SessionCreator() = default;
  /// A session whose variables are ready; the graph is final from now on.
  virtual std::unique_ptr<runtime::Session> create_session() = 0;
  virtual Graph& graph() = 0;
};

struct ChiefSessionCreatorOptions {
  std::shared_ptr<Scaffold> scaffold = nullptr;  // null: a default one; shared with the hooks
  std::string master = {};                       // "" or "local:NAME"
  runtime::SessionOptions config = {};
  std::string checkpoint_dir = {};                 // restores its latest
  std::string checkpoint_filename_with_path = {};  // or this one
  Clock* clock = nullptr;                          // null: the system's
};

/// Restores or initialises.
class ChiefSessionCreator final : public SessionCreator {
 public:
  explicit ChiefSessionCreator(Graph& g, ChiefSessionCreatorOptions o = {});
  std::unique_ptr<runtime::Session> create_session() override;
  Graph& graph() override { return g_; }

 private:
  Graph& g_;
  ChiefSessionCreatorOptions o_;
};

struct WorkerSessionCreatorOptions {
  std::shared_ptr<Scaffold> scaffold = nullptr;
  std::string master = {};
  runtime::SessionOptions config = {};
  double max_wait_secs = 30 * 60;
  std::optional<double> recovery_wait_secs = {};  // default 30, and 0.05 beside the chief in one process
  Clock* clock = nullptr;
};

/// Waits until the chief has made the model ready.
class WorkerSessionCreator final : public SessionCreator {
 public:
  explicit WorkerSessionCreator(Graph& g, WorkerSessionCreatorOptions o = {});
  std::unique_ptr<runtime::Session> create_session() override;
  Graph& graph() override { return g_; }

 private:
  Graph& g_;
  WorkerSessionCreatorOptions o_;
};

}  // namespace sluice::dsl::train
