#include "dsl/train/evaluation.h"

#include <algorithm>
#include <cmath>
#include <ctime>

#include "dsl/summary.h"
#include "dsl/train/hook_support.h"
#include "dsl/variable_store.h"
#include "graph/support/log.h"

namespace sluice::dsl::train {

std::optional<std::string> wait_for_new_checkpoint(const std::string& checkpoint_dir, const std::string& last,
                                                   double seconds_to_sleep,
                                                   std::optional<double> timeout_secs, Clock& clock) {
  log_info("Waiting for new checkpoint at ", checkpoint_dir);
  const double start = clock.now();
  for (;;) {
    std::string path = latest_checkpoint(checkpoint_dir);
    if (!path.empty() && path != last) {
      log_info("Found new checkpoint at ", path);
      return path;
    }
    if (timeout_secs && clock.now() + seconds_to_sleep > start + *timeout_secs) return std::nullopt;
    clock.sleep(seconds_to_sleep);
  }
}

CheckpointsIterator::CheckpointsIterator(std::string checkpoint_dir, CheckpointsIteratorOptions o)
    : dir_(std::move(checkpoint_dir)), o_(std::move(o)), clock_(o_.clock ? *o_.clock : Clock::system()) {}

std::optional<std::string> CheckpointsIterator::next() {
  if (started_) {
    const double wait = *started_ + o_.min_interval_secs - clock_.now();
    if (wait > 0) clock_.sleep(wait);
  }
  for (;;) {
    auto path = wait_for_new_checkpoint(dir_, last_, 1, o_.timeout_secs, clock_);
    if (path) {
      started_ = clock_.now();
      last_ = *path;
      return path;
    }
    if (!o_.timeout_fn) {
      log_info("Timed-out waiting for a checkpoint.");
      return std::nullopt;
    }
    if (o_.timeout_fn()) return std::nullopt;
  }
}

Variable get_or_create_eval_step(Graph& g, Loc loc) {
  std::vector<Variable> have = get_variables(g, graph::keys::kEvalStep);
  SLUICE_REQUIRE(have.size() <= 1, Code::kFailedPrecondition,
                 "Multiple tensors added to `eval_step` collection.");
  if (!have.empty()) return have[0];
  VariableStore& store = VariableStore::of(g);
  VariableOptions o;
  o.dtype = DType::kInt64;
  o.initializer = zeros_initializer();
  o.trainable = false;
  o.collections = {graph::keys::kLocalVariables, graph::keys::kEvalStep};
  Variable step = create_variable(g, "eval_step", /*scoped=*/false, {}, o, true, loc);
  store.variables["eval_step"] = {step, loc};
  return step;
}

StopAfterNEvalsHook::StopAfterNEvalsHook(std::optional<int64_t> num_evals, bool log_progress)
    : num_evals_(num_evals), log_progress_(log_progress) {
  if (num_evals && *num_evals >= 20) log_every_ = *num_evals / 10;
}

void StopAfterNEvalsHook::begin(const HookSetup&) {
  SLUICE_REQUIRE(
      completed_, Code::kFailedPrecondition,
      "StopAfterNEvalsHook counts the steps of evaluate_once and evaluate_repeatedly; elsewhere call "
      "set_evals_completed first");
  args_.fetches = {completed_};
}

void StopAfterNEvalsHook::after_run(SessionRunContext& context, const SessionRunValues& values) {
  const auto done = values[0].item<int64_t>();
  if (log_progress_) {
    if (!num_evals_) {
      log_info("Evaluation [", done, "]");
    } else if (done % log_every_ == 0 || done == *num_evals_) {
      log_info("Evaluation [", done, "/", *num_evals_, "]");
    }
  }
  if (num_evals_ && done >= *num_evals_) context.request_stop();
}

SummaryAtEndHook::SummaryAtEndHook(SummaryAtEndOptions o) : o_(std::move(o)), writer_(o_.summary_writer) {
  SLUICE_REQUIRE(writer_ || !o_.log_dir.empty(), Code::kInvalidArgument,
                 "SummaryAtEndHook needs a log_dir or a summary_writer");
}

void SummaryAtEndHook::begin(const HookSetup& setup) {
  summary_ = o_.summary_op;
  if (!summary_) o_.summary_op = summary_ = summary::merge_all(setup.graph);
  get_or_create_global_step(setup.graph);
  step_ = get_or_create_global_step_read(setup.graph);
  if (!writer_) writer_ = FileWriterCache::get(o_.log_dir);
}

void SummaryAtEndHook::end(Session& session) {
  const int64_t step = read_step(session, step_);
  if (summary_) writer_->add_summary(session.run({summary_}, o_.feed_dict)[0], step);
  writer_->flush();
}

namespace {

std::string time_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

// What both functions share: the count of steps, made once a graph, and one session a checkpoint.
class Evaluation {
 public:
  Evaluation(Graph& g, const EvaluateOptions& o)
      : g_(g),
        o_(o),
        scaffold_(o.scaffold ? o.scaffold : std::make_shared<Scaffold>()),
        final_ops_(std::make_shared<FinalOpsHook>(o.final_ops, o.final_ops_feed_dict)),
        hooks_(o.hooks) {
    if (!o.eval_ops.empty() || !o.eval_targets.empty()) {
      fetches_ = o.eval_ops;
      const Tensor count = counter();
      fetches_.push_back(count);
      for (const auto& hook : hooks_) {
        if (auto* stop = dynamic_cast<StopAfterNEvalsHook*>(hook.get())) stop->set_evals_completed(count);
      }
    }
    hooks_.push_back(final_ops_);
  }

