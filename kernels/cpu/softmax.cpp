// Softmax and LogSoftmax over the last dim: a row at a time, rows over the team.

#include "kernels/cpu/common.h"
#include "kernels/cpu/register.h"

namespace sluice::kernels::cpu {
namespace {

template <bool kLog>
void softmax_rows(KernelRun& r) {
  const Dims& dims = r.in_dims(0);
  const int64_t cols = dims.empty() ? 1 : dims.back();
  if (r.out_spec(0).elements() == 0) return;
  const int64_t rows = r.out_spec(0).elements() / cols;
  const VecFns& f = fns();
  const float* x = r.in<float>(0);
  float* y = r.out<float>(0);
  r.queue().parallel_for(rows, std::max<int64_t>(1, 8192 / cols), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      (kLog ? f.log_softmax : f.softmax)(y + i * cols, x + i * cols, cols);
  });
}

KernelMake float_only(runtime::KernelFn fn) {
  return [made = runtime::plain(fn, {{0, 0}})](const KernelSpec& spec,
                                               Refusal& refusal) -> std::unique_ptr<Kernel> {
    if (!all_float(spec, refusal, {0})) return nullptr;
    return made(spec, refusal);
  };
}

}  // namespace

void register_softmax(KernelRegistry& r) {
  r.add({.op = "Softmax",
         .name = "vector",
         .make = float_only(softmax_rows<false>),
         .priority = kVectorPriority});
  r.add({.op = "LogSoftmax",
         .name = "vector",
         .make = float_only(softmax_rows<true>),
         .priority = kVectorPriority});
}

}  // namespace sluice::kernels::cpu
