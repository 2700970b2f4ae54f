#include "runtime/data/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>

#include "graph/support/check.h"
#include "tests/data/image_golden.h"

namespace sluice::runtime::data {
namespace {

FloatImage ramp() {
  FloatImage x{4, 5, 1, {}};
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 5; ++j)
      x.pixels.push_back(static_cast<float>((i * i * 37 + j * 53 + i * j * 11) % 97));
  return x;
}

void expect_near(const FloatImage& image, std::span<const float> want, float tolerance) {
  ASSERT_EQ(image.pixels.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(image.pixels[i], want[i], tolerance) << "at " << i;
}

TEST(Resize, AgreesWithTensorFlowInEveryMethod) {
  const FloatImage x = ramp();
  expect_near(resize(x, 2, 3, ResizeMethod::kNearest), golden::kNearest2x3, 0);
  expect_near(resize(x, 7, 6, ResizeMethod::kNearest), golden::kNearest7x6, 0);
  expect_near(resize(x, 2, 3, ResizeMethod::kBilinear), golden::kBilinear2x3, 1e-4f);
  expect_near(resize(x, 7, 6, ResizeMethod::kBilinear), golden::kBilinear7x6, 1e-4f);
  expect_near(resize(x, 2, 3, ResizeMethod::kBicubic), golden::kBicubic2x3, 1e-3f);
  expect_near(resize(x, 7, 6, ResizeMethod::kBicubic), golden::kBicubic7x6, 1e-3f);
  expect_near(resize(x, 2, 3, ResizeMethod::kArea), golden::kArea2x3, 1e-3f);
  expect_near(resize(x, 7, 6, ResizeMethod::kArea), golden::kArea7x6, 1e-3f);
}

TEST(Resize, KeepsAnImageThatHasTheSizeAlready) {
  const FloatImage x = ramp();
  EXPECT_EQ(resize(x, 4, 5, ResizeMethod::kBicubic).pixels, x.pixels);
}

TEST(Resize, RefusesEmptySizes) {
  EXPECT_THROW(resize(ramp(), 0, 3, ResizeMethod::kArea), Error);
  EXPECT_THROW(resize(FloatImage{}, 2, 2, ResizeMethod::kArea), Error);
}

FloatImage colours() { return {2, 2, 3, {.1f, .5f, .9f, .7f, .2f, .3f, .4f, .4f, .4f, .95f, .9f, .05f}}; }

TEST(Colour, AgreesWithTensorFlow) {
  FloatImage c = colours();
  adjust_contrast(c, 1.4f);
  expect_near(c, golden::kContrast, 1e-5f);
  c = colours();
  adjust_saturation(c, 1.3f);
  expect_near(c, golden::kSaturation, 1e-5f);
  c = colours();
  adjust_hue(c, 0.15f);
  expect_near(c, golden::kHue, 1e-5f);
  c = colours();
  adjust_hue(c, -0.19f);
  expect_near(c, golden::kHueNegative, 1e-5f);
}

TEST(Colour, YiqKeepsGreyAndRotatesBack) {
  FloatImage grey{1, 1, 3, {.4f, .4f, .4f}};
  adjust_yiq(grey, 0.5f, 1.4f);
  for (float p : grey.pixels) EXPECT_NEAR(p, .4f, 1e-3f);
  FloatImage c = colours();
  adjust_yiq(c, 0.5f, 2.0f);
  adjust_yiq(c, -0.5f, 0.5f);
  expect_near(c, colours().pixels, 5e-3f);  // the published matrices are inverse to three digits
}

TEST(Flip, MirrorsColumns) {
  FloatImage x{1, 3, 2, {1, 2, 3, 4, 5, 6}};
  flip_left_right(x);
  EXPECT_THAT(x.pixels, testing::ElementsAre(5, 6, 3, 4, 1, 2));
}

template <size_t N>
std::string_view bytes_of(const uint8_t (&array)[N]) {
  return {reinterpret_cast<const char*>(array), N};
}

std::vector<uint8_t> row_of(const ByteImage& image, int y) {
  return {image.at(y, 0), image.at(y, 0) + image.row()};
}

TEST(Jpeg, DecodesAsTensorFlowDoes) {
  const ByteImage image = decode_jpeg(bytes_of(golden::kJpeg));
  EXPECT_EQ(image.height, 20);
  EXPECT_EQ(image.width, 24);
  const std::vector<uint8_t> row = row_of(image, 7);
  ASSERT_EQ(row.size(), std::size(golden::kJpegRow7));
  for (size_t i = 0; i < row.size(); ++i) EXPECT_NEAR(row[i], golden::kJpegRow7[i], 2) << "at " << i;
  const std::vector<uint8_t> grey = row_of(decode_jpeg(bytes_of(golden::kJpeg), {.channels = 1}), 7);
  ASSERT_EQ(grey.size(), std::size(golden::kJpegGrayRow7));
  for (size_t i = 0; i < grey.size(); ++i) EXPECT_NEAR(grey[i], golden::kJpegGrayRow7[i], 2) << "at " << i;
}

TEST(Jpeg, CropWindowEqualsDecodeThenCropInsideTheBlocks) {
  const Window window{3, 5, 11, 13};
  const ByteImage whole = crop(decode_jpeg(bytes_of(golden::kJpeg)), window);
  const ByteImage part = decode_jpeg(bytes_of(golden::kJpeg), {.window = window});
  ASSERT_EQ(part.height, 11);
  ASSERT_EQ(part.width, 13);
  // Chroma at the edge of the first block has no neighbour to blend with.
  for (int y = 1; y + 1 < part.height; ++y)
    for (int x = 0; x < part.width; ++x)
      for (int c = 0; c < 3; ++c) EXPECT_NEAR(part.at(y, x)[c], whole.at(y, x)[c], 8) << y << "," << x;
}

TEST(Jpeg, NamesWhatIsWrong) {
  const std::string_view good = bytes_of(golden::kJpeg);
  EXPECT_THROW(decode_jpeg("not a picture"), Error);
  EXPECT_THROW(decode_jpeg(""), Error);
  try {
    decode_jpeg(good.substr(0, good.size() - 20));
    ADD_FAILURE() << "a truncated JPEG was accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kDataLoss);
    EXPECT_THAT(e.what(), testing::HasSubstr("truncated JPEG"));
  }
  EXPECT_THROW(decode_jpeg(good, {.window = Window{0, 0, 21, 3}}), Error);
  EXPECT_THROW(decode_jpeg(good, {.window = Window{0, 2147483647, 3, 3}}), Error);
}

TEST(Png, DecodesExactly) {
  const ByteImage image = decode_png(bytes_of(golden::kPng));
  ASSERT_EQ(image.height, 2);
  ASSERT_EQ(image.width, 3);
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j) {
      EXPECT_EQ(image.at(i, j)[0], i * 12);
      EXPECT_EQ(image.at(i, j)[1], j * 10);
      EXPECT_EQ(image.at(i, j)[2], 255 - (i + j) * 5);
    }
  EXPECT_TRUE(is_png(bytes_of(golden::kPng)));
  EXPECT_THROW(decode_png(bytes_of(golden::kPng).substr(0, 60)), Error);
}

}  // namespace
}  // namespace sluice::runtime::data
