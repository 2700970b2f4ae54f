// Switch-and-merge control flow (graph-and-training §8.3): definitions, so that graphs which hold it load,
// show and travel. Running loops is the executor's business.

#include "graph/loop_frames.h"
#include "graph/ops/register.h"
#include "graph/ops/shapes.h"

namespace sluice::graph::ops {
namespace {

void switch_shape(InferContext& c) {
  require_scalar(c, 1);
  c.set_output(0, c.input(0));
  c.set_output(1, c.input(0));
}

// Only what all inputs agree on is known of the value; which input it was is a scalar.
void merge_shape(InferContext& c) {
  Shape out = c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) {
    const Shape& s = c.input(i);
    if (!out.known_rank() || !s.known_rank() || s.rank() != out.rank()) {
      out = Shape();
      break;
    }
    for (int d = 0; d < out.rank(); ++d)
      if (out.dim(d) != s.dim(d)) out.set_dim(d, kUnknownDim);
  }
  c.set_output(0, out);
  c.set_output(1, Shape::scalar());
}

// A value that changes with the iterations may change its shape as well.
void enter_shape(InferContext& c) { c.set_output(0, c.attr<bool>("is_constant") ? c.input(0) : Shape()); }

void loop_cond_shape(InferContext& c) {
  require_scalar(c, 0);
  c.set_output(0, c.input(0));
}

void ref_select_shape(InferContext& c) {
  require_scalar(c, 0);
  Shape out = c.input(1);
  for (int i = 2; i < c.num_inputs(); ++i)
    if (c.input(i) != out) out = Shape();
  c.set_output(0, out);
}

// The value form and the reference form of one op.
struct Form {
  bool ref;
  std::string name(const char* base) const { return ref ? cat("Ref", base) : base; }
  std::string type(const char* t) const { return ref ? cat("Ref(", t, ")") : t; }
  uint32_t traits() const { return kControlFlow | (ref ? uint32_t{kAllowsUninitialized} : 0u); }
};

void add_form(OpRegistry& r, Form f) {
  r.add({.name = f.name("Switch"),
         .inputs = {"data: " + f.type("T"), "pred: bool"},
         .outputs = {"output_false: " + f.type("T"), "output_true: " + f.type("T")},
         .attrs = {"T: type"},
         .doc = "Sends data to the output that pred names; the other output is dead.",
         .traits = f.traits(),
         .infer = switch_shape});
  r.add({.name = f.name("Merge"),
         .inputs = {"inputs: " + f.type("N * T")},
         .outputs = {"output: " + f.type("T"), "value_index: int32"},
         .attrs = {"T: type", "N: int >= 1"},
         .doc = "The first input that is alive, and which one it was.",
         .traits = f.traits() | kLoopMerge,
         .infer = merge_shape});
  r.add({.name = f.name("Enter"),
         .inputs = {"data: " + f.type("T")},
         .outputs = {"output: " + f.type("T")},
         .attrs = {"T: type", "frame_name: string", "is_constant: bool = false",
                   "parallel_iterations: int = 10"},
         .doc = "Takes data into iteration 0 of a loop frame (into every iteration when constant).",
         .traits = f.traits(),
         .infer = enter_shape});
  r.add({.name = f.name("Exit"),
         .inputs = {"data: " + f.type("T")},
         .outputs = {"output: " + f.type("T")},
         .attrs = {"T: type"},
         .doc = "Takes data out of its loop frame.",
         .traits = f.traits(),
         .infer = same_shape});
  r.add({.name = f.name("NextIteration"),
         .inputs = {"data: " + f.type("T")},
         .outputs = {"output: " + f.type("T")},
         .attrs = {"T: type"},
         .doc = "Takes data into the next iteration of its loop frame.",
         .traits = f.traits() | kLoopBack,
         .infer = same_shape});
}

}  // namespace

void register_control(OpRegistry& r) {
  add_form(r, {.ref = false});
  add_form(r, {.ref = true});
  r.add({.name = "RefSelect",
         .inputs = {"index: int32", "inputs: Ref(N * T)"},
         .outputs = {"output: Ref(T)"},
         .attrs = {"T: type", "N: int >= 1"},
         .doc = "The reference that index names.",
         .traits = kControlFlow | kAllowsUninitialized,
         .infer = ref_select_shape});
  r.add({.name = "LoopCond",
         .inputs = {"input: bool"},
         .outputs = {"output: bool"},
         .doc = "The input, marked as a loop's condition.",
         .traits = kControlFlow,
         .infer = loop_cond_shape});
  r.add({.name = "ControlTrigger",
         .doc = "Fires when its control inputs are done, dead or alive.",
         .traits = kControlFlow,
         .infer = no_outputs});
  r.add({.name = "Abort",
         .attrs = {"error_msg: string = ''", "exit_without_error: bool = false"},
         .doc = "Ends the process.",
         .traits = kStateful | kHostOnly,
         .infer = no_outputs});
}

}  // namespace sluice::graph::ops

namespace sluice::graph {

LoopRole loop_role(const OpDef& def) {
  if (!def.has(kControlFlow)) return LoopRole::kStays;
  if (def.has(kLoopBack)) return LoopRole::kRepeats;
  if (def.name == "Enter" || def.name == "RefEnter") return LoopRole::kEnters;
  if (def.name == "Exit" || def.name == "RefExit") return LoopRole::kLeaves;
  return LoopRole::kStays;
}

}  // namespace sluice::graph
