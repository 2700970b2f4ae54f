#pragma once
// Accuracy of a trained network over a data set's evaluation subset, or over synthetic batches. One thread.

#include "runtime/session.h"
#include "tools/bench/model_graph.h"
#include "tools/bench/output.h"

namespace sluice::bench {

/// Counts over all evaluated examples.
struct Evaluation {
  double top_1 = 0, top_5 = 0;
  int64_t examples = 0;
  double seconds = 0;
  bool stopped = false;  // a signal ended it early
};

/// Runs `settings.num_batches` steps, or every example once when settings.whole_set says so. `model` is an
/// evaluation graph whose variables `session` holds. Prints progress every display_every steps.
Evaluation evaluate(const Settings& settings, const ModelGraph& model, runtime::Session& session,
                    Output& out);

/// --eval: restores the newest checkpoint of train_dir and reports; returns the exit code.
int run_evaluation(Settings settings, Output& out);

/// --eval_after_training: the variables of `trained` in an evaluation graph of their own; returns the exit
/// code.
int evaluate_trained(const Settings& settings, runtime::Session& trained, Output& out);

}  // namespace sluice::bench
