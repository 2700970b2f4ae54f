#include "runtime/rest.h"

#include <algorithm>
#include <cstring>

namespace sluice::runtime {
namespace {

// What one finished part hands on: the values it was fed, by the feed numbers of `given`.
struct Part {
  const Plan* plan = nullptr;
  const RunContext* context = nullptr;
  std::vector<plan::Given> given;
  std::vector<Array> feeds;
};

plan::LowerRequest request_for(const RestEnvironment& rest, const RunRequest& request, const Part& part,
                               const std::vector<size_t>& open, std::vector<Array>& feeds) {
  const plan::Cut& cut = *part.plan->cut();
  plan::LowerRequest lower;
  lower.graph = &rest.graph;
  lower.only = cut.nodes;
  lower.targets = request.targets;
  lower.given = cut.given;
  for (int f : cut.feeds) {
    plan::Given g = part.given[static_cast<size_t>(f)];
    feeds.push_back(part.feeds[static_cast<size_t>(g.feed)]);
    g.feed = static_cast<int>(feeds.size()) - 1;
    lower.given.push_back(std::move(g));
  }
  for (size_t b = 0; b < cut.boundary.size(); ++b) {
    feeds.push_back(Executor::value(*part.plan, *part.context, part.plan->boundary()[b]));
    plan::Given g;
    g.output = cut.boundary[b];
    g.spec = {feeds.back().dtype(), feeds.back().dims(), {}};
    g.feed = static_cast<int>(feeds.size()) - 1;
    if (cut.by_value[b]) g.value = feeds.back().to_literal();
    lower.given.push_back(std::move(g));
  }
  for (size_t k : open) lower.fetches.push_back(request.fetches[k]);
  return lower;
}

std::shared_ptr<RestEntry> compile(const RestEnvironment& rest, plan::LowerRequest lower,
                                   const std::vector<Array>& feeds) {
  for (;;) {
    PlanResult built = build_plan(lower, rest.build, static_cast<int>(feeds.size()));
    if (built.plan) return std::make_shared<RestEntry>(std::move(built.plan), std::move(lower.given));
    for (int k : built.by_value) {
      plan::Given& g = lower.given[static_cast<size_t>(k)];
      g.value = feeds[static_cast<size_t>(g.feed)].to_literal();
    }
  }
}

}  // namespace

bool RestEntry::serves(const std::vector<Array>& feeds) const {
  for (const plan::Given& g : given) {
    if (g.feed < 0) continue;
    const Array& a = feeds[static_cast<size_t>(g.feed)];
    if (a.dtype() != g.spec.dtype || a.dims() != g.spec.dims) return false;
    if (g.value && !(a.to_literal() == *g.value)) return false;
  }
  for (const plan::VariableUse& u : contexts.plan().variables())
    if (u.variable->spec_hash() != u.spec_hash) return false;
  return true;
}

std::shared_ptr<RestEntry> RestCache::find(const std::vector<Array>& feeds) {
  std::lock_guard lock(mutex_);
  for (auto it = entries_.rbegin(); it != entries_.rend(); ++it)
    if ((*it)->serves(feeds)) {
      std::rotate(it.base() - 1, it.base(), entries_.end());
      return entries_.back();
    }
  return nullptr;
}

void RestCache::insert(std::shared_ptr<RestEntry> entry) {
  std::lock_guard lock(mutex_);
  if (entries_.size() >= kCapacity) entries_.erase(entries_.begin());
  entries_.push_back(std::move(entry));
}

void run_rest(const RestEnvironment& rest, const RunRequest& request, const Plan& first, RunContext& context,
              RunEnvironment& env, std::vector<Array>& results) {
  std::vector<size_t> open;  // fetches that no part has made yet
  for (size_t k = 0; k < request.fetches.size(); ++k)
    if (first.fetches()[k] < 0) open.push_back(k);

  Part part{&first, &context, {}, {}};
  for (size_t i = 0; i < request.feeds.size(); ++i) {
    const Array& v = *context.feeds[i];
    plan::Given g;
    g.output = request.feeds[i].output;
    g.spec = {v.dtype(), v.dims(), {}};
    g.feed = static_cast<int>(i);
    part.given.push_back(std::move(g));
    part.feeds.push_back(v);
  }

  // The part under way keeps its arena, context and plan until the next one has taken its values.
  struct Lease {
    ArenaPool& arenas;
    std::shared_ptr<RestEntry> entry;
    std::unique_ptr<RunContext> context;
    std::unique_ptr<Arena> arena;
    ~Lease() {
      if (context) entry->contexts.give_back(std::move(context));
      arenas.give_back(std::move(arena));
    }
  };
  std::unique_ptr<Lease> held;
  while (part.plan->is_cut()) {
    std::vector<Array> feeds;
    plan::LowerRequest lower = request_for(rest, request, part, open, feeds);
    RestCache& cache = part.plan->rest();
    std::shared_ptr<RestEntry> entry = cache.find(feeds);
    if (!entry) {
      entry = compile(rest, std::move(lower), feeds);
      cache.insert(entry);
    }
    auto lease = std::make_unique<Lease>(rest.arenas);
    lease->entry = entry;
    const Plan& plan = entry->contexts.plan();
    lease->arena = rest.arenas.lease(plan.arena_bytes(), *env.queue);
    lease->context = entry->contexts.lease();
    lease->context->bind_arena(lease->arena->data());
    for (size_t i = 0; i < feeds.size(); ++i) lease->context->feeds[i] = &feeds[i];
    lease->context->bind_feeds();
    Executor::run(plan, *lease->context, env);
    std::vector<size_t> still_open;
    for (size_t i = 0; i < open.size(); ++i) {
      const plan::ValueId v = plan.fetches()[i];
      if (v >= 0)
        Executor::store(plan, *lease->context, v, results[open[i]]);
      else
        still_open.push_back(open[i]);
    }
    open = std::move(still_open);
    part = {&plan, lease->context.get(), entry->given, std::move(feeds)};
    for (size_t i = 0; i < part.feeds.size(); ++i) lease->context->feeds[i] = &part.feeds[i];
    held = std::move(lease);
  }
}

}  // namespace sluice::runtime
