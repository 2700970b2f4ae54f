#include "runtime/region_writer.h"

#include "graph/support/check.h"

namespace sluice::runtime {

RegionWriter::RegionWriter(int64_t rows, int64_t cols) {
  p_.rows = rows;
  p_.cols = cols;
}

int RegionWriter::in(RegionExtent extent, DType dtype) {
  SLUICE_CHECK(p_.insts.empty(), "inputs come before instructions");
  p_.inputs.push_back({extent, dtype});
  return last();
}

int RegionWriter::op(const char* name, std::vector<int> args, DType dtype) {
  p_.insts.push_back({name, std::move(args), dtype});
  return last();
}

int RegionWriter::imm(double value) {
  p_.insts.push_back({"_Imm", {}, DType::kFloat, value});
  return last();
}

void RegionWriter::out(int reg, RegionExtent extent, RegionReduce reduce, double scale, DType dtype) {
  p_.outputs.push_back({reg, extent, reduce, scale, dtype});
}

RegionProgram batch_norm_apply(int64_t rows, int64_t cols, float epsilon) {
  RegionWriter w(rows, cols);
  const int x = w.in(RegionExtent::kWhole);
  const int scale = w.in(RegionExtent::kCol), offset = w.in(RegionExtent::kCol);
  const int mean = w.in(RegionExtent::kCol), variance = w.in(RegionExtent::kCol);
  const int inv = w.op("Rsqrt", {w.op("Add", {variance, w.imm(epsilon)})});
  const int a = w.op("Mul", {scale, inv});
  w.out(w.op("Add", {w.op("Mul", {w.op("Sub", {x, mean}), a}), offset}), RegionExtent::kWhole);
  return w.take();
}

RegionProgram batch_norm_grad_sums(int64_t rows, int64_t cols) {
  RegionWriter w(rows, cols);
  const int dy = w.in(RegionExtent::kWhole), x = w.in(RegionExtent::kWhole), mean = w.in(RegionExtent::kCol);
  const int product = w.op("Mul", {dy, w.op("Sub", {x, mean})});
  w.out(dy, RegionExtent::kCol, RegionReduce::kSum);
  w.out(product, RegionExtent::kCol, RegionReduce::kSum);
  return w.take();
}

RegionProgram batch_norm_grad_apply(int64_t rows, int64_t cols, float epsilon) {
  RegionWriter w(rows, cols);
  const int dy = w.in(RegionExtent::kWhole), x = w.in(RegionExtent::kWhole);
  const int scale = w.in(RegionExtent::kCol), mean = w.in(RegionExtent::kCol),
            variance = w.in(RegionExtent::kCol);
  const int sum = w.in(RegionExtent::kCol), product_sum = w.in(RegionExtent::kCol);
  const int m = w.imm(static_cast<double>(rows));
  const int inv = w.op("Rsqrt", {w.op("Add", {variance, w.imm(epsilon)})});
  const int dscale = w.op("Mul", {product_sum, inv});
  const int slope = w.op("RealDiv", {w.op("Mul", {dscale, inv}), m});
  const int shift = w.op("RealDiv", {sum, m});
  const int a = w.op("Mul", {scale, inv});
  const int fit = w.op("Add", {w.op("Mul", {w.op("Sub", {x, mean}), slope}), shift});
  w.out(w.op("Mul", {w.op("Sub", {dy, fit}), a}), RegionExtent::kWhole);
  w.out(dscale, RegionExtent::kCol);
  return w.take();
}

RegionProgram batch_norm_grad_inference(int64_t rows, int64_t cols, float epsilon) {
  RegionWriter w(rows, cols);
  const int dy = w.in(RegionExtent::kWhole);
  const int scale = w.in(RegionExtent::kCol), variance = w.in(RegionExtent::kCol);
  const int product_sum = w.in(RegionExtent::kCol);
  const int inv = w.op("Rsqrt", {w.op("Add", {variance, w.imm(epsilon)})});
  w.out(w.op("Mul", {dy, w.op("Mul", {scale, inv})}), RegionExtent::kWhole);
  w.out(w.op("Mul", {product_sum, inv}), RegionExtent::kCol);
  return w.take();
}

}  // namespace sluice::runtime
