#include "runtime/plan/pipeline.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "graph/support/log.h"
#include "runtime/plan/fusions.h"

namespace sluice::runtime::plan {
namespace {

int count_live(const PlanGraph& g) {
  return static_cast<int>(
      std::count_if(g.ops.begin(), g.ops.end(), [](const PlanOp& o) { return !o.removed; }));
}

}  // namespace

const std::vector<PassRow>& pipeline() {
  static const std::vector<PassRow> rows = {
      // Identities hide patterns from every later pass.
      {"remove_views", remove_views, true},
      // Gradients repeat shapes, reciprocals and masks that the forward pass has.
      {"merge_equal", merge_equal, true},
      // A copy of the image less, and nothing else reads it then.
      {"fold_padding", fold_padding, true},
      // Before regions, which would take the biases and normalisations that convolutions can have for
      // nothing.
      {"fuse_convolutions", fuse_convolutions, true},
      // Memory-bound chains in one pass over memory.
      {"form_regions", form_regions, true},
      // After regions: an update takes in the one that makes its gradient.
      {"fuse_updates", fuse_updates, true},
      // What only the removed ops needed; also in reference mode, so that both run the same effects.
      {"drop_dead", drop_dead, false},
      // When it is known what is cheap: activations wait for the backward pass in half the memory.
      {"recompute", recompute, true},
      // Once it is settled what waits for whom: gradients are kept for the step that takes them all.
      {"group_updates", group_updates, true},
  };
  return rows;
}

std::vector<PassTime> run_pipeline(PlanGraph& g, const BuildOptions& options) {
  std::vector<PassTime> times;
  int number = 0;
  auto dump = [&](const char* name) {
    if (options.dump_dir.empty()) return;
    std::error_code ignored;
    std::filesystem::create_directories(options.dump_dir, ignored);
    char index[16];
    std::snprintf(index, sizeof index, "%02d", number++);
    const std::string path = cat(options.dump_dir, "/plan", g.number, "_", index, "_", name, ".txt");
    std::ofstream out(path);
    out << g.str();
    if (!out) log_warning("cannot write ", path);
  };
  dump("lowered");
  for (const PassRow& row : pipeline()) {
    if (options.reference && row.optimizing) continue;
    const auto& off = options.disabled_passes;
    if (std::find(off.begin(), off.end(), row.name) != off.end()) continue;
    const int before = count_live(g);
    const auto start = std::chrono::steady_clock::now();
    row.run(g, options);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    g.check();
    times.push_back({row.name, took.count(), before, count_live(g)});
    dump(row.name);
  }
  return times;
}

}  // namespace sluice::runtime::plan
