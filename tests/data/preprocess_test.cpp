#include "runtime/data/preprocess.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "graph/support/check.h"
#include "tests/data/image_golden.h"

namespace sluice::runtime::data {
namespace {

std::string_view jpeg() { return {reinterpret_cast<const char*>(golden::kJpeg), std::size(golden::kJpeg)}; }

TEST(CropWindow, StaysInsideTheLimits) {
  for (uint64_t i = 0; i < 2000; ++i) {
    Random random(7, i);
    const int height = 20 + static_cast<int>(random.below(300)),
              width = 20 + static_cast<int>(random.below(300));
    const Window w = sample_crop_window(random, height, width, {});
    ASSERT_GE(w.top, 0);
    ASSERT_GE(w.left, 0);
    ASSERT_LE(w.top + w.height, height);
    ASSERT_LE(w.left + w.width, width);
    if (w == Window{0, 0, height, width}) continue;  // every attempt failed
    const double area = double(w.height) * w.width / (double(height) * width);
    ASSERT_GE(area, 0.0499);
    ASSERT_LE(std::abs(double(w.width) - 0.75 * w.height) < 0.51 ? 0.75 : double(w.width) / w.height,
              1.33 + 0.51 / w.height);
  }
}

TEST(CropWindow, CoversATenthOfSomeBox) {
  const Box small{0.6f, 0.6f, 0.8f, 0.9f};
  for (uint64_t i = 0; i < 500; ++i) {
    Random random(11, i);
    const Window w = sample_crop_window(random, 100, 100, {small});
    const int high = std::min(80, w.top + w.height) - std::max(60, w.top);
    const int wide = std::min(90, w.left + w.width) - std::max(60, w.left);
    ASSERT_GE(std::max(high, 0) * std::max(wide, 0), 0.1 * 20 * 30 - 1);
  }
}

TEST(CropWindow, RefusesBoxesOutsideTheImage) {
  Random random(1);
  EXPECT_THROW(sample_crop_window(random, 10, 10, {Box{0, 0, 1.5f, 1}}), Error);
  EXPECT_THROW(sample_crop_window(random, 10, 10, {Box{0.5f, 0, 0.4f, 1}}), Error);
}

TEST(TrainImage, DependsOnItsSeedOnly) {
  const PreprocessOptions options{.height = 16, .width = 16};
  Random a(5, 3), b(5, 3), c(5, 4);
  const FloatImage x = train_image(jpeg(), {}, a, 0, options), y = train_image(jpeg(), {}, b, 0, options);
  const FloatImage z = train_image(jpeg(), {}, c, 0, options);
  EXPECT_EQ(x.pixels, y.pixels);
  EXPECT_NE(x.pixels, z.pixels);
  EXPECT_EQ(x.pixels.size(), 16u * 16 * 3);
  EXPECT_GE(*std::min_element(x.pixels.begin(), x.pixels.end()), -1.0f);
  EXPECT_LE(*std::max_element(x.pixels.begin(), x.pixels.end()), 1.0f);
}

TEST(TrainImage, DistortionChangesColours) {
  Random a(5, 3), b(5, 3);
  const FloatImage x = train_image(jpeg(), {}, a, 0, {.height = 16, .width = 16});
  const FloatImage y = train_image(jpeg(), {}, b, 0, {.height = 16, .width = 16, .distort_color = false});
  EXPECT_NE(x.pixels, y.pixels);
}

TEST(EvalImage, ConstantStaysConstant) {
  // 128 at a size that divides nothing, in both crops.
  for (EvalMethod method : {EvalMethod::kVgg, EvalMethod::kInception}) {
    PreprocessOptions options{.height = 13, .width = 13, .eval_method = method};
    for (ResizeChoice choice : {ResizeChoice::kNearest, ResizeChoice::kBilinear, ResizeChoice::kArea}) {
      options.resize = choice;
      FloatImage image{37, 23, 3, std::vector<float>(37 * 23 * 3, 128.0f)};
      image = resize(image, 13, 13, method_at(choice, 0));
      scale_to_unit(image);
      for (float p : image.pixels) ASSERT_NEAR(p, 128 / 127.5f - 1, 1e-5f);
    }
    const FloatImage image = eval_image(jpeg(), 0, options);
    EXPECT_EQ(image.height, 13);
    EXPECT_EQ(image.width, 13);
  }
}

TEST(MethodAt, RoundRobinFollowsTheBatchPosition) {
  EXPECT_EQ(method_at(ResizeChoice::kRoundRobin, 0), ResizeMethod::kNearest);
  EXPECT_EQ(method_at(ResizeChoice::kRoundRobin, 5), ResizeMethod::kBilinear);
  EXPECT_EQ(method_at(ResizeChoice::kRoundRobin, 6), ResizeMethod::kBicubic);
  EXPECT_EQ(method_at(ResizeChoice::kRoundRobin, 3), ResizeMethod::kArea);
  EXPECT_EQ(method_at(ResizeChoice::kArea, 2), ResizeMethod::kArea);
}

}  // namespace
}  // namespace sluice::runtime::data
