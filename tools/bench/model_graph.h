#pragma once
// The graph of one run: inputs, network, and what the mode needs of loss, gradient, update and accuracy, all
// nodes of one Graph. Built once; the handles stay valid as long as the object.

#include <memory>

#include "dsl/models/registry.h"
#include "dsl/variable.h"
#include "tools/bench/settings.h"

namespace sluice::bench {

struct ModelGraph {
  graph::Graph graph;
  dsl::Tensor images, labels;  // placeholders of real data; empty with synthetic images
  dsl::Tensor logits;
  dsl::Tensor loss;                      // training only
  dsl::Tensor top_1_count, top_5_count;  // empty unless asked for
  graph::Node* train_op = nullptr;       // training only; updates everything and counts the step
  graph::Node* init = nullptr;           // all variables
  dsl::Variable global_step;
  std::vector<dsl::models::LayerRecord> layers;
};

/// The graph of `settings` in the given mode. An evaluation graph takes batches of any size.
std::unique_ptr<ModelGraph> build_model_graph(const Settings& settings, RunMode mode);

}  // namespace sluice::bench
