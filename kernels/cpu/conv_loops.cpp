// "_FusedConv2D" by plain loops, for what the library refuses: a plan that fused a convolution always has a
// kernel.

#include <cmath>

#include "kernels/cpu/conv.h"
#include "kernels/cpu/register.h"

namespace sluice::kernels::cpu {
namespace {

struct Fused {
  bool batch_norm = false, bias = false, add = false, relu = false;
  float epsilon = 0;
};

class ConvLoops final : public Kernel {
 public:
  ConvLoops(const KernelSpec& spec, const ConvProblem& p, const Fused& f) : p_(p), f_(f) {
    const Layout image = image_layout(is_nchw(spec));
    input_layouts.resize(spec.inputs.size());
    input_layouts[0] = image;
    if (f.add) input_layouts.back() = image;
    output_layouts = {image};
    addend_ = static_cast<int>(spec.inputs.size()) - 1;
  }

  void run(KernelRun& r) const override {
    r.queue().parallel_for(p_.n * p_.oh, 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        for (int64_t ow = 0; ow < p_.ow; ++ow)
          for (int64_t o = 0; o < p_.oc; ++o) {
            const int64_t at = (row * p_.ow + ow) * p_.oc + o;
            float y = finish(r, static_cast<float>(product(r, row / p_.oh, row % p_.oh, ow, o)), o);
            if (f_.add) y += r.in<float>(addend_)[at];
            r.out<float>(0)[at] = f_.relu && !(y > 0.f || y != y) ? 0.f : y;
          }
    });
  }

 private:
  double product(KernelRun& r, int64_t n, int64_t oh, int64_t ow, int64_t o) const {
    const float *x = r.in<float>(0), *w = r.in<float>(1);
    double sum = 0;
    for (int64_t kh = 0; kh < p_.kh; ++kh) {
      const int64_t ih = oh * p_.stride_h - p_.pad_top + kh * p_.dilation_h;
      if (ih < 0 || ih >= p_.ih) continue;
      for (int64_t kw = 0; kw < p_.kw; ++kw) {
        const int64_t iw = ow * p_.stride_w - p_.pad_left + kw * p_.dilation_w;
        if (iw < 0 || iw >= p_.iw) continue;
        const float* pixel = x + ((n * p_.ih + ih) * p_.iw + iw) * p_.ic;
        const float* tap = w + (kh * p_.kw + kw) * p_.ic * p_.oc + o;
        for (int64_t i = 0; i < p_.ic; ++i)
          sum += static_cast<double>(pixel[i]) * static_cast<double>(tap[i * p_.oc]);
      }
    }
    return sum;
  }

  float finish(KernelRun& r, float y, int64_t o) const {
    if (f_.batch_norm)
      return (y - r.in<float>(4)[o]) * (r.in<float>(2)[o] / std::sqrt(r.in<float>(5)[o] + f_.epsilon)) +
             r.in<float>(3)[o];
    return f_.bias ? y + r.in<float>(2)[o] : y;
  }

  ConvProblem p_;
  Fused f_;
  int addend_ = -1;
};

std::unique_ptr<Kernel> make_loops(const KernelSpec& spec, Refusal& refusal) {
  ConvProblem p;
  if (!all_float(spec, refusal, {0, 1}) ||
      !conv_problem(spec, ConvKind::kConv, spec.inputs[0].dims, spec.inputs[1].dims, spec.outputs[0].dims, p,
                    refusal.reason))
    return nullptr;
  Fused f;
  f.batch_norm = spec.attr_or<bool>("fused_batch_norm", false);
  f.bias = spec.attr_or<bool>("fused_bias", false);
  f.add = spec.attr_or<bool>("fused_add", false);
  f.relu = spec.attr_or<bool>("fused_relu", false);
  f.epsilon = spec.attr_or<float>("epsilon", 0.f);
  return std::make_unique<ConvLoops>(spec, p, f);
}

}  // namespace

void register_conv_loops(KernelRegistry& r) {
  r.add({.op = "_FusedConv2D", .name = "loops", .make = make_loops, .priority = 0});
}

}  // namespace sluice::kernels::cpu
