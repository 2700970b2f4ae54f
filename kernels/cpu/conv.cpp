// The convolutions' gradients on the library's primitives, and the list of all convolution kernels.
// Activations are channels-last; filters lie in TensorFlow's order (variables, gradients and slots too) and
// are packed per run by our own code. The data gradient of a stride-1 convolution is computed as a forward
// convolution of dy with the filter's taps reversed and its channels exchanged: the library's forward code is
// the faster one.

#include "kernels/cpu/conv.h"

#include <optional>

#include "kernels/cpu/register.h"
#include "runtime/cpu_features.h"

namespace sluice::kernels::cpu {
namespace {

// The forward convolution that computes dx of a stride-1 convolution; nullopt where there is none.
std::optional<ConvProblem> transposed(const ConvProblem& p) {
  if (p.stride_h != 1 || p.stride_w != 1 || p.groups > 1) return std::nullopt;
  const int64_t reach_h = (p.kh - 1) * p.dilation_h, reach_w = (p.kw - 1) * p.dilation_w;
  ConvProblem t = p;
  t.ih = p.oh, t.iw = p.ow, t.ic = p.oc;
  t.oh = p.ih, t.ow = p.iw, t.oc = p.ic;
  t.pad_top = reach_h - p.pad_top, t.pad_left = reach_w - p.pad_left;
  t.pad_bottom = p.ih - p.oh + reach_h - t.pad_top, t.pad_right = p.iw - p.ow + reach_w - t.pad_left;
  if (t.pad_top < 0 || t.pad_left < 0 || t.pad_bottom < 0 || t.pad_right < 0) return std::nullopt;
  return t;
}

// dx: the filter is packed for the library's own data gradient, or reversed for its forward convolution.
class ConvInputGrad final : public Kernel {
 public:
  ConvInputGrad(const KernelSpec& spec, std::unique_ptr<Primitive> primitive, bool forward,
                const FilterView& view)
      : primitive_(std::move(primitive)), forward_(forward), view_(view) {
    const Layout image = image_layout(is_nchw(spec));
    input_layouts = {Layout{}, Layout{}, image};
    output_layouts = {image};
    scratch_bytes = align64(primitive_->scratch_bytes()) + align64(primitive_->weights().bytes);
  }
  void run(KernelRun& r) const override {
    float* packed =
        reinterpret_cast<float*>(static_cast<char*>(r.scratch()) + align64(primitive_->scratch_bytes()));
    pack_filter(primitive_->weights(), packed, r.in<float>(1), view_, nullptr, fns(), r.queue());
    if (forward_)
      primitive_->run({{Arg::kSrc, r.in_data(2)}, {Arg::kWeights, packed}, {Arg::kDst, r.out_data(0)}},
                      r.scratch());
    else
      primitive_->run(
          {{Arg::kDiffDst, r.in_data(2)}, {Arg::kWeights, packed}, {Arg::kDiffSrc, r.out_data(0)}},
          r.scratch());
  }

 private:
  std::unique_ptr<Primitive> primitive_;
  bool forward_;
  FilterView view_;
};

// dW, unpacked to TensorFlow's order so that the optimizer's pass finds it beside its variable.
class ConvFilterGrad final : public Kernel {
 public:
  ConvFilterGrad(const KernelSpec& spec, std::unique_ptr<Primitive> primitive, const ConvProblem& problem)
      : primitive_(std::move(primitive)), view_(view_of(problem)) {
    const Layout image = image_layout(is_nchw(spec));
    input_layouts = {image, Layout{}, image};
    output_layouts = {Layout{}};
    scratch_bytes = align64(primitive_->scratch_bytes()) + align64(primitive_->weights().bytes);
  }
  void run(KernelRun& r) const override {
    float* packed =
        reinterpret_cast<float*>(static_cast<char*>(r.scratch()) + align64(primitive_->scratch_bytes()));
    primitive_->run({{Arg::kSrc, r.in_data(0)}, {Arg::kDiffDst, r.in_data(2)}, {Arg::kDiffWeights, packed}},
                    r.scratch());
    unpack_filter(primitive_->weights(), packed, r.out<float>(0), view_, fns(), r.queue());
  }

 private:
  std::unique_ptr<Primitive> primitive_;
  FilterView view_;
};

// dW of a 1×1 convolution without stride is a matrix product xᵀ·dy over all pixels, already in TensorFlow's
// order.
class PointwiseFilterGrad final : public Kernel {
 public:
  PointwiseFilterGrad(const KernelSpec& spec, std::unique_ptr<Primitive> product)
      : product_(std::move(product)) {
    const Layout image = image_layout(is_nchw(spec));
    input_layouts = {image, Layout{}, image};
    output_layouts = {Layout{}};
    scratch_bytes = product_->scratch_bytes();
  }
  void run(KernelRun& r) const override {
    product_->run({{Arg::kSrc, r.in_data(0)}, {Arg::kWeights, r.in_data(2)}, {Arg::kDst, r.out_data(0)}},
                  r.scratch());
  }

