#pragma once
// Passes that make several ops one, each with its picture at the top of its .cpp. They look for TensorFlow's
// ops by name, and only for kernels that the registry has; where a fusion does not apply the plan stays as it
// was.

#include "runtime/plan/pipeline.h"

namespace sluice::runtime::plan {

/// Zeros around an image become the padding of the convolution that reads it (fold_pad.cpp).
void fold_padding(PlanGraph& g, const BuildOptions& options);
/// Batch normalisation by given statistics and biases move into convolutions (fuse_conv.cpp).
void fuse_convolutions(PlanGraph& g, const BuildOptions& options);
/// Elementwise ops, broadcasts and reductions become loop regions (regions.cpp).
void form_regions(PlanGraph& g, const BuildOptions& options);
/// Optimizer updates and what makes their gradient become one pass over the variable (updates.cpp).
void fuse_updates(PlanGraph& g, const BuildOptions& options);
/// Updates by one formula and equal hyper-parameters become one step (group_updates.cpp).
void group_updates(PlanGraph& g, const BuildOptions& options);

}  // namespace sluice::runtime::plan
