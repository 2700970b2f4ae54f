#include "dsl/train/queue_runner.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>

#include "dsl/require.h"
#include "graph/support/log.h"
#include "passes/emit.h"
#include "runtime/io/wire.h"

namespace sluice::dsl::train {

using runtime::io::WireField;
using runtime::io::WireReader;
using runtime::io::WireWriter;

struct QueueRunner::State {
  std::mutex mutex;                          // guards running
  std::map<runtime::Session*, int> running;  // threads that have not seen the end of their input
};

QueueRunner::QueueRunner(const Output& queue, std::vector<Node*> enqueue_ops, Loc loc)
    : QueueRunner(queue.node ? queue.node->name() : std::string(), std::move(enqueue_ops), Ops{}) {
  graph::NameScope scope(queue.graph(), cat(name_, "_runner"));
  passes::Emit e{queue.graph(), loc};
  const bool ref = graph::is_ref(queue.node->output_type(queue.index));
  const char* op = ref ? "QueueClose" : "QueueCloseV2";
  ops_.close = &e.node(op, {queue}, "close", {{"cancel_pending_enqueues", false}});
  ops_.cancel = &e.node(op, {queue}, "cancel", {{"cancel_pending_enqueues", true}});
}

QueueRunner::QueueRunner(std::string name, std::vector<Node*> enqueue_ops, Ops ops)
    : name_(std::move(name)),
      enqueue_ops_(std::move(enqueue_ops)),
      ops_(std::move(ops)),
      state_(std::make_shared<State>()) {
  SLUICE_REQUIRE(!name_.empty(), Code::kInvalidArgument, "Must provide queue and enqueue_ops.");
  SLUICE_REQUIRE(!enqueue_ops_.empty(), Code::kInvalidArgument, "QueueRunner of '", name_,
                 "': Must provide queue and enqueue_ops.");
  SLUICE_REQUIRE(!ops_.queue_closed_exceptions.empty(), Code::kInvalidArgument, "QueueRunner of '", name_,
                 "': queue_closed_exceptions must name at least one kind of error");
}

// QueueRunnerDef: queue_name 1, enqueue_op_name 2*, close_op_name 3, cancel_op_name 4,
// queue_closed_exception_types 5* (codes).
std::string QueueRunner::to_def() const {
  WireWriter w;
  w.bytes_field(1, name_);
  for (const Node* n : enqueue_ops_) w.bytes_field(2, n->name());
  if (ops_.close) w.bytes_field(3, ops_.close->name());
  if (ops_.cancel) w.bytes_field(4, ops_.cancel->name());
  for (Code c : ops_.queue_closed_exceptions) w.varint_field(5, static_cast<uint64_t>(c));
  return w.take();
}

QueueRunner QueueRunner::from_def(Graph& g, const std::string& bytes) {
  WireReader in(bytes);
  std::string name;
  std::vector<Node*> enqueue;
  Ops ops;
  ops.queue_closed_exceptions.clear();
  auto op = [&](std::string_view n) { return n.empty() ? nullptr : &g.node(n); };
  for (WireField f; in.next(&f);) {
    if (f.is_bytes(1)) name = f.bytes;
    if (f.is_bytes(2)) enqueue.push_back(op(f.bytes));
    if (f.is_bytes(3)) ops.close = op(f.bytes);
    if (f.is_bytes(4)) ops.cancel = op(f.bytes);
    if (f.is_varint(5)) ops.queue_closed_exceptions.push_back(static_cast<Code>(f.value));
    if (f.is_bytes(5)) {  // packed
      std::string_view rest = f.bytes;
      for (uint64_t v; !rest.empty() && runtime::io::get_varint(&rest, &v);) {
        ops.queue_closed_exceptions.push_back(static_cast<Code>(v));
      }
    }
  }
  SLUICE_REQUIRE(in.sound(), Code::kDataLoss, "not a QueueRunnerDef message");
  if (ops.queue_closed_exceptions.empty()) ops.queue_closed_exceptions.push_back(Code::kOutOfRange);
  return QueueRunner(std::move(name), std::move(enqueue), std::move(ops));
}

void QueueRunner::create_threads(runtime::Session& session, Coordinator& coord) {
  {
    std::lock_guard lock(state_->mutex);
    int& running = state_->running[&session];
    if (running > 0) return;
    running = static_cast<int>(enqueue_ops_.size());
  }
  runtime::Session* s = &session;
  Coordinator* c = &coord;
  for (Node* enqueue : enqueue_ops_) {
    c->start_thread([state = state_, ops = ops_, enqueue, s, c] {
      // Counts this thread out; true when it was the last.
      auto leave = [&] {
        std::lock_guard lock(state->mutex);
        auto it = state->running.find(s);
        if (--it->second > 0) return false;
        state->running.erase(it);
        return true;
      };
      const std::vector<Node*> targets{enqueue};
      try {
        std::vector<runtime::Array> nothing;
        while (!c->should_stop()) s->run_into(nothing, {}, {}, targets);
        leave();
      } catch (const Error& e) {
        const bool last = leave();
        const auto& closed = ops.queue_closed_exceptions;
        if (std::find(closed.begin(), closed.end(), e.code()) == closed.end()) {
          // What a cancelled enqueue says on the way out is no news.
          if (c->should_stop() && e.code() == Code::kCancelled) return;
          throw;
        }
        if (!last || !ops.close) return;
        try {
          s->run({}, {}, {ops.close});
        } catch (const Error& ignored) {
          log_debug("Ignored exception: ", ignored.what());
        }
      }
    });
  }
  if (!ops_.cancel) return;
  c->start_thread([cancel = ops_.cancel, s, c] {
    c->wait_for_stop();
    try {
      s->run({}, {}, {cancel});
    } catch (const Error& ignored) {
      log_debug("Ignored exception: ", ignored.what());
    }
  });
}

void add_queue_runner(Graph& g, const QueueRunner& runner, const std::string& collection) {
  g.collections().add(collection, graph::OpaqueItem{runner.to_def(), false});
}

void start_queue_runners(runtime::Session& session, Coordinator& coord, const std::string& collection) {
  Graph& g = session.graph();
  if (g.collections().empty(collection)) return;
  for (const graph::CollectionItem& item : g.collections().get(collection)) {
    const auto* def = std::get_if<graph::OpaqueItem>(&item);
    const auto* text = std::get_if<std::string>(&item);
    SLUICE_REQUIRE(def || text, Code::kInvalidArgument, "The collection '", collection,
                   "' holds something else than queue runners");
    QueueRunner::from_def(g, def ? def->bytes : *text).create_threads(session, coord);
  }
}

}  // namespace sluice::dsl::train
