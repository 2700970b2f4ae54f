// BiasAdd and its gradient, local response normalization and its gradient.

#include <cmath>

#include "kernels/reference/common.h"
#include "kernels/reference/register.h"
#include "kernels/scalar.h"

namespace sluice::kernels {
namespace {

struct Channels {
  int64_t outer = 1, channels = 1, inner = 1;
};
Channels channels_of(const Dims& d, bool nchw) {
  SLUICE_REQUIRE(d.size() >= 2 || (d.size() == 1 && !nchw), Code::kInvalidArgument,
                 "Input tensor must be at least 2D: ", dims_string(d));
  const size_t axis = nchw ? 1 : d.size() - 1;
  Channels c;
  for (size_t k = 0; k < d.size(); ++k) (k < axis ? c.outer : k == axis ? c.channels : c.inner) *= d[k];
  return c;
}
bool channels_first(const KernelSpec& spec) {
  return spec.attr_or<std::string>("data_format", "NHWC") == "NCHW";
}

BoundFn bias_add(const KernelSpec& spec) {
  return [nchw = channels_first(spec)](KernelRun& r) {
    const Channels c = channels_of(r.in_dims(0), nchw);
    SLUICE_REQUIRE(in_count(r, 1) == c.channels, Code::kInvalidArgument,
                   "Must provide as many biases as the channel dimension of the input: ", in_count(r, 1),
                   " vs. ", c.channels, " in ", dims_string(r.in_dims(0)));
    for_numeric(r.out_dtype(0), [&]<class T>() {
      r.queue().parallel_for(c.outer * c.channels,
                             std::max<int64_t>(1, 16384 / std::max<int64_t>(1, c.inner)),
                             [&](int64_t b, int64_t e) {
                               for (int64_t k = b; k < e; ++k) {
                                 const T bias = r.in<T>(1)[k % c.channels];
                                 for (int64_t i = k * c.inner; i < (k + 1) * c.inner; ++i)
                                   r.out<T>(0)[i] = scalar::wrap_add(r.in<T>(0)[i], bias);
                               }
                             });
    });
  };
}

BoundFn bias_add_grad(const KernelSpec& spec) {
  return [nchw = channels_first(spec)](KernelRun& r) {
    const Channels c = channels_of(r.in_dims(0), nchw);
    for_common(r.out_dtype(0), [&]<class T>() {
      using Acc = std::conditional_t<std::is_same_v<T, float>, double, T>;
      constexpr int64_t kBlock = 64;
      r.queue().parallel_for(c.channels, kBlock, [&](int64_t b, int64_t e) {
        Acc acc[kBlock] = {};
        for (int64_t o = 0; o < c.outer; ++o)
          for (int64_t k = b; k < e; ++k)
            for (int64_t i = 0, at = (o * c.channels + k) * c.inner; i < c.inner; ++i)
              acc[k - b] = scalar::wrap_add(acc[k - b], static_cast<Acc>(r.in<T>(0)[at + i]));
        for (int64_t k = b; k < e; ++k) r.out<T>(0)[k] = static_cast<T>(acc[k - b]);
      });
    });
  };
}

struct LrnAttrs {
  int64_t radius;
  double bias, alpha, beta;
};
LrnAttrs lrn_attrs(const KernelSpec& s) {
  return {s.attr_or<int64_t>("depth_radius", 5), static_cast<double>(s.attr_or<float>("bias", 1.0f)),
          static_cast<double>(s.attr_or<float>("alpha", 1.0f)),
          static_cast<double>(s.attr_or<float>("beta", 0.5f))};
}

// bias + α Σ x² over the window around channel c, clipped at the ends.
template <class T>
double lrn_norm(const LrnAttrs& a, const T* x, int64_t c, int64_t depth) {
  double sum = 0;
  for (int64_t k = std::max<int64_t>(0, c - a.radius); k <= std::min(depth - 1, c + a.radius); ++k)
    sum += static_cast<double>(x[k]) * static_cast<double>(x[k]);
  return a.bias + a.alpha * sum;
}

BoundFn lrn(const KernelSpec& spec) {
  return [a = lrn_attrs(spec)](KernelRun& r) {
    const int64_t depth = r.in_dims(0).at(3), rows = depth == 0 ? 0 : in_count(r, 0) / depth;
    for_float(r.in_dtype(0), [&]<class T>() {
      r.queue().parallel_for(rows, 64, [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i)
          for (int64_t c = 0; c < depth; ++c) {
            const T* x = r.in<T>(0) + i * depth;
            r.out<T>(0)[i * depth + c] =
                static_cast<T>(static_cast<double>(x[c]) * std::pow(lrn_norm(a, x, c, depth), -a.beta));
          }
      });
    });
  };
}

// (dy, x, y)
BoundFn lrn_grad(const KernelSpec& spec) {
  return [a = lrn_attrs(spec)](KernelRun& r) {
    const int64_t depth = r.in_dims(1).at(3), rows = depth == 0 ? 0 : in_count(r, 1) / depth;
    for_float(r.in_dtype(0), [&]<class T>() {
      r.queue().parallel_for(rows, 64, [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i) {
          const T *dy = r.in<T>(0) + i * depth, *x = r.in<T>(1) + i * depth, *y = r.in<T>(2) + i * depth;
          T* dx = r.out<T>(0) + i * depth;
          for (int64_t k = 0; k < depth; ++k) {
            double sum = static_cast<double>(dy[k]) * std::pow(lrn_norm(a, x, k, depth), -a.beta);
            for (int64_t j = std::max<int64_t>(0, k - a.radius); j <= std::min(depth - 1, k + a.radius); ++j)
              sum -= 2 * a.alpha * a.beta * static_cast<double>(x[k]) * static_cast<double>(dy[j]) *
                     static_cast<double>(y[j]) / lrn_norm(a, x, j, depth);
            dx[k] = static_cast<T>(sum);
          }
        }
      });
    });
  };
}

}  // namespace

void register_nn_misc(KernelRegistry& r) {
  add_bound(r, "BiasAdd", bias_add, {{0, 0}});
  add_bound(r, "BiasAddV1", bias_add, {{0, 0}});
  add_bound(r, "BiasAddGrad", bias_add_grad);
  add_bound(r, "LRN", lrn);
  add_bound(r, "LRNGrad", lrn_grad);
}

}  // namespace sluice::kernels
