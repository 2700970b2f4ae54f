// The fast CPU kernels against the reference loops: odd shapes, both data formats, every padding; own kernels
// give the same bits on one thread and on two.

#include <cstring>

#include "graph/infer.h"
#include "kernel_runner.h"

namespace sluice::test {
namespace {

constexpr DType F = DType::kFloat;
using Ints = std::vector<int64_t>;

Dims image(int64_t n, int64_t h, int64_t w, int64_t c, bool nchw) {
  return nchw ? Dims{n, c, h, w} : Dims{n, h, w, c};
}
Ints spatial(int64_t h, int64_t w, bool nchw) { return nchw ? Ints{1, 1, h, w} : Ints{1, h, w, 1}; }

struct ConvShape {
  int64_t n, h, w, c, k, kw, o, stride, dilation;
  const char* padding;
  bool nchw = false;
};

const ConvShape kConvShapes[] = {
    {2, 9, 7, 16, 3, 3, 32, 1, 1, "SAME"},          {1, 8, 8, 3, 7, 7, 64, 2, 1, "SAME"},
    {3, 5, 6, 64, 1, 1, 64, 1, 1, "VALID"},         {2, 7, 7, 64, 1, 1, 128, 2, 1, "SAME"},
    {2, 11, 9, 32, 3, 3, 16, 2, 1, "SAME"},         {2, 12, 12, 16, 3, 3, 16, 1, 2, "SAME"},
    {2, 9, 8, 5, 3, 2, 7, 1, 1, "VALID"},           {4, 14, 14, 1, 5, 5, 32, 1, 1, "SAME"},
    {2, 6, 6, 512, 1, 1, 2048, 1, 1, "SAME"},       {3, 5, 7, 136, 1, 1, 48, 1, 1, "SAME"},
    {2, 10, 10, 12, 3, 3, 20, 2, 1, "VALID", true}, {2, 7, 7, 128, 3, 3, 128, 1, 1, "SAME", true},
};

graph::AttrMap conv_attrs(const ConvShape& s) {
  return {{"T", F},
          {"strides", spatial(s.stride, s.stride, s.nchw)},
          {"dilations", spatial(s.dilation, s.dilation, s.nchw)},
          {"padding", s.padding},
          {"explicit_paddings", Ints{}},
          {"data_format", s.nchw ? "NCHW" : "NHWC"}};
}

Dims conv_out(const ConvShape& s) {
  auto out = [&](int64_t in, int64_t k) { return graph::window(in, k, s.stride, s.dilation, s.padding).out; };
  return image(s.n, out(s.h, s.k), out(s.w, s.kw), s.o, s.nchw);
}

std::string describe(const ConvShape& s) {
  return cat(s.n, "x", s.h, "x", s.w, "x", s.c, " k", s.k, "x", s.kw, " o", s.o, " s", s.stride, " d",
             s.dilation, " ", s.padding, s.nchw ? " NCHW" : " NHWC");
}

Array ints(const Dims& d) {
  std::vector<int32_t> v(d.begin(), d.end());
  return Array::from<int32_t>({static_cast<int64_t>(v.size())}, std::span<const int32_t>(v));
}

TEST(OneDnnConv, AllThreePassesEqualTheReference) {
  for (const ConvShape& s : kConvShapes) {
    SCOPED_TRACE(describe(s));
    Array x = random_array(image(s.n, s.h, s.w, s.c, s.nchw), 1), w = random_array({s.k, s.kw, s.c, s.o}, 2);
    Array dy = random_array(conv_out(s), 3);
    KernelCase forward{"Conv2D", conv_attrs(s), {x, w}, {{F, dy.dims(), {}}}, nullptr};
    expect_close(run_kernel(forward, "onednn").at(0), run_kernel(forward, "reference").at(0), 2e-6f, "y");
    KernelCase dx{
        "Conv2DBackpropInput", conv_attrs(s), {ints(x.dims()), w, dy}, {{F, x.dims(), {}}}, nullptr};
    expect_close(run_kernel(dx, "onednn").at(0), run_kernel(dx, "reference").at(0), 2e-6f, "dx");
    KernelCase dw{
        "Conv2DBackpropFilter", conv_attrs(s), {x, ints(w.dims()), dy}, {{F, w.dims(), {}}}, nullptr};
    expect_close(run_kernel(dw, "onednn").at(0), run_kernel(dw, "reference").at(0), 4e-6f, "dW");
  }
}

TEST(OneDnnConv, DepthwiseEqualsTheReference) {
  for (int64_t c : {16, 32, 24})
    for (int64_t stride : {1, 2}) {
      ConvShape s{2, 9, 8, c, 3, 3, c, stride, 1, "SAME"};
      SCOPED_TRACE(describe(s));
      Array x = random_array({s.n, s.h, s.w, c}, 1), w = random_array({3, 3, c, 1}, 2);
      Array dy = random_array(conv_out(s), 3);
      KernelCase forward{"DepthwiseConv2dNative", conv_attrs(s), {x, w}, {{F, dy.dims(), {}}}, nullptr};
      expect_close(run_kernel(forward, "onednn").at(0), run_kernel(forward, "reference").at(0), 1e-6f, "y");
      KernelCase dx{"DepthwiseConv2dNativeBackpropInput",
                    conv_attrs(s),
                    {ints(x.dims()), w, dy},
                    {{F, x.dims(), {}}},
                    nullptr};
      expect_close(run_kernel(dx, "onednn").at(0), run_kernel(dx, "reference").at(0), 1e-6f, "dx");
      KernelCase dw{"DepthwiseConv2dNativeBackpropFilter",
                    conv_attrs(s),
                    {x, ints(w.dims()), dy},
                    {{F, w.dims(), {}}},
                    nullptr};
      expect_close(run_kernel(dw, "onednn").at(0), run_kernel(dw, "reference").at(0), 2e-6f, "dW");
    }
}

TEST(OneDnnConv, FusedStepsEqualTheirParts) {
  ConvShape s{2, 9, 7, 16, 3, 3, 48, 1, 1, "SAME"};
  Array x = random_array({s.n, s.h, s.w, s.c}, 1), w = random_array({3, 3, s.c, s.o}, 2);
  Array scale = random_array({s.o}, 3), offset = random_array({s.o}, 4), mean = random_array({s.o}, 5);
  Array variance = random_array({s.o}, 6, 0.1f, 2.f), addend = random_array(conv_out(s), 7);
  KernelCase plain{"Conv2D", conv_attrs(s), {x, w}, {{F, addend.dims(), {}}}, nullptr};
  Array want = run_kernel(plain, "reference").at(0);
  for (size_t i = 0; i < want.as<float>().size(); ++i) {
    size_t c = i % static_cast<size_t>(s.o);
    float a = scale.as<float>()[c] / std::sqrt(variance.as<float>()[c] + 1e-3f);
    float y = (want.as<float>()[i] - mean.as<float>()[c]) * a + offset.as<float>()[c] + addend.as<float>()[i];
    want.as<float>()[i] = std::max(y, 0.f);
  }
  for (bool forward_only : {false, true}) {
    KernelCase fused = plain;
    fused.op = "_FusedConv2D";
    fused.forward_only = forward_only;
    fused.attrs.insert(
        {{"fused_batch_norm", true}, {"fused_add", true}, {"fused_relu", true}, {"epsilon", 1e-3f}});
    fused.inputs = {x, w, scale, offset, mean, variance, addend};
    expect_close(run_kernel(fused, "onednn").at(0), want, 4e-6f, "y");
    expect_close(run_kernel(fused, "loops").at(0), want, 4e-6f, "y by loops");
  }
}

TEST(OneDnnMatMul, EveryTransposeEqualsTheReference) {
  for (bool ta : {false, true})
    for (bool tb : {false, true}) {
      Array a = random_array(ta ? Dims{37, 5} : Dims{5, 37}, 1),
            b = random_array(tb ? Dims{19, 37} : Dims{37, 19}, 2);
      KernelCase c{"MatMul",
                   {{"T", F}, {"transpose_a", ta}, {"transpose_b", tb}},
                   {a, b},
                   {{F, {5, 19}, {}}},
                   nullptr};
      expect_close(run_kernel(c, "onednn").at(0), run_kernel(c, "reference").at(0), 1e-6f, "c");
    }
}

graph::AttrMap pool_attrs(int64_t k, int64_t stride, const char* padding, bool nchw) {
  return {{"T", F},
          {"ksize", spatial(k, k, nchw)},
          {"strides", spatial(stride, stride, nchw)},
          {"padding", padding},
          {"data_format", nchw ? "NCHW" : "NHWC"}};
}

TEST(VectorPool, ForwardAndBackwardEqualTheReferenceWithTies) {
  for (bool nchw : {false, true})
    for (int64_t c : {1, 16, 37, 64})
      for (const char* padding : {"SAME", "VALID"}) {
        SCOPED_TRACE(cat(c, " ", padding, nchw));
        Array x = random_array(image(2, 9, 8, c, nchw), 1);
        for (float& v : x.as<float>()) v = std::round(v);  // many equal maxima
        for (size_t i = 0; i < x.as<float>().size(); i += 41) x.as<float>()[i] = i % 2 ? NAN : -INFINITY;
        auto out = [&](int64_t in) { return graph::window(in, 3, 2, 1, padding).out; };
        Array dy = random_array(image(2, out(9), out(8), c, nchw), 2);
        graph::AttrMap attrs = pool_attrs(3, 2, padding, nchw);
        for (const char* op : {"MaxPool", "AvgPool"}) {
          KernelCase y{op, attrs, {x}, {{F, dy.dims(), {}}}, nullptr};
          expect_close(run_kernel(y, "vector").at(0), run_kernel(y, "reference").at(0), 1e-6f, op);
          EXPECT_TRUE(same_bits(run_kernel(y, "vector", 1).at(0), run_kernel(y, "vector", 2).at(0)));
        }
        KernelCase y{"MaxPool", attrs, {x}, {{F, dy.dims(), {}}}, nullptr};
        Array top = run_kernel(y, "reference").at(0);
        KernelCase max{"MaxPoolGrad", attrs, {x, top, dy}, {{F, x.dims(), {}}}, nullptr};
        expect_close(run_kernel(max, "vector").at(0), run_kernel(max, "reference").at(0), 1e-6f,
                     "MaxPoolGrad");
        EXPECT_TRUE(same_bits(run_kernel(max, "vector", 1).at(0), run_kernel(max, "vector", 2).at(0)));
        KernelCase avg{"AvgPoolGrad", attrs, {ints(x.dims()), dy}, {{F, x.dims(), {}}}, nullptr};
        expect_close(run_kernel(avg, "vector").at(0), run_kernel(avg, "reference").at(0), 1e-6f,
                     "AvgPoolGrad");
      }
}

TEST(VectorBatchNorm, TrainingAndInferenceEqualTheReference) {
  for (bool nchw : {false, true})
    for (bool training : {true, false})
      for (int64_t c : {5, 64, 100}) {
        SCOPED_TRACE(cat(c, training, nchw));
        Array x = random_array(image(3, 7, 11, c, nchw), 1, 2.f, 30.f), dy = random_array(x.dims(), 2);
        Array scale = random_array({c}, 3), offset = random_array({c}, 4);
        Array mean = training ? Array(F, {0}) : random_array({c}, 5),
              variance = training ? Array(F, {0}) : random_array({c}, 6, .1f, 2.f);
        graph::AttrMap attrs{{"T", F},
                             {"U", F},
                             {"epsilon", 1e-3f},
                             {"is_training", training},
                             {"data_format", nchw ? "NCHW" : "NHWC"}};
        runtime::ValueSpec column{F, {c}, {}};
        KernelCase forward{"FusedBatchNorm",
                           attrs,
                           {x, scale, offset, mean, variance},
                           {{F, x.dims(), {}}, column, column, column, column},
                           nullptr};
        std::vector<Array> got = run_kernel(forward, "vector"), want = run_kernel(forward, "reference");
        for (size_t i = 0; i < want.size(); ++i)
          expect_close(got.at(i), want.at(i), 1e-5f, cat("output ", i));  // the mean is 15 deviations
        std::vector<Array> one = run_kernel(forward, "vector", 1);
        for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(same_bits(got.at(i), one.at(i)));
        KernelCase backward{"FusedBatchNormGrad",
                            attrs,
                            {dy, x, scale, want.at(3), want.at(4)},
                            {{F, x.dims(), {}}, column, column, {F, {0}, {}}, {F, {0}, {}}},
                            nullptr};
        got = run_kernel(backward, "vector"), want = run_kernel(backward, "reference");
        for (size_t i = 0; i < 3; ++i) expect_close(got.at(i), want.at(i), 4e-6f, cat("gradient ", i));
        one = run_kernel(backward, "vector", 1);
        for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(got.at(i), one.at(i)));
      }
}

TEST(VectorBatchNorm, VarianceSurvivesALargeMean) {
  Array x = random_array({4, 16, 16, 32}, 1, 0.01f, 1000.f), column = random_array({32}, 2);
  KernelCase c{"_BatchNormStats", {}, {x}, {{F, {32}, {}}, {F, {32}, {}}}, nullptr};
  std::vector<Array> got = run_kernel(c, "vector");
  for (size_t k = 0; k < 32; ++k) {
    double mean = 0, squares = 0;
    for (size_t i = k; i < x.as<float>().size(); i += 32) mean += x.as<float>()[i];
    mean /= 1024;
    for (size_t i = k; i < x.as<float>().size(); i += 32) squares += std::pow(x.as<float>()[i] - mean, 2);
    EXPECT_NEAR(got.at(0).as<float>()[k], mean, 1e-4);
    EXPECT_NEAR(got.at(1).as<float>()[k] / (squares / 1024), 1, 1e-4);
  }
}

TEST(OneDnnLrn, EqualsTheReference) {
  Array x = random_array({2, 5, 6, 32}, 1);
  KernelCase c{"LRN",
               {{"T", F}, {"depth_radius", int64_t{2}}, {"bias", 1.5f}, {"alpha", 0.3f}, {"beta", 0.75f}},
               {x},
               {{F, x.dims(), {}}},
               nullptr};
  expect_close(run_kernel(c, "onednn").at(0), run_kernel(c, "reference").at(0), 2e-6f, "y");
}

TEST(VectorLrnGrad, EqualsTheReference) {
  for (int64_t channels : {1, 5, 96, 700})
    for (int64_t radius : {0, 2, 5, 64})
      for (float beta : {0.5f, 0.6f, 0.75f}) {
        SCOPED_TRACE(cat(channels, " channels, radius ", radius, ", beta ", beta));
        const graph::AttrMap attrs{
            {"T", F}, {"depth_radius", radius}, {"bias", 1.5f}, {"alpha", 0.3f}, {"beta", beta}};
        Array x = random_array({1, 2, 3, channels}, 1), dy = random_array(x.dims(), 2);
        KernelCase forward{"LRN", attrs, {x}, {{F, x.dims(), {}}}, nullptr};
        KernelCase c{
            "LRNGrad", attrs, {dy, x, run_kernel(forward, "reference").at(0)}, {{F, x.dims(), {}}}, nullptr};
        expect_close(run_kernel(c, "vector").at(0), run_kernel(c, "reference").at(0), 2e-6f, "dx");
      }
}

TEST(VectorSoftmax, RowsEqualTheReference) {
  for (int64_t n : {1, 10, 1001}) {
    Array x = random_array({7, n}, 1, 5.f, 90.f);
    for (const char* op : {"Softmax", "LogSoftmax"}) {
      KernelCase c{op, {{"T", F}}, {x}, {{F, x.dims(), {}}}, nullptr};
      expect_close(run_kernel(c, "vector").at(0), run_kernel(c, "reference").at(0), 1e-6f, op);
    }
  }
}

TEST(TileReduce, EveryReductionEqualsTheReference) {
  Array x = random_array({3, 5, 7, 20}, 1);
  struct Row {
    std::vector<int32_t> axes;
    Dims out;
  };
  for (const Row& row : {Row{{0, 1, 2}, {20}}, Row{{3}, {3, 5, 7}}, Row{{1, 2}, {3, 20}},
                         Row{{0, 1, 2, 3}, {}}, Row{{2, 3}, {3, 5}}}) {
    Array axes =
        Array::from<int32_t>({static_cast<int64_t>(row.axes.size())}, std::span<const int32_t>(row.axes));
    for (const char* op : {"Sum", "Mean", "Max", "Min", "Prod"}) {
      KernelCase c{op,
                   {{"T", F}, {"Tidx", DType::kInt32}, {"keep_dims", false}},
                   {x, axes},
                   {{F, row.out, {}}},
                   nullptr};
      expect_close(run_kernel(c, "tiles").at(0), run_kernel(c, "reference").at(0), 2e-6f,
                   cat(op, row.axes.size()));
      EXPECT_TRUE(same_bits(run_kernel(c, "tiles", 1).at(0), run_kernel(c, "tiles", 2).at(0))) << op;
    }
  }
}

}  // namespace
}  // namespace sluice::test
