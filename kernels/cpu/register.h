#pragma once
// The fast CPU kernels: one function a file, called by kernels/register.cpp through register_cpu.

#include "runtime/kernel.h"

namespace sluice::kernels::cpu {

/// Everything below, and the region compiler's list of ops.
void register_cpu(runtime::KernelRegistry& r);

void register_batch_norm(runtime::KernelRegistry& r);
void register_conv(runtime::KernelRegistry& r);        // with oneDNN only
void register_conv_loops(runtime::KernelRegistry& r);  // with oneDNN only
void register_lrn(runtime::KernelRegistry& r);         // with oneDNN only
void register_lrn_grad(runtime::KernelRegistry& r);
void register_matmul(runtime::KernelRegistry& r);  // with oneDNN only
void register_matmul_few(runtime::KernelRegistry& r);
void register_pool(runtime::KernelRegistry& r);
void register_reduce(runtime::KernelRegistry& r);
void register_region(runtime::KernelRegistry& r);
void register_softmax(runtime::KernelRegistry& r);
void register_update(runtime::KernelRegistry& r);

}  // namespace sluice::kernels::cpu