 private:
  std::unique_ptr<Primitive> product_;
};

// Where the library's matrix product beats its weight gradient (measured on AVX-512: 92 against 110 to 130
// GFLOP/s from 128 input channels on; below, the other way round).
bool prefers_product(const ConvProblem& p) {
  return runtime::cpu_isa() == runtime::Isa::kAvx512 && p.kh == 1 && p.kw == 1 && p.stride_h == 1 &&
         p.stride_w == 1 && p.pad_top == 0 && p.pad_bottom == 0 && p.pad_left == 0 && p.pad_right == 0 &&
         p.groups == 1 && p.ic >= 128;
}

KernelMake input_grad_of(ConvKind kind) {
  return [kind](const KernelSpec& spec, Refusal& refusal) -> std::unique_ptr<Kernel> {
    ConvProblem p;
    if (!all_float(spec, refusal, {1, 2}) ||
        !conv_problem(spec, kind, spec.outputs[0].dims, spec.inputs[1].dims, spec.inputs[2].dims, p,
                      refusal.reason))
      return nullptr;
    if (std::optional<ConvProblem> t = transposed(p)) {
      auto primitive = make_convolution(*t, ConvPass::kForward, {}, spec.threads, refusal.reason);
      if (packable(primitive, refusal))
        return std::make_unique<ConvInputGrad>(spec, std::move(primitive), true,
                                               transposed_view(p.kh, p.kw, p.ic, p.oc));
    }
    auto primitive = make_convolution(p, ConvPass::kBackwardInput, {}, spec.threads, refusal.reason);
    if (!packable(primitive, refusal)) return nullptr;
    return std::make_unique<ConvInputGrad>(spec, std::move(primitive), false, view_of(p));
  };
}

KernelMake filter_grad_of(ConvKind kind) {
  return [kind](const KernelSpec& spec, Refusal& refusal) -> std::unique_ptr<Kernel> {
    ConvProblem p;
    if (!all_float(spec, refusal, {0, 2}) ||
        !conv_problem(spec, kind, spec.inputs[0].dims, spec.outputs[0].dims, spec.inputs[2].dims, p,
                      refusal.reason))
      return nullptr;
    if (prefers_product(p)) {
      MatMulProblem m;
      m.m = p.ic, m.n = p.oc, m.k = p.n * p.oh * p.ow, m.transpose_a = true;
      if (auto product = make_matmul(m, false, summing_threads(spec), refusal.reason))
        return std::make_unique<PointwiseFilterGrad>(spec, std::move(product));
    }
    auto primitive =
        make_convolution(p, ConvPass::kBackwardFilter, {}, summing_threads(spec), refusal.reason);
    if (!packable(primitive, refusal)) return nullptr;
    return std::make_unique<ConvFilterGrad>(spec, std::move(primitive), p);
  };
}

// Winograd stands in the list so that a plan can say why it was not taken.
std::unique_ptr<Kernel> refuse_winograd(const KernelSpec& spec, Refusal& refusal) {
  refusal.reason =
      spec.allow_winograd
          ? "activations are channels-last; the library's Winograd convolution wants blocks of 16 channels"
          : "winograd is switched off";
  return nullptr;
}

}  // namespace

// The convolution of a node from the dims of its image, filter and result.
bool conv_problem(const KernelSpec& spec, ConvKind kind, const Dims& image, const Dims& filter,
                  const Dims& result, ConvProblem& p, std::string& why) {
  if (image.size() != 4 || filter.size() != 4 || result.size() != 4) {
    why = "not an image";
    return false;
  }
  const bool nchw = is_nchw(spec);
  const ImageDims in = image_dims(image, nchw), out = image_dims(result, nchw);
  if (in.elements() == 0 || out.elements() == 0 || graph::num_elements(filter) == 0) {
    why = "an empty operand";
    return false;
  }
  if (kind == ConvKind::kConv && filter[2] != in.c) {
    why = "a grouped convolution";
    return false;
  }
  WindowGeometry g;
  if (!window_geometry(spec, in, filter[0], filter[1], g, why)) return false;
  p = ConvProblem{in.n,         in.h,      in.w,         in.c,       out.h,      out.w,
                  out.c,        g.kh,      g.kw,         g.stride_h, g.stride_w, g.dilation_h,
                  g.dilation_w, g.pad_top, g.pad_bottom, g.pad_left, g.pad_right};
  if (kind == ConvKind::kDepthwise) p.groups = in.c;
  return true;
}

FilterView view_of(const ConvProblem& p) {
  return p.groups > 1 ? depthwise_view(p.kh, p.kw, p.ic, p.oc / p.groups)
                      : filter_view(p.kh, p.kw, p.ic, p.oc);
}

bool packable(const std::unique_ptr<Primitive>& primitive, Refusal& refusal) {
  if (primitive && can_pack(primitive->weights())) return true;
  if (primitive)
    refusal.reason = cat(primitive->implementation(), " wants its filter in a form we do not pack");
  return false;
}

void register_conv(KernelRegistry& r) {
  const int priority = kLibraryPriority;
  for (const char* op : {"Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput"})
    r.add({.op = op, .name = "onednn_winograd", .make = refuse_winograd, .priority = priority + 1});
  r.add(
      {.op = "Conv2D", .name = "onednn", .make = conv_forward(ConvKind::kConv, false), .priority = priority});
  r.add({.op = "_FusedConv2D",
         .name = "onednn",
         .make = conv_forward(ConvKind::kConv, true),
         .priority = priority});
  r.add({.op = "Conv2DBackpropInput",
         .name = "onednn",
         .make = input_grad_of(ConvKind::kConv),
         .priority = priority});
  r.add({.op = "Conv2DBackpropFilter",
         .name = "onednn",
         .make = filter_grad_of(ConvKind::kConv),
         .priority = priority});
  r.add({.op = "DepthwiseConv2dNative",
         .name = "onednn",
         .make = conv_forward(ConvKind::kDepthwise, false),
         .priority = priority});
  r.add({.op = "DepthwiseConv2dNativeBackpropInput",
         .name = "onednn",
         .make = input_grad_of(ConvKind::kDepthwise),
         .priority = priority});
  r.add({.op = "DepthwiseConv2dNativeBackpropFilter",
         .name = "onednn",
         .make = filter_grad_of(ConvKind::kDepthwise),
         .priority = priority});
}

}  // namespace sluice::kernels::cpu
