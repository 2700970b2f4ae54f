// Matrix products on the library: MatMul and its gradients (transposes are strides), BatchMatMul where the
// batch dims are equal or one side has none.

#include "kernels/cpu/matmul.h"
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

std::unique_ptr<Kernel> make(const KernelSpec& spec, Refusal& refusal) {
  MatMulProblem p;
  if (!matmul_problem(spec, p, refusal)) return nullptr;
  auto primitive = make_matmul(p, false, summing_threads(spec), refusal.reason);
  if (!primitive) return nullptr;
  return std::make_unique<MatMulKernel>(std::move(primitive));
}

}  // namespace

void register_matmul(KernelRegistry& r) {
  for (const char* op : {"MatMul", "BatchMatMul", "BatchMatMulV2"})
    r.add({.op = op, .name = "onednn", .make = make, .priority = kLibraryPriority});
}

}  // namespace sluice::kernels::cpu
