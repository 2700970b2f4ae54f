#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "graph/support/check.h"
#include "graph/support/log.h"
#include "runtime/plan/concurrency.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/stages.h"
#include "runtime/rest.h"

namespace sluice::runtime {

using plan::OpId;
using plan::OpKind;
using plan::PlanGraph;
using plan::PlanOp;
using plan::PlanValue;
using plan::Storage;
using plan::ValueId;

// Turns the rewritten form into the frozen one.
class PlanBuilder {
 public:
  PlanBuilder(PlanGraph& g, const plan::BuildOptions& options) : g_(g), options_(options) {}

  std::shared_ptr<Plan> build(int num_feeds) {
    plan_ = std::make_shared<Plan>();
    order_ = plan::schedule(g_, options_);
    const plan::MemoryMap map = plan::plan_memory(g_, order_, options_);
    SLUICE_REQUIRE(options_.memory_limit == 0 || map.arena_bytes <= options_.memory_limit,
                   Code::kResourceExhausted, "The plan needs ", map.arena_bytes, " bytes of arena, ",
                   map.arena_bytes - options_.memory_limit,
                   " more than memory_limit = ", options_.memory_limit);
    make_constants();
    plan_->num_feeds_ = num_feeds;
    plan_->values_of_feed_.resize(static_cast<size_t>(num_feeds));
    step_of_op_.assign(g_.ops.size(), -1);
    const auto preds = g_.predecessors();
    for (OpId id : order_) {
      add_step(g_.op(id), map.scratch[static_cast<size_t>(id)], id);
      edges(id, preds[static_cast<size_t>(id)]);
    }
    plan_->arena_bytes_ = map.arena_bytes;
    plan_->live_peak_ = map.live_peak;
    plan_->forward_only_ = g_.forward_only;
    plan_->fetches_ = g_.fetches;
    plan_->boundary_ = g_.boundary;
    bind();
    if (options_.inter_op_threads != 1) plan::allow_concurrency(g_, plan_->steps_, plan_->successors_);
    plan_->values_ = std::move(g_.values);
    for (PlanValue& v : plan_->values_) v.literal.reset();
    return plan_;
  }

 private:
  void make_constants() {
    std::vector<char> used(g_.values.size(), 0);
    auto use = [&](ValueId v) {
      if (v >= 0) used[static_cast<size_t>(plan::buffer_root(g_, v))] = 1;
    };
    for (OpId id : order_)
      for (ValueId v : g_.op(id).inputs) use(v);
    for (ValueId v : g_.fetches) use(v);
    for (ValueId v : g_.boundary) use(v);
    for (size_t k = 0; k < g_.values.size(); ++k) {
      PlanValue& v = g_.values[k];
      if (v.storage != Storage::kConstant || !used[k] || v.constant) continue;
      SLUICE_CHECK(v.literal.has_value(), "constant ", v.name, " has no value");
      v.constant = options_.constants ? options_.constants->get(*v.literal) : Array::from_literal(*v.literal);
    }
  }

  void add_step(const PlanOp& o, size_t scratch, OpId id) {
    Step s;
    s.op = o.op;
    s.node = o.node;
    s.inputs = o.inputs;
    s.outputs = o.outputs;
    if (o.kind == OpKind::kView) {
      if (g_.value(o.outputs[0]).storage != Storage::kDynamic) return;
      s.kind = StepKind::kShare;
      s.inputs.resize(1);
      s.candidate = "view";
    } else if (o.kind == OpKind::kRead) {
      s.kind = StepKind::kRead;
      s.hold = plan_->num_holds_++;
      plan_->values_of_hold_.push_back({o.outputs[0]});
      const graph::AttrValue* ref = o.attrs.count("is_ref") ? &o.attrs.at("is_ref") : nullptr;
      s.is_ref = ref && ref->get_if<bool>() && *ref->get_if<bool>();
      s.candidate = "read";
      hold_of_value_[o.outputs[0]] = s.hold;
    } else if (o.kind == OpKind::kBarrier) {
      return;
    } else {
      SLUICE_CHECK(o.kernel != nullptr, "op ", o.op, " has no kernel");
      s.owned = o.kernel;
      s.kernel = o.kernel.get();
      s.candidate = o.candidate;
      s.scratch = scratch;
      s.may_block = o.has(graph::kMayBlock);
    }
    for (const graph::Node* n : o.nodes)
      if (std::find(s.nodes.begin(), s.nodes.end(), n->name()) == s.nodes.end()) s.nodes.push_back(n->name());
    s.name = o.node ? o.node->name() : o.op;
    s.refusals = o.refusals;
    s.region = o.region;
    s.first_slot = plan_->num_slots_;
    plan_->num_slots_ += static_cast<int>(s.inputs.size() + s.outputs.size());
    step_of_op_[static_cast<size_t>(id)] = static_cast<int>(plan_->steps_.size());
    plan_->steps_.push_back(std::move(s));
  }

  // Steps before this op, views and barriers expanded.
  void edges(OpId id, const std::vector<OpId>& preds) {
    std::vector<int> before;
    for (OpId p : preds) {
      const int s = step_of_op_[static_cast<size_t>(p)];
      if (s >= 0)
        before.push_back(s);
      else if (const auto it = through_.find(p); it != through_.end())
        before.insert(before.end(), it->second.begin(), it->second.end());
    }
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    const int own = step_of_op_[static_cast<size_t>(id)];
    if (own >= 0)
      plan_->steps_[static_cast<size_t>(own)].after = std::move(before);
    else if (!before.empty())
      through_[id] = std::move(before);
  }

