// What follows a convolution moves into it while its result is in registers ("_FusedConv2D",
// kernels/cpu/conv_forward.cpp):
//
//   x, w ─► Conv2D ─► FusedBatchNorm(given mean, variance) ─► Add ─► Relu      plans that write no variable
//     =>  _FusedConv2D: w·a is packed once, bias = offset − mean·a
//
//   x, w ─► Conv2D ─► BiasAdd ─► …                                             any plan
//     =>  _FusedConv2D with a bias
//
// The kernel keeps NaN through the ReLU unless relaxed_nan allows the library's own, which does not. An
// addition moves in only with the ReLU after it (alone it gains nothing over a loop region), and an op only
// if nobody else reads what is between it and the convolution.

#include <algorithm>

#include "graph/support/check.h"
#include "runtime/plan/fusions.h"

namespace sluice::runtime::plan {
namespace {

class ConvFusion {
 public:
  explicit ConvFusion(PlanGraph& g) : g_(g), readers_(g.readers()) {}

  void run() {
    for (OpId id : g_.live())
      if (g_.op(id).op == "Conv2D" && g_.op(id).kind == OpKind::kKernel && plain_conv(g_.op(id))) fuse(id);
  }

 private:
  bool is_float(ValueId v) const { return g_.value(v).known_dims && g_.value(v).spec.dtype == DType::kFloat; }

  // What the fused kernels take: floats, no groups, nothing empty.
  bool plain_conv(const PlanOp& op) const {
    for (ValueId v : {op.inputs[0], op.inputs[1], op.outputs[0]})
      if (!is_float(v) || g_.value(v).spec.dims.size() != 4 || g_.value(v).spec.elements() == 0) return false;
    const Dims &x = g_.value(op.inputs[0]).spec.dims, &w = g_.value(op.inputs[1]).spec.dims;
    return x[format(op) == "NCHW" ? 1 : 3] == w[2];
  }

  // The only reader of a value that is not asked for otherwise; -1 when there is none.
  OpId only_reader(ValueId v) const {
    const auto& readers = readers_[static_cast<size_t>(v)];
    if (readers.size() != 1 || g_.is_output(v) || g_.op(readers[0]).kind != OpKind::kKernel ||
        g_.op(readers[0]).removed || !g_.op(readers[0]).after.empty())
      return -1;
    return readers[0];
  }

  bool unread(ValueId v) const { return readers_[static_cast<size_t>(v)].empty() && !g_.is_output(v); }

  std::string format(const PlanOp& op) const { return op.node->attr_or<std::string>("data_format", "NHWC"); }

  bool takes_batch_norm(const PlanOp& op, ValueId x) const {
    if (op.op != "FusedBatchNorm" && op.op != "FusedBatchNormV2" && op.op != "FusedBatchNormV3") return false;
    if (!g_.forward_only || op.inputs[0] != x || op.node->attr_or<bool>("is_training", true)) return false;
    for (size_t o = 1; o < op.outputs.size(); ++o)
      if (!unread(op.outputs[o])) return false;
    return true;
  }

  void fuse(OpId conv_id) {
    const PlanOp conv = g_.op(conv_id);
    PlanOp fused{.op = "_FusedConv2D",
                 .node = conv.node,
                 .attrs = conv.attrs,
                 .inputs = conv.inputs,
                 .outputs = conv.outputs,
                 .after = conv.after,
                 .nodes = conv.nodes,
                 .traits = conv.traits,
                 .order = conv.order};
    std::vector<OpId> taken{conv_id};
    auto take = [&](OpId id) {
      const PlanOp& op = g_.op(id);
      taken.push_back(id);
      fused.outputs = {op.outputs[0]};
      fused.nodes.insert(fused.nodes.end(), op.nodes.begin(), op.nodes.end());
      fused.order = op.order;
    };
    OpId next = only_reader(fused.outputs[0]);
    if (next >= 0 && takes_batch_norm(g_.op(next), fused.outputs[0]) && format(g_.op(next)) == format(conv)) {
      const PlanOp& norm = g_.op(next);
      fused.attrs["fused_batch_norm"] = true;
      fused.attrs["epsilon"] = norm.node->attr_or<float>("epsilon", 1e-4f);
      fused.inputs.insert(fused.inputs.end(), norm.inputs.begin() + 1, norm.inputs.begin() + 5);
      take(next);
    } else if (next >= 0 && g_.op(next).op == "BiasAdd" && g_.op(next).inputs[0] == fused.outputs[0] &&
               format(g_.op(next)) == format(conv)) {
      fused.attrs["fused_bias"] = true;
      fused.inputs.push_back(g_.op(next).inputs[1]);
      take(next);
    }
    take_relu(fused, take);
    if (taken.size() < 2) return;
    const OpId id = g_.add(std::move(fused));
    for (OpId t : taken) g_.remove(t, id);
    for (OpId t : taken)
      for (ValueId v : g_.op(t).outputs)
        if (g_.value(v).producer == t) g_.value(v).producer = -1;
  }

  template <class Take>
  void take_relu(PlanOp& fused, Take&& take) {
    const ValueId y = fused.outputs[0];
    OpId next = only_reader(y), add = -1;
    if (next >= 0 && (g_.op(next).op == "Add" || g_.op(next).op == "AddV2")) {
      const PlanOp& op = g_.op(next);
      const ValueId other = op.inputs[0] == y ? op.inputs[1] : op.inputs[0];
      if (!(g_.value(other).spec == g_.value(y).spec) || other == y) return;
      add = next;
      next = only_reader(op.outputs[0]);
      if (next < 0 || g_.op(next).op != "Relu") return;
      fused.attrs["fused_add"] = true;
      fused.inputs.push_back(other);
      take(add);
    }
    if (next < 0 || g_.op(next).op != "Relu") return;
    fused.attrs["fused_relu"] = true;
    take(next);
  }

  PlanGraph& g_;
  std::vector<std::vector<OpId>> readers_;
};

}  // namespace

void fuse_convolutions(PlanGraph& g, const BuildOptions& options) {
  if (options.kernels->has("_FusedConv2D")) ConvFusion(g).run();
}

}  // namespace sluice::runtime::plan
