#include "runtime/data/preprocess.h"

#include <algorithm>
#include <cmath>

#include "graph/support/check.h"

namespace sluice::runtime::data {

namespace {

// Area of the window's overlap with a box, and of the box, in pixels.
struct PixelBox {
  float ymin, xmin, ymax, xmax;
  float area() const { return std::max(0.0f, ymax - ymin) * std::max(0.0f, xmax - xmin); }
};

bool covers(const Window& w, const std::vector<PixelBox>& boxes, float share) {
  for (const PixelBox& b : boxes) {
    const float area = b.area();
    if (area < 1.0f) continue;
    const PixelBox cut{std::max(b.ymin, static_cast<float>(w.top)),
                       std::max(b.xmin, static_cast<float>(w.left)),
                       std::min(b.ymax, static_cast<float>(w.top + w.height)),
                       std::min(b.xmax, static_cast<float>(w.left + w.width))};
    if (cut.area() / area >= share) return true;
  }
  return false;
}

// One attempt at height, width and place; false when the draw leaves the limits.
bool draw_window(Random& random, int height, int width, const CropOptions& o, Window& out) {
  const float aspect = random.uniform(o.min_aspect, o.max_aspect);
  const float whole = static_cast<float>(height) * static_cast<float>(width);
  const float min_area = o.min_area * whole, max_area = o.max_area * whole;
  int low = static_cast<int>(std::lrint(std::sqrt(min_area / aspect)));
  int high = static_cast<int>(std::lrint(std::sqrt(max_area / aspect)));
  auto width_of = [&](int h) { return static_cast<int>(std::lrint(static_cast<float>(h) * aspect)); };
  if (width_of(high) > width) {
    // The tallest window whose width still rounds into the image.
    high = static_cast<int>((static_cast<float>(width) + 0.5f - 1e-6f) / aspect);
    while (high > 0 && width_of(high) > width) --high;
  }
  high = std::min(high, height);
  low = std::min(low, high);
  int h = low + (low < high ? static_cast<int>(random.below(static_cast<uint64_t>(high - low + 1))) : 0);
  int w = width_of(h);
  float area = static_cast<float>(w) * static_cast<float>(h);
  if (area < min_area) {
    w = width_of(++h);
    area = static_cast<float>(w) * static_cast<float>(h);
  }
  if (area > max_area) {
    w = width_of(--h);
    area = static_cast<float>(w) * static_cast<float>(h);
  }
  if (area < min_area || area > max_area || w > width || h > height || w <= 0 || h <= 0) return false;
  out.height = h;
  out.width = w;
  out.top = h < height ? static_cast<int>(random.below(static_cast<uint64_t>(height - h))) : 0;
  out.left = w < width ? static_cast<int>(random.below(static_cast<uint64_t>(width - w))) : 0;
  return true;
}

}  // namespace

Window sample_crop_window(Random& random, int height, int width, const std::vector<Box>& boxes,
                          const CropOptions& options) {
  std::vector<PixelBox> pixel_boxes;
  const auto h = static_cast<float>(height), w = static_cast<float>(width);
  for (const Box& b : boxes) {
    const bool inside = b.ymin >= 0 && b.xmin >= 0 && b.ymax <= 1 && b.xmax <= 1 && b.ymin <= b.ymax &&
                        b.xmin <= b.xmax;  // false for NaN too
    SLUICE_REQUIRE(inside, Code::kInvalidArgument, "bounding box [", b.ymin, ",", b.xmin, ",", b.ymax, ",",
                   b.xmax, "] must lie in [0,1] with min <= max");
    pixel_boxes.push_back({b.ymin * h, b.xmin * w, b.ymax * h, b.xmax * w});
  }
  if (pixel_boxes.empty()) pixel_boxes.push_back({0, 0, h, w});
  for (int attempt = 0; attempt < options.max_attempts; ++attempt) {
    Window window;
    if (draw_window(random, height, width, options, window) &&
        covers(window, pixel_boxes, options.min_object_covered))
      return window;
  }
  return {0, 0, height, width};
}

ResizeMethod method_at(ResizeChoice choice, int64_t batch_position) {
  constexpr ResizeMethod kAll[] = {ResizeMethod::kNearest, ResizeMethod::kBilinear, ResizeMethod::kBicubic,
                                   ResizeMethod::kArea};
  return choice == ResizeChoice::kRoundRobin ? kAll[batch_position % 4] : kAll[static_cast<int>(choice)];
}

void distort_color(FloatImage& image, Random& random, int64_t batch_position, bool in_yiq) {
  auto brightness = [&] { adjust_brightness(image, random.uniform(-32.0f / 255, 32.0f / 255)); };
  auto contrast = [&] { adjust_contrast(image, random.uniform(0.5f, 1.5f)); };
  auto saturation_and_hue = [&] {
    if (in_yiq) {
      constexpr float kTurn = 0.2f * 3.14159265f;
      const float theta = random.uniform(-kTurn, kTurn);
      adjust_yiq(image, theta, random.uniform(0.5f, 1.5f));
    } else {
      adjust_saturation(image, random.uniform(0.5f, 1.5f));
      adjust_hue(image, random.uniform(-0.2f, 0.2f));
    }
  };
  brightness();
  if (batch_position % 2 == 0) {
    saturation_and_hue();
    contrast();
  } else {
    contrast();
    saturation_and_hue();
  }
  clamp(image, 0.0f, 1.0f);
}

void scale_to_unit(FloatImage& image) {
  for (float& p : image.pixels) p = p / 127.5f - 1.0f;
}

FloatImage train_image(std::string_view encoded, const std::vector<Box>& boxes, Random& random,
                       int64_t batch_position, const PreprocessOptions& options) {
  FloatImage image;
  if (is_png(encoded)) {
    const ByteImage whole = decode_png(encoded);
    image = to_float(crop(whole, sample_crop_window(random, whole.height, whole.width, boxes)));
  } else {
    const ImageSize size = jpeg_size(encoded);
    const Window window = sample_crop_window(random, size.height, size.width, boxes);
    image = to_float(options.fuse_decode_and_crop ? decode_jpeg(encoded, {.window = window})
                                                  : crop(decode_jpeg(encoded), window));
  }
  if (random.coin()) flip_left_right(image);
  image = resize(image, options.height, options.width, method_at(options.resize, batch_position));
  if (options.distort_color) {
    for (float& p : image.pixels) p /= 255.0f;
    distort_color(image, random, batch_position, options.color_in_yiq);
    for (float& p : image.pixels) p *= 255.0f;
  }
  scale_to_unit(image);
  return image;
}

FloatImage eval_image(std::string_view encoded, int64_t batch_position, const PreprocessOptions& options) {
  FloatImage image = to_float(is_png(encoded) ? decode_png(encoded) : decode_jpeg(encoded));
  const ResizeMethod method = method_at(options.resize, batch_position);
  if (options.eval_method == EvalMethod::kInception) {
    constexpr double kFraction = 0.875;
    const int top = static_cast<int>((image.height - kFraction * image.height) / 2);
    const int left = static_cast<int>((image.width - kFraction * image.width) / 2);
    image = crop(image, {top, left, image.height - 2 * top, image.width - 2 * left});
    image = resize(image, options.height, options.width, method);
  } else {
    // The shorter side becomes 1.145 times the output (224 → 256), then the centre is cut out.
    constexpr float kMargin = 1.145f;
    const float ratio = std::max(static_cast<float>(options.height) / static_cast<float>(image.height),
                                 static_cast<float>(options.width) / static_cast<float>(image.width));
    const int height =
        std::max(static_cast<int>(static_cast<float>(image.height) * ratio * kMargin), options.height);
    const int width =
        std::max(static_cast<int>(static_cast<float>(image.width) * ratio * kMargin), options.width);
    image = resize(image, height, width, method);
    image = crop(image,
                 {(height - options.height) / 2, (width - options.width) / 2, options.height, options.width});
  }
  scale_to_unit(image);
  return image;
}

}  // namespace sluice::runtime::data
