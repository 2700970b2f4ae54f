#pragma once
// Threads that keep queues filled (graph-and-training §6.4). A QueueRunner has one thread an enqueue op,
// which runs it again and again, and one that cancels waiting enqueues when the coordinator stops. Graphs
// keep their runners in QUEUE_RUNNERS, as the QueueRunnerDefs that files carry. Build with the builder's
// thread; starting is for any.
//
//   add_queue_runner(g, QueueRunner(queue, {&enqueue}));
//   start_queue_runners(session, coord);

#include <memory>
#include <string>
#include <vector>

#include "dsl/tensor.h"
#include "dsl/train/coordinator.h"
#include "runtime/session.h"

namespace sluice::dsl::train {

class QueueRunner {
 public:
  struct Ops {
    Node* close = nullptr;   // run when the last thread has seen the end of its input
    Node* cancel = nullptr;  // run when the coordinator stops
    std::vector<Code> queue_closed_exceptions = {Code::kOutOfRange};  // errors that mean the end of the input
  };

  /// Adds the ops that close the queue `queue` (its handle) and cancel what waits on it.
  QueueRunner(const Output& queue, std::vector<Node*> enqueue_ops, Loc loc = Loc::current());
  /// InvalidArgument without a name or an enqueue op.
  QueueRunner(std::string name, std::vector<Node*> enqueue_ops, Ops ops);
  /// From a serialized QueueRunnerDef, whose ops `g` must have.
  static QueueRunner from_def(Graph& g, const std::string& bytes);
  std::string to_def() const;

  /// Starts the threads; nothing when this runner's threads already run in this session. The session must
  /// stay until they have ended.
  void create_threads(runtime::Session& session, Coordinator& coord);

  const std::string& name() const { return name_; }
  const std::vector<Node*>& enqueue_ops() const { return enqueue_ops_; }
  const Ops& ops() const { return ops_; }

 private:
  struct State;
  std::string name_;
  std::vector<Node*> enqueue_ops_;
  Ops ops_;
  std::shared_ptr<State> state_;  // shared with the threads, which may outlive this object
};

/// Adds it to the graph's `collection`.
void add_queue_runner(Graph& g, const QueueRunner& runner,
                      const std::string& collection = graph::keys::kQueueRunners);
/// Starts the threads of every runner in the graph's `collection`.
void start_queue_runners(runtime::Session& session, Coordinator& coord,
                         const std::string& collection = graph::keys::kQueueRunners);

}  // namespace sluice::dsl::train
