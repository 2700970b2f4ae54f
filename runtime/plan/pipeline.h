#pragma once
// The passes that rewrite a plan before kernels are chosen, in their order, each with its reason in
// pipeline.cpp. The runner times every pass, skips those named in BuildOptions::disabled_passes, writes the
// plan after each when a dump folder is set, and checks consistency. A pass may run twice and then changes
// nothing more.

#include <string>
#include <vector>

#include "runtime/plan/ir.h"

namespace sluice::runtime::plan {

struct PassRow {
  const char* name;
  void (*run)(PlanGraph&, const BuildOptions&);
  bool optimizing;  // left out in reference mode
};

/// All passes in order.
const std::vector<PassRow>& pipeline();

struct PassTime {
  std::string name;
  double seconds = 0;
  int ops_before = 0, ops_after = 0;
};

/// Runs the pipeline; returns what each pass took.
std::vector<PassTime> run_pipeline(PlanGraph& g, const BuildOptions& options);

// The passes of this folder.
void remove_views(PlanGraph& g, const BuildOptions& options);  // Identity and the like vanish
void merge_equal(PlanGraph& g, const BuildOptions& options);   // equal stateless ops become one
void recompute(PlanGraph& g, const BuildOptions& options);     // cheap values are made again, not kept
void drop_dead(PlanGraph& g, const BuildOptions& options);     // ops nobody needs

}  // namespace sluice::runtime::plan
