// tf.Example records into arrays: shapes, defaults, TensorFlow's error texts, and records that are not sound.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/data/random.h"
#include "runtime/io/example.h"
#include "tests/data/pipeline_util.h"

namespace sluice {
namespace {

using namespace pipetest;
using graph::DType;
using runtime::data::ExampleParser;
using runtime::data::ExampleSpec;
using runtime::io::Example;
using runtime::io::Feature;
using testing::ElementsAre;
using testing::HasSubstr;

Feature floats(std::vector<float> v) { return {Feature::Kind::kFloat, {}, std::move(v), {}}; }
Feature ints(std::vector<int64_t> v) { return {Feature::Kind::kInt64, {}, {}, std::move(v)}; }
Feature words(std::vector<std::string> v) { return {Feature::Kind::kBytes, std::move(v), {}, {}}; }
std::string bytes(const Example& e) { return runtime::io::serialize_example(e); }

std::string parsed(const ExampleSpec& spec, const std::vector<std::string>& records,
                   const std::vector<std::string>& names = {}, const std::vector<Array>& defaults = {}) {
  Element out;
  try {
    ExampleParser(spec).parse(records, names, defaults, out);
  } catch (const Error& e) {
    return e.message();
  }
  return text(out);
}
std::string parsed_one(const ExampleSpec& spec, const std::string& record,
                       const std::vector<Array>& defaults = {}) {
  Element out;
  try {
    ExampleParser(spec).parse_single(record, defaults, out);
  } catch (const Error& e) {
    return e.message();
  }
  return text(out);
}

const ExampleSpec kX1{.dense = {{"x", DType::kFloat, {1}}}};
const ExampleSpec kX3{.dense = {{"x", DType::kFloat, {3}}}};

TEST(ExampleParser, EveryKindInABatch) {
  const ExampleSpec spec{
      .dense = {{"f", DType::kFloat, {2}}, {"w", DType::kString, {}}, {"v", DType::kInt64, {}, true}},
      .sparse = {{"s", DType::kInt64}},
      .ragged = {{"r", DType::kString, DType::kInt32}}};
  const std::string
      a = bytes({{"f", floats({1, 2})}, {"w", words({"one"})}, {"v", ints({7, 300, -1})}, {"s", ints({5})}}),
      b = bytes(
          {{"f", floats({3, 4})}, {"w", words({"two"})}, {"r", words({"p", "q"})}, {"s", ints({8, 9})}});
  EXPECT_EQ(
      parsed(spec, {a, b}),
      "int64[3,2]:0,0,1,0,1,1, int64[3]:5,8,9, int64[2]:2,2, float[2,2]:0000803f000000400000404000008040 "
      "string[2]:'one''two' int64[2,3]:7,300,-1,0,0,0, string[2]:'p''q' int32[3]:000000000000000002000000");
  EXPECT_EQ(
      parsed_one(spec, a),
      "int64[1,1]:0, int64[1]:5, int64[1]:1, float[2]:0000803f00000040 string[]:'one' int64[3]:7,300,-1, "
      "string[0]: int32[2]:0000000000000000");
}

TEST(ExampleParser, DefaultsStandInForMissingFeatures) {
  const std::vector<Array> seven{Array::from<float>({1}, {7})};
  EXPECT_EQ(parsed(kX1, {bytes({{"y", ints({1})}})}, {}, seven), "float[1,1]:0000e040");
  EXPECT_EQ(parsed_one(kX1, bytes({}), seven), "float[1]:0000e040");
  // A feature of no kind is missing: the entry {key: "x", value: {}}.
  const std::string no_kind("\x0a\x07\x0a\x05\x0a\x01x\x12\x00", 9);
  EXPECT_EQ(parsed(kX1, {no_kind}, {}, seven), "float[1,1]:0000e040");
}

TEST(ExampleParser, ErrorsAreTensorFlows) {
  EXPECT_EQ(parsed(kX1, {bytes({{"a", floats({1})}})}),
            "Name: <unknown>, Feature: x (data type: float) is required but could not be found.");
  EXPECT_EQ(parsed(kX1, {bytes({{"x", ints({1})}})}),
            "Name: <unknown>, Key: x, Index: 0.  Data types don't match. Data type: int64 but expected type: "
            "float");
  EXPECT_EQ(
      parsed({.sparse = {{"x", DType::kFloat}}}, {bytes({{"x", ints({1})}})}),
      "Name: <unknown>, Key: x, Index: 0.  Data types don't match. Expected type: float, Actual type: int64");
  EXPECT_EQ(parsed(kX3, {bytes({{"x", floats({1, 2, 3})}}), bytes({{"x", floats({1, 2})}})}, {"n0", "n1"}),
            "Name: n1, Key: x, Index: 1.  Number of float values != expected.  values size: 2 but output "
            "shape: [3]");
  EXPECT_EQ(
      parsed({.dense = {{"x", DType::kString, {3}}}}, {bytes({{"x", words({"a"})}})}),
      "Name: <unknown>, Key: x, Index: 0.  Number of bytes values != expected.  values size: 1 but output "
      "shape: [3]");
  EXPECT_EQ(
      parsed({.dense = {{"x", DType::kFloat, {2}, true}}}, {bytes({{"x", floats({1, 2, 3})}})}),
      "Name: <unknown>, Key: x, Index: 0.  Number of float values is not a multiple of stride length. Saw 3 "
      "values but output shape is: [?,2]");
  EXPECT_EQ(parsed_one(kX1, bytes({})), "Feature: x (data type: float) is required but could not be found.");
  EXPECT_EQ(parsed(kX1, {"\xff\xff\xffhello"}), "Could not parse example input, value: '???hello'");
  EXPECT_EQ(parsed(kX1, {}, {"n"}), "Expected len(names) == len(serialized), but got: 1 vs. 0");
}

TEST(ExampleParser, UnpackedNumbersCountAsPackedOnes) {
  // features { feature { "x": float_list { 1 (unpacked), then 2, 3 packed } } }
  const std::string list =
      std::string("\x0d\x00\x00\x80\x3f", 5) + std::string("\x0a\x08\x00\x00\x00\x40\x00\x00\x40\x40", 10);
  auto field = [](char tag, const std::string& s) {
    return std::string(1, tag) + static_cast<char>(s.size()) + s;
  };
  const std::string record = field(0x0a, field(0x0a, field(0x0a, "x") + field(0x12, field(0x12, list))));
  EXPECT_EQ(parsed(kX3, {record}), "float[1,3]:0000803f0000004000004040");
}

TEST(ExampleParser, TheLastOfTwoEqualKeysCounts) {
  std::string record = bytes({{"x", floats({1})}});
  record += bytes({{"x", floats({2})}});  // messages joined merge
  EXPECT_EQ(parsed(kX1, {record}), "float[1,1]:00000040");
}

TEST(ExampleParser, AgreesWithTheMessageReaderOnDamagedRecords) {
  const std::string good =
      bytes({{"x", floats({1, 2, 3})}, {"n", ints({1, 200, 70'000})}, {"w", words({"ab", "c"})}});
  const ExampleSpec spec{.sparse = {{"x", DType::kFloat}, {"n", DType::kInt64}, {"w", DType::kString}}};
  runtime::data::Random random(3);
  int sound = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string record = good.substr(0, random.coin() ? good.size() : random.below(good.size()));
    for (uint64_t k = random.below(3); k > 0 && !record.empty(); --k)
      record[random.below(record.size())] = static_cast<char>(random.bits());
    Element out;
    try {
      ExampleParser(spec).parse({&record, 1}, {}, {}, out);
    } catch (const Error&) {
      continue;
    }
    ++sound;
    Example read;
    try {
      read = runtime::io::parse_example(record);
    } catch (const Error&) {
      continue;  // that one looks into features nobody asked for, too, and at UTF-8
    }
    if (read.count("x")) {
      const auto got = std::as_const(out[3]).as<float>();
      ASSERT_EQ(got.size(), read["x"].floats.size());
      if (!got.empty()) {
        EXPECT_EQ(std::memcmp(got.data(), read["x"].floats.data(), got.size_bytes()), 0);
      }
    }
    if (read.count("n")) {
      EXPECT_THAT(std::as_const(out[4]).as<int64_t>(), testing::ElementsAreArray(read["n"].ints));
    }
    if (read.count("w")) {
      EXPECT_EQ(std::as_const(out[5]).string_values(), read["w"].bytes);
    }
  }
  EXPECT_GT(sound, 1000);
}

}  // namespace
}  // namespace sluice
