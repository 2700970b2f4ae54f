// Local response normalisation across channels on the library.

#include "kernels/cpu/common.h"
#include "kernels/cpu/onednn.h"
#include "kernels/cpu/register.h"

namespace sluice::kernels::cpu {
namespace {

class Lrn final : public Kernel {
 public:
  explicit Lrn(std::unique_ptr<Primitive> primitive) : primitive_(std::move(primitive)) {
    scratch_bytes = primitive_->scratch_bytes();
  }
  void run(KernelRun& r) const override {
    primitive_->run({{Arg::kSrc, r.in_data(0)}, {Arg::kDst, r.out_data(0)}}, r.scratch());
  }

 private:
  std::unique_ptr<Primitive> primitive_;
};

std::unique_ptr<Kernel> make_lrn_kernel(const KernelSpec& spec, Refusal& refusal) {
  if (!all_float(spec, refusal, {0})) return nullptr;
  const ImageDims d = image_dims(spec.inputs[0].dims, false);
  if (d.elements() == 0) {
    refusal.reason = "an empty operand";
    return nullptr;
  }
  const int size = 2 * static_cast<int>(spec.attr_or<int64_t>("depth_radius", 5)) + 1;
  // The library divides alpha by the size, TensorFlow does not.
  auto primitive = make_lrn(
      d.n, d.h, d.w, d.c, size, spec.attr_or<float>("alpha", 1.f) * static_cast<float>(size),
      spec.attr_or<float>("beta", 0.5f), spec.attr_or<float>("bias", 1.f), spec.threads, refusal.reason);
  if (!primitive) return nullptr;
  return std::make_unique<Lrn>(std::move(primitive));
}

}  // namespace

void register_lrn(KernelRegistry& r) {
  r.add({.op = "LRN", .name = "onednn", .make = make_lrn_kernel, .priority = kLibraryPriority});
}

}  // namespace sluice::kernels::cpu
