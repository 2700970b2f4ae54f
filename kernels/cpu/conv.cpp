// Convolutions on the library's primitives. Activations are channels-last; filters lie in TensorFlow's order
// (variables, gradients and slots too) and are packed per run by our own code, or once where nothing in the
// plan can change them. The data gradient of a stride-1 convolution is computed as a forward convolution of
// dy with the filter's taps reversed and its channels exchanged: the library's forward code is the faster
// one.
//
//   x ──────────────┐                              bn(scale, offset, mean, variance)
//   filter ─► pack ─► conv ─► + bias ─► + addend ─► relu ─► y      folded: filter·a, bias = offset − mean·a
//
// "_FusedConv2D": inputs x, filter, then scale, offset, mean, variance (attr fused_batch_norm) or bias (attr
// fused_bias), then the addend (attr fused_add); attr fused_relu.

#include <cmath>
#include <cstring>
#include <mutex>

#include "graph/support/check.h"
#include "kernels/cpu/common.h"
#include "kernels/cpu/onednn.h"
#include "kernels/cpu/register.h"
#include "kernels/cpu/weights.h"
#include "runtime/cpu_features.h"

namespace sluice::kernels::cpu {
namespace {

enum class Kind { kConv, kDepthwise };

// The convolution of a node from the dims of its image, filter and result.
bool conv_problem(const KernelSpec& spec, Kind kind, const Dims& image, const Dims& filter,
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
  if (kind == Kind::kConv && filter[2] != in.c) {
    why = "a grouped convolution";
    return false;
  }
  WindowGeometry g;
  if (!window_geometry(spec, in, filter[0], filter[1], g, why)) return false;
  p = ConvProblem{in.n,         in.h,      in.w,         in.c,       out.h,      out.w,
                  out.c,        g.kh,      g.kw,         g.stride_h, g.stride_w, g.dilation_h,
                  g.dilation_w, g.pad_top, g.pad_bottom, g.pad_left, g.pad_right};
  if (kind == Kind::kDepthwise) p.groups = in.c;
  return true;
}

FilterView view_of(const ConvProblem& p) {
  return p.groups > 1 ? depthwise_view(p.kh, p.kw, p.ic, p.oc / p.groups)
                      : filter_view(p.kh, p.kw, p.ic, p.oc);
}

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

// Filters packed once for plans that change no variable; keyed by where the bytes are and the versions of the
// variables, so an assignment between runs is seen.
class PackedCache {
 public:
  struct Entry {
    std::vector<std::pair<const void*, uint64_t>> key;
    runtime::Buffer packed, bias;
    Entry(size_t packed_bytes, size_t bias_bytes) : packed(packed_bytes), bias(bias_bytes) {}
  };

  /// Usable when every input of `inputs` is a constant or a variable and the plan writes none.
  PackedCache(const KernelSpec& spec, std::vector<int> inputs) : inputs_(std::move(inputs)) {
    usable_ = spec.forward_only;
    for (int i : inputs_) {
      const auto& variable =
          spec.variables.size() > static_cast<size_t>(i) ? spec.variables[static_cast<size_t>(i)] : nullptr;
      const bool constant = spec.constants.size() > static_cast<size_t>(i) &&
                            spec.constants[static_cast<size_t>(i)].has_value();
      usable_ = usable_ && (variable || constant);
      variables_.push_back(variable);
    }
  }
  bool usable() const { return usable_; }

  template <class Fill>
  std::shared_ptr<const Entry> get(const KernelRun& r, size_t packed_bytes, size_t bias_bytes,
                                   Fill&& fill) const {
    std::lock_guard lock(mutex_);
    bool fresh = entry_ != nullptr;
    for (size_t k = 0; fresh && k < inputs_.size(); ++k) fresh = entry_->key[k] == key(r, k);
    if (!fresh) {
      auto made = std::make_shared<Entry>(packed_bytes, bias_bytes);
      for (size_t k = 0; k < inputs_.size(); ++k) made->key.push_back(key(r, k));
      fill(static_cast<float*>(made->packed.data()), static_cast<float*>(made->bias.data()));
      entry_ = std::move(made);
    }
    return entry_;
  }

