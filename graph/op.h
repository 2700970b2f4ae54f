#pragma once
// What an op means. One OpDef is the whole truth about an op: typed inputs, outputs and attributes
// (TensorFlow's spec strings), a shape rule, a gradient, traits that passes query, and a sentence of
// documentation. An OpRegistry is a value passed to a Graph; `standard_ops()` holds every built-in op, and a
// program that brings its own op copies it, adds, and hands the copy to its graphs. A registry is immutable
// once a graph uses it; any thread may read it.
//
//   OpRegistry ops = standard_ops();
//   ops.add({.name = "Relu", .inputs = {"features: T"}, .outputs = {"activations: T"}, .attrs = {"T: {float,
//   double}"},
//            .doc = "max(features, 0), element by element.", .traits = kElementwise, .infer = same_shape,
//            .grad = [](Grad& g) { return Gradients{g.op("ReluGrad", {g.dy(), g.y()})}; }});

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/attr.h"

namespace sluice::graph {

class InferContext;  // graph/infer.h
class Grad;          // graph/grad.h
class FoldContext;   // graph/fold.h
struct GradValue;    // graph/grad.h
using Gradients = std::vector<GradValue>;

/// Facts about an op that passes and the plan query instead of comparing names. Bits.
enum Trait : uint32_t {
  kNone = 0,
  kElementwise = 1u << 0,  // each output element depends on the same element of each (broadcast) input
  kCommutative = 1u << 1,
  kStateful = 1u << 2,   // never folded, merged or shared: variables, random ops, queues, I/O
  kAggregate = 1u << 3,  // AddN-like
  kReduction = 1u << 4,
  kViewOf0 = 1u << 5,   // the output is input 0's bytes under another shape or name (Reshape, Identity …)
  kSource = 1u << 6,    // value comes from outside (Placeholder)
  kVariable = 1u << 7,  // makes a variable (VarHandleOp, VariableV2)
  kReadsVariable = 1u << 8,   // input 0 is a variable that is read; with kViewOf0 the output is its bytes
                              // (ReadVariableOp), without it a kernel looks (ResourceGather)
  kWritesVariable = 1u << 9,  // input 0 is a variable that is written (Assign*, Apply*; Apply slots too).
                              // With kAllowsUninitialized input 1's shape becomes the variable's (Assign)
  kAllowsUninitialized = 1u << 10,
  kHostOnly = 1u << 11,           // strings, files, printing: never on an accelerator
  kMayBlock = 1u << 12,           // waits for others: runs on a host thread
  kNotDifferentiable = 1u << 13,  // explicitly has no gradient: acts as a constant for all inputs
  kDynamicShape = 1u << 14,       // output shape depends on values (Where, Unique)
  kNumericCheck = 1u << 15,       // CheckNumerics
  kRandom = 1u << 16,             // draws from a Philox stream
  kControlFlow = 1u << 17,        // Switch, Merge, Enter, Exit, NextIteration, LoopCond
  kLoopBack = 1u << 18,           // NextIteration: its edge into a kLoopMerge may point backwards
  kLoopMerge = 1u << 19,          // Merge
};

struct ArgSpec {
  std::string name;
  DType type = DType::kInvalid;  // fixed type, or
  std::string type_attr;         // the attr that gives it, or
  std::string type_list_attr;    // the list(type) attr that gives several
  std::string number_attr;       // N * T
  bool is_ref = false;
};

struct AttrSpec {
  std::string name;
  std::string kind;                // "int", "list(type)" …
  AttrValue default_value;         // has_value() == false: required
  std::vector<AttrValue> allowed;  // types or strings; empty: anything
  bool has_minimum = false;
  int64_t minimum = 0;  // of an int, or of a list's length
};

using InferFn = std::function<void(InferContext&)>;
using GradFn = std::function<Gradients(Grad&)>;
using FoldFn = std::function<void(FoldContext&)>;

struct OpDef {
  std::string name;
  /// "x: T", "values: N * T", "axis: int32", "ref: Ref(T)", "data: T" with "T: list(type)".
  std::vector<std::string> inputs, outputs;
  /// "T: {float, double}", "N: int >= 2", "strides: list(int)", "padding: {'SAME', 'VALID'} = 'SAME'".
  std::vector<std::string> attrs;
  std::string doc;
  uint32_t traits = kNone;
  InferFn infer;  // null: every output shape unknown
  GradFn grad;    // null: no gradient (unless kNotDifferentiable)
  FoldFn fold;    // value rule for small integer subgraphs that feed shapes; null: none
  /// Attrs that later TensorFlows gave the op. Import drops one that holds the default stated here, or that
  /// has none because its value never matters.
  std::vector<std::string> later_attrs;

  // Filled by OpRegistry::add from the strings above.
  std::vector<ArgSpec> input_args, output_args;
  std::vector<AttrSpec> attr_specs, later_attr_specs;

  bool has(Trait t) const { return (traits & t) != 0; }
  const AttrSpec* find_attr(std::string_view name) const;
  /// True for one of later_attrs that holds what import drops.
  bool ignores_attr(std::string_view name, const AttrValue& value) const;
};

class OpRegistry {
 public:
  OpRegistry() = default;
  /// Parses the spec strings; throws InvalidArgument naming op and string when one can't be read,
  /// AlreadyExists when the name is taken.
  const OpDef& add(OpDef def);
  /// Null when unknown.
  const OpDef* find(std::string_view name) const;
  /// The definition as nodes hold it; null when unknown.
  std::shared_ptr<const OpDef> find_shared(std::string_view name) const;
  /// NotFound with the nearest known names when unknown.
  const OpDef& get(std::string_view name) const;
  /// Every name, sorted.
  std::vector<std::string> names() const;
  /// Replaces or sets a gradient (TF's RegisterGradient for an op that has none, or an override by name:
  /// nodes with attr `_gradient_op_type` look it up here first).
  void add_gradient(std::string name, GradFn fn);
  const GradFn* find_gradient(std::string_view name) const;

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
  };
  // shared: a copied registry shares its definitions, and nodes point at them for as long as any copy lives.
  std::unordered_map<std::string, std::shared_ptr<const OpDef>, Hash, std::equal_to<>> defs_;
  std::unordered_map<std::string, std::shared_ptr<const GradFn>, Hash, std::equal_to<>> gradients_;
};

/// Every op of graph/ops. Built at first use, immutable; any thread.
const OpRegistry& standard_ops();

/// Parses one attr spec string; exposed for tests. Throws InvalidArgument.
AttrSpec parse_attr_spec(std::string_view spec);
ArgSpec parse_arg_spec(std::string_view spec, const std::vector<AttrSpec>& attrs);

}  // namespace sluice::graph
