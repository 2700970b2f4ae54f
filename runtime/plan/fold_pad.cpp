// Zeros put around an image just before a VALID convolution become the convolution's own padding, forward and
// backward, so nothing is copied:
//
//   x ─► Pad ─┬─► Conv2D(VALID)                              x ─┬─► Conv2D(EXPLICIT)
//             └─► Conv2DBackpropFilter(VALID)            =>     └─► Conv2DBackpropFilter(EXPLICIT)
//   Conv2DBackpropInput(VALID) ─► Slice ─► dx                    Conv2DBackpropInput(EXPLICIT) ─► dx

#include <algorithm>

#include "runtime/plan/fusions.h"

namespace sluice::runtime::plan {
namespace {

struct Border {
  int64_t top = 0, bottom = 0, left = 0, right = 0;
};

class PadFolding {
 public:
  explicit PadFolding(PlanGraph& g) : g_(g), readers_(g.readers()) {}

  void run() {
    for (OpId id : g_.live()) {
      const std::string& op = g_.op(id).op;
      if (op == "Conv2D" || op == "Conv2DBackpropFilter") fold_input(id);
      if (op == "Conv2DBackpropInput") fold_gradient(id);
    }
  }

 private:
  static std::string format(const PlanOp& op) {
    return op.node ? op.node->attr_or<std::string>("data_format", "NHWC") : "";
  }
  static bool valid(const PlanOp& op) {
    return op.node && op.kind == OpKind::kKernel && op.attrs.empty() &&
           op.node->attr_or<std::string>("padding", "") == "VALID";
  }

  // Zeros before and after each dim as a border of height and width only.
  static bool border_of(const std::vector<int64_t>& before, const std::vector<int64_t>& after, bool nchw,
                        Border& b) {
    const size_t h = nchw ? 2 : 1, w = nchw ? 3 : 2, c = nchw ? 1 : 3;
    if (before[0] || after[0] || before[c] || after[c]) return false;
    b = {before[h], after[h], before[w], after[w]};
    return true;
  }

  static graph::AttrMap explicit_padding(const Border& b, bool nchw) {
    std::vector<int64_t> pads(8, 0);
    const size_t h = nchw ? 4 : 2;
    pads[h] = b.top, pads[h + 1] = b.bottom, pads[h + 2] = b.left, pads[h + 3] = b.right;
    return {{"padding", "EXPLICIT"}, {"explicit_paddings", pads}};
  }

  void fold_input(OpId id) {
    PlanOp& conv = g_.op(id);
    if (!valid(conv)) return;
    const PlanOp* pad = g_.producer(conv.inputs[0]);
    if (!pad || pad->op != "Pad" || !pad->after.empty() || !g_.value(pad->inputs[1]).literal) return;
    if (g_.value(pad->inputs[0]).spec.dims.size() != 4) return;
    const std::vector<int64_t> p = g_.value(pad->inputs[1]).literal->to_int64s();
    const bool nchw = format(conv) == "NCHW";
    Border b;
    if (!border_of({p[0], p[2], p[4], p[6]}, {p[1], p[3], p[5], p[7]}, nchw, b)) return;
    conv.inputs[0] = pad->inputs[0];
    conv.attrs = explicit_padding(b, nchw);
    conv.nodes.insert(conv.nodes.end(), pad->nodes.begin(), pad->nodes.end());
  }

  void fold_gradient(OpId id) {
    const PlanOp conv = g_.op(id);
    if (!valid(conv) || conv.outputs.size() != 1) return;
    const ValueId padded = conv.outputs[0];
    const auto& readers = readers_[static_cast<size_t>(padded)];
    if (readers.size() != 1 || g_.is_output(padded)) return;
    const OpId slice_id = readers[0];
    const PlanOp slice = g_.op(slice_id);
    if (slice.op != "Slice" || slice.removed || !slice.after.empty()) return;
    const auto& begin = g_.value(slice.inputs[1]).literal;
    const Dims& whole = g_.value(padded).spec.dims;
    const Dims dims = g_.value(slice.outputs[0]).spec.dims;
    if (!begin || whole.size() != 4) return;
    const std::vector<int64_t> before = begin->to_int64s();
    std::vector<int64_t> after(4);
    for (size_t i = 0; i < 4; ++i) after[i] = whole[i] - before[i] - dims[i];
    const bool nchw = format(conv) == "NCHW";
    Border b;
    if (!border_of(before, after, nchw, b)) return;
    PlanValue sizes;
    std::vector<int32_t> sizes32(dims.begin(), dims.end());
    sizes.literal = graph::Literal::vector<int32_t>(std::span<const int32_t>(sizes32));
    sizes.spec = {DType::kInt32, {4}, {}};
    sizes.storage = Storage::kConstant;
    sizes.name = slice.node ? slice.node->name() + "/sizes" : "sizes";
    const ValueId sizes_id = g_.add_value(std::move(sizes));
    PlanOp op = conv;
    op.inputs[0] = sizes_id;
    op.outputs = slice.outputs;
    op.attrs = explicit_padding(b, nchw);
    op.order = slice.order;
    op.nodes.insert(op.nodes.end(), slice.nodes.begin(), slice.nodes.end());
    const OpId made = g_.add(std::move(op));
    g_.value(padded).producer = -1;
    g_.remove(id, made);
    g_.remove(slice_id, made);
  }

  PlanGraph& g_;
  std::vector<std::vector<OpId>> readers_;
};

}  // namespace

void fold_padding(PlanGraph& g, const BuildOptions&) { PadFolding(g).run(); }

}  // namespace sluice::runtime::plan