 private:
  std::pair<const void*, uint64_t> key(const KernelRun& r, size_t k) const {
    return {r.in_data(inputs_[k]), variables_[k] ? variables_[k]->version() : 0};
  }
  std::vector<int> inputs_;
  std::vector<std::shared_ptr<runtime::Variable>> variables_;
  bool usable_ = false;
  mutable std::mutex mutex_;                    // guards entry_
  mutable std::shared_ptr<const Entry> entry_;  // shared: a run may hold the former one
};

class ConvForward final : public Kernel {
 public:
  ConvForward(const KernelSpec& spec, std::unique_ptr<Primitive> primitive, const ConvProblem& problem,
              PostOps post, bool batch_norm)
      : primitive_(std::move(primitive)),
        problem_(problem),
        view_(view_of(problem)),
        post_(post),
        batch_norm_(batch_norm),
        cache_(spec, folded_inputs(post, batch_norm)) {
    const Layout image = image_layout(is_nchw(spec));
    input_layouts.resize(spec.inputs.size());
    input_layouts[0] = image;
    output_layouts = {image};
    addend_ = static_cast<int>(spec.inputs.size()) - 1;
    if (post_.add) {
      input_layouts.back() = image;
      may_share = {{addend_, 0}};
    }
    if (batch_norm_) {
      epsilon_ = spec.attr<float>("epsilon");
    }
    packed_bytes_ = align64(primitive_->weights().bytes);
    bias_bytes_ = align64(static_cast<size_t>(problem.oc) * 4);
    scratch_bytes = align64(primitive_->scratch_bytes()) + bias_bytes_;  // scale of a folded batch norm
    if (!cache_.usable()) scratch_bytes += packed_bytes_ + bias_bytes_;
  }

  void run(KernelRun& r) const override {
    char* scratch = static_cast<char*>(r.scratch());
    char* library_scratch = scratch;
    float* scale = reinterpret_cast<float*>(scratch + align64(primitive_->scratch_bytes()));
    const float* packed;
    const float* bias = nullptr;
    std::shared_ptr<const PackedCache::Entry> held;
    auto fill = [&](float* to, float* folded_bias) { pack(r, to, folded_bias, scale); };
    if (cache_.usable()) {
      held = cache_.get(r, packed_bytes_, bias_bytes_, fill);
      packed = static_cast<const float*>(held->packed.data());
      bias = static_cast<const float*>(held->bias.data());
    } else {
      float* to = reinterpret_cast<float*>(reinterpret_cast<char*>(scale) + bias_bytes_);
      float* folded_bias = reinterpret_cast<float*>(reinterpret_cast<char*>(to) + packed_bytes_);
      fill(to, folded_bias);
      packed = to;
      bias = folded_bias;
    }
    if (post_.bias && !batch_norm_) bias = r.in<float>(2);
    if (post_.add && r.in_data(addend_) != r.out_data(0)) {
      const float* from = r.in<float>(addend_);
      float* to = r.out<float>(0);
      r.queue().parallel_for(r.out_spec(0).elements(), 1 << 16, [&](int64_t begin, int64_t end) {
        std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin) * 4);
      });
    }
    if (post_.bias)
      primitive_->run({{Arg::kSrc, r.in_data(0)},
                       {Arg::kWeights, packed},
                       {Arg::kBias, bias},
                       {Arg::kDst, r.out_data(0)}},
                      library_scratch);
    else
      primitive_->run({{Arg::kSrc, r.in_data(0)}, {Arg::kWeights, packed}, {Arg::kDst, r.out_data(0)}},
                      library_scratch);
  }

 private:
  static std::vector<int> folded_inputs(PostOps, bool batch_norm) {
    return batch_norm ? std::vector<int>{1, 2, 3, 4, 5} : std::vector<int>{1};
  }

  void pack(KernelRun& r, float* to, float* folded_bias, float* scale) const {
    if (batch_norm_) {
      const float *gamma = r.in<float>(2), *beta = r.in<float>(3), *mean = r.in<float>(4),
                  *variance = r.in<float>(5);
      for (int64_t c = 0; c < problem_.oc; ++c) {
        scale[c] = gamma[c] / std::sqrt(variance[c] + epsilon_);
        folded_bias[c] = beta[c] - mean[c] * scale[c];
      }
    }
    pack_filter(primitive_->weights(), to, r.in<float>(1), view_, batch_norm_ ? scale : nullptr, fns(),
                r.queue());
  }

