#pragma once
// A plan while it is being built: values (what lies where) and ops (what runs), both in flat lists that
// passes rewrite. It starts as the pruned graph with every shape fixed (lower.h), passes fuse and drop ops,
// kernels are chosen, steps ordered, memory placed; then it is frozen into a Plan (plan.h). Ops are named as
// in TensorFlow; ops that only plans know start with '_' ("_Region", "_FusedConv2D", "_Reorder"). One thread,
// the one that compiles.
//
//   for (OpId id : g.live()) { PlanOp& op = g.op(id); … }     // in execution order
//   OpId fused = g.add({.op = "_FusedConv2D", .node = conv.node, .inputs = …, .outputs = {relu_out}});
//   g.remove(conv_id); g.remove(relu_id);                     // order keys and control edges are kept in
//   sync

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "runtime/array.h"
#include "runtime/kernel.h"

namespace sluice::runtime {

struct RegionProgram;

namespace plan {

using ValueId = int;
using OpId = int;

/// Where a value's bytes are while the plan runs.
enum class Storage {
  kArena,     // at an offset of the run's arena
  kConstant,  // in the plan
  kFeed,      // in the caller's array
  kVariable,  // the variable's own buffer, held from the read to its last use
  kHandle,    // a variable's handle or ref: no bytes
  kDynamic,   // an Array of its own: strings, and values whose size is known only when they are made
};

struct PlanValue {
  ValueSpec spec;  // dims are meaningless while !known_dims
  bool known_dims = true;
  Storage storage = Storage::kArena;
  std::string name;                       // "conv/Relu:0"
  OpId producer = -1;                     // -1: constants, feeds, handles
  std::optional<graph::Literal> literal;  // where the value is known (constants, feeds given by value)
  Array constant;                         // kConstant: the bytes in spec.layout; made when the plan is frozen
  int feed = -1;                          // kFeed: index into the plan's feeds
  std::shared_ptr<Variable> variable;     // kHandle and kVariable

  // Filled by the memory stage.
  ValueId buffer_of = -1;   // the value whose bytes this one uses (views, in-place); -1: its own
  size_t offset = 0;        // kArena: byte offset
  int first = 0, last = 0;  // positions of the first and last step that touch the bytes (roots only)
};

enum class OpKind {
  kKernel,   // a step
  kView,     // output 0 is input 0's bytes; no step
  kBarrier,  // orders others; no step. Its outputs, if any, are constants
  kRead,     // takes hold of a variable's buffer
};

struct Refused {
  std::string candidate, reason;
};

struct PlanOp {
  std::string op;  // TF op or plan op
  OpKind kind = OpKind::kKernel;
  const graph::Node* node = nullptr;  // where attributes and messages come from
  graph::AttrMap attrs = {};          // of plan ops, and overrides of the node's (reference64)
  std::vector<ValueId> inputs = {}, outputs = {};
  std::vector<OpId> after = {};                // must have run before, besides the producers of the inputs
  std::vector<const graph::Node*> nodes = {};  // every node this op stands for; {node} when empty
  bool keep = false;                           // has an effect: never dropped, merged or evaluated
  uint32_t traits = 0;                         // the OpDef's
  double order = 0;  // place among ops that nothing orders; fused ops take their last part's
  bool removed = false;
  OpId replaced_by = -1;  // of a removed op: the op that does its work now
  std::shared_ptr<const RegionProgram> region = nullptr;

  // Filled by the choice stage.
  std::shared_ptr<const Kernel> kernel = nullptr;  // shared with the frozen plan
  std::string candidate = {};
  std::vector<Refused> refusals = {};

  bool has(graph::Trait t) const { return (traits & t) != 0; }
};

/// Large constants of a session's plans, made once each. Its own mutex; any thread.
class ConstantPool {
 public:
  Array get(const graph::Literal& literal);

 private:
  std::mutex mutex_;  // guards arrays_
  // The literal is kept with its array, so that its address stays its own.
  std::unordered_map<const void*, std::pair<graph::Literal, Array>> arrays_;
};

/// What compiling needs to know besides the graph.
struct BuildOptions {
  ConstantPool* constants = nullptr;
  const KernelRegistry* kernels = nullptr;
  ResourceManager* resources = nullptr;
  int threads = 1;
  int inter_op_threads = 1;
  bool reference = false;  // reference kernels only, nothing fused, plain layouts
  bool widen = false;      // reference64: float is double throughout
  bool deterministic = false, allow_winograd = true, relaxed_nan = false;
  bool allow_soft_placement = false, log_placement = false;
  size_t memory_limit = 0;
  std::vector<std::string> disabled_passes;
  std::string dump_dir;                      // SLUICE_DUMP
  std::atomic<int>* plan_counter = nullptr;  // numbers the plans of a session in dumps
};

class PlanGraph {
 public:
  std::vector<PlanValue> values;
  std::vector<PlanOp> ops;        // by OpId; `live()` gives the order
  std::vector<ValueId> fetches;   // one per requested fetch
  std::vector<ValueId> boundary;  // values a later part of a cut run needs; kept like fetches
  bool forward_only = false;      // writes no variable
  int number = 0;                 // of the session's plans, for dumps

  PlanValue& value(ValueId v) { return values[static_cast<size_t>(v)]; }
  const PlanValue& value(ValueId v) const { return values[static_cast<size_t>(v)]; }
  PlanOp& op(OpId o) { return ops[static_cast<size_t>(o)]; }
  const PlanOp& op(OpId o) const { return ops[static_cast<size_t>(o)]; }
  /// The op that makes a value, null for sources.
  PlanOp* producer(ValueId v) { return value(v).producer < 0 ? nullptr : &op(value(v).producer); }

  ValueId add_value(PlanValue v);
  /// A new arena value.
  ValueId add_value(ValueSpec spec, std::string name);
  /// Adds an op and makes it the producer of its outputs. Invalidates references into `ops`.
  OpId add(PlanOp op);
  /// Takes an op out. Whoever had to run after it now runs after `by`, which does its work now, or, without
  /// one, after what it ran after.
  void remove(OpId id, OpId by = -1);
  /// Every reader of `from`, and the fetches, take `to` instead.
  void replace_uses(ValueId from, ValueId to);
  /// Many at once: `to` holds, by ValueId, what stands for each value (itself where unchanged).
  void rename(const std::vector<ValueId>& to);

  /// Ids of live ops in a valid order: data and `after` edges first, then `order`, then id. Throws Internal
  /// naming an op when a pass made a cycle.
  std::vector<OpId> live() const;
  /// Live readers of every value, in order, one entry per input slot; index by ValueId.
  std::vector<std::vector<OpId>> readers() const;
  /// True when the value is fetched or needed by a later part.
  bool is_output(ValueId v) const;
  /// Direct predecessors of every live op with removed ones expanded; index by OpId.
  std::vector<std::vector<OpId>> predecessors() const;
  /// Consistency: producers, indices, types; throws Internal. Cheap; runs after every pass.
  void check() const;
  /// One line an op, for dumps.
  std::string str() const;
};

/// Name of a value's origin for people; "conv/Relu:0".
std::string value_name(const graph::Output& o);

}  // namespace plan
}  // namespace sluice::runtime
