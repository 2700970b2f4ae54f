#include "dsl/train/run_merger.h"

#include <algorithm>

#include "graph/support/check.h"

namespace sluice::dsl::train {

namespace {

// More ways to ask than a run of hooks has; a program that has more merges again.
constexpr size_t kKept = 16;

bool same_keys(const std::vector<Feed>& feeds, const std::vector<Output>& keys) {
  if (feeds.size() != keys.size()) return false;
  for (size_t i = 0; i < keys.size(); ++i)
    if (!(feeds[i].output == keys[i])) return false;
  return true;
}

std::vector<Output> keys_of(const std::vector<Feed>& feeds) {
  std::vector<Output> keys;
  for (const Feed& f : feeds) keys.push_back(f.output);
  return keys;
}

// Both lists' common tensors, or nothing.
void require_disjoint(const std::vector<Output>& a, const std::vector<Output>& b, const char* message) {
  std::string common;
  for (const Output& x : b) {
    if (std::find(a.begin(), a.end(), x) == a.end()) continue;
    common += (common.empty() ? "" : ", ") + x.name();
  }
  SLUICE_REQUIRE(common.empty(), Code::kFailedPrecondition, message, " Conflict(s): [", common, "]");
}

// The caller's arrays travel in the merged list and come back, whatever happens: writing into them in place
// is what saves allocations.
class Lend {
 public:
  Lend(std::vector<Array>& user, std::vector<Array>& all, size_t n) : user_(user), all_(all), n_(n) {
    user_.resize(n_);
    std::move(user_.begin(), user_.end(), all_.begin());
  }
  ~Lend() { std::move(all_.begin(), all_.begin() + static_cast<std::ptrdiff_t>(n_), user_.begin()); }

 private:
  std::vector<Array>& user_;
  std::vector<Array>& all_;
  size_t n_;
};

}  // namespace

bool RunMerger::HookPart::same(const SessionRunArgs* args) const {
  if (args == nullptr) return !given;
  return given && args->fetches == fetches && args->targets == targets && same_keys(args->feeds, feeds);
}

bool RunMerger::Merged::serves(const SessionRunContext& c,
                               const std::vector<const SessionRunArgs*>& args) const {
  if (c.original_fetches() != user_fetches || c.original_targets() != user_targets) return false;
  if (!same_keys(c.original_feeds(), user_feeds)) return false;
  for (size_t i = 0; i < args.size(); ++i)
    if (!hooks[i].same(args[i])) return false;
  return true;
}

std::unique_ptr<RunMerger::Merged> RunMerger::merge(const SessionRunContext& context) const {
  auto m = std::make_unique<Merged>();
  m->fetches = m->user_fetches = context.original_fetches();
  m->targets = m->user_targets = context.original_targets();
  m->user_feeds = keys_of(context.original_feeds());
  m->hooks.resize(hooks_.size());
  std::vector<Output> hook_feeds;
  for (size_t i = 0; i < hooks_.size(); ++i) {
    if (args_[i] == nullptr) continue;
    const SessionRunArgs& a = *args_[i];
    HookPart& part = m->hooks[i];
    part.given = true;
    part.fetches = a.fetches;
    part.targets = a.targets;
    part.feeds = keys_of(a.feeds);
    require_disjoint(hook_feeds, part.feeds, "Same tensor is fed by two hooks.");
    hook_feeds.insert(hook_feeds.end(), part.feeds.begin(), part.feeds.end());
    for (const Output& f : a.fetches) {
      auto at = std::find(m->fetches.begin(), m->fetches.end(), f);
      part.places.push_back(static_cast<int>(at - m->fetches.begin()));
      if (at == m->fetches.end()) m->fetches.push_back(f);
    }
    for (Node* n : a.targets)
      if (std::find(m->targets.begin(), m->targets.end(), n) == m->targets.end()) m->targets.push_back(n);
  }
  require_disjoint(m->user_feeds, hook_feeds, "Same tensor is fed by a SessionRunHook and user.");
  m->hooks_feed = !hook_feeds.empty();
  m->feeds.resize(m->user_feeds.size() + hook_feeds.size());
  m->values.resize(m->fetches.size());
  return m;
}

RunMerger::Merged& RunMerger::merged(const SessionRunContext& context) {
  for (size_t i = 0; i < merged_.size(); ++i) {
    if (!merged_[i]->serves(context, args_)) continue;
    if (i > 0)
      std::rotate(merged_.begin(), merged_.begin() + static_cast<std::ptrdiff_t>(i),
                  merged_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    return *merged_.front();
  }
  std::unique_ptr<Merged> made = merge(context);
  if (merged_.size() >= kKept) merged_.pop_back();
  merged_.insert(merged_.begin(), std::move(made));
  return *merged_.front();
}

void RunMerger::fill_feeds(Merged& m, const SessionRunContext& context) const {
  size_t k = 0;
  for (const Feed& f : context.original_feeds()) m.feeds[k++] = f;
  for (const SessionRunArgs* a : args_) {
    if (!a) continue;
    for (const Feed& f : a->feeds) m.feeds[k++] = f;
  }
}

RunOptions RunMerger::merge_options(const RunOptions& options) const {
  RunOptions all = options;
  for (const SessionRunArgs* a : args_) {
    if (!a || !a->options) continue;
    const RunOptions& o = *a->options;
    all.trace_level = std::max(all.trace_level, o.trace_level);
    all.timeout_ms = std::max(all.timeout_ms, o.timeout_ms);
    all.output_partition_graphs = all.output_partition_graphs || o.output_partition_graphs;
  }
  return all;
}

void RunMerger::run(SessionRunContext& context, std::vector<Array>& results, const RunOptions& options,
                    RunMetadata& metadata) {
  bool any = false, any_options = false;
  for (size_t i = 0; i < hooks_.size(); ++i) {
    args_[i] = hooks_[i]->before_run(context);
    any = any || args_[i] != nullptr;
    any_options = any_options || (args_[i] && args_[i]->options);
  }
  Session& session = context.session();
  if (!any) {
    session.run_into(results, context.original_fetches(), context.original_feeds(),
                     context.original_targets(), options, &metadata);
    for (const auto& hook : hooks_)
      hook->after_run(context, SessionRunValues(results, nullptr, 0, options, metadata));
    return;
  }
  Merged& m = merged(context);
  if (m.hooks_feed) fill_feeds(m, context);
  const std::vector<Feed>& feeds = m.hooks_feed ? m.feeds : context.original_feeds();
  RunOptions merged_options;
  if (any_options) merged_options = merge_options(options);
  const RunOptions& used = any_options ? merged_options : options;
  Lend lend(results, m.values, m.user_fetches.size());
  session.run_into(m.values, m.fetches, feeds, m.targets, used, &metadata);
  for (size_t i = 0; i < hooks_.size(); ++i) {
    const std::vector<int>& places = m.hooks[i].places;
    hooks_[i]->after_run(context, SessionRunValues(m.values, places.data(), places.size(), used, metadata));
  }
}

}  // namespace sluice::dsl::train
