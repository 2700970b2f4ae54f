// Ops that check, speak, summarize and save; and the error texts of kernels that refuse values.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "tests/ops/direct_run.h"
#include "tests/support/temp_folder.h"

namespace sluice::optest {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();

Array text(std::string s) { return Array::strings({}, {std::move(s)}); }
Array texts(std::vector<std::string> s) {
  const auto n = static_cast<int64_t>(s.size());
  return Array::strings({n}, std::move(s));
}
Array floats(std::vector<float> v) {
  const auto n = static_cast<int64_t>(v.size());
  return Array::from<float>({n}, v);
}
Array ints(std::vector<int32_t> v) {
  const auto n = static_cast<int64_t>(v.size());
  return Array::from<int32_t>({n}, v);
}

std::string error_of(Call call, Code code = Code::kInvalidArgument) {
  try {
    run_op(std::move(call));
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    return e.message();
  }
  ADD_FAILURE() << "no error";
  return "";
}

std::string check_error(Array value) {
  return error_of({.op = "CheckNumerics", .inputs = {std::move(value)}, .attrs = {{"message", "hi"}}});
}

TEST(CheckNumerics, SaysWhatHowManyWhereAndTheFiniteRange) {
  EXPECT_THAT(check_error(floats({1, kNan, -3, kNan})),
              AllOf(StartsWith("hi : Tensor had NaN values"), HasSubstr("2 of 4"), HasSubstr("first at [1]"),
                    HasSubstr("[-3, 1]")));
  EXPECT_THAT(check_error(floats({-kInf})),
              AllOf(StartsWith("hi : Tensor had Inf values"), HasSubstr("none is finite")));
  EXPECT_THAT(check_error(Array::from<float>({2, 2}, {0, 0, kInf, kNan})),
              AllOf(StartsWith("hi : Tensor had Inf and NaN values"), HasSubstr("first at [1,0]")));
}

TEST(CheckNumerics, PassesFiniteAndEmptyValues) {
  const Array x = floats({1, std::numeric_limits<float>::max(), -0.0f});
  EXPECT_THAT(run_op({.op = "CheckNumerics", .inputs = {x}, .attrs = {{"message", "hi"}}})[0].as<float>(),
              ElementsAre(x.as<float>()[0], x.as<float>()[1], 0));
  EXPECT_EQ(
      run_op({.op = "CheckNumerics", .inputs = {floats({})}, .attrs = {{"message", "hi"}}})[0].elements(), 0);
}

TEST(Assert, PrintsItsData) {
  const Call call{.op = "Assert",
                  .inputs = {Array::scalar(false), text("hey"), ints({0, 1, 2, 3, 4}), Array::scalar(1.5f),
                             Array::from<int32_t>({2, 2}, {1, 2, 3, 4})},
                  .attrs = {{"summarize", 3}}};
  EXPECT_EQ(error_of(call), "assertion failed: [hey] [0 1 2...] [1.5] [[1 2][3...]...]");
  run_op({.op = "Assert", .inputs = {Array::scalar(true), text("hey")}});
}

TEST(KernelErrors, CarryTensorFlowsTexts) {
  EXPECT_EQ(error_of({.op = "Gather", .inputs = {floats({1, 2, 3}), Array::from<int32_t>({1, 2}, {1, 5})}}),
            "indices[0,1] = 5 is not in [0, 3)");
  EXPECT_EQ(error_of({.op = "Gather", .inputs = {floats({1, 2, 3}), Array::scalar<int32_t>(-1)}}),
            "indices = -1 is not in [0, 3)");
  EXPECT_THAT(error_of({.op = "GatherNd",
                        .inputs = {Array::from<float>({3, 2}, {1, 2, 3, 4, 5, 6}),
                                   Array::from<int32_t>({2, 2}, {0, 1, 1, 5})}}),
              StartsWith("indices[1] = [1, 5] does not index into param shape [3,2]"));
  EXPECT_EQ(error_of({.op = "SparseSoftmaxCrossEntropyWithLogits",
                      .inputs = {Array::from<float>({3, 3}, std::vector<float>(9)), ints({0, 3, -1})}}),
            "Received a label value of 3 which is outside the valid range of [0, 3).  Label values: 0 3 -1");
  EXPECT_EQ(error_of({.op = "FloorDiv", .inputs = {ints({7}), ints({0})}}), "Integer division by zero");
  EXPECT_EQ(error_of({.op = "FloorMod", .inputs = {ints({7}), ints({0})}}), "Integer division by zero");
  EXPECT_EQ(error_of({.op = "Pow", .inputs = {ints({7}), ints({-1})}}),
            "Integers to negative integer powers are not allowed");
  EXPECT_THAT(error_of({.op = "UnsortedSegmentSum",
                        .inputs = {floats({1, 2}), ints({0, 5}), Array::scalar<int32_t>(3)}}),
              HasSubstr("segment_ids[1] = 5 is out of range [0, 3)"));
}

TEST(IntegerArithmetic, Wraps) {
  const int32_t low = std::numeric_limits<int32_t>::min();
  EXPECT_EQ(run_op({.op = "Neg", .inputs = {ints({low})}})[0].as<int32_t>()[0], low);
  EXPECT_EQ(run_op({.op = "FloorDiv", .inputs = {ints({low}), ints({-1})}})[0].as<int32_t>()[0], low);
  EXPECT_EQ(run_op({.op = "Mul", .inputs = {ints({1 << 20}), ints({1 << 20})}})[0].as<int32_t>()[0], 0);
}

// Field `number` of a serialized message: the bytes of the first length-delimited one.
std::string field(const std::string& m, int number) {
  for (size_t at = 0; at < m.size();) {
    auto varint = [&] {
      uint64_t v = 0;
      for (int shift = 0;; shift += 7) {
        const auto b = static_cast<unsigned char>(m[at++]);
        v |= uint64_t{b & 127u} << shift;
        if (b < 128) return v;
      }
    };
    const uint64_t key = varint();
    if ((key & 7) == 2) {
      const uint64_t n = varint();
      if (static_cast<int>(key >> 3) == number) return m.substr(at, n);
      at += n;
    } else if ((key & 7) == 1) {
      if (static_cast<int>(key >> 3) == number) return m.substr(at, 8);
      at += 8;
    } else if ((key & 7) == 5) {
      if (static_cast<int>(key >> 3) == number) return m.substr(at, 4);
      at += 4;
    } else {
      varint();
    }
  }
  return "";
}
double as_double(const std::string& bytes, size_t k = 0) {
  double v;
  std::memcpy(&v, bytes.data() + 8 * k, 8);
  return v;
}

std::string summary_of(Call call) { return run_op(std::move(call))[0].string_values()[0]; }

TEST(Summaries, Scalar) {
  const std::string value =
      field(summary_of({.op = "ScalarSummary", .inputs = {text("loss"), Array::scalar(2.5f)}}), 1);
  EXPECT_EQ(field(value, 1), "loss");
  float v;
  std::memcpy(&v, field(value, 2).data(), 4);
  EXPECT_EQ(v, 2.5f);
}

TEST(Summaries, HistogramCountsIntoBuckets) {
  const std::string h = field(
      field(summary_of({.op = "HistogramSummary", .inputs = {text("h"), floats({0, 1, 1, -2})}}), 1), 5);
  EXPECT_EQ(as_double(field(h, 1)), -2);
  EXPECT_EQ(as_double(field(h, 2)), 1);
  EXPECT_EQ(as_double(field(h, 3)), 4);
  EXPECT_EQ(as_double(field(h, 4)), 0);
  EXPECT_EQ(as_double(field(h, 5)), 6);
  const std::string limits = field(h, 6), counts = field(h, 7);
  ASSERT_EQ(limits.size(), counts.size());
  double total = 0;
  for (size_t k = 0; k < counts.size() / 8; ++k) total += as_double(counts, k);
  EXPECT_EQ(total, 4);
  // Each value lies below its bucket's edge and not below the edge before.
  std::vector<double> filled;
  for (size_t k = 0; k < counts.size() / 8; ++k)
    if (as_double(counts, k) > 0) filled.push_back(as_double(limits, k));
  ASSERT_EQ(filled.size(), 3u);
  EXPECT_GT(filled[0], -2);
  EXPECT_NEAR(filled[1], 1e-12, 1e-18);
  EXPECT_GT(filled[2], 1);
}

TEST(Summaries, HistogramRefusesNanByTheNodesName) {
  EXPECT_EQ(error_of({.op = "HistogramSummary", .inputs = {text("h"), floats({1, kNan})}, .name = "hist"}),
            "Nan in summary histogram for: hist");
  EXPECT_EQ(error_of({.op = "HistogramSummary", .inputs = {text("h"), floats({kInf})}, .name = "hist"}),
            "Infinity in summary histogram for: hist");
  run_op({.op = "HistogramSummary", .inputs = {text("h"), floats({})}});
}

TEST(Summaries, MergeJoinsAndRefusesDuplicateTags) {
  const Array a = run_op({.op = "ScalarSummary", .inputs = {text("a"), Array::scalar(1.0f)}})[0],
              b = run_op({.op = "ScalarSummary", .inputs = {text("b"), Array::scalar(1.0f)}})[0];
  EXPECT_EQ(summary_of({.op = "MergeSummary", .inputs = {a, b}}),
            a.string_values()[0] + b.string_values()[0]);
  EXPECT_EQ(error_of({.op = "MergeSummary", .inputs = {a, a}}), "Duplicate tag a found in summary inputs");
  EXPECT_EQ(error_of({.op = "MergeSummary", .inputs = {text("\xff")}}),
            "Could not parse one of the summary inputs");
}

TEST(Summaries, ImagesArePng) {
  const std::string m = summary_of({.op = "ImageSummary",
                                    .inputs = {text("img"), Array::from<float>({1, 1, 2, 1}, {0.25f, 0.5f})},
                                    .attrs = {{"max_images", 1}}});
  const std::string value = field(m, 1);
  EXPECT_EQ(field(value, 1), "img/image");
  EXPECT_THAT(field(field(value, 4), 4), StartsWith("\x89PNG\r\n\x1a\n"));
}

TEST(Strings, JoinBroadcastsScalars) {
  const Array out = run_op(
      {.op = "StringJoin", .inputs = {text("a"), texts({"b", "c"})}, .attrs = {{"separator", "/"}}})[0];
  EXPECT_THAT(out.string_values(), ElementsAre("a/b", "a/c"));
}

TEST(Strings, MoveLikeOtherElements) {
  EXPECT_THAT(
      run_op({.op = "ConcatV2", .inputs = {texts({"a"}), texts({"b", "c"}), Array::scalar<int32_t>(0)}})[0]
          .string_values(),
      ElementsAre("a", "b", "c"));
  EXPECT_THAT(run_op({.op = "Pack", .inputs = {text("x"), text("y")}})[0].string_values(),
              ElementsAre("x", "y"));
  EXPECT_EQ(run_op({.op = "ShardedFilename",
                    .inputs = {text("p"), Array::scalar<int32_t>(3), Array::scalar<int32_t>(12)}})[0]
                .string_values()[0],
            "p-00003-of-00012");
}

class Checkpoints : public testing::Test {
 protected:
  std::string path(const char* name) const { return folder_ / name; }
  testing_support::TempFolder folder_;
};

Call restore_call(const std::string& prefix, std::vector<std::string> names, std::vector<DType> dtypes) {
  std::vector<std::string> slices(names.size());
  return {.op = "RestoreV2",
          .inputs = {text(prefix), texts(std::move(names)), texts(std::move(slices))},
          .attrs = {{"dtypes", std::move(dtypes)}}};
}

TEST_F(Checkpoints, SaveAndRestore) {
  run_op({.op = "SaveV2",
          .inputs = {text(path("m")), texts({"w", "step"}), texts({"", ""}), floats({1, 2, 3}),
                     Array::scalar<int64_t>(7)}});
  const auto out = run_op(restore_call(path("m"), {"step", "w"}, {DType::kInt64, DType::kFloat}));
  EXPECT_EQ(out[0].item<int64_t>(), 7);
  EXPECT_THAT(out[1].as<float>(), ElementsAre(1, 2, 3));
}

TEST_F(Checkpoints, RestoreSaysEverythingThatIsMissing) {
  run_op({.op = "SaveV2", .inputs = {text(path("m")), texts({"conv1/w"}), texts({""}), floats({1})}});
  const std::string e =
      error_of(restore_call(path("m"), {"conv/w", "b"}, {DType::kFloat, DType::kFloat}), Code::kNotFound);
  EXPECT_THAT(e,
              AllOf(HasSubstr("conv/w"), HasSubstr("Key b not found in checkpoint"), HasSubstr(path("m"))));
  EXPECT_THAT(error_of(restore_call(path("m"), {"conv1/w"}, {DType::kDouble})),
              HasSubstr("expected dtype double does not equal original dtype float"));
}

TEST_F(Checkpoints, MergeMakesOneOfParts) {
  std::filesystem::create_directories(folder_ / "tmp");
  const std::string a = path("tmp/part-0"), b = path("tmp/part-1");
  run_op({.op = "SaveV2", .inputs = {text(a), texts({"a"}), texts({""}), floats({1})}});
  run_op({.op = "SaveV2", .inputs = {text(b), texts({"b"}), texts({""}), floats({2})}});
  run_op({.op = "MergeV2Checkpoints", .inputs = {texts({a, b}), text(path("m"))}});
  const auto out = run_op(restore_call(path("m"), {"a", "b"}, {DType::kFloat, DType::kFloat}));
  EXPECT_EQ(out[0].as<float>()[0] + out[1].as<float>()[0], 3);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "tmp"));
}

}  // namespace
}  // namespace sluice::optest
