#include "kernels/register.h"

#include "kernels/cpu/register.h"
#include "kernels/reference/register.h"

namespace sluice::kernels {

void register_reference(runtime::KernelRegistry& r) {
  register_apply(r);
  register_array_gather(r);
  register_array_move(r);
  register_array_search(r);
  register_array_segment(r);
  register_array_shape(r);
  register_array_slice(r);
  register_batch_norm(r);
  register_conv(r);
  register_conv_depthwise(r);
  register_elementwise_binary(r);
  register_elementwise_unary(r);
  register_host_checkpoint(r);
  register_host_iterator(r);
  register_host_numerics(r);
  register_host_parse_example(r);
  register_host_strings(r);
  register_host_summary(r);
  register_host_summary_audio(r);
  register_host_summary_image(r);
  register_host_summary_tensor(r);
  register_host_text(r);
  register_image_resize(r);
  register_matmul(r);
  register_nn_misc(r);
  register_pool(r);
  register_random(r);
  register_reduce(r);
  register_scan(r);
  register_select_cast(r);
  register_softmax(r);
  register_state(r);
}

}  // namespace sluice::kernels

namespace sluice::runtime {

const KernelRegistry& standard_kernels() {
  static const KernelRegistry registry = [] {
    KernelRegistry r;
    kernels::register_reference(r);
    kernels::cpu::register_cpu(r);
    return r;
  }();
  return registry;
}

}  // namespace sluice::runtime
