#pragma once
// One function a file of kernels/reference and kernels/host; kernels/register.cpp calls them all.

#include "runtime/kernel.h"

namespace sluice::kernels {

void register_array_gather(runtime::KernelRegistry& r);
void register_array_move(runtime::KernelRegistry& r);
void register_array_search(runtime::KernelRegistry& r);
void register_array_segment(runtime::KernelRegistry& r);
void register_array_shape(runtime::KernelRegistry& r);
void register_array_slice(runtime::KernelRegistry& r);
void register_elementwise_binary(runtime::KernelRegistry& r);
void register_elementwise_unary(runtime::KernelRegistry& r);
void register_reduce(runtime::KernelRegistry& r);
void register_scan(runtime::KernelRegistry& r);
void register_select_cast(runtime::KernelRegistry& r);

}  // namespace sluice::kernels
