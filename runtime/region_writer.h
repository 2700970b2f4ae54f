#pragma once
// Writes loop regions a line at a time, and the regions that several layers share: batch normalisation and
// its gradient (graph-and-training §2.12), which plans fuse with their neighbours and kernels run on their
// own. Pure; any thread.
//
//   RegionWriter w(rows, cols);
//   int x = w.in(RegionExtent::kWhole), a = w.in(RegionExtent::kCol);
//   w.out(w.op("Mul", {x, a}), RegionExtent::kWhole);
//   RegionProgram p = w.take();

#include <vector>

#include "runtime/region.h"

namespace sluice::runtime {

class RegionWriter {
 public:
  RegionWriter(int64_t rows, int64_t cols);
  int in(RegionExtent extent, DType dtype = DType::kFloat);
  /// The register of a new instruction. All inputs come first.
  int op(const char* name, std::vector<int> args, DType dtype = DType::kFloat);
  int imm(double value);
  void out(int reg, RegionExtent extent, RegionReduce reduce = RegionReduce::kNone, double scale = 1.0,
           DType dtype = DType::kFloat);
  RegionProgram take() { return std::move(p_); }

 private:
  int last() const { return static_cast<int>(p_.inputs.size() + p_.insts.size()) - 1; }
  RegionProgram p_;
};

// Batch normalisation, rows × channels:
//
//   forward:   x ─► [statistics: mean, variance] ─► y = (x − mean)·(scale·rsqrt(variance + ε)) + offset
//   backward:  dy, x ─► Σdy, Σdy·(x − mean) ─► dx = a·(dy − Σdy/m − (x − mean)·Σdy(x−mean)·inv²/m), a =
//   scale·inv

/// Inputs: x, scale, offset, mean, variance. Output: y.
RegionProgram batch_norm_apply(int64_t rows, int64_t cols, float epsilon);
/// Inputs: dy, x, mean. Outputs: Σdy, Σdy·(x − mean) by column.
RegionProgram batch_norm_grad_sums(int64_t rows, int64_t cols);
/// Inputs: dy, x, scale, mean, variance, Σdy, Σdy·(x − mean). Outputs: dx, dscale.
RegionProgram batch_norm_grad_apply(int64_t rows, int64_t cols, float epsilon);
/// The same for given statistics (is_training false). Inputs: dy, scale, variance, Σdy·(x − mean).
RegionProgram batch_norm_grad_inference(int64_t rows, int64_t cols, float epsilon);

}  // namespace sluice::runtime
