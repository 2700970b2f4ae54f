#include "kernels/cpu/vec.h"

#include "runtime/cpu_features.h"

namespace sluice::kernels::cpu {

const VecFns& vec_fns(runtime::Isa isa) {
  switch (isa) {
    case runtime::Isa::kAvx512:
      return vec_fns_avx512();
    case runtime::Isa::kAvx2:
      return vec_fns_avx2();
    case runtime::Isa::kSse42:
      break;
  }
  return vec_fns_sse42();
}

}  // namespace sluice::kernels::cpu
