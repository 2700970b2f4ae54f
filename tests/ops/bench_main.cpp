// Times every kernel of an op on shapes that networks use.
//   ops_bench [SUBSTRING]      one line a kernel: case, kernel, milliseconds (median of 7), GB/s of operands

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "tests/ops/op_case.h"

namespace sluice::optest {
namespace {

AttrMap window(int64_t stride, const char* padding, int64_t k = 0) {
  AttrMap a{{"strides", std::vector<int64_t>{1, stride, stride, 1}}, {"padding", padding}};
  if (k) a["ksize"] = std::vector<int64_t>{1, k, k, 1};
  return a;
}

std::vector<OpCase> bench_cases() {
  const In big = f({16, 56, 56, 64});
  return {
      {.name = "Relu", .op = "Relu", .inputs = {big}},
      {.name = "Tanh", .op = "Tanh", .inputs = {big}},
      {.name = "Add", .op = "AddV2", .inputs = {big, big}},
      {.name = "Mul_channels", .op = "Mul", .inputs = {big, f({64})}},
      {.name = "ReluGrad", .op = "ReluGrad", .inputs = {big, big}},
      {.name = "Sum_all", .op = "Sum", .inputs = {big, i32({0, 1, 2, 3})}},
      {.name = "Sum_to_channels", .op = "Sum", .inputs = {big, i32({0, 1, 2})}},
      {.name = "Transpose_to_nchw", .op = "Transpose", .inputs = {big, i32({0, 3, 1, 2})}},
      {.name = "ConcatV2", .op = "ConcatV2", .inputs = {big, big, i32_scalar(3)}},
      {.name = "MatMul_512", .op = "MatMul", .inputs = {f({512, 512}), f({512, 512})}},
      {.name = "MatMul_1x4096x4096", .op = "MatMul", .inputs = {f({1, 4096}), f({4096, 4096})}},
      {.name = "MatMul_2x4096x4096", .op = "MatMul", .inputs = {f({2, 4096}), f({4096, 4096})}},
      {.name = "MatMul_8x4096x4096", .op = "MatMul", .inputs = {f({8, 4096}), f({4096, 4096})}},
      {.name = "MatMul_8x4096x4096_tb",
       .op = "MatMul",
       .inputs = {f({8, 4096}), f({4096, 4096})},
       .attrs = {{"transpose_b", true}}},
      {.name = "MatMul_16x2048x1001", .op = "MatMul", .inputs = {f({16, 2048}), f({2048, 1001})}},
      {.name = "MatMul_16x2048x1001_tb",
       .op = "MatMul",
       .inputs = {f({16, 2048}), f({1001, 2048})},
       .attrs = {{"transpose_b", true}}},
      {.name = "MatMul_16x512x256", .op = "MatMul", .inputs = {f({16, 512}), f({512, 256})}},
      {.name = "MatMul_64x512x10", .op = "MatMul", .inputs = {f({64, 512}), f({512, 10})}},
      {.name = "MatMul_512x64x10_ta",
       .op = "MatMul",
       .inputs = {f({64, 512}), f({64, 10})},
       .attrs = {{"transpose_a", true}}},
      {.name = "BatchMatMul_32x4x512x64",
       .op = "BatchMatMulV2",
       .inputs = {f({32, 4, 512}), f({32, 512, 64})}},
      {.name = "Conv2D_3x3",
       .op = "Conv2D",
       .inputs = {f({4, 56, 56, 64}), f({3, 3, 64, 64})},
       .attrs = window(1, "SAME")},
      {.name = "Conv2D_1x1",
       .op = "Conv2D",
       .inputs = {f({4, 56, 56, 64}), f({1, 1, 64, 256})},
       .attrs = window(1, "SAME")},
      {.name = "Conv2DBackpropInput_3x3",
       .op = "Conv2DBackpropInput",
       .inputs = {i32({4, 56, 56, 64}), f({3, 3, 64, 64}), f({4, 56, 56, 64})},
       .attrs = window(1, "SAME")},
      {.name = "Conv2DBackpropFilter_3x3",
       .op = "Conv2DBackpropFilter",
       .inputs = {f({4, 56, 56, 64}), i32({3, 3, 64, 64}), f({4, 56, 56, 64})},
       .attrs = window(1, "SAME")},
      {.name = "DepthwiseConv2dNative",
       .op = "DepthwiseConv2dNative",
       .inputs = {f({4, 56, 56, 64}), f({3, 3, 64, 1})},
       .attrs = window(1, "SAME")},
      {.name = "MaxPool_3x3s2", .op = "MaxPool", .inputs = {big}, .attrs = window(2, "SAME", 3)},
      {.name = "AvgPool_3x3s2", .op = "AvgPool", .inputs = {big}, .attrs = window(2, "SAME", 3)},
      {.name = "FusedBatchNorm", .op = "FusedBatchNormV3", .inputs = {big, f({64}), f({64}), f({0}), f({0})}},
      {.name = "BiasAddGrad", .op = "BiasAddGrad", .inputs = {big}},
      {.name = "Softmax", .op = "Softmax", .inputs = {f({256, 1000})}},
      {.name = "SparseXent",
       .op = "SparseSoftmaxCrossEntropyWithLogits",
       .inputs = {f({256, 1000}), ints({256}, 0, 999)}},
  };
}

void time_case(const OpCase& c) {
  std::vector<Operand> in;
  double bytes = 0;
  for (Array& a : make_inputs(c, DType::kFloat)) {
    bytes += static_cast<double>(a.bytes());
    in.emplace_back(std::move(a));
  }
  const DirectRun direct({.op = c.op, .inputs = std::move(in), .attrs = c.attrs});
  for (const std::string& name : direct.candidates()) {
    std::string why;
    auto kernel = direct.make(name, why);
    if (!kernel) {
      std::printf("%-26s %-16s declines: %s\n", c.name.c_str(), name.c_str(), why.c_str());
      continue;
    }
    std::vector<double> seconds;
    for (int k = 0; k < 7; ++k) seconds.push_back(direct.time(*kernel));
    std::sort(seconds.begin(), seconds.end());
    std::printf("%-26s %-16s %9.3f ms %8.2f GB/s\n", c.name.c_str(), name.c_str(), seconds[3] * 1e3,
                bytes / seconds[3] / 1e9);
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace sluice::optest

int main(int argc, char** argv) {
  for (const auto& c : sluice::optest::bench_cases())
    if (argc < 2 || std::strstr(c.name.c_str(), argv[1])) sluice::optest::time_case(c);
  return 0;
}
