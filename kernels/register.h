#pragma once
// The registry of every kernel this build has, put together from the lists of the kernel folders. A file of
// kernels adds one line to register.cpp (or to its folder's list) and is found nowhere else.

#include "runtime/kernel.h"

namespace sluice::kernels {

/// The reference loops and host kernels: complete, slow, on any CPU.
void register_reference(runtime::KernelRegistry& r);

}  // namespace sluice::kernels
