#pragma once
// A loop region: many elementwise ops and reductions in one pass over memory. The iteration space is
// two-dimensional, rows × cols in row-major order (NHWC activations: rows = N·H·W, cols = C). Operands are
// whole (rows × cols), one value a column (batch-norm scale), one a row, or a scalar. Values are registers in
// single assignment; instructions are TF's elementwise ops by name, so the semantics are those of
// kernels/scalar.h whoever generates the code. The plan builds programs (runtime/plan/regions); kernels named
// "_Region" compile them.
//
//   y = Relu(x * a + b), sum over rows of y:   in0: whole x, in1: col a, in2: col b
//     r3 = Mul r0 r1 ; r4 = Add r3 r2 ; r5 = Relu r4 ; out0: whole r5 ; out1: col, Sum of r5

#include <string>
#include <vector>

#include "runtime/layout.h"

namespace sluice::runtime {

enum class RegionExtent { kWhole, kCol, kRow, kScalar };

struct RegionInput {
  RegionExtent extent = RegionExtent::kWhole;
  DType dtype = DType::kFloat;
};

struct RegionInst {
  std::string op;         // "Mul", "Relu", "ReluGrad", "Rsqrt", "Cast", "Select"; "_Imm" = the constant `imm`
  std::vector<int> args;  // registers
  DType dtype = DType::kFloat;  // of the result
  double imm = 0;
  float alpha = 0;  // an op's attr where it has one (LeakyRelu)
};

enum class RegionReduce { kNone, kSum, kMax, kMin, kProd };

struct RegionOutput {
  int reg = 0;
  RegionExtent extent = RegionExtent::kWhole;  // kCol: reduced over rows; kRow: over cols; kScalar: over all
  RegionReduce reduce =
      RegionReduce::kNone;  // kNone only with kWhole, or where the value already has that extent
  double scale = 1.0;       // factor after the reduction (Mean)
  DType dtype = DType::kFloat;
};

/// Registers 0 … inputs-1 are the inputs; instruction k defines register inputs + k.
struct RegionProgram {
  int64_t rows = 0, cols = 0;
  std::vector<RegionInput> inputs;
  std::vector<RegionInst> insts;
  std::vector<RegionOutput> outputs;
  std::vector<std::string> nodes;  // names of the graph nodes it came from, for traces and errors

  std::string str() const;
  uint64_t hash() const;
};

}  // namespace sluice::runtime
