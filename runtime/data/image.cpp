#include "runtime/data/image.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "graph/support/check.h"

namespace sluice::runtime::data {

namespace {

template <class T>
BasicImage<T> crop_image(const BasicImage<T>& image, const Window& w) {
  SLUICE_REQUIRE(w.top >= 0 && w.left >= 0 && w.height > 0 && w.width > 0 &&
                     w.top <= image.height - w.height && w.left <= image.width - w.width,
                 Code::kInvalidArgument, "crop window ", w.height, "x", w.width, " at (", w.top, ",", w.left,
                 ") is not inside the ", image.height, "x", image.width, " image");
  BasicImage<T> out{w.height, w.width, image.channels, {}};
  out.pixels.resize(static_cast<size_t>(w.height) * out.row());
  for (int y = 0; y < w.height; ++y)
    std::memcpy(out.at(y, 0), image.at(w.top + y, w.left), out.row() * sizeof(T));
  return out;
}

struct Rgb {
  float r, g, b;
};
struct Hsv {
  float h, s, v;
};

Hsv rgb_to_hsv(Rgb p) {
  const float v = std::max({p.r, p.g, p.b}), range = v - std::min({p.r, p.g, p.b});
  Hsv out{0, v > 0 ? range / v : 0, v};
  if (range <= 0) return out;
  const float norm = 1.0f / (6.0f * range);
  if (p.r == v) {
    out.h = norm * (p.g - p.b);
  } else if (p.g == v) {
    out.h = norm * (p.b - p.r) + 2.0f / 6.0f;
  } else {
    out.h = norm * (p.r - p.g) + 4.0f / 6.0f;
  }
  if (out.h < 0) out.h += 1.0f;
  return out;
}

Rgb hsv_to_rgb(Hsv p) {
  const float chroma = p.s * p.v, base = p.v - chroma;
  const float dh = p.h * 6.0f;
  auto ramp = [](float x) { return std::clamp(x, 0.0f, 1.0f); };
  return {ramp(std::abs(dh - 3.0f) - 1.0f) * chroma + base, ramp(2.0f - std::abs(dh - 2.0f)) * chroma + base,
          ramp(2.0f - std::abs(dh - 4.0f)) * chroma + base};
}

template <class F>
void each_pixel(FloatImage& image, F&& f) {
  SLUICE_REQUIRE(image.channels == 3, Code::kInvalidArgument, "colour needs 3 channels, the image has ",
                 image.channels);
  for (size_t i = 0; i + 2 < image.pixels.size(); i += 3) {
    Rgb p = f(Rgb{image.pixels[i], image.pixels[i + 1], image.pixels[i + 2]});
    image.pixels[i] = p.r;
    image.pixels[i + 1] = p.g;
    image.pixels[i + 2] = p.b;
  }
}

}  // namespace

ByteImage crop(const ByteImage& image, const Window& window) { return crop_image(image, window); }
FloatImage crop(const FloatImage& image, const Window& window) { return crop_image(image, window); }

FloatImage to_float(const ByteImage& image) {
  return {image.height, image.width, image.channels,
          std::vector<float>(image.pixels.begin(), image.pixels.end())};
}

void flip_left_right(FloatImage& image) {
  const auto channels = static_cast<size_t>(image.channels);
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width / 2; ++x)
      std::swap_ranges(image.at(y, x), image.at(y, x) + channels, image.at(y, image.width - 1 - x));
}

void adjust_brightness(FloatImage& image, float delta) {
  for (float& p : image.pixels) p += delta;
}

void adjust_contrast(FloatImage& image, float factor) {
  const auto channels = static_cast<size_t>(image.channels);
  if (image.pixels.empty()) return;
  for (size_t c = 0; c < channels; ++c) {
    double sum = 0;
    for (size_t i = c; i < image.pixels.size(); i += channels) sum += image.pixels[i];
    const auto mean = static_cast<float>(sum / static_cast<double>(image.pixels.size() / channels));
    for (size_t i = c; i < image.pixels.size(); i += channels)
      image.pixels[i] = (image.pixels[i] - mean) * factor + mean;
  }
}

void adjust_saturation(FloatImage& image, float factor) {
  each_pixel(image, [factor](Rgb p) {
    Hsv q = rgb_to_hsv(p);
    q.s = std::clamp(q.s * factor, 0.0f, 1.0f);
    return hsv_to_rgb(q);
  });
}

void adjust_hue(FloatImage& image, float delta) {
  each_pixel(image, [delta](Rgb p) {
    Hsv q = rgb_to_hsv(p);
    q.h = q.h + delta;
    q.h -= std::floor(q.h);
    return hsv_to_rgb(q);
  });
}

void adjust_yiq(FloatImage& image, float theta, float scale_saturation) {
  const float u = scale_saturation * std::cos(theta), w = scale_saturation * std::sin(theta);
  each_pixel(image, [u, w](Rgb p) {
    const float y = 0.299f * p.r + 0.587f * p.g + 0.114f * p.b;
    const float i = 0.596f * p.r - 0.274f * p.g - 0.322f * p.b;
    const float q = 0.211f * p.r - 0.523f * p.g + 0.312f * p.b;
    const float i2 = u * i - w * q, q2 = w * i + u * q;
    return Rgb{y + 0.95617069f * i2 + 0.62143257f * q2, y - 0.2726886f * i2 - 0.64681324f * q2,
               y - 1.103744f * i2 + 1.70062309f * q2};
  });
}

void clamp(FloatImage& image, float low, float high) {
  for (float& p : image.pixels) p = std::clamp(p, low, high);
}

}  // namespace sluice::runtime::data
