// Times forward and training steps of one network on random data, with the plan's heaviest steps:
//   net_bench resnet50_v1.5 16 [train|forward] [threads] [steps] [profile]
// Variables start from their initialisers; the loss has weight decay 1e-4, the optimizer is momentum.

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>

#include "dsl/losses.h"
#include "dsl/models/registry.h"
#include "dsl/ops/array.h"
#include "dsl/ops/math.h"
#include "dsl/ops/nn.h"
#include "dsl/variable.h"
#include "passes/gradients.h"
#include "runtime/plan/plan.h"
#include "runtime/session.h"

using namespace sluice;

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double cpu_seconds() {
  rusage u;
  getrusage(RUSAGE_SELF, &u);
  return static_cast<double>(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

long peak_kib() {
  rusage u;
  getrusage(RUSAGE_SELF, &u);
  return u.ru_maxrss;
}

}  // namespace

int main(int argc, char** argv) {
  const char* model = argc > 1 ? argv[1] : "resnet50_v1.5";
  const int batch = argc > 2 ? std::atoi(argv[2]) : 16;
  const bool train = argc <= 3 || std::strcmp(argv[3], "train") == 0;
  const int threads = argc > 4 ? std::atoi(argv[4]) : 2;
  const int steps = argc > 5 ? std::atoi(argv[5]) : 5;
  const bool profile = argc > 6;
  const dsl::models::ModelSpec* spec = dsl::models::find_model(model);
  if (!spec) return std::fprintf(stderr, "no model %s\n", model), 2;

  graph::Graph g;
  const double t0 = now();
  dsl::Tensor images =
      dsl::placeholder(g, graph::DType::kFloat, {batch, spec->image_size, spec->image_size, 3}, "images");
  dsl::Tensor labels = dsl::placeholder(g, graph::DType::kInt32, {batch}, "labels");
  dsl::Tensor logits;
  {
    dsl::VariableScope tower(g, "v");
    dsl::VariableScope network(g, "cg");
    dsl::models::ConvNetBuilder net(g, images, {.training = train});
    spec->build(net);
    logits = net.affine(1001, {.relu = false});
  }
  std::vector<graph::Node*> initializers, targets;
  std::vector<std::shared_ptr<graph::VariableInfo>> variables;
  for (const auto& v : g.collections().variables(graph::keys::kGlobalVariables))
    initializers.push_back(v->initializer);
  dsl::Tensor fetch = logits;
  if (train) {
    dsl::Tensor loss = dsl::losses::sparse_softmax_cross_entropy(labels, logits);
    std::vector<dsl::Tensor> penalties;
    std::vector<graph::Output> handles;
    std::vector<dsl::Variable> trainable;
    for (const auto& v : g.collections().variables(graph::keys::kTrainableVariables)) {
      trainable.emplace_back(v);
      handles.push_back(trainable.back().handle());
      penalties.push_back(dsl::l2_loss(trainable.back()));
    }
    dsl::Tensor total = loss + dsl::add_n(penalties) * 1e-4;
    fetch = total;
    std::vector<graph::GradValue> grads = passes::gradients({total}, handles);
    dsl::Tensor rate = dsl::constant(g, 0.01f), momentum = dsl::constant(g, 0.9f);
    for (size_t i = 0; i < trainable.size(); ++i) {
      dsl::Variable slot =
          dsl::make_variable(g, dsl::zeros_like(trainable[i].initial_value()), "slot", {.trainable = false});
      initializers.push_back(&slot.initializer());
      targets.push_back(&g.add({.op = "ResourceApplyMomentum",
                                .inputs = {handles[i], slot.handle(), rate, grads[i].dense, momentum},
                                .attrs = {{"T", graph::DType::kFloat}}}));
    }
    for (const graph::GraphElement& e : g.collections().elements(graph::keys::kUpdateOps))
      targets.push_back(e.node);
  }
  std::printf("graph %d nodes, %.1f ms\n", g.num_nodes(), (now() - t0) * 1e3);

  runtime::SessionOptions options;
  options.intra_op_threads = threads;
  runtime::Session session(g, options);
  session.run({}, {}, initializers);
  runtime::Array x(graph::DType::kFloat, {batch, spec->image_size, spec->image_size, 3});
  uint32_t state = 1;
  for (float& v : x.as<float>())
    state = state * 1664525u + 1013904223u, v = static_cast<float>(state >> 8) / 8388608.f - 1.f;
  runtime::Array y = runtime::Array::zeros(graph::DType::kInt32, {batch});
  std::vector<runtime::Feed> feeds{{images, x}};
  if (train) feeds.push_back({labels, y});
  const long before = peak_kib();
  std::vector<double> times;
  std::map<std::string, std::pair<double, int>> by_kind;
  std::vector<std::pair<double, std::string>> slowest;
  for (int i = 0; i < steps + 2; ++i) {
    runtime::RunOptions run;
    runtime::RunMetadata meta;
    if (profile && i == steps + 1) run.trace_level = runtime::TraceLevel::kSoftware;
    const double start = now(), cpu = cpu_seconds();
    std::vector<runtime::Array> out = session.run({fetch}, feeds, targets, run, &meta);
    const double took = now() - start;
    std::printf("step %d: %.1f ms (%.2f img/s), %.1f ms of CPU time, value %.5f\n", i, took * 1e3,
                batch / took, (cpu_seconds() - cpu) * 1e3, out[0].as<float>()[0]);
    if (i >= 2) times.push_back(took);
    for (const runtime::StepStats& s : meta.steps) {
      const double us = static_cast<double>(s.end_us - s.start_us);
      auto& sum = by_kind[s.op + " [" + s.kernel + "]"];
      sum.first += us, ++sum.second;
      slowest.emplace_back(us, s.op + " [" + s.kernel + "] " + s.name);
    }
  }
  std::sort(times.begin(), times.end());
  std::printf("median %.1f ms = %.2f img/s, best %.2f img/s, peak memory %ld MiB (%ld before)\n",
              times[times.size() / 2] * 1e3, batch / times[times.size() / 2], batch / times[0],
              peak_kib() / 1024, before / 1024);
  std::vector<std::pair<double, std::string>> kinds;
  for (auto& [name, sum] : by_kind) kinds.emplace_back(sum.first, name + " ×" + std::to_string(sum.second));
  for (auto* list : {&kinds, &slowest}) {
    std::sort(list->rbegin(), list->rend());
    for (size_t i = 0; i < std::min<size_t>(25, list->size()); ++i)
      std::printf("%9.2f ms  %s\n", (*list)[i].first / 1e3, (*list)[i].second.c_str());
    std::printf("\n");
  }
  if (profile) {
    auto plan = session.plan({fetch}, feeds, targets);
    if (FILE* f = std::fopen("/tmp/plan.txt", "w")) std::fputs(plan->str().c_str(), f), std::fclose(f);
  }
}
