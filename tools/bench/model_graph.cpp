#include "tools/bench/model_graph.h"

#include "dsl/metrics.h"
#include "dsl/ops/array.h"
#include "dsl/ops/control.h"
#include "dsl/ops/math.h"
#include "dsl/ops/nn.h"
#include "dsl/ops/random.h"
#include "dsl/train/global_step.h"
#include "tools/bench/training.h"

namespace sluice::bench {

namespace {

using namespace dsl;

const std::vector<std::string> kLocal = {graph::keys::kLocalVariables};

// Synthetic data is drawn once, by the initialisers, and no random op is left in the step (decisions #4). The
// pixels (127 ± 60, cut at two deviations) are scaled as real ones are.
void synthetic_inputs(const Settings& s, Tensor& images, Tensor& labels, Graph& g) {
  const int64_t size = s.model->image_size;
  const Initializer pixels = [](Graph& graph, const Dims& shape, DType dtype, Loc loc) {
    return truncated_normal(graph, shape, 127, 60, {.dtype = dtype}, loc) / 127.5 - 1.0;
  };
  images = get_variable(g, "gpu_cached_images", {s.batch, size, size, s.channels()},
                        {.initializer = pixels, .trainable = false, .collections = kLocal});
  const int classes = s.classes();
  const Initializer classes_drawn = [classes](Graph& graph, const Dims& shape, DType dtype, Loc loc) {
    return random_uniform(graph, shape, 0, classes - 1, {.dtype = dtype}, loc);
  };
  labels = get_variable(
      g, "synthetic_labels", {s.batch},
      {.dtype = DType::kInt32, .initializer = classes_drawn, .trainable = false, .collections = kLocal});
}

}  // namespace

std::unique_ptr<ModelGraph> build_model_graph(const Settings& s, RunMode mode) {
  auto model = std::make_unique<ModelGraph>();
  Graph& g = model->graph;
  g.set_seed(s.seed);
  const bool training = mode == RunMode::kTraining;
  model->global_step = train::get_or_create_global_step(g);
  Tensor images, labels;
  if (s.synthetic) {
    synthetic_inputs(s, images, labels, g);
  } else {
    // Any batch size for an evaluation: its last batch may be partial.
    const int64_t batch = mode == RunMode::kEvaluation ? graph::kUnknownDim : s.batch;
    const int64_t size = s.model->image_size;
    images = model->images = placeholder(g, DType::kFloat, {batch, size, size, s.channels()}, "images");
    labels = model->labels = placeholder(g, DType::kInt32, {batch}, "labels");
  }
  {
    VariableScope tower_variables(g, "v");
    graph::NameScope tower(g, "tower_0");
    {
      VariableScope network(g, "cg");
      models::ConvNetBuilder net(g, images, {.training = training, .format = s.format});
      s.model->build(net);
      model->logits = net.affine(s.classes(), {.relu = false});
      model->layers = net.layers();
    }
    if (s.print_accuracy || !training) {
      model->top_1_count = metrics::top_k_correct(labels, model->logits, 1, "top_1_count");
      model->top_5_count = metrics::top_k_correct(labels, model->logits, 5, "top_5_count");
    }
    if (training) model->loss = total_loss(s, model->logits, labels);
  }
  if (training) model->train_op = &make_train_op(s, model->loss, model->global_step);
  std::vector<Variable> all = global_variables(g);
  for (const Variable& v : local_variables(g)) all.push_back(v);
  model->init = &variables_initializer(g, all, "init");
  return model;
}

}  // namespace sluice::bench
