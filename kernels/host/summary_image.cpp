// ImageSummary: pictures as PNG in Summary messages (graph-and-training §7.3).
//   Value { tag = 1, image = 4 { height = 1, width = 2, colorspace = 3, encoded_image_string = 4 } }
// Floating pictures are scaled to fill 0…255: from 0 up when nothing is negative, around 128 otherwise.

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/host/half.h"
#include "kernels/host/input_array.h"
#include "kernels/reference/register.h"
#include "runtime/data/image.h"
#include "runtime/io/wire.h"

namespace sluice::kernels {
namespace {

using runtime::io::WireWriter;

struct Shape {
  int64_t batch, height, width, depth;
};

// f(pointer to `count` float or double elements from `from` on); halves are widened first.
template <class F>
void with_reals(const KernelRun& r, int input, int64_t from, int64_t count, F&& f) {
  if (graph::base_dtype(r.in_dtype(input)) != DType::kHalf)
    return for_float(r.in_dtype(input), [&]<class T>() { f(r.in<T>(input) + from); });
  std::vector<float> wide(static_cast<size_t>(count));
  std::transform(r.in<uint16_t>(input) + from, r.in<uint16_t>(input) + from + count, wide.begin(),
                 half_to_float);
  f(static_cast<const float*>(wide.data()));
}

// One picture's pixels; a pixel with a channel that is not finite gets the bad colour.
template <class T>
void normalize(const T* x, const Shape& s, const std::vector<uint8_t>& bad, uint8_t* to) {
  double min = std::numeric_limits<double>::infinity(), max = -min;
  auto finite = [&](const T* pixel) {
    for (int64_t c = 0; c < s.depth; ++c)
      if (!std::isfinite(pixel[c])) return false;
    return true;
  };
  const int64_t pixels = s.height * s.width;
  for (int64_t p = 0; p < pixels; ++p) {
    if (!finite(x + p * s.depth)) continue;
    for (int64_t c = 0; c < s.depth; ++c) {
      min = std::min(min, static_cast<double>(x[p * s.depth + c]));
      max = std::max(max, static_cast<double>(x[p * s.depth + c]));
    }
  }
  constexpr double kTiny = 1e-6;
  double scale, offset = 0;
  if (min < 0) {
    const double largest = std::max(std::fabs(min), std::fabs(max));
    scale = largest < kTiny ? 0 : 127 / largest;
    offset = 128;
  } else {
    scale = max < kTiny ? 0 : 255 / max;
  }
  for (int64_t p = 0; p < pixels; ++p)
    for (int64_t c = 0; c < s.depth; ++c)
      to[p * s.depth + c] =
          finite(x + p * s.depth)
              ? static_cast<uint8_t>(static_cast<double>(x[p * s.depth + c]) * scale + offset)
              : bad[static_cast<size_t>(c) < bad.size() ? static_cast<size_t>(c) : 0];
}

BoundFn image_summary(const KernelSpec& spec) {
  const int64_t limit = spec.attr_or<int64_t>("max_images", 3);
  std::vector<uint8_t> bad{255, 0, 0, 255};
  if (spec.find_attr("bad_color"))
    if (const auto color = spec.attr<graph::Literal>("bad_color"); color.dtype() == DType::kUint8)
      bad.assign(color.as<uint8_t>().begin(), color.as<uint8_t>().end());
  return [limit, bad](KernelRun& r) {
    const Dims& d = r.in_dims(1);
    SLUICE_REQUIRE(d.size() == 4 && (d[3] == 1 || d[3] == 3 || d[3] == 4), Code::kInvalidArgument,
                   "Tensor must be 4-D with last dim 1, 3, or 4, not ", dims_string(d));
    const Shape s{d[0], d[1], d[2], d[3]};
    SLUICE_REQUIRE(s.height > 0 && s.width > 0, Code::kInvalidArgument,
                   "Tensor must have at least one pixel, not ", dims_string(d));
    const std::string& tag = scalar_string(r, 0);
    WireWriter summary;
    for (int64_t n = 0; n < std::min(limit, s.batch); ++n) {
      const int64_t size = s.height * s.width * s.depth;
      runtime::data::ByteImage image{static_cast<int>(s.height), static_cast<int>(s.width),
                                     static_cast<int>(s.depth),
                                     std::vector<uint8_t>(static_cast<size_t>(size))};
      if (graph::base_dtype(r.in_dtype(1)) == DType::kUint8)
        std::memcpy(image.pixels.data(), r.in<uint8_t>(1) + n * size, static_cast<size_t>(size));
      else
        with_reals(r, 1, n * size, size, [&](const auto* x) { normalize(x, s, bad, image.pixels.data()); });
      WireWriter picture, value;
      picture.varint_field(1, static_cast<uint64_t>(s.height));
      picture.varint_field(2, static_cast<uint64_t>(s.width));
      picture.varint_field(3, static_cast<uint64_t>(s.depth));
      picture.bytes_field(4, runtime::data::encode_png(image));
      value.bytes_field(1, limit > 1 ? cat(tag, "/image/", n) : cat(tag, "/image"));
      value.bytes_field(4, picture.str());
      summary.bytes_field(1, value.str());
    }
    put_string(r, 0, summary.take());
  };
}

}  // namespace

void register_host_summary_image(KernelRegistry& r) { add_bound(r, "ImageSummary", image_summary); }

}  // namespace sluice::kernels
