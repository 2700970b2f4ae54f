#include "tools/bench/evaluation.h"

#include <chrono>
#include <optional>

#include "graph/support/check.h"
#include "tools/bench/benchmark.h"
#include "tools/bench/checkpoint.h"
#include "tools/bench/environment.h"
#include "tools/bench/input.h"

namespace sluice::bench {

namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void report(const Evaluation& e, Output& out) {
  const auto n = static_cast<double>(std::max<int64_t>(e.examples, 1));
  out.accuracy(e.top_1 / n, e.top_5 / n, e.examples);
}

}  // namespace

Evaluation evaluate(const Settings& s, const ModelGraph& model, runtime::Session& session, Output& out) {
  std::optional<ImageInput> input;
  if (!s.synthetic) input.emplace(s, /*training=*/false, /*repeat=*/!s.whole_set);
  const std::vector<graph::Output> fetches = {model.top_1_count, model.top_5_count};
  std::vector<runtime::Array> counts;
  Evaluation e;
  const Clock::time_point start = Clock::now();
  Clock::time_point last_line = start;
  int64_t examples_at_line = 0;
  for (int64_t step = 1; s.whole_set || step <= s.num_batches; ++step) {
    std::vector<runtime::Feed> feeds;
    int64_t size = s.batch;
    if (input) {
      std::optional<runtime::data::Batch> batch = input->next();
      if (!batch) break;
      size = batch->size();
      feeds = {{model.images, std::move(batch->images)}, {model.labels, std::move(batch->labels)}};
    }
    session.run_into(counts, fetches, feeds);
    e.top_1 += counts[0].item<double>();
    e.top_5 += counts[1].item<double>();
    e.examples += size;
    if (step % s.display_every == 0) {
      out.eval_progress(step, static_cast<double>(e.examples - examples_at_line) / since(last_line));
      last_line = Clock::now();
      examples_at_line = e.examples;
    }
    if (stop_signal() != 0) {
      e.stopped = true;
      break;
    }
  }
  e.seconds = since(start);
  return e;
}

int run_evaluation(Settings s, Output& out) {
  const std::string checkpoint = latest_checkpoint(s.train_dir);
  if (!s.synthetic && s.whole_set) s.num_batches = (count_eval_examples(s) + s.batch - 1) / s.batch;
  out.info_block(s);
  out.line("Generating evaluation model");
  const std::unique_ptr<ModelGraph> model = build_model_graph(s, RunMode::kEvaluation);
  Checkpointer saver(*model);
  runtime::Session session(model->graph, session_options(s));
  session.run({}, {}, {model->init});
  saver.restore(session, checkpoint);
  out.line(cat("Successfully loaded model from ", checkpoint, "."));
  const Evaluation e = evaluate(s, *model, session, out);
  report(e, out);
  out.total(e.seconds > 0 ? static_cast<double>(e.examples) / e.seconds : 0);
  return e.stopped ? 128 + stop_signal() : 0;
}

int evaluate_trained(const Settings& settings, runtime::Session& trained, Output& out) {
  Settings s = settings;
  s.mode = RunMode::kEvaluation;
  s.whole_set = !s.synthetic;
  const std::unique_ptr<ModelGraph> model = build_model_graph(s, RunMode::kEvaluation);
  runtime::Session session(model->graph, session_options(s));
  session.run({}, {}, {model->init});
  for (const auto& variable : trained.resources().variables()) {
    if (model->graph.find(variable->name()) == nullptr || !variable->initialized()) continue;
    session.resources().variable("", variable->name(), variable->dtype())->assign(variable->value());
  }
  // Progress lines belong to --eval; here the one line of accuracies is the result.
  s.display_every = INT64_MAX;
  const Evaluation e = evaluate(s, *model, session, out);
  report(e, out);
  return e.stopped ? 128 + stop_signal() : 0;
}

}  // namespace sluice::bench
