// Max and average pooling over channels-last images, forward and backward: for every output pixel the
// pointers to the window's pixels, then one vector function over the channels. Ties go to the first maximum,
// as in TensorFlow; cells of the padding count for nothing. Backward runs over images and channel blocks,
// window by window in order, so overlapping windows add in a fixed order at any width.

#include <algorithm>
#include <cstring>

#include "graph/support/check.h"
#include "kernels/cpu/common.h"
#include "kernels/cpu/register.h"

namespace sluice::kernels::cpu {
namespace {

constexpr int64_t kMaxTaps = 1024;  // a window's pixels; larger ones are left to the reference

struct PoolProblem {
  ImageDims in, out;
  WindowGeometry g;
};

bool pool_problem(const KernelSpec& spec, const Dims& image, const Dims& result, PoolProblem& p,
                  std::string& why) {
  if (image.size() != 4 || result.size() != 4) {
    why = "not an image";
    return false;
  }
  const bool nchw = is_nchw(spec);
  std::vector<int64_t> ksize = spec.attr<std::vector<int64_t>>("ksize");
  const size_t h = nchw ? 2 : 1, w = nchw ? 3 : 2, c = nchw ? 1 : 3;
  if (ksize[0] != 1 || ksize[c] != 1) {
    why = "a window over batch or channels";
    return false;
  }
  if (ksize[h] * ksize[w] > kMaxTaps) {
    why = cat("a window of more than ", kMaxTaps, " pixels");
    return false;
  }
  p.in = image_dims(image, nchw);
  p.out = image_dims(result, nchw);
  return window_geometry(spec, p.in, ksize[h], ksize[w], p.g, why);
}

// Calls f(row, column, pixel number) for the window's pixels inside the image, in row-major order.
template <class F>
void for_taps(const PoolProblem& p, int64_t oh, int64_t ow, F&& f) {
  const int64_t y0 = oh * p.g.stride_h - p.g.pad_top, x0 = ow * p.g.stride_w - p.g.pad_left;
  const int64_t y1 = std::min(y0 + p.g.kh, p.in.h), x1 = std::min(x0 + p.g.kw, p.in.w);
  for (int64_t y = std::max<int64_t>(y0, 0); y < y1; ++y)
    for (int64_t x = std::max<int64_t>(x0, 0); x < x1; ++x) f(y, x);
}

class Pool final : public Kernel {
 public:
  Pool(const KernelSpec& spec, const PoolProblem& p, bool max) : p_(p), max_(max) {
    input_layouts = {image_layout(is_nchw(spec))};
    output_layouts = input_layouts;
  }
  void run(KernelRun& r) const override {
    const float* in = r.in<float>(0);
    float* out = r.out<float>(0);
    const VecFns& f = fns();
    const ImageDims &i = p_.in, &o = p_.out;
    if (o.elements() == 0) return;
    r.queue().parallel_for(
        o.n * o.h, std::max<int64_t>(1, 8192 / (o.w * o.c)), [&](int64_t begin, int64_t end) {
          const float* taps[kMaxTaps];
          for (int64_t row = begin; row < end; ++row) {
            const float* image = in + row / o.h * i.h * i.w * i.c;
            for (int64_t ow = 0; ow < o.w; ++ow) {
              int count = 0;
              for_taps(p_, row % o.h, ow,
                       [&](int64_t y, int64_t x) { taps[count++] = image + (y * i.w + x) * i.c; });
              float* to = out + (row * o.w + ow) * o.c;
              if (count == 0)  // a window of padding only: nothing to take the maximum of
                std::fill_n(
                    to, o.c,
                    max_ ? std::numeric_limits<float>::lowest() : std::numeric_limits<float>::quiet_NaN());
              else if (max_)
                f.max_taps(to, taps, count, o.c);
              else
                f.mean_taps(to, taps, count, static_cast<float>(count), o.c);
            }
          }
        });
  }

