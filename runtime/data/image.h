#pragma once
// Pictures in memory and what an input pipeline does to them, with TensorFlow's definitions: decoding (JPEG
// with a crop window, PNG), the four legacy resize methods, flip, colour distortion in HSV or YIQ. Plain
// values and pure functions; any thread. Pixels are interleaved, row by row. Undecodable bytes are DataLoss,
// whose text the caller completes with file and record.
//
//   ByteImage b = decode_jpeg(bytes, {.window = Window{10, 10, 100, 100}});
//   FloatImage f = resize(to_float(b), 224, 224, ResizeMethod::kBilinear);

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::runtime::data {

template <class T>
struct BasicImage {
  int height = 0, width = 0, channels = 0;
  std::vector<T> pixels;

  size_t row() const { return static_cast<size_t>(width) * static_cast<size_t>(channels); }
  T* at(int y, int x) {
    return pixels.data() + static_cast<size_t>(y) * row() +
           static_cast<size_t>(x) * static_cast<size_t>(channels);
  }
  const T* at(int y, int x) const { return const_cast<BasicImage*>(this)->at(y, x); }
};
using ByteImage = BasicImage<uint8_t>;
using FloatImage = BasicImage<float>;

/// A rectangle of pixels.
struct Window {
  int top = 0, left = 0, height = 0, width = 0;
  bool operator==(const Window&) const = default;
};

struct ImageSize {
  int height = 0, width = 0, channels = 0;
};

struct JpegOptions {
  int channels = 3;  // 1 or 3
  std::optional<Window> window = {};
  bool fast_dct = true;  // TensorFlow's INTEGER_FAST
};

/// Reads the header only.
ImageSize jpeg_size(std::string_view bytes);
/// Decodes the whole picture or only the rows and blocks that the window touches. A window that is not inside
/// the picture is InvalidArgument.
ByteImage decode_jpeg(std::string_view bytes, const JpegOptions& options = {});
/// 8 bits a channel; palettes and 16-bit files are converted, alpha is dropped.
ByteImage decode_png(std::string_view bytes, int channels = 3);
bool is_png(std::string_view bytes);
/// Pixels of 1 (grey), 2 (grey, alpha), 3 (RGB) or 4 (RGBA) channels as a PNG file.
std::string encode_png(const ByteImage& image);

ByteImage crop(const ByteImage& image, const Window& window);
FloatImage crop(const FloatImage& image, const Window& window);
FloatImage to_float(const ByteImage& image);

enum class ResizeMethod { kNearest, kBilinear, kBicubic, kArea };

/// TF1's coordinates (align_corners false, no half-pixel centres): src = dst · in/out in float32. An image
/// that has the size already comes back unchanged.
FloatImage resize(const FloatImage& image, int height, int width, ResizeMethod method);

void flip_left_right(FloatImage& image);

// Colour, on three-channel images in [0,1]. None clamps, save where stated.
void adjust_brightness(FloatImage& image, float delta);
/// (x − mean of its channel) · factor + mean.
void adjust_contrast(FloatImage& image, float factor);
/// s ← clamp(s · factor, 0, 1) in HSV.
void adjust_saturation(FloatImage& image, float factor);
/// h ← (h + delta) mod 1 in HSV.
void adjust_hue(FloatImage& image, float delta);
/// Turns the (I,Q) plane by `theta` radians and scales it by `scale_saturation`.
void adjust_yiq(FloatImage& image, float theta, float scale_saturation);
void clamp(FloatImage& image, float low, float high);

}  // namespace sluice::runtime::data
