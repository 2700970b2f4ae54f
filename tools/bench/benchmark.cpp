#include "tools/bench/benchmark.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

#include "graph/graphdef.h"
#include "graph/support/check.h"
#include "graph/support/log.h"
#include "runtime/trace.h"
#include "tools/bench/checkpoint.h"
#include "tools/bench/environment.h"
#include "tools/bench/evaluation.h"
#include "tools/bench/input.h"
#include "tools/bench/model_graph.h"

namespace sluice::bench {

namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// The loop of a training or forward-only run.
class StepLoop {
 public:
  StepLoop(const Settings& settings, Output& out)
      : s_(settings), out_(out), model_(build_model_graph(settings, settings.mode)) {
    if (!s_.train_dir.empty()) saver_.emplace(*model_);
    out_.line("Initializing graph");
    if (!s_.graph_file.empty()) {
      const bool text = s_.graph_file.ends_with("txt");
      out_.line(cat("Writing GraphDef as ", text ? "text" : "binary", " to ", s_.graph_file));
      graph::write_graph_file(model_->graph, s_.graph_file);
    }
    session_.emplace(model_->graph, session_options(s_));
    session_->run({}, {}, {model_->init});
    if (saver_) restored_step_ = saver_->restore_latest(*session_, s_.train_dir);
    if (!s_.synthetic) input_.emplace(s_, /*training=*/true, /*repeat=*/true);
    if (model_->loss) fetches_.push_back(model_->loss);
    if (model_->top_1_count) {
      fetches_.push_back(model_->top_1_count);
      fetches_.push_back(model_->top_5_count);
    }
    if (model_->train_op != nullptr) targets_.push_back(model_->train_op);
  }

  /// Returns false when a signal ended it.
  bool warm_up() {
    out_.line("Running warm up");
    for (int64_t i = 0; i < s_.warmup_batches; ++i) {
      step(i + 1 == s_.warmup_batches && !s_.trace_file.empty());
      if (stop_signal() != 0) return false;
    }
    if (s_.warmup_batches == 0 && !s_.trace_file.empty())
      log_warning("no trace is written to ", s_.trace_file,
                  ": it shows the last warm-up step, and there is none");
    out_.line("Done warm up");
    return true;
  }

  bool timed_steps() {
    out_.header(s_.print_accuracy);
    // The target counts from the first run on: a resumed run does the rest (benchmark-tool §6.4).
    const int64_t target = std::max<int64_t>(0, s_.num_batches - restored_step_);
    std::vector<double> seconds;
    const Clock::time_point start = Clock::now();
    bool finished = true;
    for (int64_t i = 1; i <= target; ++i) {
      const Clock::time_point begin = Clock::now();
      step(false);
      seconds.push_back(since(begin));
      if (i == 1 || i % s_.display_every == 0) print_step(i, seconds);
      if (stop_signal() != 0 && i < target) {
        finished = false;
        break;
      }
    }
    const double elapsed = since(start);
    const auto images = static_cast<double>(static_cast<int64_t>(seconds.size()) * s_.batch);
    if (finished) out_.total(elapsed > 0 ? images / elapsed : 0);
    return finished;
  }

  void save() {
    if (saver_ && s_.mode == RunMode::kTraining) saver_->save(*session_, s_.train_dir);
  }

  runtime::Session& session() { return *session_; }

 private:
  void step(bool traced) {
    std::vector<runtime::Feed> feeds;
    if (input_) {
      std::optional<runtime::data::Batch> batch = input_->next();
      SLUICE_CHECK(batch.has_value(), "a repeating input ended");
      feeds = {{model_->images, std::move(batch->images)}, {model_->labels, std::move(batch->labels)}};
    }
    if (!traced) {
      session_->run_into(results_, fetches_, feeds, targets_);
      return;
    }
    runtime::RunOptions options;
    options.trace_level = runtime::TraceLevel::kFull;
    runtime::RunMetadata metadata;
    session_->run_into(results_, fetches_, feeds, targets_, options, &metadata);
    out_.line(cat("Dumping trace to ", s_.trace_file));
    runtime::write_chrome_trace(metadata, s_.trace_file);
  }

  void print_step(int64_t number, const std::vector<double>& seconds) {
    StepReport report{number, throughput(seconds, s_.batch), 0, {}, {}};
    size_t next = 0;
    if (model_->loss) report.loss = results_[next++].item<double>();
    if (model_->top_1_count) {
      const auto batch = static_cast<double>(s_.batch);
      report.top_1 = results_[next].item<double>() / batch;
      report.top_5 = results_[next + 1].item<double>() / batch;
    }
    out_.step(report);
  }

  const Settings& s_;
  Output& out_;
  std::unique_ptr<ModelGraph> model_;
  std::optional<Checkpointer> saver_;
  std::optional<runtime::Session> session_;
  std::optional<ImageInput> input_;
  std::vector<graph::Output> fetches_;
  std::vector<graph::Node*> targets_;
  std::vector<runtime::Array> results_;
  int64_t restored_step_ = 0;
};

}  // namespace

runtime::SessionOptions session_options(const Settings& s) {
  runtime::SessionOptions o;
  o.intra_op_threads = s.intra_threads;
  o.inter_op_threads = s.inter_threads;
  o.allow_winograd = s.winograd;
  return o;
}

int run(const Settings& s, Output& out) {
  if (s.mode == RunMode::kEvaluation) return run_evaluation(s, out);
  out.info_block(s);
  out.line("Generating training model");
  StepLoop loop(s, out);
  const bool finished = loop.warm_up() && loop.timed_steps();
  loop.save();
  if (!finished) return 128 + stop_signal();
  return s.eval_after_training ? evaluate_trained(s, loop.session(), out) : 0;
}

}  // namespace sluice::bench
