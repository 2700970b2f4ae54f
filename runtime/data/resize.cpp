#include <algorithm>
#include <array>
#include <cmath>

#include "graph/support/check.h"
#include "runtime/data/image.h"

namespace sluice::runtime::data {

namespace {

// The taps of one output coordinate along one axis: input indices and their weights.
struct Tap {
  int index;
  float weight;
};
using Taps = std::vector<std::vector<Tap>>;

float scale_of(int in, int out) { return static_cast<float>(in) / static_cast<float>(out); }

Taps nearest_taps(int in, int out) {
  Taps taps(static_cast<size_t>(out));
  const float scale = scale_of(in, out);
  for (int i = 0; i < out; ++i) {
    int src = std::min(static_cast<int>(std::floor(static_cast<float>(i) * scale)), in - 1);
    taps[static_cast<size_t>(i)] = {{src, 1.0f}};
  }
  return taps;
}

// Two taps everywhere, also where the second has no weight: the sum is lower + (upper − lower)·lerp.
Taps bilinear_taps(int in, int out) {
  Taps taps(static_cast<size_t>(out));
  const float scale = scale_of(in, out);
  for (int i = 0; i < out; ++i) {
    const float src = static_cast<float>(i) * scale;
    const int lower = std::min(static_cast<int>(std::floor(src)), in - 1);
    taps[static_cast<size_t>(i)] = {{lower, 0.0f},
                                    {std::min(lower + 1, in - 1), src - static_cast<float>(lower)}};
  }
  return taps;
}

constexpr int kTableSize = 1024;

// Keys' kernel with A = −0.75 at distances k/1024 (even places) and 1 + k/1024 (odd places).
const std::array<float, (kTableSize + 1) * 2>& cubic_table() {
  static const auto table = [] {
    std::array<float, (kTableSize + 1) * 2> t{};
    constexpr float a = -0.75f;
    for (int i = 0; i <= kTableSize; ++i) {
      float x = static_cast<float>(i) / kTableSize;
      t[static_cast<size_t>(i) * 2] = ((a + 2) * x - (a + 3)) * x * x + 1;
      x += 1.0f;
      t[static_cast<size_t>(i) * 2 + 1] = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
    }
    return t;
  }();
  return table;
}

Taps bicubic_taps(int in, int out) {
  Taps taps(static_cast<size_t>(out));
  const auto& table = cubic_table();
  const float scale = scale_of(in, out);
  for (int i = 0; i < out; ++i) {
    const float src = static_cast<float>(i) * scale;
    const int base = static_cast<int>(std::floor(src));
    const auto k = static_cast<size_t>(std::lrint((src - static_cast<float>(base)) * kTableSize));
    const float weights[4] = {table[k * 2 + 1], table[k * 2], table[(kTableSize - k) * 2],
                              table[(kTableSize - k) * 2 + 1]};
    for (int t = 0; t < 4; ++t)
      taps[static_cast<size_t>(i)].push_back({std::clamp(base - 1 + t, 0, in - 1), weights[t]});
  }
  return taps;
}

// The share of each input cell in [i·s, (i+1)·s), divided by s.
Taps area_taps(int in, int out) {
  Taps taps(static_cast<size_t>(out));
  const float scale = scale_of(in, out);
  for (int i = 0; i < out; ++i) {
    const float from = static_cast<float>(i) * scale, to = static_cast<float>(i + 1) * scale;
    const int first = static_cast<int>(std::floor(from)), last = static_cast<int>(std::ceil(to));
    for (int j = first; j < last; ++j) {
      const auto cell = static_cast<float>(j);
      const float share = std::min(to, cell + 1) - std::max(from, cell);
      taps[static_cast<size_t>(i)].push_back({std::min(j, in - 1), share / scale});
    }
  }
  return taps;
}

FloatImage resize_bilinear(const FloatImage& image, int height, int width) {
  const Taps ys = bilinear_taps(image.height, height), xs = bilinear_taps(image.width, width);
  FloatImage out{height, width, image.channels, {}};
  out.pixels.resize(static_cast<size_t>(height) * out.row());
  for (int y = 0; y < height; ++y) {
    const auto& ty = ys[static_cast<size_t>(y)];
    for (int x = 0; x < width; ++x) {
      const auto& tx = xs[static_cast<size_t>(x)];
      const float *tl = image.at(ty[0].index, tx[0].index), *tr = image.at(ty[0].index, tx[1].index);
      const float *bl = image.at(ty[1].index, tx[0].index), *br = image.at(ty[1].index, tx[1].index);
      float* dst = out.at(y, x);
      for (int c = 0; c < image.channels; ++c) {
        const float top = tl[c] + (tr[c] - tl[c]) * tx[1].weight;
        const float bottom = bl[c] + (br[c] - bl[c]) * tx[1].weight;
        dst[c] = top + (bottom - top) * ty[1].weight;
      }
    }
  }
  return out;
}

FloatImage resize_by_taps(const FloatImage& image, const Taps& ys, const Taps& xs) {
  FloatImage out{static_cast<int>(ys.size()), static_cast<int>(xs.size()), image.channels, {}};
  out.pixels.resize(ys.size() * out.row());
  for (int y = 0; y < out.height; ++y) {
    for (int x = 0; x < out.width; ++x) {
      float* dst = out.at(y, x);
      for (const Tap& ty : ys[static_cast<size_t>(y)]) {
        for (const Tap& tx : xs[static_cast<size_t>(x)]) {
          const float* src = image.at(ty.index, tx.index);
          const float weight = ty.weight * tx.weight;
          for (int c = 0; c < image.channels; ++c) dst[c] += src[c] * weight;
        }
      }
    }
  }
  return out;
}

}  // namespace

FloatImage resize(const FloatImage& image, int height, int width, ResizeMethod method) {
  SLUICE_REQUIRE(height > 0 && width > 0, Code::kInvalidArgument, "output dimensions must be positive, got ",
                 height, "x", width);
  SLUICE_REQUIRE(image.height > 0 && image.width > 0, Code::kInvalidArgument,
                 "input image must be non-empty");
  if (image.height == height && image.width == width) return image;
  switch (method) {
    case ResizeMethod::kNearest:
      return resize_by_taps(image, nearest_taps(image.height, height), nearest_taps(image.width, width));
    case ResizeMethod::kBilinear:
      return resize_bilinear(image, height, width);
    case ResizeMethod::kBicubic:
      return resize_by_taps(image, bicubic_taps(image.height, height), bicubic_taps(image.width, width));
    case ResizeMethod::kArea:
      return resize_by_taps(image, area_taps(image.height, height), area_taps(image.width, width));
  }
  throw_internal("resize method", __FILE__, __LINE__, "unknown resize method");
}

}  // namespace sluice::runtime::data
