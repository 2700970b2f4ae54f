#include "kernels/cpu/register.h"

namespace sluice::kernels::cpu {

void register_cpu(runtime::KernelRegistry& r) {
  register_batch_norm(r);
#ifdef SLUICE_WITH_ONEDNN
  register_conv(r);
  register_conv_loops(r);
  register_lrn(r);
  register_matmul(r);
#endif
  register_lrn_grad(r);
  register_matmul_few(r);
  register_pool(r);
  register_reduce(r);
  register_region(r);
  register_softmax(r);
  register_update(r);
}

}  // namespace sluice::kernels::cpu
