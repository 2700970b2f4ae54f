// Summary ops of every kind and element type: what their messages hold, and what they refuse.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/io/events.h"
#include "tests/ops/direct_run.h"

namespace sluice::optest {
namespace {

using runtime::io::parse_audio;
using runtime::io::parse_histogram;
using runtime::io::parse_image;
using runtime::io::parse_summary;
using runtime::io::SummaryValue;
using testing::ElementsAre;
using testing::HasSubstr;

Array text(std::string s) { return Array::strings({}, {std::move(s)}); }

std::vector<SummaryValue> values_of(Call call) {
  return parse_summary(run_op(std::move(call))[0].string_values()[0]);
}

std::string error_of(Call call) {
  try {
    run_op(std::move(call));
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kInvalidArgument) << e.what();
    return e.message();
  }
  ADD_FAILURE() << "no error";
  return "";
}

Array halves(DType t, std::vector<uint16_t> bits) {
  Array a(t, {static_cast<int64_t>(bits.size())});
  std::memcpy(a.data(), bits.data(), a.bytes());
  return a;
}

int16_t sample(const std::string& wav, size_t i) {
  int16_t v;
  std::memcpy(&v, wav.data() + 44 + 2 * i, 2);
  return v;
}

TEST(ScalarSummary, TakesEveryRealTypeAndSeveralTags) {
  const auto of = [](Array x) {
    return values_of({.op = "ScalarSummary", .inputs = {Array::strings({1}, {"t"}), std::move(x)}})[0].simple;
  };
  EXPECT_EQ(of(Array::from<int64_t>({1}, {-3})), -3);
  EXPECT_EQ(of(Array::from<uint8_t>({1}, {200})), 200);
  EXPECT_EQ(of(Array::from<double>({1}, {0.25})), 0.25);
  EXPECT_EQ(of(halves(DType::kHalf, {0x3e00})), 1.5f);
  EXPECT_EQ(of(halves(DType::kHalf, {0x8001})), -std::ldexp(1.0f, -24));
  EXPECT_TRUE(std::isinf(of(halves(DType::kHalf, {0x7c00}))));
  EXPECT_EQ(of(halves(DType::kBfloat16, {0xc000})), -2.0f);
  const auto two = values_of(
      {.op = "ScalarSummary", .inputs = {Array::strings({2}, {"a", "b"}), Array::from<float>({2}, {1, 2})}});
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[1].tag, "b");
  EXPECT_EQ(two[1].simple, 2);
  EXPECT_THAT(error_of({.op = "ScalarSummary", .inputs = {text("a"), Array::from<float>({2}, {1, 2})}}),
              HasSubstr("tags and values are not the same shape"));
}

// Case R05: what is constant or empty is fine.
TEST(HistogramSummary, OfConstantEmptyAndHalfValues) {
  auto h = parse_histogram(
      values_of({.op = "HistogramSummary", .inputs = {text("h"), Array::from<float>({3}, {2, 2, 2})}})[0]
          .content);
  EXPECT_EQ(h.min, 2);
  EXPECT_EQ(h.max, 2);
  EXPECT_EQ(h.num, 3);
  h = parse_histogram(
      values_of({.op = "HistogramSummary", .inputs = {text("h"), Array(DType::kFloat, {0})}})[0].content);
  EXPECT_EQ(h.min, std::numeric_limits<double>::max());
  EXPECT_EQ(h.max, -std::numeric_limits<double>::max());
  EXPECT_THAT(h.buckets, ElementsAre(0));
  EXPECT_THAT(h.bucket_limits, ElementsAre(std::numeric_limits<double>::max()));
  h = parse_histogram(
      values_of({.op = "HistogramSummary", .inputs = {text("h"), halves(DType::kHalf, {0x3c00, 0xbc00})}})[0]
          .content);
  EXPECT_EQ(h.sum_squares, 2);
}

TEST(ImageSummary, HalvesAreScaledAsFloats) {
  Array x = halves(DType::kHalf, {0x3800, 0x3c00});  // 0.5, 1
  const auto of = [](Array a) {
    return parse_image(
        values_of({.op = "ImageSummary", .inputs = {text("i"), a.reshaped({1, 1, 2, 1})}})[0].content);
  };
  EXPECT_EQ(of(x).png, of(Array::from<float>({2}, {0.5f, 1.0f})).png);
  EXPECT_EQ(of(x).width, 2);
}

