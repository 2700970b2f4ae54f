#include <csetjmp>
#include <cstdio>  // before jpeglib.h, which needs FILE
#include <cstring>
#include <memory>
#include <string>

#include <jpeglib.h>

#include <jerror.h>

#include "graph/support/check.h"
#include "runtime/data/image.h"

namespace sluice::runtime::data {

namespace {

// Pixels one picture may have: what a header claims is not believed beyond it.
constexpr uint64_t kMaxPixels = uint64_t{1} << 28;

struct ErrorState {
  jpeg_error_mgr base;
  std::jmp_buf jump;
  char text[JMSG_LENGTH_MAX];
  bool truncated;
};

[[noreturn]] void fail(j_common_ptr info) {
  auto* state = reinterpret_cast<ErrorState*>(info->err);
  info->err->format_message(info, state->text);
  std::longjmp(state->jump, 1);
}

void note(j_common_ptr info, int level) {
  auto* state = reinterpret_cast<ErrorState*>(info->err);
  if (level < 0 && (info->err->msg_code == JWRN_JPEG_EOF || info->err->msg_code == JWRN_HIT_MARKER)) {
    state->truncated = true;
    info->err->format_message(info, state->text);
  }
}

// What decoding asks for and gives back; the function between setjmp and longjmp owns nothing with a
// destructor, so all memory hangs here.
struct Work {
  const unsigned char* bytes = nullptr;
  size_t size = 0;
  JpegOptions options;
  bool header_only = false;
  ImageSize full;
  ByteImage* image = nullptr;
  std::unique_ptr<unsigned char[]> row;  // one decoded row of the (widened) window
  const char* refusal = nullptr;
};

void allocate_image(Work& w, int height, int width, int channels) {
  w.image->height = height;
  w.image->width = width;
  w.image->channels = channels;
  w.image->pixels.resize(static_cast<size_t>(height) * static_cast<size_t>(width) *
                         static_cast<size_t>(channels));
}

// CMYK and YCCK pictures: the library stops at CMYK; Adobe's files store the inks inverted.
void cmyk_to_rgb(const unsigned char* src, unsigned char* dst, int pixels, bool inverted) {
  for (int i = 0; i < pixels; ++i, src += 4, dst += 3) {
    int k = src[3];
    for (int c = 0; c < 3; ++c)
      dst[c] = static_cast<unsigned char>(inverted ? k * src[c] / 255 : (255 - k) * (255 - src[c]) / 255);
  }
}

void run(jpeg_decompress_struct& info, Work& w) {
  jpeg_mem_src(&info, w.bytes, static_cast<unsigned long>(w.size));
  jpeg_read_header(&info, TRUE);
  w.full = {static_cast<int>(info.image_height), static_cast<int>(info.image_width), info.num_components};
  if (static_cast<uint64_t>(info.image_height) * info.image_width > kMaxPixels) {
    w.refusal = "more pixels than 2^28";
    return;
  }
  if (w.header_only) return;
  const bool cmyk =
      w.options.channels == 3 && (info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK);
  info.out_color_space = w.options.channels == 1 ? JCS_GRAYSCALE : cmyk ? JCS_CMYK : JCS_RGB;
  info.dct_method = w.options.fast_dct ? JDCT_IFAST : JDCT_ISLOW;
  jpeg_start_decompress(&info);

  Window window = w.options.window.value_or(Window{0, 0, w.full.height, w.full.width});
  JDIMENSION left = static_cast<JDIMENSION>(window.left), width = static_cast<JDIMENSION>(window.width);
  if (w.options.window) jpeg_crop_scanline(&info, &left, &width);  // widens to whole blocks
  const int skip = window.left - static_cast<int>(left);
  const int channels = w.options.channels;
  const size_t components = static_cast<size_t>(info.output_components);
  w.row = std::make_unique<unsigned char[]>(components * info.output_width);
  allocate_image(w, window.height, window.width, channels);
  if (window.top > 0) jpeg_skip_scanlines(&info, static_cast<JDIMENSION>(window.top));
  for (int y = 0; y < window.height; ++y) {
    JSAMPROW rows[1] = {w.row.get()};
    jpeg_read_scanlines(&info, rows, 1);
    const unsigned char* src = w.row.get() + static_cast<size_t>(skip) * components;
    if (cmyk) {
      cmyk_to_rgb(src, w.image->at(y, 0), window.width, info.saw_Adobe_marker == TRUE);
    } else {
      std::memcpy(w.image->at(y, 0), src, w.image->row());
    }
  }
}

void decode(Work& w) {
  jpeg_decompress_struct info;
  ErrorState state;
  std::memset(&info, 0, sizeof info);
  state.truncated = false;
  state.text[0] = 0;
  info.err = jpeg_std_error(&state.base);
  state.base.error_exit = fail;
  state.base.emit_message = note;
  volatile bool failed = true;
  if (setjmp(state.jump) == 0) {
    jpeg_create_decompress(&info);
    run(info, w);
    failed = false;
  }
  jpeg_destroy_decompress(&info);
  SLUICE_REQUIRE(!failed, Code::kDataLoss, "not a readable JPEG: ", state.text);
  SLUICE_REQUIRE(w.refusal == nullptr, Code::kDataLoss, "not a readable JPEG: ", w.refusal);
  SLUICE_REQUIRE(!state.truncated, Code::kDataLoss, "truncated JPEG: ", state.text);
}

}  // namespace

ImageSize jpeg_size(std::string_view bytes) {
  Work w;
  w.bytes = reinterpret_cast<const unsigned char*>(bytes.data());
  w.size = bytes.size();
  w.header_only = true;
  decode(w);
  return w.full;
}

ByteImage decode_jpeg(std::string_view bytes, const JpegOptions& options) {
  SLUICE_REQUIRE(options.channels == 1 || options.channels == 3, Code::kInvalidArgument,
                 "a JPEG decodes to 1 or 3 channels, not ", options.channels);
  if (options.window) {
    const ImageSize full = jpeg_size(bytes);
    const Window& v = *options.window;
    SLUICE_REQUIRE(v.top >= 0 && v.left >= 0 && v.height > 0 && v.width > 0 &&
                       v.top <= full.height - v.height && v.left <= full.width - v.width,
                   Code::kInvalidArgument, "crop window ", v.height, "x", v.width, " at (", v.top, ",",
                   v.left, ") is not inside the ", full.height, "x", full.width, " picture");
  }
  ByteImage image;
  Work w;
  w.bytes = reinterpret_cast<const unsigned char*>(bytes.data());
  w.size = bytes.size();
  w.options = options;
  w.image = &image;
  decode(w);
  return image;
}

}  // namespace sluice::runtime::data
