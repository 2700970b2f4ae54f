#include <algorithm>
#include <map>

#include "graph/support/check.h"
#include "runtime/plan/stages.h"

namespace sluice::runtime::plan {
namespace {

// Used where no registered "_Reorder" takes the pair of layouts.
class PlainReorder final : public Kernel {
 public:
  void run(KernelRun& r) const override {
    const ValueSpec& in = r.in_spec(0);
    reorder(in.dtype, in.dims, in.layout, r.in_data(0), r.out_spec(0).layout, r.out_data(0));
  }
};

std::string specs_string(const std::vector<ValueSpec>& specs) {
  std::string s;
  for (const ValueSpec& v : specs) s += cat(s.empty() ? "" : ", ", v.str());
  return s;
}

class Chooser {
 public:
  Chooser(PlanGraph& g, const BuildOptions& options) : g_(g), options_(options) {}

  void run() {
    for (OpId id : g_.live()) {
      switch (g_.op(id).kind) {
        case OpKind::kView:
          view(id);
          break;
        case OpKind::kKernel:
          kernel(id);
          break;
        case OpKind::kRead:
        case OpKind::kBarrier:
          break;
      }
    }
  }

 private:
  void view(OpId id) {
    const ValueId in = g_.op(id).inputs[0], out = g_.op(id).outputs[0];
    const Layout layout = g_.value(in).spec.layout;
    if (layout.plain()) return;
    if (g_.value(in).spec.dims == g_.value(out).spec.dims)
      g_.value(out).spec.layout = layout;
    else
      g_.op(id).inputs[0] = in_layout(in, Layout{}, id);
  }

  void kernel(OpId id) {
    const KernelSpec spec = kernel_spec(g_, g_.op(id), options_);
    std::shared_ptr<Kernel> kernel;
    std::vector<Refused> refusals;
    std::string name;
    for (const KernelDef* def : options_.kernels->candidates(spec.op)) {
      if (options_.reference && !def->reference) continue;
      Refusal refusal;
      std::unique_ptr<Kernel> made = def->make(spec, refusal);
      if (made) {
        kernel = std::move(made);
        name = def->name;
        break;
      }
      refusals.push_back({def->name, refusal.reason.empty() ? "no reason given" : refusal.reason});
    }
    if (!kernel) {
      std::string why;
      for (const Refused& r : refusals) why += cat("; ", r.candidate, ": ", r.reason);
      throw_error(Code::kUnimplemented,
                  cat("No kernel takes op '", spec.op,
                      "' with input types and shapes: ", specs_string(spec.inputs), why),
                  spec.node ? spec.node->name() : "", spec.node ? spec.node->loc() : Loc{});
    }
    const size_t num_inputs = g_.op(id).inputs.size(), num_outputs = g_.op(id).outputs.size();
    SLUICE_CHECK(kernel->input_layouts.empty() || kernel->input_layouts.size() == num_inputs, "kernel ", name,
                 " of ", spec.op, " states ", kernel->input_layouts.size(), " input layouts");
    SLUICE_CHECK(kernel->output_layouts.empty() || kernel->output_layouts.size() == num_outputs, "kernel ",
                 name, " of ", spec.op, " states ", kernel->output_layouts.size(), " output layouts");
    for (size_t i = 0; i < num_inputs; ++i) {
      const ValueId in = g_.op(id).inputs[i];
      const PlanValue& v = g_.value(in);
      if (v.storage == Storage::kHandle || v.storage == Storage::kDynamic) continue;
      const Layout want = kernel->input_layouts.empty() ? Layout{} : kernel->input_layouts[i];
      if (!(want == v.spec.layout)) g_.op(id).inputs[i] = in_layout(in, want, id);
    }
    for (size_t i = 0; i < num_outputs; ++i) {
      PlanValue& v = g_.value(g_.op(id).outputs[i]);
      if (v.storage == Storage::kHandle || kernel->output_layouts.empty()) continue;
      kernel->output_layouts[i].check(v.spec.dims);
      v.spec.layout = kernel->output_layouts[i];
    }
    PlanOp& op = g_.op(id);
    op.kernel = std::move(kernel);
    op.candidate = std::move(name);
    op.refusals = std::move(refusals);
  }

  // The value in another layout, made once.
  ValueId in_layout(ValueId v, const Layout& layout, OpId reader) {
    ValueId& known = reordered_[{v, layout.str()}];
    if (known > 0) return known;
    PlanValue copy;
    copy.spec = g_.value(v).spec;
    copy.spec.layout = layout;
    layout.check(copy.spec.dims);
    copy.name = g_.value(v).name;
    if (g_.value(v).storage == Storage::kConstant) {
      const PlanValue& from = g_.value(v);
      const Array plain = from.constant ? from.constant : Array::from_literal(*from.literal);
      copy.constant = Array(plain.dtype(), plain.dims());
      reorder(plain.dtype(), plain.dims(), from.spec.layout, plain.data(), layout, copy.constant.data());
      copy.storage = Storage::kConstant;
      copy.literal = from.literal;
      copy.producer = from.producer;
      return known = g_.add_value(std::move(copy));
    }
    const ValueId out = g_.add_value(std::move(copy));
    const OpId id = g_.add({.op = "_Reorder",
                            .node = g_.op(reader).node,
                            .inputs = {v},
                            .outputs = {out},
                            .order = g_.op(reader).order - 0.25});
    const KernelSpec spec = kernel_spec(g_, g_.op(id), options_);
    for (const KernelDef* def : options_.kernels->candidates("_Reorder")) {
      Refusal refusal;
      if (std::unique_ptr<Kernel> made = def->make(spec, refusal)) {
        g_.op(id).kernel = std::move(made);
        g_.op(id).candidate = def->name;
        break;
      }
      g_.op(id).refusals.push_back({def->name, refusal.reason});
    }
    if (!g_.op(id).kernel) {
      g_.op(id).kernel = std::make_shared<PlainReorder>();
      g_.op(id).candidate = "loops";
    }
    reordered_[{v, layout.str()}] = out;
    return out;
  }

  PlanGraph& g_;
  const BuildOptions& options_;
  std::map<std::pair<ValueId, std::string>, ValueId> reordered_;
};

}  // namespace

KernelSpec kernel_spec(const PlanGraph& g, const PlanOp& op, const BuildOptions& options) {
  KernelSpec spec;
  spec.op = op.op;
  spec.node = op.node;
  spec.attrs = op.attrs;
  for (ValueId v : op.inputs) {
    const PlanValue& value = g.value(v);
    spec.inputs.push_back(value.spec);
    spec.constants.push_back(value.literal);
    spec.variables.push_back(value.variable);
  }
  for (ValueId v : op.outputs) spec.outputs.push_back(g.value(v).spec);
  spec.region = op.region;
  spec.resources = options.resources;
  spec.threads = options.threads;
  spec.deterministic = options.deterministic;
  spec.allow_winograd = options.allow_winograd;
  spec.relaxed_nan = options.relaxed_nan;
  spec.forward_only = g.forward_only;
  return spec;
}

void choose_kernels(PlanGraph& g, const BuildOptions& options) { Chooser(g, options).run(); }

}  // namespace sluice::runtime::plan