TEST(ImageSummary, TagsAreNumberedWhenThereMayBeSeveral) {
  const Array x = Array::from<uint8_t>({2, 1, 1, 1}, {1, 2});
  auto v = values_of({.op = "ImageSummary", .inputs = {text("i"), x}, .attrs = {{"max_images", 3}}});
  ASSERT_EQ(v.size(), 2u);
  EXPECT_EQ(v[1].tag, "i/image/1");
  v = values_of({.op = "ImageSummary", .inputs = {text("i"), x}, .attrs = {{"max_images", 1}}});
  ASSERT_EQ(v.size(), 1u);
  EXPECT_EQ(v[0].tag, "i/image");
  EXPECT_THAT(error_of({.op = "ImageSummary", .inputs = {text("i"), x.reshaped({2, 1, 1})}}),
              HasSubstr("Tensor must be 4-D with last dim 1, 3, or 4"));
}

TEST(AudioSummary, IsSixteenBitWav) {
  const Array x =
      Array::from<float>({1, 3, 2}, {0, 1, -1, 0.5f, -2, std::numeric_limits<float>::quiet_NaN()});
  for (const Call& call : {Call{.op = "AudioSummary",
                          .inputs = {text("a"), x},
                          .attrs = {{"sample_rate", 8000.0f}, {"max_outputs", 1}}},
                           Call{.op = "AudioSummaryV2",
                           .inputs = {text("a"), x, Array::scalar(8000.0f)},
                           .attrs = {{"max_outputs", 1}}}}) {
    const auto v = values_of(call);
    ASSERT_EQ(v.size(), 1u);
    EXPECT_EQ(v[0].tag, "a/audio");
    const auto audio = parse_audio(v[0].content);
    EXPECT_EQ(audio.sample_rate, 8000);
    EXPECT_EQ(audio.channels, 2);
    EXPECT_EQ(audio.frames, 3);
    EXPECT_EQ(audio.content_type, "audio/wav");
    ASSERT_EQ(audio.wav.size(), 44u + 12);
    EXPECT_EQ(audio.wav.substr(0, 4) + audio.wav.substr(8, 8), "RIFFWAVEfmt ");
    for (size_t i = 0; const int want : {0, 32767, -32768, 16384, -32768, 0})
      EXPECT_EQ(sample(audio.wav, i++), want);
  }
}

TEST(AudioSummary, TagsAndRefusals) {
  const Array x = Array::from<float>({2, 3}, {0, 0, 0, 0, 0, 0});
  const auto v = values_of({.op = "AudioSummaryV2", .inputs = {text("a"), x, Array::scalar(44100.0f)}});
  ASSERT_EQ(v.size(), 2u);
  EXPECT_EQ(v[0].tag, "a/audio/0");
  EXPECT_EQ(parse_audio(v[1].content).channels, 1);
  EXPECT_THAT(error_of({.op = "AudioSummaryV2", .inputs = {text("a"), x, Array::scalar(0.0f)}}),
              HasSubstr("sample_rate must be > 0"));
  EXPECT_THAT(error_of({.op = "AudioSummaryV2", .inputs = {text("a"), x.reshaped({6}), Array::scalar(1.0f)}}),
              HasSubstr("Tensor must be 3-D or 2-D, got: [6]"));
  EXPECT_THAT(error_of({.op = "AudioSummaryV2",
                        .inputs = {text("a"), Array(DType::kFloat, {1, 0}), Array::scalar(1.0f)}}),
              HasSubstr("num_frames must be positive"));
}

TEST(TensorSummary, HoldsTheWholeTensor) {
  const Array x = Array::from<int32_t>({2, 2}, {1, 2, 3, 4});
  const std::string metadata = runtime::io::serialize_summary_metadata({.plugin = "p"});
  auto v = values_of({.op = "TensorSummaryV2", .inputs = {text("t"), x, text(metadata)}});
  ASSERT_EQ(v.size(), 1u);
  EXPECT_EQ(v[0].tag, "t");
  EXPECT_EQ(v[0].metadata, metadata);
  const Array back = runtime::io::tensor_from_bytes(v[0].content);
  EXPECT_THAT(back.as<int32_t>(), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(back.dims(), x.dims());
  v = values_of({.op = "TensorSummaryV2", .inputs = {text("t"), Array::strings({2}, {"a", "b"}), text("")}});
  EXPECT_THAT(runtime::io::tensor_from_bytes(v[0].content).string_values(), ElementsAre("a", "b"));
  v = values_of({.op = "TensorSummary", .inputs = {x}, .name = "node"});
  EXPECT_EQ(v[0].kind, SummaryValue::Kind::kTensor);
  EXPECT_THAT(error_of({.op = "TensorSummaryV2", .inputs = {text("t"), x, text("\xff")}}),
              HasSubstr("no SummaryMetadata message"));
}

}  // namespace
}  // namespace sluice::optest
