// Matrix products on the library: MatMul and its gradients (transposes are strides), BatchMatMul where the
// batch dims are equal or one side has none.

#include "kernels/cpu/common.h"
#include "kernels/cpu/onednn.h"
#include "kernels/cpu/register.h"

namespace sluice::kernels::cpu {
namespace {

class MatMulKernel final : public Kernel {
 public:
  explicit MatMulKernel(std::unique_ptr<Primitive> primitive) : primitive_(std::move(primitive)) {
    scratch_bytes = primitive_->scratch_bytes();
  }
  void run(KernelRun& r) const override {
    primitive_->run({{Arg::kSrc, r.in_data(0)}, {Arg::kWeights, r.in_data(1)}, {Arg::kDst, r.out_data(0)}},
                    r.scratch());
  }

 private:
  std::unique_ptr<Primitive> primitive_;
};

std::unique_ptr<Kernel> make(const KernelSpec& spec, const MatMulProblem& p, Refusal& refusal) {
  if (p.batch == 0 || p.m == 0 || p.n == 0 || p.k == 0) {
    refusal.reason = "an empty operand";
    return nullptr;
  }
  auto primitive = make_matmul(p, false, summing_threads(spec), refusal.reason);
  if (!primitive) return nullptr;
  return std::make_unique<MatMulKernel>(std::move(primitive));
}

std::unique_ptr<Kernel> make_mat_mul(const KernelSpec& spec, Refusal& refusal) {
  if (!all_float(spec, refusal, {0, 1})) return nullptr;
  MatMulProblem p;
  p.transpose_a = spec.attr_or<bool>("transpose_a", false);
  p.transpose_b = spec.attr_or<bool>("transpose_b", false);
  const Dims &a = spec.inputs[0].dims, &c = spec.outputs[0].dims;
  p.m = c[0], p.n = c[1], p.k = p.transpose_a ? a[0] : a[1];
  return make(spec, p, refusal);
}

std::unique_ptr<Kernel> make_batch_mat_mul(const KernelSpec& spec, Refusal& refusal) {
  if (!all_float(spec, refusal, {0, 1})) return nullptr;
  MatMulProblem p;
  p.transpose_a = spec.attr_or<bool>("adj_x", false);
  p.transpose_b = spec.attr_or<bool>("adj_y", false);
  const Dims &a = spec.inputs[0].dims, &b = spec.inputs[1].dims, &c = spec.outputs[0].dims;
  auto batch_of = [](const Dims& d) { return Dims(d.begin(), d.end() - 2); };
  const Dims ba = batch_of(a), bb = batch_of(b), bc = batch_of(c);
  p.batch = graph::num_elements(bc);
  p.shared_a = graph::num_elements(ba) == 1 && p.batch > 1;
  p.shared_b = graph::num_elements(bb) == 1 && p.batch > 1;
  if ((!p.shared_a && graph::num_elements(ba) != p.batch) ||
      (!p.shared_b && graph::num_elements(bb) != p.batch)) {
    refusal.reason = "batch dims that broadcast in part";
    return nullptr;
  }
  p.m = c[c.size() - 2], p.n = c.back(), p.k = p.transpose_a ? a[a.size() - 2] : a.back();
  return make(spec, p, refusal);
}

}  // namespace

void register_matmul(KernelRegistry& r) {
  r.add({.op = "MatMul", .name = "onednn", .make = make_mat_mul, .priority = kLibraryPriority});
  r.add({.op = "BatchMatMul", .name = "onednn", .make = make_batch_mat_mul, .priority = kLibraryPriority});
  r.add({.op = "BatchMatMulV2", .name = "onednn", .make = make_batch_mat_mul, .priority = kLibraryPriority});
}

}  // namespace sluice::kernels::cpu
