// The gradient of local response normalisation: a pixel's channels at a time, pixels over the team.

#include "kernels/cpu/common.h"
#include "kernels/cpu/register.h"

namespace sluice::kernels::cpu {
namespace {

class LrnGrad final : public Kernel {
 public:
  explicit LrnGrad(const KernelSpec& spec)
      : radius_(spec.attr_or<int64_t>("depth_radius", 5)),
        bias_(spec.attr_or<float>("bias", 1.f)),
        alpha_(spec.attr_or<float>("alpha", 1.f)),
        beta_(spec.attr_or<float>("beta", 0.5f)) {}

  void run(KernelRun& r) const override {
    const ImageDims d = image_dims(r.out_dims(0), false);
    if (d.elements() == 0) return;
    const VecFns& f = fns();
    const float *dy = r.in<float>(0), *x = r.in<float>(1), *y = r.in<float>(2);
    float* dx = r.out<float>(0);
    const int64_t work = d.c * (4 * radius_ + 8);
    r.queue().parallel_for(d.pixels(), std::max<int64_t>(1, 65536 / work), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * d.c; i < end * d.c; i += d.c)
        f.lrn_grad(dx + i, dy + i, x + i, y + i, d.c, radius_, alpha_, beta_, bias_);
    });
  }

 private:
  int64_t radius_;
  float bias_, alpha_, beta_;
};

std::unique_ptr<Kernel> make_lrn_grad(const KernelSpec& spec, Refusal& refusal) {
  if (!all_float(spec, refusal, {0, 1, 2})) return nullptr;
  const int64_t radius = spec.attr_or<int64_t>("depth_radius", 5);
  if (radius < 0 || radius > kLrnMaxRadius) {
    refusal.reason = cat("depth_radius is above ", kLrnMaxRadius);
    return nullptr;
  }
  return std::make_unique<LrnGrad>(spec);
}

}  // namespace

void register_lrn_grad(KernelRegistry& r) {
  r.add({.op = "LRNGrad", .name = "vector", .make = make_lrn_grad, .priority = kVectorPriority});
}

}  // namespace sluice::kernels::cpu
