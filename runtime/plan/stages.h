#pragma once
// The stages that turn a rewritten plan into a frozen one: kernels and layouts, order, memory. They run once,
// in this order, after the pipeline.

#include <string>
#include <vector>

#include "runtime/plan/ir.h"

namespace sluice::runtime::plan {

/// Nodes that ask for a device which is not there: InvalidArgument in TensorFlow's words, or, with soft
/// placement, one log line that counts them.
void check_placement(const std::vector<graph::Node*>& nodes, const BuildOptions& options);

/// What a candidate is told about an op of the plan.
KernelSpec kernel_spec(const PlanGraph& g, const PlanOp& op, const BuildOptions& options);

/// Asks each op's candidates in turn, keeps the refusals, and puts "_Reorder" ops where a value lies in
/// another layout than its reader takes (constants are reordered now). Unimplemented, listing the refusals,
/// when nobody takes an op.
void choose_kernels(PlanGraph& g, const BuildOptions& options);

/// Orders writes of a variable after the readers of values read before, where nothing speaks against it, so
/// that updates are in place.
void order_writes(PlanGraph& g);

/// A valid order of the live ops with a low peak of arena bytes. Deterministic.
std::vector<OpId> schedule(const PlanGraph& g, const BuildOptions& options);

/// Where everything lies in the arena.
struct MemoryMap {
  size_t arena_bytes = 0;
  size_t live_peak = 0;         // largest sum of live bytes at any position: no plan can be smaller
  std::vector<size_t> scratch;  // by OpId: offset of the op's scratch
};
/// Fills buffer_of, offset, first, last of every value. `order` is what runs, in order.
MemoryMap plan_memory(PlanGraph& g, const std::vector<OpId>& order, const BuildOptions& options);

/// The value whose bytes `v` uses.
ValueId buffer_root(const PlanGraph& g, ValueId v);

/// One buffer to place: alive over positions [first, last].
struct Interval {
  size_t bytes = 0;
  int first = 0, last = 0;
  size_t offset = 0;
};
/// Places buffers whose lives overlap at disjoint offsets, multiples of 64; returns the bytes needed.
size_t place(std::vector<Interval>& buffers);

}  // namespace sluice::runtime::plan