  std::unique_ptr<Primitive> primitive_;
  ConvProblem problem_;
  FilterView view_;
  PostOps post_;
  bool batch_norm_;
  float epsilon_ = 0;
  int addend_ = -1;
  size_t packed_bytes_ = 0, bias_bytes_ = 0;
  PackedCache cache_;
};

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

bool packable(const std::unique_ptr<Primitive>& primitive, Refusal& refusal) {
  if (primitive && can_pack(primitive->weights())) return true;
  if (primitive)
    refusal.reason = cat(primitive->implementation(), " wants its filter in a form we do not pack");
  return false;
}

KernelMake forward_of(Kind kind, bool fused) {
  return [kind, fused](const KernelSpec& spec, Refusal& refusal) -> std::unique_ptr<Kernel> {
    ConvProblem p;
    if (!all_float(spec, refusal, {0, 1}) ||
        !conv_problem(spec, kind, spec.inputs[0].dims, spec.inputs[1].dims, spec.outputs[0].dims, p,
                      refusal.reason))
      return nullptr;
    PostOps post;
    const bool batch_norm = fused && spec.attr_or<bool>("fused_batch_norm", false);
    if (fused) {
      post.bias = batch_norm || spec.attr_or<bool>("fused_bias", false);
      post.add = spec.attr_or<bool>("fused_add", false);
      post.relu = spec.attr_or<bool>("fused_relu", false);
    }
    auto primitive = make_convolution(p, ConvPass::kForward, post, spec.threads, refusal.reason);
    if (!packable(primitive, refusal)) return nullptr;
    return std::make_unique<ConvForward>(spec, std::move(primitive), p, post, batch_norm);
  };
}

KernelMake input_grad_of(Kind kind) {
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

KernelMake filter_grad_of(Kind kind) {
  return [kind](const KernelSpec& spec, Refusal& refusal) -> std::unique_ptr<Kernel> {
    ConvProblem p;
    if (!all_float(spec, refusal, {0, 2}) ||
        !conv_problem(spec, kind, spec.inputs[0].dims, spec.outputs[0].dims, spec.inputs[2].dims, p,
                      refusal.reason))
      return nullptr;
    if (prefers_product(p)) {
      MatMulProblem m;
      m.m = p.ic, m.n = p.oc, m.k = p.n * p.oh * p.ow, m.transpose_a = true;
      if (auto product = make_matmul(m, false, spec.threads, refusal.reason))
        return std::make_unique<PointwiseFilterGrad>(spec, std::move(product));
    }
    auto primitive = make_convolution(p, ConvPass::kBackwardFilter, {}, spec.threads, refusal.reason);
    if (!packable(primitive, refusal)) return nullptr;
    return std::make_unique<ConvFilterGrad>(spec, std::move(primitive), p);
  };
}

}  // namespace

void register_conv(KernelRegistry& r) {
  const int priority = kLibraryPriority;
  r.add({.op = "Conv2D", .name = "onednn", .make = forward_of(Kind::kConv, false), .priority = priority});
  r.add(
      {.op = "_FusedConv2D", .name = "onednn", .make = forward_of(Kind::kConv, true), .priority = priority});
  r.add({.op = "Conv2DBackpropInput",
         .name = "onednn",
         .make = input_grad_of(Kind::kConv),
         .priority = priority});
  r.add({.op = "Conv2DBackpropFilter",
         .name = "onednn",
         .make = filter_grad_of(Kind::kConv),
         .priority = priority});
  r.add({.op = "DepthwiseConv2dNative",
         .name = "onednn",
         .make = forward_of(Kind::kDepthwise, false),
         .priority = priority});
  r.add({.op = "DepthwiseConv2dNativeBackpropInput",
         .name = "onednn",
         .make = input_grad_of(Kind::kDepthwise),
         .priority = priority});
  r.add({.op = "DepthwiseConv2dNativeBackpropFilter",
         .name = "onednn",
         .make = filter_grad_of(Kind::kDepthwise),
         .priority = priority});
}

}  // namespace sluice::kernels::cpu
