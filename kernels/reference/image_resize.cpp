// ResizeBilinear and ResizeNearestNeighbor with gradients (graph-and-training §2.13). NHWC. Source
// coordinates are computed in float as TensorFlow does, so that the same cells are chosen.

#include <cmath>

#include "kernels/reference/common.h"
#include "kernels/reference/register.h"

namespace sluice::kernels {
namespace {

struct ResizeAttrs {
  bool align_corners, half_pixel;
};
ResizeAttrs resize_attrs(const KernelSpec& s) {
  const ResizeAttrs a{s.attr_or<bool>("align_corners", false), s.attr_or<bool>("half_pixel_centers", false)};
  SLUICE_REQUIRE(!(a.align_corners && a.half_pixel), Code::kInvalidArgument,
                 "If half_pixel_centers is True, align_corners must be False.");
  return a;
}

float scale_of(const ResizeAttrs& a, int64_t in, int64_t out) {
  return a.align_corners && out > 1 ? static_cast<float>(in - 1) / static_cast<float>(out - 1)
                                    : static_cast<float>(in) / static_cast<float>(out);
}

struct Lerp {
  int64_t low, high;
  float t;
};
Lerp lerp_at(const ResizeAttrs& a, int64_t i, float scale, int64_t in) {
  const float s =
      a.half_pixel ? (static_cast<float>(i) + 0.5f) * scale - 0.5f : static_cast<float>(i) * scale;
  const float f = std::floor(s);
  return {std::max<int64_t>(static_cast<int64_t>(f), 0),
          std::min<int64_t>(static_cast<int64_t>(std::ceil(s)), in - 1), s - f};
}

int64_t nearest_at(const ResizeAttrs& a, int64_t i, float scale, int64_t in) {
  const float s = a.half_pixel ? (static_cast<float>(i) + 0.5f) * scale : static_cast<float>(i) * scale;
  return std::min<int64_t>(
      std::max<int64_t>(0, static_cast<int64_t>(a.align_corners ? std::round(s) : std::floor(s))), in - 1);
}

// f(n, small row and column pairs with weights …) over every pixel of the resized image.
struct Geometry {
  int64_t n, in_h, in_w, out_h, out_w, c;
  float sh, sw;
};
Geometry geometry(const ResizeAttrs& a, const Dims& small, const Dims& big) {
  SLUICE_REQUIRE(small.size() == 4 && big.size() == 4, Code::kInvalidArgument,
                 "input must be 4-dimensional: ", dims_string(small));
  SLUICE_REQUIRE(big[1] > 0 && big[2] > 0, Code::kInvalidArgument, "output dimensions must be positive");
  SLUICE_REQUIRE(small[1] > 0 && small[2] > 0, Code::kInvalidArgument,
                 "input image must be of non-zero size");
  return {small[0],
          small[1],
          small[2],
          big[1],
          big[2],
          small[3],
          scale_of(a, small[1], big[1]),
          scale_of(a, small[2], big[2])};
}

BoundFn bilinear(const KernelSpec& spec) {
  return [a = resize_attrs(spec)](KernelRun& r) {
    const Geometry g = geometry(a, r.in_dims(0), r.out_dims(0));
    for_numeric(r.in_dtype(0), [&]<class T>() {
      for_float(r.out_dtype(0), [&]<class R>() {
        for (int64_t n = 0; n < g.n; ++n)
          for (int64_t i = 0; i < g.out_h; ++i) {
            const Lerp y = lerp_at(a, i, g.sh, g.in_h);
            for (int64_t j = 0; j < g.out_w; ++j) {
              const Lerp x = lerp_at(a, j, g.sw, g.in_w);
              const T* image = r.in<T>(0) + n * g.in_h * g.in_w * g.c;
              R* to = r.out<R>(0) + ((n * g.out_h + i) * g.out_w + j) * g.c;
              for (int64_t c = 0; c < g.c; ++c) {
                auto px = [&](int64_t row, int64_t col) {
                  return static_cast<R>(image[(row * g.in_w + col) * g.c + c]);
                };
                const R tl = px(y.low, x.low), bl = px(y.high, x.low);
                const R top = tl + (px(y.low, x.high) - tl) * static_cast<R>(x.t);
                const R bottom = bl + (px(y.high, x.high) - bl) * static_cast<R>(x.t);
                to[c] = top + (bottom - top) * static_cast<R>(y.t);
              }
            }
          }
      });
    });
  };
}

// (dy, original image)
BoundFn bilinear_grad(const KernelSpec& spec) {
  return [a = resize_attrs(spec)](KernelRun& r) {
    const Geometry g = geometry(a, r.out_dims(0), r.in_dims(0));
    for_float(r.out_dtype(0), [&]<class T>() {
      T* dx = r.out<T>(0);
      std::fill_n(dx, out_count(r, 0), T(0));
      for_float(r.in_dtype(0), [&]<class D>() {
        for (int64_t n = 0; n < g.n; ++n)
          for (int64_t i = 0; i < g.out_h; ++i) {
            const Lerp y = lerp_at(a, i, g.sh, g.in_h);
            for (int64_t j = 0; j < g.out_w; ++j) {
              const Lerp x = lerp_at(a, j, g.sw, g.in_w);
              const D* dy = r.in<D>(0) + ((n * g.out_h + i) * g.out_w + j) * g.c;
              T* image = dx + n * g.in_h * g.in_w * g.c;
              const T ty = static_cast<T>(y.t), tx = static_cast<T>(x.t);
              for (int64_t c = 0; c < g.c; ++c) {
                const T d = static_cast<T>(dy[c]);
                image[(y.low * g.in_w + x.low) * g.c + c] += d * (1 - ty) * (1 - tx);
                image[(y.low * g.in_w + x.high) * g.c + c] += d * (1 - ty) * tx;
                image[(y.high * g.in_w + x.low) * g.c + c] += d * ty * (1 - tx);
                image[(y.high * g.in_w + x.high) * g.c + c] += d * ty * tx;
              }
            }
          }
      });
    });
  };
}

BoundFn nearest(const KernelSpec& spec) {
  return [a = resize_attrs(spec)](KernelRun& r) {
    const Geometry g = geometry(a, r.in_dims(0), r.out_dims(0));
    for_moved(r.out_dtype(0), [&]<class T>() {
      const T* x = moved_in<T>(r, 0);
      T* to = moved_out<T>(r, 0);
      for (int64_t n = 0; n < g.n; ++n)
        for (int64_t i = 0; i < g.out_h; ++i)
          for (int64_t j = 0; j < g.out_w; ++j) {
            const T* from = x + ((n * g.in_h + nearest_at(a, i, g.sh, g.in_h)) * g.in_w +
                                 nearest_at(a, j, g.sw, g.in_w)) *
                                    g.c;
            to = std::copy(from, from + g.c, to);
          }
    });
  };
}

BoundFn nearest_grad(const KernelSpec& spec) {
  return [a = resize_attrs(spec)](KernelRun& r) {
    const Geometry g = geometry(a, r.out_dims(0), r.in_dims(0));
    for_common(r.out_dtype(0), [&]<class T>() {
      T* dx = r.out<T>(0);
      std::fill_n(dx, out_count(r, 0), T(0));
      const T* dy = r.in<T>(0);
      for (int64_t n = 0; n < g.n; ++n)
        for (int64_t i = 0; i < g.out_h; ++i)
          for (int64_t j = 0; j < g.out_w; ++j) {
            T* to = dx + ((n * g.in_h + nearest_at(a, i, g.sh, g.in_h)) * g.in_w +
                          nearest_at(a, j, g.sw, g.in_w)) *
                             g.c;
            for (int64_t c = 0; c < g.c; ++c) to[c] += *dy++;
          }
    });
  };
}

}  // namespace

void register_image_resize(KernelRegistry& r) {
  add_bound(r, "ResizeBilinear", bilinear);
  add_bound(r, "ResizeBilinearGrad", bilinear_grad);
  add_bound(r, "ResizeNearestNeighbor", nearest);
  add_bound(r, "ResizeNearestNeighborGrad", nearest_grad);
}

}  // namespace sluice::kernels
