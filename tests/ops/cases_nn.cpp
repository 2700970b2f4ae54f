// Convolution, pooling, normalization, softmax and losses, resizing. Formulas are direct sums in double.

#include <cmath>
#include <limits>

#include "tests/ops/op_case.h"

namespace sluice::optest {
namespace {

using V = const std::vector<Doubles>&;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Formula fixed(std::vector<Doubles> out) {
  return [out = std::move(out)](V) { return out; };
}

struct Win {  // one spatial dimension
  int64_t in, k, stride, dilation, pad, out;
};
Win win(int64_t in, int64_t k, int64_t stride, int64_t dilation, const std::string& padding,
        int64_t before = 0, int64_t after = 0) {
  const int64_t reach = (k - 1) * dilation + 1;
  Win w{in, k, stride, dilation, before, 0};
  if (padding == "SAME") {
    w.out = (in + stride - 1) / stride;
    w.pad = std::max<int64_t>(0, (w.out - 1) * stride + reach - in) / 2;
  } else {
    w.out = (in + before + after - reach) / stride + 1;
  }
  return w;
}

struct Geometry {
  const char* name;
  int64_t n, h, w, ci, co, kh, kw, stride, dilation;
  std::string padding;
};

Win rows(const Geometry& g) {
  return g.padding == "EXPLICIT" ? win(g.h, g.kh, g.stride, g.dilation, g.padding, 2, 1)
                                 : win(g.h, g.kh, g.stride, g.dilation, g.padding);
}
Win cols(const Geometry& g) {
  return g.padding == "EXPLICIT" ? win(g.w, g.kw, g.stride, g.dilation, g.padding, 0, 3)
                                 : win(g.w, g.kw, g.stride, g.dilation, g.padding);
}

// Position of (n, h, w, c) in an activation of either format.
int64_t at(const Dims& d, bool nchw, int64_t n, int64_t h, int64_t w, int64_t c) {
  return nchw ? ((n * d[1] + c) * d[2] + h) * d[3] + w : ((n * d[1] + h) * d[2] + w) * d[3] + c;
}
Dims act(bool nchw, int64_t n, int64_t h, int64_t w, int64_t c) {
  return nchw ? Dims{n, c, h, w} : Dims{n, h, w, c};
}

// Calls g(x index, w index, y index) for every product of a convolution.
template <class F>
void products(const Geometry& g, bool nchw, bool depthwise, F use) {
  const Win r = rows(g), c = cols(g);
  const int64_t co = depthwise ? g.ci * g.co : g.co;
  const Dims x = act(nchw, g.n, g.h, g.w, g.ci), y = act(nchw, g.n, r.out, c.out, co);
  for (int64_t n = 0; n < g.n; ++n)
    for (int64_t oh = 0; oh < r.out; ++oh)
      for (int64_t ow = 0; ow < c.out; ++ow)
        for (int64_t kh = 0; kh < g.kh; ++kh)
          for (int64_t kw = 0; kw < g.kw; ++kw) {
            const int64_t ih = oh * g.stride - r.pad + kh * g.dilation,
                          iw = ow * g.stride - c.pad + kw * g.dilation;
            if (ih < 0 || ih >= g.h || iw < 0 || iw >= g.w) continue;
            for (int64_t i = 0; i < g.ci; ++i)
              for (int64_t o = 0; o < g.co; ++o)
                use(at(x, nchw, n, ih, iw, i), ((kh * g.kw + kw) * g.ci + i) * g.co + o,
                    at(y, nchw, n, oh, ow, depthwise ? i * g.co + o : o));
          }
}

AttrMap conv_attrs(const Geometry& g, bool nchw) {
  const auto four = [&](int64_t v) {
    return nchw ? std::vector<int64_t>{1, 1, v, v} : std::vector<int64_t>{1, v, v, 1};
  };
  AttrMap a{{"strides", four(g.stride)},
            {"dilations", four(g.dilation)},
            {"padding", g.padding},
            {"data_format", nchw ? "NCHW" : "NHWC"}};
  if (g.padding == "EXPLICIT")
    a["explicit_paddings"] =
        nchw ? std::vector<int64_t>{0, 0, 0, 0, 2, 1, 0, 3} : std::vector<int64_t>{0, 0, 2, 1, 0, 3, 0, 0};
  return a;
}

void add_conv(std::vector<OpCase>& t) {
  const Geometry list[] = {
      {"same", 2, 7, 6, 3, 5, 3, 3, 1, 1, "SAME"},
      {"same_stride2", 1, 8, 7, 4, 6, 3, 3, 2, 1, "SAME"},
      {"valid", 2, 6, 7, 3, 4, 3, 2, 1, 1, "VALID"},
      {"valid_stride2", 1, 6, 6, 1, 1, 3, 3, 2, 1, "VALID"},
      {"even_kernel", 1, 5, 5, 2, 3, 4, 2, 1, 1, "SAME"},
      {"pointwise", 2, 4, 4, 16, 70, 1, 1, 1, 1, "SAME"},
      {"pointwise_stride2", 1, 5, 5, 8, 8, 1, 1, 2, 1, "SAME"},
      {"dilated", 1, 9, 9, 2, 3, 3, 3, 1, 2, "SAME"},
      {"explicit", 1, 6, 5, 2, 3, 3, 3, 2, 1, "EXPLICIT"},
      {"stem", 1, 15, 15, 3, 8, 7, 7, 2, 1, "SAME"},
      {"no_images", 0, 4, 4, 2, 3, 3, 3, 1, 1, "SAME"},
  };
  for (const Geometry& g : list)
    for (bool nchw : {false, true}) {
      const Dims x = act(nchw, g.n, g.h, g.w, g.ci), y = act(nchw, g.n, rows(g).out, cols(g).out, g.co),
                 w{g.kh, g.kw, g.ci, g.co};
      const std::string suffix = cat(g.name, nchw ? "_nchw" : "");
      // TensorFlow's CPU kernels want NHWC, and give the wrong channels for no images.
      const bool tf = !nchw && g.n > 0;
      const std::vector<int> differentiate = g.n ? std::vector<int>{0, 1} : std::vector<int>{};
      t.push_back({.name = cat("Conv2D_", suffix),
                   .op = "Conv2D",
                   .inputs = {f(x), f(w)},
                   .expect =
                       [=](V in) {
                         Doubles out = zeros(y);
                         products(g, nchw, false,
                                  [&](int64_t i, int64_t k, int64_t o) { out[o] += in[0][i] * in[1][k]; });
                         return std::vector<Doubles>{out};
                       },
                   .attrs = conv_attrs(g, nchw),
                   .tolerance = 1e-5,
                   .tolerance64 = 1e-11,
                   .gradient = differentiate,
                   .in_tensorflow = tf});
      auto list_of = [](const Dims& d) { return i32(std::vector<double>(d.begin(), d.end())); };
      t.push_back({.name = cat("Conv2DBackpropInput_", suffix),
                   .op = "Conv2DBackpropInput",
                   .inputs = {list_of(x), f(w), f(y)},
                   .expect =
                       [=](V in) {
                         Doubles out = zeros(x);
                         products(g, nchw, false,
                                  [&](int64_t i, int64_t k, int64_t o) { out[i] += in[1][k] * in[2][o]; });
                         return std::vector<Doubles>{out};
                       },
                   .attrs = conv_attrs(g, nchw),
                   .tolerance = 1e-5,
                   .tolerance64 = 1e-11,
                   .in_tensorflow = tf});
      t.push_back({.name = cat("Conv2DBackpropFilter_", suffix),
                   .op = "Conv2DBackpropFilter",
                   .inputs = {f(x), list_of(w), f(y)},
                   .expect =
                       [=](V in) {
                         Doubles out = zeros(w);
                         products(g, nchw, false,
                                  [&](int64_t i, int64_t k, int64_t o) { out[k] += in[0][i] * in[2][o]; });
                         return std::vector<Doubles>{out};
                       },
                   .attrs = conv_attrs(g, nchw),
                   .tolerance = 1e-5,
                   .tolerance64 = 1e-11,
                   .in_tensorflow = tf});
    }
  const Geometry depthwise[] = {{"same", 2, 6, 5, 3, 2, 3, 3, 1, 1, "SAME"},
                                {"stride2", 1, 7, 7, 4, 1, 3, 3, 2, 1, "SAME"},
                                {"valid", 1, 5, 6, 2, 3, 3, 2, 1, 1, "VALID"}};
  for (const Geometry& g : depthwise)
    for (bool nchw : {false, true}) {
      const Dims x = act(nchw, g.n, g.h, g.w, g.ci),
                 y = act(nchw, g.n, rows(g).out, cols(g).out, g.ci * g.co), w{g.kh, g.kw, g.ci, g.co};
      const std::string suffix = cat(g.name, nchw ? "_nchw" : "");
      t.push_back({.name = cat("Depthwise_", suffix),
                   .op = "DepthwiseConv2dNative",
                   .inputs = {f(x), f(w)},
                   .expect =
                       [=](V in) {
                         Doubles out = zeros(y);
                         products(g, nchw, true,
                                  [&](int64_t i, int64_t k, int64_t o) { out[o] += in[0][i] * in[1][k]; });
                         return std::vector<Doubles>{out};
                       },
                   .attrs = conv_attrs(g, nchw),
                   .tolerance = 1e-5,
                   .tolerance64 = 1e-11,
                   .gradient = {0, 1},
                   .in_tensorflow = !nchw});
    }
  // cases.md G14 and G16.
  t.push_back({.name = "Conv2D_pads_after",
               .op = "Conv2D",
               .inputs = {given({1, 4, 1, 1}, {1, 2, 3, 4}), given({3, 1, 1, 1}, {1, 10, 100})},
               .expect = fixed({{{1, 2, 1, 1}, {321, 43}}}),
               .attrs = {{"strides", std::vector<int64_t>{1, 2, 1, 1}}, {"padding", "SAME"}}});
  t.push_back({.name = "Conv2DBackpropInput_uncovered_edge",
               .op = "Conv2DBackpropInput",
               .inputs = {i32({1, 6, 6, 1}), given({3, 3, 1, 1}, std::vector<double>(9, 1)),
                          given({1, 2, 2, 1}, std::vector<double>(4, 1))},
               .expect = elements({1, 6, 6, 1},
                                  [](V, const Dims& i) {
                                    const double c[] = {1, 1, 2, 1, 1, 0};
                                    return c[i[1]] * c[i[2]];
                                  }),
               .attrs = {{"strides", std::vector<int64_t>{1, 2, 2, 1}}, {"padding", "VALID"}}});
}

AttrMap pool_attrs(int64_t k, int64_t s, const char* padding, bool nchw = false) {
  const auto four = [&](int64_t v) {
    return nchw ? std::vector<int64_t>{1, 1, v, v} : std::vector<int64_t>{1, v, v, 1};
  };
  return {{"ksize", four(k)},
          {"strides", four(s)},
          {"padding", padding},
          {"data_format", nchw ? "NCHW" : "NHWC"}};
}

void add_pool(std::vector<OpCase>& t) {
  for (const char* op : {"MaxPool", "AvgPool"})
    for (const char* padding : {"SAME", "VALID"})
      for (int64_t stride : {1, 2, 3})
        for (bool nchw : {false, true}) {
          const bool max = std::string(op) == "MaxPool";
          const Dims x = act(nchw, 2, 7, 8, 3);
          t.push_back({.name = cat(op, "_", padding, "_", stride, nchw ? "_nchw" : ""),
                       .op = op,
                       .inputs = {f(x)},
                       .expect =
                           [=](V in) {
                             const Win r = win(7, 3, stride, 1, padding), c = win(8, 3, stride, 1, padding);
                             Doubles y = zeros(act(nchw, 2, r.out, c.out, 3));
                             for (int64_t n = 0; n < 2; ++n)
                               for (int64_t oh = 0; oh < r.out; ++oh)
                                 for (int64_t ow = 0; ow < c.out; ++ow)
                                   for (int64_t ch = 0; ch < 3; ++ch) {
                                     double best = -kInf, sum = 0, count = 0;
                                     for (int64_t h = oh * stride - r.pad; h < oh * stride - r.pad + 3; ++h)
                                       for (int64_t w = ow * stride - c.pad; w < ow * stride - c.pad + 3;
                                            ++w) {
                                         if (h < 0 || h >= 7 || w < 0 || w >= 8) continue;
                                         const double v = in[0][at(x, nchw, n, h, w, ch)];
                                         best = std::max(best, v);
                                         sum += v;
                                         count += 1;
                                       }
                                     y[at(y.dims, nchw, n, oh, ow, ch)] = max ? best : sum / count;
                                   }
                             return std::vector<Doubles>{y};
                           },
                       .attrs = pool_attrs(3, stride, padding, nchw),
                       .gradient = {0},
                       .in_tensorflow = !nchw});
        }
  // cases.md G05, G10–G12.
  const std::vector<double> nine{1, 2, 3, 4, 5, 6, 7, 8, 9};
  t.push_back({.name = "AvgPool_counts_cells_inside",
               .op = "AvgPool",
               .inputs = {given({1, 3, 3, 1}, nine)},
               .expect = fixed({{{1, 2, 2, 1}, {3, 4.5, 7.5, 9}}}),
               .attrs = pool_attrs(2, 2, "SAME")});
  t.push_back({.name = "AvgPoolGrad_counts_cells_inside",
               .op = "AvgPoolGrad",
               .inputs = {i32({1, 3, 3, 1}), given({1, 2, 2, 1}, {1, 1, 1, 1})},
               .expect = fixed({{{1, 3, 3, 1}, {.25, .25, .5, .25, .25, .5, .5, .5, 1}}}),
               .attrs = pool_attrs(2, 2, "SAME")});
  const std::vector<double> negative{-5, -6, -7, -8, -9, -1, -2, -3, -4};
  t.push_back({.name = "MaxPool_padding_never_wins",
               .op = "MaxPool",
               .inputs = {given({1, 3, 3, 1}, negative)},
               .expect = fixed({{{1, 2, 2, 1}, {-5, -1, -2, -4}}}),
               .attrs = pool_attrs(2, 2, "SAME")});
  t.push_back({.name = "MaxPoolGrad_padding_never_wins",
               .op = "MaxPoolGrad",
               .inputs = {given({1, 3, 3, 1}, negative), given({1, 2, 2, 1}, {-5, -1, -2, -4}),
                          given({1, 2, 2, 1}, {1, 1, 1, 1})},
               .expect = fixed({{{1, 3, 3, 1}, {1, 0, 0, 0, 0, 1, 1, 0, 1}}}),
               .attrs = pool_attrs(2, 2, "SAME")});
  t.push_back(
      {.name = "MaxPoolGrad_first_of_ties",
       .op = "MaxPoolGrad",
       .inputs = {given({1, 2, 2, 1}, {5, 7, 7, 7}), given({1, 1, 1, 1}, {7}), given({1, 1, 1, 1}, {1})},
       .expect = fixed({{{1, 2, 2, 1}, {0, 1, 0, 0}}}),
       .attrs = pool_attrs(2, 2, "VALID")});
  AttrMap one_row = pool_attrs(2, 2, "VALID");
  one_row["ksize"] = std::vector<int64_t>{1, 1, 2, 1};
  one_row["strides"] = std::vector<int64_t>{1, 1, 2, 1};
  // TensorFlow hides NaN behind the lowest float here.
  t.push_back({.name = "MaxPool_nan_wins",
               .op = "MaxPool",
               .inputs = {given({1, 1, 4, 1}, {kNan, kNan, kNan, 1})},
               .expect = fixed({{{1, 1, 2, 1}, {kNan, kNan}}}),
               .attrs = one_row,
               .in_tensorflow = false});
  t.push_back({.name = "MaxPoolGrad_nan_takes_gradient",
               .op = "MaxPoolGrad",
               .inputs = {given({1, 1, 4, 1}, {kNan, kNan, 1, kNan}), given({1, 1, 2, 1}, {kNan, kNan}),
                          given({1, 1, 2, 1}, {2, 3})},
               .expect = fixed({{{1, 1, 4, 1}, {2, 0, 0, 3}}}),
               .attrs = one_row,
               .in_tensorflow = false});
}

Formula batch_norm(bool nchw, bool training, double eps) {
  return [=](V in) {
    const Doubles& x = in[0];
    const int64_t c = in[1].size(), m = x.size() / c, inner = nchw ? x.dims[2] * x.dims[3] : 1;
    auto channel = [&](int64_t i) { return i / inner % c; };
    Doubles y = x, mean = zeros({c}), var = zeros({c}), unbiased = zeros({c});
    if (training) {
      for (int64_t i = 0; i < x.size(); ++i) mean[channel(i)] += x[i] / static_cast<double>(m);
      for (int64_t i = 0; i < x.size(); ++i)
        var[channel(i)] += (x[i] - mean[channel(i)]) * (x[i] - mean[channel(i)]) / static_cast<double>(m);
      for (int64_t k = 0; k < c; ++k)
        unbiased[k] = var[k] * static_cast<double>(m) / static_cast<double>(std::max<int64_t>(m - 1, 1));
    } else {
      mean = in[3];
      var = unbiased = in[4];
    }
    for (int64_t i = 0; i < x.size(); ++i) {
      const int64_t k = channel(i);
      y[i] = (x[i] - mean[k]) / std::sqrt(var[k] + eps) * in[1][k] + in[2][k];
    }
    return std::vector<Doubles>{y, mean, unbiased, mean, var};
  };
}

void add_norm(std::vector<OpCase>& t) {
  const double eps = static_cast<double>(1e-3f);
  for (const char* op : {"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"})
    for (bool nchw : {false, true})
      for (bool training : {false, true}) {
        const Dims x = act(nchw, 3, 4, 2, 5);
        const Dims stats = training ? Dims{0} : Dims{5};
        t.push_back({.name = cat(op, training ? "_training" : "_inference", nchw ? "_nchw" : ""),
                     .op = op,
                     .inputs = {f(x), f({5}, 0.5, 2), f({5}), f(stats), f(stats, 0.5, 2)},
                     .expect = batch_norm(nchw, training, eps),
                     .attrs = {{"epsilon", 1e-3f},
                               {"is_training", training},
                               {"data_format", nchw ? "NCHW" : "NHWC"}},
                     .tolerance = 1e-5,
                     .gradient = {0, 1, 2},
                     .gradient_tolerance = 2e-4,
                     .in_tensorflow = !nchw});
      }
  // cases.md G18, G20.
  t.push_back({.name = "FusedBatchNorm_one_value_a_channel",
               .op = "FusedBatchNorm",
               .inputs = {given({1, 1, 1, 3}, {5, -2, 7}), given({3}, {2, 2, 2}), given({3}, {1, 2, 3}),
                          f({0}), f({0})},
               .expect = fixed({{{1, 1, 1, 3}, {1, 2, 3}}, {{3}, {5, -2, 7}}, {{3}, {0, 0, 0}}}),
               .attrs = {{"epsilon", 1e-3f}}});
  t.push_back({.name = "FusedBatchNormGrad_by_hand",
               .op = "FusedBatchNormGrad",
               .inputs = {given({3, 1, 1, 1}, {1, 0, 2}), given({3, 1, 1, 1}, {1, 3, 8}), given({1}, {2}),
                          given({1}, {4}), given({1}, {26.0 / 3})},
               .expect = fixed({{{3, 1, 1, 1}, {.391942, -.548719, .156777}}, {{1}, {1.698416}}, {{1}, {3}}}),
               .attrs = {{"epsilon", 0.0f}},
               .tolerance = 2e-6,
               .tolerance64 = 2e-6});
  t.push_back({.name = "LRN",
               .op = "LRN",
               .inputs = {f({2, 2, 3, 9})},
               .expect =
                   [](V in) {
                     Doubles y = in[0];
                     for (int64_t i = 0; i < y.size(); ++i) {
                       double s = 0;
                       for (int64_t k = std::max<int64_t>(i % 9 - 2, 0); k <= std::min<int64_t>(i % 9 + 2, 8);
                            ++k)
                         s += in[0][i / 9 * 9 + k] * in[0][i / 9 * 9 + k];
                       y[i] = in[0][i] / std::pow(1.5 + 0.25 * s, 0.75);
                     }
                     return std::vector<Doubles>{y};
                   },
               .attrs = {{"depth_radius", 2}, {"bias", 1.5f}, {"alpha", 0.25f}, {"beta", 0.75f}},
               .gradient = {0}});
  for (bool nchw : {false, true}) {
    const Dims x = act(nchw, 2, 3, 2, 4);
    t.push_back({.name = nchw ? "BiasAdd_nchw" : "BiasAdd",
                 .op = "BiasAdd",
                 .inputs = {f(x), f({4})},
                 .expect =
                     [=](V in) {
                       Doubles y = in[0];
                       for (int64_t i = 0; i < y.size(); ++i) y[i] += in[1][nchw ? i / 6 % 4 : i % 4];
                       return std::vector<Doubles>{y};
                     },
                 .attrs = {{"data_format", nchw ? "NCHW" : "NHWC"}},
                 .gradient = {0, 1}});
    t.push_back({.name = nchw ? "BiasAddGrad_nchw" : "BiasAddGrad",
                 .op = "BiasAddGrad",
                 .inputs = {f(x)},
                 .expect =
                     [=](V in) {
                       Doubles y = zeros({4});
                       for (int64_t i = 0; i < in[0].size(); ++i) y[nchw ? i / 6 % 4 : i % 4] += in[0][i];
                       return std::vector<Doubles>{y};
                     },
                 .attrs = {{"data_format", nchw ? "NCHW" : "NHWC"}}});
  }
}

double log_sum_exp(const Doubles& x, int64_t row, int64_t n) {
  double m = -kInf, s = 0;
  for (int64_t k = 0; k < n; ++k) m = std::max(m, x[row * n + k]);
  for (int64_t k = 0; k < n; ++k) s += std::exp(x[row * n + k] - m);
  return m + std::log(s);
}

void add_losses(std::vector<OpCase>& t) {
  for (bool log : {false, true})
    t.push_back({.name = log ? "LogSoftmax" : "Softmax",
                 .op = log ? "LogSoftmax" : "Softmax",
                 .inputs = {f({4, 7}, -9, 9)},
                 .expect =
                     [log](V in) {
                       Doubles y = in[0];
                       for (int64_t i = 0; i < y.size(); ++i) {
                         const double v = in[0][i] - log_sum_exp(in[0], i / 7, 7);
                         y[i] = log ? v : std::exp(v);
                       }
                       return std::vector<Doubles>{y};
                     },
                 .gradient = {0}});
  t.push_back({.name = "Softmax_huge",
               .op = "Softmax",
               .inputs = {given({2, 2}, {1e30, 0, -1e30, -1e30})},
               .expect = fixed({{{2, 2}, {1, 0, 0.5, 0.5}}})});
  auto dense = [](V in) {
    Doubles loss = zeros({3}), back = in[0];
    for (int64_t i = 0; i < 12; ++i) {
      const double v = in[0][i] - log_sum_exp(in[0], i / 4, 4);
      loss[i / 4] -= in[1][i] * v;
      back[i] = std::exp(v) - in[1][i];
    }
    return std::vector<Doubles>{loss, back};
  };
  t.push_back({.name = "SoftmaxXent",
               .op = "SoftmaxCrossEntropyWithLogits",
               .inputs = {f({3, 4}), given({3, 4}, {1, 0, 0, 0, .25, .25, .25, .25, 0, .5, .5, 0})},
               .expect = dense,
               .gradient = {0}});
  t.push_back({.name = "SparseXent",
               .op = "SparseSoftmaxCrossEntropyWithLogits",
               .inputs = {f({3, 4}), i32({2, 0, 3})},
               .expect =
                   [](V in) {
                     Doubles loss = zeros({3}), back = in[0];
                     for (int64_t i = 0; i < 12; ++i) {
                       const double v = in[0][i] - log_sum_exp(in[0], i / 4, 4);
                       const bool hit = in[1][i / 4] == static_cast<double>(i % 4);
                       if (hit) loss[i / 4] = -v;
                       back[i] = std::exp(v) - (hit ? 1 : 0);
                     }
                     return std::vector<Doubles>{loss, back};
                   },
               .gradient = {0}});
  // cases.md G23: a masked class. TensorFlow's dense form gives NaN here.
  const std::vector<double> masked{0, -kInf, std::log(3.0)};
  t.push_back({.name = "SoftmaxXent_masked_class",
               .op = "SoftmaxCrossEntropyWithLogits",
               .inputs = {given({1, 3}, masked), given({1, 3}, {0, 0, 1})},
               .expect = fixed({{{1}, {std::log(4.0 / 3)}}, {{1, 3}, {.25, 0, -.25}}}),
               .in_tensorflow = false});
  t.push_back({.name = "SparseXent_masked_class",
               .op = "SparseSoftmaxCrossEntropyWithLogits",
               .inputs = {given({1, 3}, masked), i32({2})},
               .expect = fixed({{{1}, {std::log(4.0 / 3)}}, {{1, 3}, {.25, 0, -.25}}})});
  t.push_back({.name = "L2Loss",
               .op = "L2Loss",
               .inputs = {f({5, 7})},
               .expect =
                   [](V in) {
                     double s = 0;
                     for (double v : in[0].v) s += v * v / 2;
                     return std::vector<Doubles>{{{}, {s}}};
                   },
               .gradient = {0}});
}

void add_resize(std::vector<OpCase>& t) {
  for (bool align : {false, true})
    for (bool half : {false, true}) {
      if (align && half) continue;
      const std::string suffix = align ? "_align" : half ? "_half" : "";
      for (bool bilinear : {false, true})
        t.push_back(
            {.name = cat(bilinear ? "ResizeBilinear" : "ResizeNearest", suffix),
             .op = bilinear ? "ResizeBilinear" : "ResizeNearestNeighbor",
             .inputs = {f({1, 3, 4, 2}), i32({7, 2})},
             .expect =
                 [=](V in) {
                   Doubles y = zeros({1, 7, 2, 2});
                   auto source = [&](int64_t i, int64_t from, int64_t to) {
                     const double scale = align ? static_cast<double>(from - 1) / static_cast<double>(to - 1)
                                                : static_cast<double>(from) / static_cast<double>(to);
                     if (!bilinear)
                       return half ? (static_cast<double>(i) + 0.5) * scale : static_cast<double>(i) * scale;
                     return half ? (static_cast<double>(i) + 0.5) * scale - 0.5
                                 : static_cast<double>(i) * scale;
                   };
                   for (int64_t i = 0; i < 7; ++i)
                     for (int64_t j = 0; j < 2; ++j)
                       for (int64_t c = 0; c < 2; ++c) {
                         const double sy = source(i, 3, 7), sx = source(j, 4, 2);
                         if (!bilinear) {
                           const auto pick = [&](double s, int64_t n) {
                             return std::min<int64_t>(
                                 static_cast<int64_t>(align ? std::round(s) : std::floor(s + 1e-6)), n - 1);
                           };
                           y.at({0, i, j, c}) = in[0].at({0, pick(sy, 3), pick(sx, 4), c});
                           continue;
                         }
                         double v = 0;
                         for (int64_t h = 0; h < 3; ++h)
                           for (int64_t w = 0; w < 4; ++w) {
                             const double cy = std::min(std::max(sy, 0.0), 2.0),
                                          cx = std::min(std::max(sx, 0.0), 3.0);
                             v += in[0].at({0, h, w, c}) *
                                  std::max(0.0, 1 - std::fabs(cy - static_cast<double>(h))) *
                                  std::max(0.0, 1 - std::fabs(cx - static_cast<double>(w)));
                           }
                         y.at({0, i, j, c}) = v;
                       }
                   return std::vector<Doubles>{y};
                 },
             .attrs = {{"align_corners", align}, {"half_pixel_centers", half}},
             // Source coordinates are float in every type.
             .tolerance64 = 1e-6,
             .gradient = {0}});
    }
}

}  // namespace

std::vector<OpCase> nn_cases() {
  std::vector<OpCase> t;
  add_conv(t);
  add_pool(t);
  add_norm(t);
  add_losses(t);
  add_resize(t);
  return t;
}

}  // namespace sluice::optest
