// MaxPool and AvgPool with gradients. A window's maximum is its first in row-major order; NaN wins over any
// number (and its first one takes the gradient), so a bad value is never hidden. Averages count only the
// cells inside the image.

#include "kernels/reference/common.h"
#include "kernels/reference/register.h"
#include "kernels/reference/window.h"
#include "kernels/scalar.h"

namespace sluice::kernels {
namespace {

struct Range {
  int64_t begin, end;
};
Range clip(int64_t out, int64_t stride, int64_t pad, int64_t k, int64_t limit) {
  const int64_t b = out * stride - pad;
  return {std::max<int64_t>(b, 0), std::min(b + k, limit)};
}

struct Pool {
  WindowAttrs a;
  Image x, y;
  int64_t ph, pw;
  Range rows(int64_t oh) const { return clip(oh, a.stride[0], ph, a.kernel[0], x.h); }
  Range cols(int64_t ow) const { return clip(ow, a.stride[1], pw, a.kernel[1], x.w); }
};

Pool pool_of(const WindowAttrs& a, const Dims& x, const Dims& y) {
  Pool p{a, image_of(x, a.nchw), image_of(y, a.nchw), 0, 0};
  p.ph = pad_before(a, 0, p.x.h, a.kernel[0]);
  p.pw = pad_before(a, 1, p.x.w, a.kernel[1]);
  return p;
}

// f(n, oh, ow, c, offset in y) over all output cells, images side by side.
template <class F>
void cells(const KernelRun& r, const Pool& p, F f) {
  r.queue().parallel_for(p.y.n, 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n)
      for (int64_t oh = 0; oh < p.y.h; ++oh)
        for (int64_t ow = 0; ow < p.y.w; ++ow)
          for (int64_t c = 0; c < p.y.c; ++c)
            f(n, oh, ow, c, n * p.y.sn + oh * p.y.sh + ow * p.y.sw + c * p.y.sc);
  });
}

// f(offset in x) over the cells of one window that lie in the image, of one channel.
template <class F>
void window_cells(const Pool& p, int64_t n, int64_t oh, int64_t ow, int64_t c, F f) {
  const Range rows = p.rows(oh), cols = p.cols(ow);
  for (int64_t h = rows.begin; h < rows.end; ++h)
    for (int64_t w = cols.begin; w < cols.end; ++w) f(n * p.x.sn + h * p.x.sh + w * p.x.sw + c * p.x.sc);
}

int64_t window_size(const Pool& p, int64_t oh, int64_t ow) {
  const Range rows = p.rows(oh), cols = p.cols(ow);
  return (rows.end - rows.begin) * (cols.end - cols.begin);
}

// Offset of the first maximum of a window, -1 if the window is empty. Depth windows span channels.
template <class T>
int64_t arg_max(const Pool& p, const T* x, int64_t n, int64_t oh, int64_t ow, int64_t c) {
  int64_t best = -1;
  const int64_t depth = p.a.depth_window;
  window_cells(p, n, oh, ow, c * depth, [&](int64_t cell) {
    for (int64_t at = cell; at < cell + depth * p.x.sc; at += p.x.sc)
      if (best < 0 || x[at] > x[best] || (scalar::is_nan(x[at]) && !scalar::is_nan(x[best]))) best = at;
  });
  return best;
}

// What all six have in common: the geometry, from the input that has x's dims (-1: output 0) and the one that
// has y's, then work by element type.
template <class F>
BoundFn pooling(const KernelSpec& spec, int x_input, int y_input, F work) {
  return [a = window_attrs(spec), x_input, y_input, work](KernelRun& r) {
    if (out_count(r, 0) == 0) return;
    const Pool p = pool_of(a, x_input < 0 ? r.out_dims(0) : r.in_dims(x_input),
                           y_input < 0 ? r.out_dims(0) : r.in_dims(y_input));
    work(r, p);
  };
}

BoundFn max_pool(const KernelSpec& spec) {
  return pooling(spec, 0, -1, [](KernelRun& r, const Pool& p) {
    for_common(r.out_dtype(0), [&]<class T>() {
      cells(r, p, [&](int64_t n, int64_t oh, int64_t ow, int64_t c, int64_t at) {
        const int64_t best = arg_max(p, r.in<T>(0), n, oh, ow, c);
        r.out<T>(0)[at] = best < 0 ? std::numeric_limits<T>::lowest() : r.in<T>(0)[best];
      });
    });
  });
}

