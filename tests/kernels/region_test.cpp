// The tile machine against an evaluator of one element at a time, on every instruction set this CPU has.

#include <cstring>
#include <map>

#include "kernel_runner.h"
#include "kernels/cpu/region_machine.h"
#include "kernels/scalar.h"
#include "runtime/cpu_features.h"

namespace sluice::test {
namespace {

using kernels::cpu::RegionMachine;
using runtime::Isa;
using runtime::RegionExtent;
using runtime::RegionProgram;
using runtime::RegionReduce;
constexpr DType F = DType::kFloat, I = DType::kInt32, B = DType::kBool;
constexpr RegionExtent kW = RegionExtent::kWhole, kC = RegionExtent::kCol, kR = RegionExtent::kRow,
                       kS = RegionExtent::kScalar;

std::vector<Isa> levels() {
  std::vector<Isa> all;
  for (Isa isa : {Isa::kSse42, Isa::kAvx2, Isa::kAvx512})
    if (isa <= runtime::hardware_isa()) all.push_back(isa);
  return all;
}

int64_t extent_size(const RegionProgram& p, RegionExtent e) {
  return e == kW ? p.rows * p.cols : e == kC ? p.cols : e == kR ? p.rows : 1;
}
Dims extent_dims(const RegionProgram& p, RegionExtent e) {
  return e == kW ? Dims{p.rows, p.cols} : e == kS ? Dims{} : Dims{extent_size(p, e)};
}

// Compiles and runs; inputs in program order.
std::vector<Array> run_machine(const RegionProgram& p, const std::vector<Array>& inputs, Isa isa, int threads,
                               bool in_place = false) {
  std::string why;
  auto machine = RegionMachine::compile(p, kernels::cpu::vec_fns(isa), threads, why);
  EXPECT_TRUE(machine) << why;
  if (!machine) return {};
  std::vector<Array> outputs, copies;
  std::vector<const void*> in;
  std::vector<void*> out;
  for (const Array& a : inputs) copies.push_back(a.clone());
  for (const Array& a : copies) in.push_back(a.data());
  for (const auto& o : p.outputs) {
    outputs.emplace_back(o.dtype, extent_dims(p, o.extent));
    if (outputs.back().bytes()) memset(outputs.back().data(), 0x7f, outputs.back().bytes());
  }
  for (Array& a : outputs) out.push_back(a.data());
  if (in_place)
    for (auto [i, o] : machine->may_share()) {
      outputs[static_cast<size_t>(o)] = copies[static_cast<size_t>(i)];
      out[static_cast<size_t>(o)] = const_cast<void*>(in[static_cast<size_t>(i)]);
      break;
    }
  runtime::Buffer scratch(machine->scratch_bytes());
  auto queue = threads == 1 ? runtime::make_serial_queue() : runtime::make_default_queue(threads);
  machine->run(in.data(), out.data(), scratch.data(), *queue);
  return outputs;
}

RegionProgram batch_norm_relu(int64_t rows, int64_t cols) {
  RegionProgram p;
  p.rows = rows, p.cols = cols;
  p.inputs = {{kW, F}, {kC, F}, {kC, F}, {kW, F}};
  p.insts = {{"_Imm", {}, F, 0.001},  // 4
             {"Add", {1, 4}, F},      // 5
             {"Rsqrt", {5}, F},       // 6, by column
             {"Mul", {0, 6}, F},      // 7
             {"Add", {7, 2}, F},      // 8 (one product and sum)
             {"AddN", {8, 3, 0}, F},  // 9
             {"Relu", {9}, F}};       // 10
  p.outputs = {{10, kW, RegionReduce::kNone, 1, F},
               {10, kC, RegionReduce::kSum, 0.5, F},
               {10, kR, RegionReduce::kMax, 1, F},
               {9, kS, RegionReduce::kSum, 1, F},
               {6, kC, RegionReduce::kNone, 1, F}};
  return p;
}

TEST(RegionMachine, ColumnsRowsAndReductionsOnOddShapes) {
  for (auto [rows, cols] :
       {std::pair<int64_t, int64_t>{1, 1}, {3, 5}, {1000, 7}, {37, 64}, {300, 100}, {9, 1500}, {2, 40000}})
    for (Isa isa : levels()) {
      SCOPED_TRACE(cat(rows, "x", cols, " ", runtime::isa_name(isa)));
      RegionProgram p = batch_norm_relu(rows, cols);
      Array x = random_array({rows, cols}, 1), var = random_array({cols}, 2, .1f, 2.f),
            off = random_array({cols}, 3);
      Array add = random_array({rows, cols}, 4);
      Array want(F, {rows, cols}), by_col = Array::zeros(F, {cols}), by_row(F, {rows});
      std::vector<double> col(static_cast<size_t>(cols));
      double all = 0;
      for (int64_t r = 0; r < rows; ++r) {
        float top = -INFINITY;
        for (int64_t c = 0; c < cols; ++c) {
          size_t i = static_cast<size_t>(r * cols + c), k = static_cast<size_t>(c);
          double v = x.as<float>()[i] / std::sqrt(double(var.as<float>()[k]) + .001) + off.as<float>()[k] +
                     add.as<float>()[i] + x.as<float>()[i];
          all += v;
          float y = static_cast<float>(v > 0 ? v : 0);
          want.as<float>()[i] = y;
          col[k] += y * .5;
          top = std::max(top, y);
        }
        by_row.as<float>()[static_cast<size_t>(r)] = top;
      }
      for (size_t k = 0; k < col.size(); ++k) by_col.as<float>()[k] = static_cast<float>(col[k]);
      std::vector<Array> got = run_machine(p, {x, var, off, add}, isa, 2);
      expect_close(got.at(0), want, 1e-6f, "y");
      expect_close(got.at(1), by_col, 1e-6f, "sums of columns");
      expect_close(got.at(2), by_row, 1e-6f, "maxima of rows");
      EXPECT_NEAR(got.at(3).item<float>(), all, 1e-5 * static_cast<double>(rows * cols) + 1e-5);
      std::vector<Array> one = run_machine(p, {x, var, off, add}, isa, 1);
      for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(same_bits(got[i], one[i])) << "output " << i;
      std::vector<Array> over = run_machine(p, {x, var, off, add}, isa, 2, true);
      for (size_t i = 0; i < got.size(); ++i)
        EXPECT_TRUE(same_bits(got[i], over[i])) << "in place, output " << i;
    }
}

TEST(RegionMachine, RowOperandsAndFlatScalars) {
  for (Isa isa : levels()) {
    RegionProgram p;
    p.rows = 33, p.cols = 70;
    p.inputs = {{kW, F}, {kR, F}, {kS, F}};
    p.insts = {{"Square", {1}, F}, {"Mul", {0, 3}, F}, {"Sub", {4, 2}, F}};
    p.outputs = {{5, kW, RegionReduce::kNone, 1, F}, {3, kR, RegionReduce::kNone, 1, F}};
    Array x = random_array({33, 70}, 1), row = random_array({33}, 2), s = Array::scalar<float>(0.5f);
    std::vector<Array> got = run_machine(p, {x, row, s}, isa, 2);
    for (int r = 0; r < 33; ++r)
      for (int c = 0; c < 70; ++c) {
        size_t i = static_cast<size_t>(r * 70 + c), k = static_cast<size_t>(r);
        EXPECT_NEAR(got.at(0).as<float>()[i],
                    x.as<float>()[i] * row.as<float>()[k] * row.as<float>()[k] - .5f, 1e-5);
      }
    p.inputs = {{kW, F}, {kS, F}};
    p.insts = {{"Sqrt", {1}, F}, {"RealDiv", {0, 2}, F}};
    p.outputs = {{3, kW, RegionReduce::kNone, 1, F}};
    got = run_machine(p, {x, Array::scalar<float>(4.f)}, isa, 2);
    for (size_t i = 0; i < 33 * 70; ++i) EXPECT_EQ(got.at(0).as<float>()[i], x.as<float>()[i] / 2);
  }
}

TEST(RegionMachine, EmptySpacesGiveIdentities) {
  RegionProgram p = batch_norm_relu(0, 5);
  Array none(F, {0, 5}), column = random_array({5}, 1, .1f, 1.f);
  std::vector<Array> got = run_machine(p, {none, column, column, none}, Isa::kSse42, 2);
  for (float v : got.at(1).as<float>()) EXPECT_EQ(v, 0.f);
  EXPECT_EQ(got.at(3).item<float>(), 0.f);
}

TEST(RegionMachine, MasksCastsAndIntegers) {
  for (Isa isa : levels()) {
    RegionProgram p;
    p.rows = 1, p.cols = 5000;
    p.inputs = {{kW, F}, {kW, F}, {kW, I}};
    p.insts = {{"Greater", {0, 1}, B}, {"LogicalNot", {3}, B}, {"Select", {4, 0, 1}, F}, {"Cast", {0}, I},
               {"Mul", {6, 2}, I},     {"Cast", {3}, F},       {"Mul", {8, 5}, F},       {"Less", {2, 7}, B}};
    p.outputs = {{5, kW, RegionReduce::kNone, 1, F},
                 {7, kW, RegionReduce::kNone, 1, I},
                 {9, kW, RegionReduce::kNone, 1, F},
                 {10, kW, RegionReduce::kNone, 1, B}};
    Array a = random_array({1, 5000}, 1, 1e3f), b = random_array({1, 5000}, 2, 1e3f), n(I, {1, 5000});
    a.as<float>()[0] = NAN, a.as<float>()[1] = 1e20f, a.as<float>()[2] = -INFINITY;
    for (size_t i = 0; i < 5000; ++i) n.as<int32_t>()[i] = static_cast<int32_t>(i * 2654435761u);
    std::vector<Array> got = run_machine(p, {a, b, n}, isa, 2);
    for (size_t i = 0; i < 5000; ++i) {
      float x = a.as<float>()[i], y = b.as<float>()[i];
      bool greater = x > y;
      int32_t product = static_cast<int32_t>(static_cast<uint32_t>(kernels::scalar::cast<int32_t>(x)) *
                                             static_cast<uint32_t>(n.as<int32_t>()[i]));
      float least = greater ? y : x;
      EXPECT_TRUE(got.at(0).as<float>()[i] == least || std::isnan(least)) << i;
      EXPECT_EQ(got.at(1).as<int32_t>()[i], product) << i;
      EXPECT_EQ(got.at(3).as<bool>()[i], n.as<int32_t>()[i] < product) << i;
    }
  }
}

// Every float function of the table on edge values and random ones against kernels/scalar.h.
TEST(VectorFunctions, ElementsAreThoseOfScalarH) {
  std::vector<float> edges{0.f,    -0.f,    1.f,   -1.f,   0.5f,     6.f,       7.f,    -3.f,
                           1e-40f, -1e-40f, 1e38f, -1e38f, INFINITY, -INFINITY, NAN,    2.5f,
                           3.5f,   -2.5f,   88.5f, 89.f,   -87.f,    -100.f,    -104.f, 1e-20f};
  std::vector<float> xs, ys;
  for (float x : edges)
    for (float y : edges) xs.push_back(x), ys.push_back(y);
  std::mt19937 gen(1);
  std::normal_distribution<float> normal(0, 4);
  for (int i = 0; i < 3001; ++i) xs.push_back(normal(gen)), ys.push_back(normal(gen));
  for (int i = 0; i < 2000; ++i) xs.push_back(std::exp(normal(gen) * 5)), ys.push_back(xs.back() * .5f);
  const int64_t n = static_cast<int64_t>(xs.size());
  std::vector<float> want(xs.size()), got(xs.size());
  std::map<std::string, int> ulps{{"Exp", 2},       {"Log", 2},         {"Tanh", 3},
                                  {"Sigmoid", 3},   {"SigmoidGrad", 4}, {"TanhGrad", 40},
                                  {"RsqrtGrad", 4}, {"SqrtGrad", 2},    {"SoftsignGrad", 4}};
  int compared = 0;
  for (Isa isa : levels()) {
    const kernels::cpu::VecFns& fns = kernels::cpu::vec_fns(isa);
    auto compare = [&](const std::string& op) {
      kernels::cpu::TileFn vec = kernels::cpu::find_tile_fn(fns, op, F, F);
      ASSERT_TRUE(vec) << op;
      vec(got.data(), xs.data(), ys.data(), nullptr, n, 0);
      ++compared;
      int bad = 0;
      for (size_t i = 0; i < xs.size() && bad < 5; ++i) {
        float g = got[i], w = want[i];
        if ((std::isnan(g) && std::isnan(w)) || memcmp(&g, &w, 4) == 0) continue;
        int32_t gi, wi;
        memcpy(&gi, &g, 4), memcpy(&wi, &w, 4);
        bool zeros = g == 0 && w == 0;
        if (!zeros && !std::isnan(g) && !std::isnan(w) && (gi < 0) == (wi < 0) &&
            std::abs(int64_t{gi} - wi) <= ulps[op])
          continue;
        if (ulps[op] > 4 && std::fabs(g - w) <= 1e-6f * std::fabs(ys[i])) continue;  // 1 − y² cancels
        ADD_FAILURE() << op << " (" << xs[i] << ", " << ys[i] << ") " << runtime::isa_name(isa) << ": " << g
                      << ", want " << w;
        ++bad;
      }
    };
#define SLUICE_CHECK_UNARY(name)                                                   \
  for (size_t i = 0; i < xs.size(); ++i) want[i] = kernels::scalar::name{}(xs[i]); \
  compare(#name)
#define SLUICE_CHECK_BINARY(name)                                                         \
  for (size_t i = 0; i < xs.size(); ++i) want[i] = kernels::scalar::name{}(xs[i], ys[i]); \
  compare(#name)
    SLUICE_CHECK_UNARY(Abs);
    SLUICE_CHECK_UNARY(Ceil);
    SLUICE_CHECK_UNARY(Exp);
    SLUICE_CHECK_UNARY(Floor);
    SLUICE_CHECK_UNARY(Log);
    SLUICE_CHECK_UNARY(Neg);
    SLUICE_CHECK_UNARY(Reciprocal);
    SLUICE_CHECK_UNARY(Relu);
    SLUICE_CHECK_UNARY(Relu6);
    SLUICE_CHECK_UNARY(Rint);
    SLUICE_CHECK_UNARY(Rsqrt);
    SLUICE_CHECK_UNARY(Sigmoid);
    SLUICE_CHECK_UNARY(Sign);
    SLUICE_CHECK_UNARY(Softsign);
    SLUICE_CHECK_UNARY(Sqrt);
    SLUICE_CHECK_UNARY(Square);
    SLUICE_CHECK_UNARY(Tanh);
    SLUICE_CHECK_UNARY(Elu);
    SLUICE_CHECK_UNARY(Softplus);
    SLUICE_CHECK_BINARY(Add);
    SLUICE_CHECK_BINARY(Sub);
    SLUICE_CHECK_BINARY(Mul);
    SLUICE_CHECK_BINARY(Div);
    SLUICE_CHECK_BINARY(Maximum);
    SLUICE_CHECK_BINARY(Minimum);
    SLUICE_CHECK_BINARY(SquaredDifference);
    SLUICE_CHECK_BINARY(DivNoNan);
    SLUICE_CHECK_BINARY(MulNoNan);
    SLUICE_CHECK_BINARY(ReluGrad);
    SLUICE_CHECK_BINARY(Relu6Grad);
    SLUICE_CHECK_BINARY(ReciprocalGrad);
    SLUICE_CHECK_BINARY(RsqrtGrad);
    SLUICE_CHECK_BINARY(SqrtGrad);
    SLUICE_CHECK_BINARY(SoftsignGrad);
    SLUICE_CHECK_BINARY(Pow);
    SLUICE_CHECK_BINARY(TanhGrad);
  }
  EXPECT_GE(compared, 36);
}

}  // namespace
}  // namespace sluice::test
