#pragma once
// How one device does one op. A kernel is made while a plan is built: slow, and it may refuse with a reason;
// it then runs many times, const, from any thread, allocating nothing. Candidates of an op are asked in the
// order of their priority, the reference loop last. The registry is a value handed to sessions; programs add
// their own kernels.
//
//   void relu6(KernelRun& r) { … r.in<float>(0) … r.out<float>(0) … }
//   KernelRegistry kernels = standard_kernels();
//   kernels.add({.op = "MyRelu", .name = "my_relu", .make = plain(relu6)});

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "runtime/array.h"
#include "runtime/layout.h"
#include "runtime/resource.h"
#include "runtime/work_queue.h"

namespace sluice::runtime {

class CancelToken;
struct RegionProgram;  // runtime/region.h

/// What a candidate is told when a plan asks for a kernel. Valid during `make` only; copy what the kernel
/// keeps.
struct KernelSpec {
  std::string op;                     // the node's op, or a plan op ("_Region", "_FusedConv2D", "_Reorder")
  const graph::Node* node = nullptr;  // attributes, name, line; the first node of a fused step
  graph::AttrMap attrs;               // attributes of plan ops; empty for ordinary nodes
  std::vector<ValueSpec> inputs, outputs;                // dims fixed; layouts as they are on offer (inputs)
  std::vector<std::optional<graph::Literal>> constants;  // per input: its value where the plan knows it
  std::vector<std::shared_ptr<Variable>>
      variables;  // per input: the variable behind a handle, ref or read, else null
  std::shared_ptr<const RegionProgram> region;  // of "_Region"
  ResourceManager* resources = nullptr;
  int threads = 1;
  bool deterministic = false;
  bool allow_winograd = true;
  bool relaxed_nan = false;   // primitives that turn NaN into 0 are welcome
  bool forward_only = false;  // no gradient in this plan

  /// attrs of a plan op, then the node's.
  const graph::AttrValue* find_attr(std::string_view name) const;
  template <class T>
  T attr(std::string_view name) const;
  template <class T>
  T attr_or(std::string_view name, T fallback) const {
    return find_attr(name) ? attr<T>(name) : fallback;
  }
};

/// One value as a running kernel sees it.
struct Slot {
  void* data = nullptr;  // arena, constant, feed or variable bytes
  const ValueSpec* spec = nullptr;
  Array* array = nullptr;        // strings and values of a size known only now; then data == array->data()
  Variable* variable = nullptr;  // handles and refs
};

/// What is shared by all steps of one Session::run.
struct RunState {
  const CancelToken* cancel = nullptr;
  ResourceManager* resources = nullptr;
  int64_t step_id = 0;
};

class KernelRun {
 public:
  KernelRun(const Slot* inputs, Slot* outputs, int num_inputs, int num_outputs, void* scratch,
            WorkQueue& queue, RunState& state)
      : inputs_(inputs),
        outputs_(outputs),
        num_inputs_(num_inputs),
        num_outputs_(num_outputs),
        scratch_(scratch),
        queue_(queue),
        state_(state) {}

  int num_inputs() const { return num_inputs_; }
  int num_outputs() const { return num_outputs_; }
  const ValueSpec& in_spec(int i) const { return *inputs_[i].spec; }
  const ValueSpec& out_spec(int i) const { return *outputs_[i].spec; }
  const Dims& in_dims(int i) const { return inputs_[i].spec->dims; }
  const Dims& out_dims(int i) const { return outputs_[i].spec->dims; }
  DType in_dtype(int i) const { return inputs_[i].spec->dtype; }
  DType out_dtype(int i) const { return outputs_[i].spec->dtype; }
  const void* in_data(int i) const { return inputs_[i].data; }
  void* out_data(int i) const { return outputs_[i].data; }
  template <class T>
  const T* in(int i) const {
    return static_cast<const T*>(inputs_[i].data);
  }
  template <class T>
  T* out(int i) const {
    return static_cast<T*>(outputs_[i].data);
  }
  /// Strings and dynamic values.
  const Array& in_array(int i) const { return *inputs_[i].array; }
  /// Strings and outputs whose size is known only now: the kernel sets the whole value.
  Array& out_array(int i) const { return *outputs_[i].array; }
  /// True for those: strings, and outputs that `out_array` must set.
  bool out_is_array(int i) const { return outputs_[i].array != nullptr; }
  Variable& variable(int i) const { return *inputs_[i].variable; }
  void* scratch() const { return scratch_; }
  WorkQueue& queue() const { return queue_; }
  RunState& state() const { return state_; }

 private:
  const Slot* inputs_;
  Slot* outputs_;
  int num_inputs_, num_outputs_;
  void* scratch_;
  WorkQueue& queue_;
  RunState& state_;
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Computes all outputs. Throws Error; the executor adds node, types and line. Const: one kernel may run in
  /// several steps at once.
  virtual void run(KernelRun& r) const = 0;

  // Fixed by the factory; the plan reads them once.
  std::vector<Layout> input_layouts, output_layouts;  // empty: everything plain
  size_t scratch_bytes = 0;                           // 64-byte aligned, private to the run
  std::vector<std::pair<int, int>> may_share;  // (input, output): the output may take that input's bytes
};

/// Where a candidate says why it declines.
struct Refusal {
  std::string reason;
};

using KernelFn = void (*)(KernelRun&);
using KernelMake = std::function<std::unique_ptr<Kernel>(const KernelSpec&, Refusal&)>;

struct KernelDef {
  std::string op;    // TF op or plan op
  std::string name;  // "reference", "onednn", "avx2_region": shown by explain and traces
  KernelMake make;
  int priority = 0;  // higher is asked first; the reference has 0
  std::string device = "CPU";
  bool reference = false;  // allowed in SLUICE_PLAN=reference
};

/// A kernel without state: `fn` runs as it is. `share`: (input, output) pairs that may share bytes.
KernelMake plain(KernelFn fn, std::vector<std::pair<int, int>> share = {}, size_t scratch_bytes = 0);

class KernelRegistry {
 public:
  /// AlreadyExists when op, name and device are taken.
  void add(KernelDef def);
  /// Candidates for an op on a device, best first; empty when there are none.
  std::vector<const KernelDef*> candidates(std::string_view op, std::string_view device = "CPU") const;
  bool has(std::string_view op, std::string_view device = "CPU") const {
    return !candidates(op, device).empty();
  }
  std::vector<std::string> ops() const;
  /// Elementwise ops the region compiler knows, by op name and dtype of the operands; null: no regions.
  std::function<bool(std::string_view op, DType dtype)> region_supports;

 private:
  std::unordered_map<std::string, std::vector<std::shared_ptr<const KernelDef>>> defs_;  // shared with copies
};

/// Every kernel this build has (defined in kernels/register.cpp). Built at first use, immutable; any thread.
const KernelRegistry& standard_kernels();

}  // namespace sluice::runtime
