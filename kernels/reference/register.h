#pragma once
// One function a file of kernels/reference and kernels/host; kernels/register.cpp calls them all.

#include "runtime/kernel.h"

namespace sluice::kernels {

void register_apply(runtime::KernelRegistry& r);
void register_array_gather(runtime::KernelRegistry& r);
void register_array_move(runtime::KernelRegistry& r);
void register_array_search(runtime::KernelRegistry& r);
void register_array_segment(runtime::KernelRegistry& r);
void register_array_shape(runtime::KernelRegistry& r);
void register_array_slice(runtime::KernelRegistry& r);
void register_batch_norm(runtime::KernelRegistry& r);
void register_conv(runtime::KernelRegistry& r);
void register_conv_depthwise(runtime::KernelRegistry& r);
void register_elementwise_binary(runtime::KernelRegistry& r);
void register_elementwise_unary(runtime::KernelRegistry& r);
void register_host_checkpoint(runtime::KernelRegistry& r);
void register_host_iterator(runtime::KernelRegistry& r);
void register_host_numerics(runtime::KernelRegistry& r);
void register_host_parse_example(runtime::KernelRegistry& r);
void register_host_strings(runtime::KernelRegistry& r);
void register_host_summary(runtime::KernelRegistry& r);
void register_host_summary_audio(runtime::KernelRegistry& r);
void register_host_summary_image(runtime::KernelRegistry& r);
void register_host_summary_tensor(runtime::KernelRegistry& r);
void register_host_text(runtime::KernelRegistry& r);
void register_image_resize(runtime::KernelRegistry& r);
void register_matmul(runtime::KernelRegistry& r);
void register_nn_misc(runtime::KernelRegistry& r);
void register_pool(runtime::KernelRegistry& r);
void register_random(runtime::KernelRegistry& r);
void register_reduce(runtime::KernelRegistry& r);
void register_scan(runtime::KernelRegistry& r);
void register_select_cast(runtime::KernelRegistry& r);
void register_softmax(runtime::KernelRegistry& r);
void register_state(runtime::KernelRegistry& r);

}  // namespace sluice::kernels