 private:
  PoolProblem p_;
  bool max_;
};

class PoolGrad final : public Kernel {
 public:
  PoolGrad(const KernelSpec& spec, const PoolProblem& p, bool max) : p_(p), max_(max) {
    const Layout image = image_layout(is_nchw(spec));
    input_layouts = max ? std::vector<Layout>{image, image, image} : std::vector<Layout>{Layout{}, image};
    output_layouts = {image};
  }
  void run(KernelRun& r) const override {
    const float* in = max_ ? r.in<float>(0) : nullptr;
    const float* dy = r.in<float>(max_ ? 2 : 1);
    float* dx = r.out<float>(0);
    const VecFns& f = fns();
    const ImageDims &i = p_.in, &o = p_.out;
    if (i.elements() == 0) return;
    // A block of channels of one image is one piece of work; blocks only where images alone are too few.
    const int64_t block = i.n >= 8 ? i.c : std::min<int64_t>(i.c, 64);
    const int64_t blocks = (i.c + block - 1) / block;
    r.queue().parallel_for(i.n * blocks, 1, [&](int64_t begin, int64_t end) {
      const float* taps[kMaxTaps];
      float* grads[kMaxTaps];
      for (int64_t piece = begin; piece < end; ++piece) {
        const int64_t n = piece / blocks, c0 = piece % blocks * block, c = std::min(block, i.c - c0);
        const int64_t base = n * i.h * i.w * i.c + c0;
        for (int64_t pixel = 0; pixel < i.h * i.w; ++pixel) std::fill_n(dx + base + pixel * i.c, c, 0.f);
        for (int64_t oh = 0; oh < o.h; ++oh)
          for (int64_t ow = 0; ow < o.w; ++ow) {
            int count = 0;
            for_taps(p_, oh, ow, [&](int64_t y, int64_t x) {
              const int64_t at = base + (y * i.w + x) * i.c;
              if (max_) taps[count] = in + at;
              grads[count++] = dx + at;
            });
            const float* from = dy + ((n * o.h + oh) * o.w + ow) * o.c + c0;
            if (count == 0) continue;
            if (max_)
              f.max_taps_grad(grads, taps, count, from, c);
            else
              f.mean_taps_grad(grads, count, from, static_cast<float>(count), c);
          }
      }
    });
  }

 private:
  PoolProblem p_;
  bool max_;
};

KernelMake pool_of(bool max) {
  return [max](const KernelSpec& spec, Refusal& refusal) -> std::unique_ptr<Kernel> {
    PoolProblem p;
    if (!all_float(spec, refusal, {0}) ||
        !pool_problem(spec, spec.inputs[0].dims, spec.outputs[0].dims, p, refusal.reason))
      return nullptr;
    return std::make_unique<Pool>(spec, p, max);
  };
}

KernelMake pool_grad_of(bool max) {
  return [max](const KernelSpec& spec, Refusal& refusal) -> std::unique_ptr<Kernel> {
    PoolProblem p;
    const size_t dy = max ? 2 : 1;
    if (!all_float(spec, refusal, {static_cast<int>(dy)}) ||
        !pool_problem(spec, spec.outputs[0].dims, spec.inputs[dy].dims, p, refusal.reason))
      return nullptr;
    return std::make_unique<PoolGrad>(spec, p, max);
  };
}

}  // namespace

void register_pool(KernelRegistry& r) {
  r.add({.op = "MaxPool", .name = "vector", .make = pool_of(true), .priority = kVectorPriority});
  r.add({.op = "AvgPool", .name = "vector", .make = pool_of(false), .priority = kVectorPriority});
  r.add({.op = "MaxPoolGrad", .name = "vector", .make = pool_grad_of(true), .priority = kVectorPriority});
  r.add({.op = "AvgPoolGrad", .name = "vector", .make = pool_grad_of(false), .priority = kVectorPriority});
}

}  // namespace sluice::kernels::cpu
