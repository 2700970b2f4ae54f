#include <png.h>

#include <cstring>

#include "graph/support/check.h"
#include "runtime/data/image.h"

namespace sluice::runtime::data {

bool is_png(std::string_view bytes) { return bytes.starts_with("\x89PNG\r\n\x1a\n"); }

ByteImage decode_png(std::string_view bytes, int channels) {
  SLUICE_REQUIRE(channels == 1 || channels == 3, Code::kInvalidArgument,
                 "a PNG decodes to 1 or 3 channels, not ", channels);
  png_image png;
  std::memset(&png, 0, sizeof png);
  png.version = PNG_IMAGE_VERSION;
  SLUICE_REQUIRE(png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()) != 0, Code::kDataLoss,
                 "not a readable PNG: ", png.message);
  constexpr uint64_t kMaxPixels = uint64_t{1} << 28;
  if (uint64_t{png.width} * png.height > kMaxPixels) {
    png_image_free(&png);
    throw_error(Code::kDataLoss, "not a readable PNG: more pixels than 2^28");
  }
  // The simplified reader composes alpha onto a background; reading with alpha and dropping it keeps colours.
  png.format = channels == 1 ? PNG_FORMAT_GA : PNG_FORMAT_RGBA;
  const size_t stored = static_cast<size_t>(channels) + 1;
  std::vector<uint8_t> all(PNG_IMAGE_SIZE(png));
  ByteImage image{static_cast<int>(png.height), static_cast<int>(png.width), channels, {}};
  if (png_image_finish_read(&png, nullptr, all.data(), 0, nullptr) == 0) {
    std::string text = png.message;
    png_image_free(&png);
    throw_error(Code::kDataLoss, cat("not a readable PNG: ", text));
  }
  const size_t pixels = all.size() / stored;
  image.pixels.resize(pixels * static_cast<size_t>(channels));
  for (size_t i = 0; i < pixels; ++i)
    std::memcpy(image.pixels.data() + i * static_cast<size_t>(channels), all.data() + i * stored,
                static_cast<size_t>(channels));
  return image;
}

std::string encode_png(const ByteImage& image) {
  SLUICE_REQUIRE(image.channels >= 1 && image.channels <= 4 && image.height > 0 && image.width > 0,
                 Code::kInvalidArgument, "a PNG has 1 to 4 channels and at least one pixel, not ",
                 image.height, "x", image.width, "x", image.channels);
  constexpr uint32_t kFormats[] = {PNG_FORMAT_GRAY, PNG_FORMAT_GA, PNG_FORMAT_RGB, PNG_FORMAT_RGBA};
  png_image png;
  std::memset(&png, 0, sizeof png);
  png.version = PNG_IMAGE_VERSION;
  png.height = static_cast<png_uint_32>(image.height);
  png.width = static_cast<png_uint_32>(image.width);
  png.format = kFormats[image.channels - 1];
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png);
  std::string bytes(size, '\0');
  if (png_image_write_to_memory(&png, bytes.data(), &size, 0, image.pixels.data(), 0, nullptr) == 0)
    throw_error(Code::kInternal, cat("cannot write a PNG: ", png.message));
  bytes.resize(size);
  return bytes;
}

}  // namespace sluice::runtime::data