// (x, y, dy)
BoundFn max_pool_grad(const KernelSpec& spec) {
  return pooling(spec, 0, 2, [](KernelRun& r, const Pool& p) {
    for_float(r.out_dtype(0), [&]<class T>() {
      T* dx = r.out<T>(0);
      std::fill_n(dx, out_count(r, 0), T(0));
      cells(r, p, [&](int64_t n, int64_t oh, int64_t ow, int64_t c, int64_t at) {
        const int64_t best = arg_max(p, r.in<T>(0), n, oh, ow, c);
        if (best >= 0) dx[best] += r.in<T>(2)[at];
      });
    });
  });
}

// (x, y, grad of dx) → grad of dy: what each window's maximum received.
BoundFn max_pool_grad_grad(const KernelSpec& spec) {
  return pooling(spec, 0, -1, [](KernelRun& r, const Pool& p) {
    for_float(r.out_dtype(0), [&]<class T>() {
      cells(r, p, [&](int64_t n, int64_t oh, int64_t ow, int64_t c, int64_t at) {
        const int64_t best = arg_max(p, r.in<T>(0), n, oh, ow, c);
        r.out<T>(0)[at] = best < 0 ? T(0) : r.in<T>(2)[best];
      });
    });
  });
}

BoundFn max_pool_with_argmax(const KernelSpec& spec) {
  const bool whole = spec.attr_or<bool>("include_batch_in_index", false);
  return pooling(spec, 0, -1, [whole](KernelRun& r, const Pool& p) {
    for_float(r.out_dtype(0), [&]<class T>() {
      for_index(r.out_dtype(1), [&]<class I>() {
        cells(r, p, [&](int64_t n, int64_t oh, int64_t ow, int64_t c, int64_t at) {
          const int64_t best = arg_max(p, r.in<T>(0), n, oh, ow, c);
          r.out<T>(0)[at] = r.in<T>(0)[best];
          r.out<I>(1)[at] = static_cast<I>(whole ? best : best - n * p.x.sn);
        });
      });
    });
  });
}

BoundFn avg_pool(const KernelSpec& spec) {
  return pooling(spec, 0, -1, [](KernelRun& r, const Pool& p) {
    for_float(r.out_dtype(0), [&]<class T>() {
      cells(r, p, [&](int64_t n, int64_t oh, int64_t ow, int64_t c, int64_t at) {
        double sum = 0;
        window_cells(p, n, oh, ow, c, [&](int64_t cell) { sum += static_cast<double>(r.in<T>(0)[cell]); });
        r.out<T>(0)[at] = static_cast<T>(sum / static_cast<double>(window_size(p, oh, ow)));
      });
    });
  });
}

// (input shape, dy)
BoundFn avg_pool_grad(const KernelSpec& spec) {
  return pooling(spec, -1, 1, [](KernelRun& r, const Pool& p) {
    for_float(r.out_dtype(0), [&]<class T>() {
      T* dx = r.out<T>(0);
      std::fill_n(dx, out_count(r, 0), T(0));
      cells(r, p, [&](int64_t n, int64_t oh, int64_t ow, int64_t c, int64_t at) {
        const T share = r.in<T>(1)[at] / static_cast<T>(window_size(p, oh, ow));
        window_cells(p, n, oh, ow, c, [&](int64_t cell) { dx[cell] += share; });
      });
    });
  });
}

}  // namespace

void register_pool(KernelRegistry& r) {
  add_bound(r, "MaxPool", max_pool);
  add_bound(r, "MaxPoolGrad", max_pool_grad);
  add_bound(r, "MaxPoolGradGrad", max_pool_grad_grad);
  add_bound(r, "MaxPoolWithArgmax", max_pool_with_argmax);
  add_bound(r, "AvgPool", avg_pool);
  add_bound(r, "AvgPoolGrad", avg_pool_grad);
}

}  // namespace sluice::kernels