  void run(const std::string& checkpoint) {
    log_info("Starting evaluation at ", time_text());
    auto creator = std::make_shared<ChiefSessionCreator>(
        g_, ChiefSessionCreatorOptions{.scaffold = scaffold_,
                                       .master = o_.master,
                                       .config = o_.config,
                                       .checkpoint_filename_with_path = checkpoint,
                                       .clock = o_.clock});
    MonitoredSession session(creator, hooks_, {.clock = o_.clock});
    session.with([&] {
      if (fetches_.empty()) return;
      std::vector<Array> values;
      while (!session.should_stop()) session.run_into(values, fetches_, o_.feed_dict, o_.eval_targets);
    });
    log_info("Finished evaluation at ", time_text());
  }

  const std::vector<Array>& values() const { return final_ops_->final_ops_values(); }

 private:
  Tensor counter() {
    std::any& slot = g_.attachment("train/eval_step_update");
    if (!slot.has_value()) slot = assign_add(get_or_create_eval_step(g_), 1);
    return *std::any_cast<Tensor>(&slot);
  }

  Graph& g_;
  const EvaluateOptions& o_;
  std::shared_ptr<Scaffold> scaffold_;
  std::shared_ptr<FinalOpsHook> final_ops_;
  Hooks hooks_;
  std::vector<Output> fetches_;
};

}  // namespace

std::vector<Array> evaluate_once(Graph& g, const std::string& checkpoint_path, const EvaluateOptions& o) {
  Evaluation e(g, o);
  e.run(checkpoint_path);
  return e.values();
}

std::vector<Array> evaluate_repeatedly(Graph& g, const std::string& checkpoint_dir,
                                       const EvaluateOptions& o) {
  Evaluation e(g, o);
  CheckpointsIterator checkpoints(checkpoint_dir, {.min_interval_secs = o.eval_interval_secs,
                                                   .timeout_secs = o.timeout_secs,
                                                   .timeout_fn = o.timeout_fn,
                                                   .clock = o.clock});
  int64_t done = 0;
  while (auto path = checkpoints.next()) {
    e.run(*path);
    if (o.max_number_of_evaluations && ++done >= *o.max_number_of_evaluations) break;
  }
  return e.values();
}

}  // namespace sluice::dsl::train
