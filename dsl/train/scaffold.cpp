#include "dsl/train/scaffold.h"

#include <algorithm>

#include "dsl/ops/control.h"
#include "dsl/summary.h"
#include "dsl/train/readiness.h"
#include "dsl/variable.h"
#include "graph/support/log.h"

namespace sluice::dsl::train {

using graph::GraphElement;
namespace keys = graph::keys;

namespace {

void require_one(const char* collection, const char* field, size_t count) {
  SLUICE_REQUIRE(count <= 1, Code::kFailedPrecondition, "More than one item in the collection \"", collection,
                 "\". Please indicate which one to use by passing it to the tf.Scaffold constructor as:  "
                 "tf.Scaffold(",
                 field, "=item to use)");
}

// The single element of the collection, or what `build` makes, which joins it. `build` may make nothing.
template <class F>
GraphElement get_or_default(Graph& g, const char* collection, const char* field, int index, const F& build) {
  std::vector<GraphElement> have = g.collections().elements(collection);
  require_one(collection, field, have.size());
  if (!have.empty()) return have[0];
  Node* made = build();
  if (made == nullptr) return {};
  GraphElement e{made, index};
  g.collections().add(collection, e);
  return e;
}

Tensor tensor_of(const GraphElement& e) {
  return e.node ? Tensor(Output{e.node, std::max(e.index, 0)}) : Tensor();
}

std::vector<Node*> elements_of(Graph& g, const char* key) {
  std::vector<Node*> out;
  for (const GraphElement& e : g.collections().elements(key)) out.push_back(e.node);
  return out;
}

}  // namespace

std::vector<std::shared_ptr<Saver>>& savers(Graph& g) {
  std::any& slot = g.attachment("train/savers");
  if (!slot.has_value()) slot = std::vector<std::shared_ptr<Saver>>();
  return *std::any_cast<std::vector<std::shared_ptr<Saver>>>(&slot);
}

Scaffold::Scaffold(const ScaffoldOptions& o) : o_(o) {
  if (!o.copy_from_scaffold) return;
  const ScaffoldOptions& from = o.copy_from_scaffold->o_;
  if (!o_.init_op) o_.init_op = from.init_op;
  if (o_.init_feed_dict.empty()) o_.init_feed_dict = from.init_feed_dict;
  if (!o_.init_fn) o_.init_fn = from.init_fn;
  if (!o_.ready_op) o_.ready_op = from.ready_op;
  if (!o_.ready_for_local_init_op) o_.ready_for_local_init_op = from.ready_for_local_init_op;
  if (!o_.local_init_op) o_.local_init_op = from.local_init_op;
  if (!o_.summary_op) o_.summary_op = from.summary_op;
  if (!o_.saver) o_.saver = from.saver;
}

Node& Scaffold::default_local_init_op(Graph& g) {
  std::vector<Node*> all{&local_variables_initializer(g)};
  for (Node* n : elements_of(g, keys::kTableInitializers)) all.push_back(n);
  return group(g, all);
}

void Scaffold::finalize(Graph& g) {
  if (!o_.init_op) {
    o_.init_op = get_or_default(g, keys::kInitOp, "init_op", -1, [&] {
                   return &group(g, {&global_variables_initializer(g)});
                 }).node;
  }
  if (!o_.ready_op) {
    o_.ready_op =
        tensor_of(get_or_default(g, keys::kReadyOp, "ready_op", 0, [&] { return &ready_report(g).node(); }));
  }
  if (!o_.ready_for_local_init_op) {
    o_.ready_for_local_init_op =
        tensor_of(get_or_default(g, keys::kReadyForLocalInitOp, "ready_for_local_init_op", 0, [&] {
          return &report_uninitialized_variables(g, global_variables(g)).node();
        }));
  }
  if (!o_.local_init_op) {
    o_.local_init_op = get_or_default(g, keys::kLocalInitOp, "local_init_op", -1, [&] {
                         return &default_local_init_op(g);
                       }).node;
  }
  if (!o_.summary_op) {
    o_.summary_op = tensor_of(get_or_default(g, keys::kSummaryOp, "summary_op", 0, [&]() -> Node* {
      Tensor all = summary::merge_all(g);
      return all ? &all.node() : nullptr;
    }));
  }
  if (!o_.saver) {
    auto& list = savers(g);
    require_one(keys::kSavers, "saver", list.size());
    if (list.empty()) {
      list.push_back(std::make_shared<Saver>(g, SaverOptions{.sharded = true, .allow_empty = true}));
    }
    o_.saver = list[0];
  }
  if (g.finalized()) return;
  o_.saver->build();
  g.finalize();
  log_info("Graph was finalized.");
}

}  // namespace sluice::dsl::train