  void bind() {
    Plan& p = *plan_;
    p.slots_of_value_.resize(g_.values.size());
    p.dynamic_of_value_.assign(g_.values.size(), -1);
    std::vector<int> last_step(static_cast<size_t>(p.num_holds_), -1);
    for (size_t k = 0; k < p.steps_.size(); ++k) {
      Step& s = p.steps_[k];
      int slot = s.first_slot;
      for (const auto* list : {&s.inputs, &s.outputs})
        for (ValueId v : *list) p.slots_of_value_[static_cast<size_t>(v)].push_back(slot++);
      for (ValueId v : s.inputs)
        if (const auto it = hold_of_value_.find(plan::buffer_root(g_, v)); it != hold_of_value_.end())
          last_step[static_cast<size_t>(it->second)] = static_cast<int>(k);
    }
    for (size_t v = 0; v < g_.values.size(); ++v) {
      const ValueId id = static_cast<ValueId>(v), root = plan::buffer_root(g_, id);
      const PlanValue& r = g_.value(root);
      if (r.storage == Storage::kFeed && r.feed >= 0)
        p.values_of_feed_[static_cast<size_t>(r.feed)].push_back(id);
      if (root != id)
        if (const auto it = hold_of_value_.find(root); it != hold_of_value_.end())
          p.values_of_hold_[static_cast<size_t>(it->second)].push_back(id);
      if (r.storage == Storage::kDynamic && root == id) p.dynamic_of_value_[v] = p.num_dynamics_++;
    }
    for (Step& s : p.steps_)
      for (size_t j = 0; j < s.outputs.size(); ++j)
        if (p.dynamic_of_value_[static_cast<size_t>(s.outputs[j])] >= 0)
          s.dynamic_outputs.push_back(static_cast<int>(j));
    std::vector<char> kept(static_cast<size_t>(p.num_holds_), 0);
    for (const auto* list : {&g_.fetches, &g_.boundary})
      for (ValueId v : *list)
        if (v >= 0)
          if (const auto it = hold_of_value_.find(plan::buffer_root(g_, v)); it != hold_of_value_.end())
            kept[static_cast<size_t>(it->second)] = 1;
    for (size_t h = 0; h < kept.size(); ++h)
      if (!kept[h] && last_step[h] >= 0)
        p.steps_[static_cast<size_t>(last_step[h])].release.push_back(static_cast<int>(h));
  }

  PlanGraph& g_;
  const plan::BuildOptions& options_;
  std::shared_ptr<Plan> plan_;
  std::vector<OpId> order_;
  std::vector<int> step_of_op_;
  std::map<OpId, std::vector<int>> through_;
  std::map<ValueId, int> hold_of_value_;
};

void Plan::attach(std::unique_ptr<plan::Cut> cut, std::vector<plan::VariableUse> variables,
                  std::vector<plan::PassTime> passes, double seconds) {
  cut_ = std::move(cut);
  if (cut_) rest_ = std::make_shared<RestCache>();
  variables_ = std::move(variables);
  passes_ = std::move(passes);
  compile_seconds_ = seconds;
}

namespace {

void dump(const plan::BuildOptions& options, int number, const Plan& plan) {
  if (options.dump_dir.empty()) return;
  for (auto [suffix, text] : {std::pair{".txt", plan.str()}, std::pair{".json", plan.json()}}) {
    const std::string path = cat(options.dump_dir, "/plan", number, "_final", suffix);
    std::ofstream out(path);
    out << text;
    if (!out) log_warning("cannot write ", path);
  }
}

void dump_nodes(const plan::BuildOptions& options, int number, const std::vector<graph::Node*>& nodes) {
  if (options.dump_dir.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(options.dump_dir, ignored);
  std::vector<graph::Node*> sorted = nodes;
  std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) { return a->id() < b->id(); });
  const std::string path = cat(options.dump_dir, "/plan", number, "_graph.txt");
  std::ofstream out(path);
  for (const graph::Node* n : sorted) out << n->str() << '\n';
  if (!out) log_warning("cannot write ", path);
}

}  // namespace

PlanResult build_plan(const plan::LowerRequest& request, const plan::BuildOptions& options, int num_feeds) {
  const auto start = std::chrono::steady_clock::now();
  plan::Lowered lowered = plan::lower(request, options);
  PlanResult result;
  result.nodes = std::move(lowered.nodes);
  result.by_value = std::move(lowered.by_value);
  if (!result.by_value.empty()) return result;
  plan::check_placement(result.nodes, options);
  if (options.plan_counter) lowered.graph.number = options.plan_counter->fetch_add(1);
  dump_nodes(options, lowered.graph.number, result.nodes);
  std::vector<plan::PassTime> passes = plan::run_pipeline(lowered.graph, options);
  plan::choose_kernels(lowered.graph, options);
  plan::order_writes(lowered.graph);
  lowered.graph.check();
  result.plan = PlanBuilder(lowered.graph, options).build(num_feeds);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  result.plan->attach(std::move(lowered.cut), std::move(lowered.variables), std::move(passes), took.count());
  dump(options, lowered.graph.number, *result.plan);
  return result;
}

}  // namespace sluice::runtime
