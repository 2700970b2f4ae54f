// AudioSummary: sound as 16-bit WAV in Summary messages (graph-and-training §7.3).
//   Value { tag = 1, audio = 6 { sample_rate = 1, num_channels = 2, length_frames = 3, encoded_audio_string =
//   4,
//           content_type = 5 } }
// A sample of 1.0 stands for 32768, rounded half away from zero and kept within int16.

#include <algorithm>
#include <cmath>

#include "kernels/host/input_array.h"
#include "kernels/reference/register.h"
#include "runtime/io/wire.h"

namespace sluice::kernels {
namespace {

using runtime::io::WireWriter;

constexpr uint32_t kWavHeader = 44, kBitsPerSample = 16, kPcm = 1, kFormatChunk = 16;

void put_le(std::string* out, uint64_t v, int bytes) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(v >> (8 * i)));
}

int16_t to_int16(float sample) {
  if (std::isnan(sample)) return 0;
  return static_cast<int16_t>(std::clamp(std::round(sample * 32768.0f), -32768.0f, 32767.0f));
}

std::string encode_wav(const float* samples, uint32_t rate, int64_t channels, int64_t frames) {
  const auto data_bytes = static_cast<uint64_t>(channels * frames) * (kBitsPerSample / 8);
  SLUICE_REQUIRE(channels <= UINT16_MAX && data_bytes <= UINT32_MAX - kWavHeader, Code::kInvalidArgument,
                 "A WAV file can't hold ", channels, " channels of ", frames, " frames");
  std::string out;
  out.reserve(kWavHeader + data_bytes);
  const uint64_t frame_bytes = static_cast<uint64_t>(channels) * (kBitsPerSample / 8);
  out += "RIFF";
  put_le(&out, kWavHeader - 8 + data_bytes, 4);
  out += "WAVEfmt ";
  put_le(&out, kFormatChunk, 4);
  put_le(&out, kPcm, 2);
  put_le(&out, static_cast<uint64_t>(channels), 2);
  put_le(&out, rate, 4);
  put_le(&out, rate * frame_bytes, 4);
  put_le(&out, frame_bytes, 2);
  put_le(&out, kBitsPerSample, 2);
  out += "data";
  put_le(&out, data_bytes, 4);
  for (int64_t i = 0; i < channels * frames; ++i)
    put_le(&out, static_cast<uint16_t>(to_int16(samples[i])), 2);
  return out;
}

void audio_summary(KernelRun& r, float rate, int64_t limit) {
  const Dims& d = r.in_dims(1);
  SLUICE_REQUIRE(d.size() == 2 || d.size() == 3, Code::kInvalidArgument,
                 "Tensor must be 3-D or 2-D, got: ", dims_string(d));
  SLUICE_REQUIRE(rate > 0, Code::kInvalidArgument, "sample_rate must be > 0, got: ", rate);
  const int64_t frames = d[1], channels = d.size() == 2 ? 1 : d[2];
  const std::string& tag = scalar_string(r, 0);
  const auto whole_rate = static_cast<uint32_t>(std::max(1L, std::lrint(std::min(rate, 4e9f))));
  WireWriter summary;
  for (int64_t n = 0; n < std::min(limit, d[0]); ++n) {
    SLUICE_REQUIRE(channels > 0, Code::kInvalidArgument, "num_channels must be positive");
    SLUICE_REQUIRE(frames > 0, Code::kInvalidArgument, "num_frames must be positive");
    WireWriter audio, value;
    audio.float_field(1, rate);
    audio.varint_field(2, static_cast<uint64_t>(channels));
    audio.varint_field(3, static_cast<uint64_t>(frames));
    audio.bytes_field(4, encode_wav(r.in<float>(1) + n * frames * channels, whole_rate, channels, frames));
    audio.bytes_field(5, "audio/wav");
    value.bytes_field(1, limit > 1 ? cat(tag, "/audio/", n) : cat(tag, "/audio"));
    value.bytes_field(6, audio.str());
    summary.bytes_field(1, value.str());
  }
  put_string(r, 0, summary.take());
}

BoundFn audio_v1(const KernelSpec& spec) {
  return [rate = spec.attr<float>("sample_rate"),
          limit = spec.attr_or<int64_t>("max_outputs", 3)](KernelRun& r) { audio_summary(r, rate, limit); };
}

BoundFn audio_v2(const KernelSpec& spec) {
  return [limit = spec.attr_or<int64_t>("max_outputs", 3)](KernelRun& r) {
    SLUICE_REQUIRE(in_count(r, 2) == 1, Code::kInvalidArgument, "sample_rate must be scalar, got shape ",
                   dims_string(r.in_dims(2)));
    audio_summary(r, r.in<float>(2)[0], limit);
  };
}

}  // namespace

void register_host_summary_audio(KernelRegistry& r) {
  add_bound(r, "AudioSummary", audio_v1);
  add_bound(r, "AudioSummaryV2", audio_v2);
}

}  // namespace sluice::kernels
