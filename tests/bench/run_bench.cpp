// What a run costs besides its arithmetic, and what graphs and plans cost to make:
//   run_bench [noop] [memory] [graphs] [first [MODEL [BATCH]]] …      all four without arguments
//
//   noop     µs of run_into of one NoOp
//   memory   growth of the resident set over 10,000 runs of a small training graph
//   graphs   ms to build each network with loss, gradients and updates
//   first    seconds of a model's first training step against its median later step

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "dsl/dsl.h"
#include "dsl/models/registry.h"
#include "dsl/train/train_op.h"
#include "runtime/plan/plan.h"

using namespace sluice;

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

double resident_kib() {
  long pages = 0, resident = 0;
  if (std::FILE* f = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(f, "%ld %ld", &pages, &resident) != 2) resident = 0;
    std::fclose(f);
  }
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1024;
}

/// A network with loss, weight decay, gradients, momentum and its initialiser.
struct Training {
  graph::Graph g;
  dsl::Tensor images, labels, loss, step;
  graph::Node* init = nullptr;

  Training(const dsl::models::ModelSpec& spec, int64_t batch) {
    images =
        dsl::placeholder(g, graph::DType::kFloat, {batch, spec.image_size, spec.image_size, 3}, "images");
    labels = dsl::placeholder(g, graph::DType::kInt32, {batch}, "labels");
    dsl::Tensor logits;
    {
      dsl::VariableScope tower(g, "v");
      dsl::VariableScope network(g, "cg");
      dsl::models::ConvNetBuilder net(g, images, {.training = true});
      spec.build(net);
      logits = net.affine(1001, {.relu = false});
    }
    loss = dsl::losses::sparse_softmax_cross_entropy(labels, logits);
    std::vector<dsl::Tensor> penalties;
    for (const dsl::Variable& v : dsl::trainable_variables(g)) penalties.push_back(dsl::l2_loss(v));
    loss = loss + dsl::add_n(penalties) * 1e-4;
    dsl::train::MomentumOptimizer optimizer(0.01, 0.9);
    step = dsl::train::create_train_op(loss, optimizer);
    init = &dsl::global_variables_initializer(g);
  }

  std::vector<runtime::Feed> feeds() const {
    runtime::Array x(graph::DType::kFloat, images.shape().dims());
    uint32_t state = 1;
    for (float& v : x.as<float>())
      state = state * 1664525u + 1013904223u, v = static_cast<float>(state >> 8) / 8388608.f - 1.f;
    return {{images, x}, {labels, runtime::Array::zeros(graph::DType::kInt32, labels.shape().dims())}};
  }
};

void noop() {
  graph::Graph g;
  graph::Node& node = g.add({.op = "NoOp"});
  runtime::Session s(g);
  std::vector<runtime::Array> results;
  const std::vector<graph::Output> fetches;
  const std::vector<runtime::Feed> feeds;
  const std::vector<graph::Node*> targets{&node};
  std::vector<double> rounds;
  constexpr int kRuns = 20'000;
  for (int round = 0; round < 9; ++round) {
    const double start = now();
    for (int k = 0; k < kRuns; ++k) s.run_into(results, fetches, feeds, targets);
    rounds.push_back((now() - start) / kRuns * 1e6);
  }
  std::printf("noop: %.2f us a run (median of %zu rounds of %d)\n", median(rounds), rounds.size(), kRuns);
}

void memory() {
  const dsl::models::ModelSpec& spec = *dsl::models::find_model("lenet");
  Training t(spec, 2);
  runtime::SessionOptions options;
  options.intra_op_threads = 1;
  runtime::Session s(t.g, options);
  s.run({}, {}, {t.init});
  const std::vector<runtime::Feed> feeds = t.feeds();
  const std::vector<graph::Output> fetches{t.step};
  std::vector<runtime::Array> results;
  for (int k = 0; k < 100; ++k) s.run_into(results, fetches, feeds, {});
  const double before = resident_kib();
  for (int k = 0; k < 10'000; ++k) s.run_into(results, fetches, feeds, {});
  std::printf("memory: %.0f KiB after 100 runs, %+.0f KiB after 10,000 more (lenet training, batch 2)\n",
              before, resident_kib() - before);
}

void graphs() {
  for (const dsl::models::ModelSpec& spec : dsl::models::all_models()) {
    std::vector<double> ms;
    int nodes = 0;
    for (int k = 0; k < 5; ++k) {
      const double start = now();
      Training t(spec, spec.batch_size);
      ms.push_back((now() - start) * 1e3);
      nodes = t.g.num_nodes();
    }
    std::printf("graph: %-16s %6d nodes %8.2f ms (first %.2f)\n", std::string(spec.name).c_str(), nodes,
                median(ms), ms[0]);
  }
}

int first(const char* model, int64_t batch) {
  const dsl::models::ModelSpec* spec = dsl::models::find_model(model);
  if (!spec) return std::fprintf(stderr, "no model %s\n", model), 2;
  Training t(*spec, batch);
  runtime::Session s(t.g);
  s.run({}, {}, {t.init});
  const std::vector<runtime::Feed> feeds = t.feeds();
  const std::vector<graph::Output> fetches{t.step};
  std::vector<runtime::Array> results;
  std::vector<double> times;
  for (int k = 0; k < 9; ++k) {
    const double start = now();
    s.run_into(results, fetches, feeds, {});
    times.push_back(now() - start);
  }
  const double later = median({times.begin() + 1, times.end()});
  const auto plan = s.plan(fetches, feeds, {});
  std::printf("first: %s batch %lld: first step %.1f ms (plan %.1f ms), later steps %.1f ms, ratio %.2f\n",
              model, static_cast<long long>(batch), times[0] * 1e3, plan->compile_seconds() * 1e3,
              later * 1e3, times[0] / later);
  for (const auto& p : plan->passes()) std::printf("  %-18s %7.2f ms\n", p.name.c_str(), p.seconds * 1e3);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> what(argv + 1, argv + argc);
  const bool all = what.empty();
  if (all) what = {"noop", "memory", "graphs", "first"};
  for (size_t i = 0; i < what.size(); ++i) {
    if (what[i] == "noop") {
      noop();
    } else if (what[i] == "memory") {
      memory();
    } else if (what[i] == "graphs") {
      graphs();
    } else if (what[i] == "first") {
      const std::string model = i + 1 < what.size() ? what[i + 1] : "resnet50_v1.5";
      const int64_t batch = i + 2 < what.size() ? std::atoll(what[i + 2].c_str()) : 16;
      if (const int rc = first(model.c_str(), batch)) return rc;
      i += 2;
    } else {
      return std::fprintf(stderr, "usage: run_bench [noop] [memory] [graphs] [first [MODEL [BATCH]]]\n"), 2;
    }
    std::fflush(stdout);
  }
}
