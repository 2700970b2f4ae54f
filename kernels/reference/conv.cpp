// Conv2D and its two gradients, both data formats. Filters are HWIO. Accumulation is in double. Cross-
// correlation: y[n,oh,ow,o] = Σ x[n, oh·s − p + kh·d, ow·s − p + kw·d, i] · w[kh,kw,i,o].

#include "kernels/reference/common.h"
#include "kernels/reference/register.h"
#include "kernels/reference/window.h"

namespace sluice::kernels {
namespace {

constexpr int64_t kBlock = 64;

struct ConvShape {
  Image x, y;
  int64_t kh, kw, ci, co;  // filter
  int64_t ph, pw;          // padding before
};

ConvShape conv_shape(const WindowAttrs& a, const Dims& x, const Dims& filter, const Dims& y) {
  SLUICE_REQUIRE(filter.size() == 4, Code::kInvalidArgument,
                 "filter must be 4-dimensional: ", dims_string(filter));
  ConvShape s{image_of(x, a.nchw), image_of(y, a.nchw), filter[0], filter[1], filter[2], filter[3], 0, 0};
  SLUICE_REQUIRE(s.ci > 0 && s.x.c % s.ci == 0, Code::kInvalidArgument,
                 "input depth must be evenly divisible by filter depth: ", s.x.c, " vs ", s.ci);
  SLUICE_REQUIRE(s.x.c == s.ci, Code::kUnimplemented, "Grouped convolution is not supported: input depth ",
                 s.x.c, ", filter depth ", s.ci);
  s.ph = pad_before(a, 0, s.x.h, s.kh);
  s.pw = pad_before(a, 1, s.x.w, s.kw);
  return s;
}

// One output row of one image.
template <class T>
void forward_row(const WindowAttrs& a, const ConvShape& s, const T* x, const T* w, T* y, int64_t oh) {
  for (int64_t ow = 0; ow < s.y.w; ++ow)
    for (int64_t o0 = 0; o0 < s.co; o0 += kBlock) {
      const int64_t n = std::min(kBlock, s.co - o0);
      double acc[kBlock] = {};
      for (int64_t kh = 0; kh < s.kh; ++kh) {
        const int64_t ih = oh * a.stride[0] - s.ph + kh * a.dilation[0];
        if (ih < 0 || ih >= s.x.h) continue;
        for (int64_t kw = 0; kw < s.kw; ++kw) {
          const int64_t iw = ow * a.stride[1] - s.pw + kw * a.dilation[1];
          if (iw < 0 || iw >= s.x.w) continue;
          const T* px = x + ih * s.x.sh + iw * s.x.sw;
          const T* pw = w + (kh * s.kw + kw) * s.ci * s.co + o0;
          for (int64_t i = 0; i < s.ci; ++i, pw += s.co) {
            const double v = static_cast<double>(px[i * s.x.sc]);
            for (int64_t j = 0; j < n; ++j) acc[j] += v * static_cast<double>(pw[j]);
          }
        }
      }
      T* py = y + oh * s.y.sh + ow * s.y.sw + o0 * s.y.sc;
      for (int64_t j = 0; j < n; ++j) py[j * s.y.sc] = static_cast<T>(acc[j]);
    }
}

BoundFn conv(const KernelSpec& spec) {
  return [a = window_attrs(spec)](KernelRun& r) {
    if (out_count(r, 0) == 0) return;
    const ConvShape s = conv_shape(a, r.in_dims(0), r.in_dims(1), r.out_dims(0));
    for_float(r.out_dtype(0), [&]<class T>() {
      r.queue().parallel_for(s.y.n * s.y.h, 1, [&](int64_t b, int64_t e) {
        for (int64_t k = b; k < e; ++k)
          forward_row(a, s, r.in<T>(0) + k / s.y.h * s.x.sn, r.in<T>(1), r.out<T>(0) + k / s.y.h * s.y.sn,
                      k % s.y.h);
      });
    });
  };
}

// (input_sizes, filter, dy): dx[ih,iw,i] = Σ over the taps that read it.
BoundFn conv_input_grad(const KernelSpec& spec) {
  return [a = window_attrs(spec)](KernelRun& r) {
    if (out_count(r, 0) == 0) return;
    const ConvShape s = conv_shape(a, r.out_dims(0), r.in_dims(1), r.in_dims(2));
    for_float(r.out_dtype(0), [&]<class T>() {
      const T *w = r.in<T>(1), *dy = r.in<T>(2);
      T* dx = r.out<T>(0);
      r.queue().parallel_for(s.x.n * s.x.h, 1, [&](int64_t b, int64_t e) {
        for (int64_t k = b; k < e; ++k) {
          const int64_t n = k / s.x.h, ih = k % s.x.h;
          for (int64_t iw = 0; iw < s.x.w; ++iw)
            for (int64_t i0 = 0; i0 < s.ci; i0 += kBlock) {
              const int64_t count = std::min(kBlock, s.ci - i0);
              double acc[kBlock] = {};
              for (int64_t kh = 0; kh < s.kh; ++kh) {
                const int64_t th = ih + s.ph - kh * a.dilation[0];
                if (th < 0 || th % a.stride[0] != 0 || th / a.stride[0] >= s.y.h) continue;
                for (int64_t kw = 0; kw < s.kw; ++kw) {
                  const int64_t tw = iw + s.pw - kw * a.dilation[1];
                  if (tw < 0 || tw % a.stride[1] != 0 || tw / a.stride[1] >= s.y.w) continue;
                  const T* pd = dy + n * s.y.sn + th / a.stride[0] * s.y.sh + tw / a.stride[1] * s.y.sw;
                  const T* pw = w + ((kh * s.kw + kw) * s.ci + i0) * s.co;
                  for (int64_t i = 0; i < count; ++i, pw += s.co) {
                    double part[4] = {};
                    int64_t o = 0;
                    for (; o + 4 <= s.co; o += 4)
                      for (int64_t q = 0; q < 4; ++q)
                        part[q] += static_cast<double>(pd[(o + q) * s.y.sc]) * static_cast<double>(pw[o + q]);
                    for (; o < s.co; ++o)
                      part[0] += static_cast<double>(pd[o * s.y.sc]) * static_cast<double>(pw[o]);
                    acc[i] += (part[0] + part[1]) + (part[2] + part[3]);
                  }
                }
              }
              T* px = dx + n * s.x.sn + ih * s.x.sh + iw * s.x.sw + i0 * s.x.sc;
              for (int64_t i = 0; i < count; ++i) px[i * s.x.sc] = static_cast<T>(acc[i]);
            }
        }
      });
    });
  };
}

// (input, filter_sizes, dy)
BoundFn conv_filter_grad(const KernelSpec& spec) {
  return [a = window_attrs(spec)](KernelRun& r) {
    if (out_count(r, 0) == 0) return;
    const ConvShape s = conv_shape(a, r.in_dims(0), r.out_dims(0), r.in_dims(2));
    for_float(r.out_dtype(0), [&]<class T>() {
      const T *x = r.in<T>(0), *dy = r.in<T>(2);
      T* dw = r.out<T>(0);
      r.queue().parallel_for(s.kh * s.kw * s.ci, 1, [&](int64_t b, int64_t e) {
        for (int64_t k = b; k < e; ++k) {
          const int64_t i = k % s.ci, kw = k / s.ci % s.kw, kh = k / s.ci / s.kw;
          for (int64_t o0 = 0; o0 < s.co; o0 += kBlock) {
            const int64_t count = std::min(kBlock, s.co - o0);
            double acc[kBlock] = {};
            for (int64_t n = 0; n < s.x.n; ++n)
              for (int64_t oh = 0; oh < s.y.h; ++oh) {
                const int64_t ih = oh * a.stride[0] - s.ph + kh * a.dilation[0];
                if (ih < 0 || ih >= s.x.h) continue;
                double row[kBlock] = {};
                for (int64_t ow = 0; ow < s.y.w; ++ow) {
                  const int64_t iw = ow * a.stride[1] - s.pw + kw * a.dilation[1];
                  if (iw < 0 || iw >= s.x.w) continue;
                  const double v =
                      static_cast<double>(x[n * s.x.sn + ih * s.x.sh + iw * s.x.sw + i * s.x.sc]);
                  const T* pd = dy + n * s.y.sn + oh * s.y.sh + ow * s.y.sw + o0 * s.y.sc;
                  for (int64_t j = 0; j < count; ++j) row[j] += v * static_cast<double>(pd[j * s.y.sc]);
                }
                for (int64_t j = 0; j < count; ++j) acc[j] += row[j];
              }
            T* pw = dw + k * s.co + o0;
            for (int64_t j = 0; j < count; ++j) pw[j] = static_cast<T>(acc[j]);
          }
        }
      });
    });
  };
}

}  // namespace

void register_conv(KernelRegistry& r) {
  add_bound(r, "Conv2D", conv);
  add_bound(r, "Conv2DBackpropInput", conv_input_grad);
  add_bound(r, "Conv2DBackpropFilter", conv_filter_grad);
}

}  // namespace sluice::kernels
