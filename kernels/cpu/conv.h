#pragma once
// What the convolution kernels share: the library's description of a node's convolution, and how its filter
// lies.

#include <memory>
#include <string>

#include "kernels/cpu/common.h"
#include "kernels/cpu/onednn.h"
#include "kernels/cpu/weights.h"

namespace sluice::kernels::cpu {

enum class ConvKind { kConv, kDepthwise };

/// The convolution of a node from the dims of its image, filter and result; false and a reason where the
/// library has none for it.
bool conv_problem(const KernelSpec& spec, ConvKind kind, const Dims& image, const Dims& filter,
                  const Dims& result, ConvProblem& p, std::string& why);
FilterView view_of(const ConvProblem& p);
/// True when there is a primitive whose filter format we can pack; else the refusal says why not.
bool packable(const std::unique_ptr<Primitive>& primitive, Refusal& refusal);

/// Conv2D, DepthwiseConv2dNative, and "_FusedConv2D" (conv_forward.cpp).
KernelMake conv_forward(ConvKind kind, bool fused);

}  // namespace sluice::kernels::cpu
