// FusedBatchNorm V1–V3 and gradients (graph-and-training §2.12). Statistics are summed in double; the
// variance handed out for the moving average is Bessel-corrected, with the factor 1 where a channel has one
// value.

#include <cmath>
#include <limits>

#include "kernels/reference/common.h"
#include "kernels/reference/register.h"

namespace sluice::kernels {
namespace {

struct Channels {  // element (o, c, i) lies at (o·channels + c)·inner + i
  int64_t outer, channels, inner;
  int64_t values() const { return outer * inner; }

  // f(c, offset) for channels [begin, end), every value of each.
  template <class F>
  void each(int64_t begin, int64_t end, F f) const {
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t c = begin; c < end; ++c)
        for (int64_t i = 0, at = (o * channels + c) * inner; i < inner; ++i) f(c, at + i);
  }
};

Channels channels_of(const Dims& d, bool nchw) {
  SLUICE_REQUIRE(d.size() >= 2, Code::kInvalidArgument,
                 "input must be at least 2-dimensional: ", dims_string(d));
  Channels c{1, nchw ? d[1] : d.back(), 1};
  for (size_t k = 0; k < d.size(); ++k) {
    if (k == (nchw ? 1 : d.size() - 1)) continue;
    (nchw && k > 1 ? c.inner : c.outer) *= d[k];
  }
  return c;
}

bool channels_first(const KernelSpec& spec) {
  const auto format = spec.attr_or<std::string>("data_format", "NHWC");
  return format == "NCHW" || format == "NCDHW";
}

constexpr int64_t kBlock = 32;  // channels summed side by side

template <class T>
void fill_rest(KernelRun& r, int first) {
  for (int k = first; k < r.num_outputs(); ++k) std::fill_n(r.out<T>(k), out_count(r, k), T(0));
}

BoundFn forward(const KernelSpec& spec) {
  const double epsilon = static_cast<double>(spec.attr_or<float>("epsilon", 1e-4f));
  const double factor = static_cast<double>(spec.attr_or<float>("exponential_avg_factor", 1.0f));
  const bool training = spec.attr_or<bool>("is_training", true), nchw = channels_first(spec);
  return [=](KernelRun& r) {
    const Channels ch = channels_of(r.in_dims(0), nchw);
    const int64_t m = ch.values();
    for_float(r.in_dtype(0), [&]<class T>() {
      const T *x = r.in<T>(0), *scale = r.in<T>(1), *offset = r.in<T>(2), *mean = r.in<T>(3),
              *var = r.in<T>(4);
      T *y = r.out<T>(0), *mean_out = r.out<T>(1), *var_out = r.out<T>(2), *kept_mean = r.out<T>(3),
        *kept_var = r.out<T>(4);
      const bool blend = training && factor != 1.0 && in_count(r, 3) == ch.channels;
      r.queue().parallel_for(ch.channels, kBlock, [&](int64_t begin, int64_t end) {
        double mu[kBlock] = {}, sq[kBlock] = {};
        if (training) {
          ch.each(begin, end, [&](int64_t c, int64_t at) { mu[c - begin] += static_cast<double>(x[at]); });
          for (int64_t c = begin; c < end; ++c) mu[c - begin] /= static_cast<double>(m);
          ch.each(begin, end, [&](int64_t c, int64_t at) {
            const double d = static_cast<double>(x[at]) - mu[c - begin];
            sq[c - begin] += d * d;
          });
        }
        for (int64_t c = begin; c < end; ++c) {
          const auto k = c - begin;
          if (training) {
            sq[k] /= static_cast<double>(m);
            const double bessel = static_cast<double>(m) / static_cast<double>(std::max<int64_t>(m - 1, 1));
            const double keep = blend ? 1.0 - factor : 0.0, take = blend ? factor : 1.0;
            mean_out[c] = static_cast<T>(take * mu[k] + (blend ? keep * static_cast<double>(mean[c]) : 0.0));
            var_out[c] =
                static_cast<T>(take * sq[k] * bessel + (blend ? keep * static_cast<double>(var[c]) : 0.0));
            kept_mean[c] = static_cast<T>(mu[k]);
            kept_var[c] = static_cast<T>(sq[k]);
          } else {
            mu[k] = static_cast<double>(mean[c]);
            sq[k] = static_cast<double>(var[c]);
            mean_out[c] = kept_mean[c] = mean[c];
            var_out[c] = kept_var[c] = var[c];
          }
          sq[k] = static_cast<double>(scale[c]) / std::sqrt(sq[k] + epsilon);
        }
        ch.each(begin, end, [&](int64_t c, int64_t at) {
          y[at] = static_cast<T>((static_cast<double>(x[at]) - mu[c - begin]) * sq[c - begin] +
                                 static_cast<double>(offset[c]));
        });
      });
      fill_rest<T>(r, 5);
    });
  };
}

// (dy, x, scale, mean, variance): batch statistics in training, the moving ones otherwise.
BoundFn backward(const KernelSpec& spec) {
  const double epsilon = static_cast<double>(spec.attr_or<float>("epsilon", 1e-4f));
  const bool training = spec.attr_or<bool>("is_training", true), nchw = channels_first(spec);
  return [=](KernelRun& r) {
    const Channels ch = channels_of(r.in_dims(1), nchw);
    const double m = static_cast<double>(std::max<int64_t>(ch.values(), 1));
    for_float(r.in_dtype(0), [&]<class T>() {
      const T *dy = r.in<T>(0), *x = r.in<T>(1), *scale = r.in<T>(2), *mean = r.in<T>(3), *var = r.in<T>(4);
      T *dx = r.out<T>(0), *dscale = r.out<T>(1), *doffset = r.out<T>(2);
      r.queue().parallel_for(ch.channels, kBlock, [&](int64_t begin, int64_t end) {
        double sum[kBlock] = {}, dot[kBlock] = {}, inv[kBlock];
        ch.each(begin, end, [&](int64_t c, int64_t at) {
          const double g = static_cast<double>(dy[at]);
          sum[c - begin] += g;
          dot[c - begin] += g * (static_cast<double>(x[at]) - static_cast<double>(mean[c]));
        });
        for (int64_t c = begin; c < end; ++c) {
          const auto k = c - begin;
          inv[k] = 1.0 / std::sqrt(static_cast<double>(var[c]) + epsilon);
          doffset[c] = static_cast<T>(sum[k]);
          dscale[c] = static_cast<T>(dot[k] * inv[k]);
        }
        ch.each(begin, end, [&](int64_t c, int64_t at) {
          const auto k = c - begin;
          double g = static_cast<double>(dy[at]);
          if (training)
            g -= sum[k] / m +
                 (static_cast<double>(x[at]) - static_cast<double>(mean[c])) * (dot[k] / m) * inv[k] * inv[k];
          dx[at] = static_cast<T>(static_cast<double>(scale[c]) * inv[k] * g);
        });
      });
      fill_rest<T>(r, 3);
    });
  };
}

}  // namespace

void register_batch_norm(KernelRegistry& r) {
  for (const char* op : {"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"}) add_bound(r, op, forward);
  for (const char* op : {"FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"})
    add_bound(r, op, backward);
}

}  // namespace sluice::kernels
