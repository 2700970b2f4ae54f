// Depthwise convolution: filter [kh, kw, channels, multiplier]; output channel c·multiplier + m reads input
// channel c only.

#include "kernels/reference/common.h"
#include "kernels/reference/register.h"
#include "kernels/reference/window.h"

namespace sluice::kernels {
namespace {

struct Depthwise {
  Image x, y;
  int64_t kh, kw, mult, ph, pw;
};

Depthwise depthwise_shape(const WindowAttrs& a, const Dims& x, const Dims& filter, const Dims& y) {
  SLUICE_REQUIRE(filter.size() == 4, Code::kInvalidArgument,
                 "filter must be 4-dimensional: ", dims_string(filter));
  Depthwise s{image_of(x, a.nchw), image_of(y, a.nchw), filter[0], filter[1], filter[3], 0, 0};
  SLUICE_REQUIRE(filter[2] == s.x.c, Code::kInvalidArgument,
                 "input and filter must have the same depth: ", s.x.c, " vs ", filter[2]);
  s.ph = pad_before(a, 0, s.x.h, s.kh);
  s.pw = pad_before(a, 1, s.x.w, s.kw);
  return s;
}

// f(ih, iw, kh, kw) for every tap of output cell (oh, ow) inside the image.
template <class F>
void taps(const WindowAttrs& a, const Depthwise& s, int64_t oh, int64_t ow, F f) {
  for (int64_t kh = 0; kh < s.kh; ++kh) {
    const int64_t ih = oh * a.stride[0] - s.ph + kh * a.dilation[0];
    if (ih < 0 || ih >= s.x.h) continue;
    for (int64_t kw = 0; kw < s.kw; ++kw) {
      const int64_t iw = ow * a.stride[1] - s.pw + kw * a.dilation[1];
      if (iw >= 0 && iw < s.x.w) f(ih, iw, kh, kw);
    }
  }
}

BoundFn forward(const KernelSpec& spec) {
  return [a = window_attrs(spec)](KernelRun& r) {
    if (out_count(r, 0) == 0) return;
    const Depthwise s = depthwise_shape(a, r.in_dims(0), r.in_dims(1), r.out_dims(0));
    for_float(r.out_dtype(0), [&]<class T>() {
      const T *x = r.in<T>(0), *w = r.in<T>(1);
      T* y = r.out<T>(0);
      r.queue().parallel_for(s.y.n * s.y.h, 1, [&](int64_t b, int64_t e) {
        for (int64_t k = b; k < e; ++k) {
          const int64_t n = k / s.y.h, oh = k % s.y.h;
          for (int64_t ow = 0; ow < s.y.w; ++ow)
            for (int64_t o = 0; o < s.y.c; ++o) {
              double acc = 0;
              taps(a, s, oh, ow, [&](int64_t ih, int64_t iw, int64_t kh, int64_t kw) {
                acc += static_cast<double>(x[n * s.x.sn + ih * s.x.sh + iw * s.x.sw + o / s.mult * s.x.sc]) *
                       static_cast<double>(w[(kh * s.kw + kw) * s.y.c + o]);
              });
              y[n * s.y.sn + oh * s.y.sh + ow * s.y.sw + o * s.y.sc] = static_cast<T>(acc);
            }
        }
      });
    });
  };
}

BoundFn input_grad(const KernelSpec& spec) {
  return [a = window_attrs(spec)](KernelRun& r) {
    if (out_count(r, 0) == 0) return;
    const Depthwise s = depthwise_shape(a, r.out_dims(0), r.in_dims(1), r.in_dims(2));
    for_float(r.out_dtype(0), [&]<class T>() {
      const T *w = r.in<T>(1), *dy = r.in<T>(2);
      T* dx = r.out<T>(0);
      r.queue().parallel_for(s.x.n * s.x.h, 1, [&](int64_t b, int64_t e) {
        for (int64_t k = b; k < e; ++k) {
          const int64_t n = k / s.x.h, ih = k % s.x.h;
          for (int64_t iw = 0; iw < s.x.w; ++iw)
            for (int64_t c = 0; c < s.x.c; ++c) {
              double acc = 0;
              for (int64_t kh = 0; kh < s.kh; ++kh) {
                const int64_t th = ih + s.ph - kh * a.dilation[0];
                if (th < 0 || th % a.stride[0] != 0 || th / a.stride[0] >= s.y.h) continue;
                for (int64_t kw = 0; kw < s.kw; ++kw) {
                  const int64_t tw = iw + s.pw - kw * a.dilation[1];
                  if (tw < 0 || tw % a.stride[1] != 0 || tw / a.stride[1] >= s.y.w) continue;
                  for (int64_t m = 0, o = c * s.mult; m < s.mult; ++m, ++o)
                    acc += static_cast<double>(dy[n * s.y.sn + th / a.stride[0] * s.y.sh +
                                                  tw / a.stride[1] * s.y.sw + o * s.y.sc]) *
                           static_cast<double>(w[(kh * s.kw + kw) * s.y.c + o]);
                }
              }
              dx[n * s.x.sn + ih * s.x.sh + iw * s.x.sw + c * s.x.sc] = static_cast<T>(acc);
            }
        }
      });
    });
  };
}

BoundFn filter_grad(const KernelSpec& spec) {
  return [a = window_attrs(spec)](KernelRun& r) {
    if (out_count(r, 0) == 0) return;
    const Depthwise s = depthwise_shape(a, r.in_dims(0), r.out_dims(0), r.in_dims(2));
    for_float(r.out_dtype(0), [&]<class T>() {
      const T *x = r.in<T>(0), *dy = r.in<T>(2);
      T* dw = r.out<T>(0);
      r.queue().parallel_for(s.kh * s.kw * s.y.c, 1, [&](int64_t b, int64_t e) {
        for (int64_t k = b; k < e; ++k) {
          const int64_t o = k % s.y.c, kw = k / s.y.c % s.kw, kh = k / s.y.c / s.kw;
          double acc = 0;
          for (int64_t n = 0; n < s.x.n; ++n)
            for (int64_t oh = 0; oh < s.y.h; ++oh) {
              const int64_t ih = oh * a.stride[0] - s.ph + kh * a.dilation[0];
              if (ih < 0 || ih >= s.x.h) continue;
              for (int64_t ow = 0; ow < s.y.w; ++ow) {
                const int64_t iw = ow * a.stride[1] - s.pw + kw * a.dilation[1];
                if (iw < 0 || iw >= s.x.w) continue;
                acc += static_cast<double>(x[n * s.x.sn + ih * s.x.sh + iw * s.x.sw + o / s.mult * s.x.sc]) *
                       static_cast<double>(dy[n * s.y.sn + oh * s.y.sh + ow * s.y.sw + o * s.y.sc]);
              }
            }
          dw[k] = static_cast<T>(acc);
        }
      });
    });
  };
}

}  // namespace

void register_conv_depthwise(KernelRegistry& r) {
  add_bound(r, "DepthwiseConv2dNative", forward);
  add_bound(r, "DepthwiseConv2dNativeBackpropInput", input_grad);
  add_bound(r, "DepthwiseConv2dNativeBackpropFilter", filter_grad);
}

}  // namespace sluice::kernels
