// Text ops, against what TensorFlow 2.21 gives for the same inputs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ops/direct_run.h"

namespace sluice::optest {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Array text(std::string s) { return Array::strings({}, {std::move(s)}); }
Array texts(std::vector<std::string> s, Dims dims = {}) {
  if (dims.empty()) dims = {static_cast<int64_t>(s.size())};
  return Array::strings(dims, std::move(s));
}
std::vector<std::string> strings_of(Call call) { return run_op(std::move(call))[0].string_values(); }

std::string error_of(Call call) {
  try {
    run_op(std::move(call));
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kInvalidArgument);
    return e.message();
  }
  ADD_FAILURE() << "no error";
  return "";
}

TEST(AsString, WritesNumbersAsPrintf) {
  const Array x = Array::from<float>({2}, {1.5f, -2.f});
  EXPECT_THAT(strings_of({.op = "AsString", .inputs = {x}}), ElementsAre("1.500000", "-2.000000"));
  EXPECT_THAT(strings_of({.op = "AsString", .inputs = {x}, .attrs = {{"shortest", true}}}),
              ElementsAre("1.5", "-2"));
  EXPECT_THAT(
      strings_of({.op = "AsString", .inputs = {x}, .attrs = {{"scientific", true}, {"precision", 2}}}),
      ElementsAre("1.50e+00", "-2.00e+00"));
  EXPECT_THAT(
      strings_of(
          {.op = "AsString", .inputs = {Array::scalar<int32_t>(7)}, .attrs = {{"width", 3}, {"fill", "0"}}}),
      ElementsAre("007"));
  EXPECT_THAT(strings_of({.op = "AsString", .inputs = {Array::scalar(true)}}), ElementsAre("true"));
}

TEST(ReduceJoin, JoinsAlongAxesTheFirstOutermost) {
  const Array x = texts({"a", "b", "c", "d"}, {2, 2});
  auto join = [&](std::vector<int32_t> axes, AttrMap attrs = {}) {
    return run_op({.op = "ReduceJoin",
                   .inputs = {x, Array::from<int32_t>({static_cast<int64_t>(axes.size())},
                                                      std::span<const int32_t>(axes))},
                   .attrs = std::move(attrs)})[0];
  };
  EXPECT_THAT(join({0}).string_values(), ElementsAre("ac", "bd"));
  EXPECT_THAT(join({-1}, {{"separator", "+"}}).string_values(), ElementsAre("a+b", "c+d"));
  EXPECT_THAT(join({0, 1}, {{"separator", ","}}).string_values(), ElementsAre("a,b,c,d"));
  EXPECT_THAT(join({1, 0}, {{"separator", ","}}).string_values(), ElementsAre("a,c,b,d"));
  EXPECT_EQ(join({0}, {{"keep_dims", true}}).dims(), (Dims{1, 2}));
  EXPECT_EQ(join({}).dims(), (Dims{2, 2}));
}

TEST(RegexReplace, RewritesMatchesWithTheirGroups) {
  const Array x = texts({"hello world", "xyz"});
  EXPECT_THAT(strings_of({.op = "RegexReplace", .inputs = {x, text("(o)"), text("[\\1]")}}),
              ElementsAre("hell[o] w[o]rld", "xyz"));
  EXPECT_THAT(strings_of({.op = "StaticRegexReplace",
                          .inputs = {x},
                          .attrs = {{"pattern", "l"}, {"rewrite", "L"}, {"replace_global", false}}}),
              ElementsAre("heLlo world", "xyz"));
  EXPECT_THAT(strings_of({.op = "RegexReplace", .inputs = {x, text("[lz]+"), text("<\\0\\\\>")}}),
              ElementsAre("he<ll\\>o wor<l\\>d", "xy<z\\>"));
  EXPECT_THAT(error_of({.op = "RegexReplace", .inputs = {x, text("("), text("")}}),
              HasSubstr("Invalid pattern: ("));
  EXPECT_THAT(error_of({.op = "RegexReplace", .inputs = {x, text("o"), text("\\2")}}),
              HasSubstr("names group 2"));
}

struct Split {
  std::vector<int64_t> indices, shape;
  std::vector<std::string> values;
};
Split split(Call call) {
  const std::vector<Array> out = run_op(std::move(call));
  Split s;
  s.indices.assign(out[0].as<int64_t>().begin(), out[0].as<int64_t>().end());
  s.values = out[1].string_values();
  s.shape.assign(out[2].as<int64_t>().begin(), out[2].as<int64_t>().end());
  return s;
}

TEST(StringSplit, CutsAtEveryDelimiterByte) {
  Split s = split({.op = "StringSplit", .inputs = {texts({"a b", "", "c"}), text(" ")}});
  EXPECT_THAT(s.indices, ElementsAre(0, 0, 0, 1, 2, 0));
  EXPECT_THAT(s.values, ElementsAre("a", "b", "c"));
  EXPECT_THAT(s.shape, ElementsAre(3, 2));
  s = split({.op = "StringSplit",
             .inputs = {texts({"a  b", " ", "c"}), text(" ")},
             .attrs = {{"skip_empty", false}}});
  EXPECT_THAT(s.values, ElementsAre("a", "", "b", "", "", "c"));
  EXPECT_THAT(s.shape, ElementsAre(3, 3));
  EXPECT_THAT(split({.op = "StringSplit", .inputs = {texts({"ab-c;d"}), text("-;")}}).values,
              ElementsAre("ab", "c", "d"));
  EXPECT_THAT(split({.op = "StringSplit", .inputs = {texts({"abc", "d"}), text("")}}).values,
              ElementsAre("a", "b", "c", "d"));
}

TEST(StringSplitV2, CutsAsPythonDoes) {
  Split s = split({.op = "StringSplitV2", .inputs = {texts({"a  b ", " ", "c"}), text("")}});
  EXPECT_THAT(s.indices, ElementsAre(0, 0, 0, 1, 2, 0));
  EXPECT_THAT(s.values, ElementsAre("a", "b", "c"));
  s = split(
      {.op = "StringSplitV2", .inputs = {texts({"a<>b<>c", "<>"}), text("<>")}, .attrs = {{"maxsplit", 1}}});
  EXPECT_THAT(s.values, ElementsAre("a", "b<>c", "", ""));
  EXPECT_THAT(s.shape, ElementsAre(2, 2));
}

TEST(Text, PiecesCaseAndNumbers) {
  const Array x = texts({" Hello ", "wOrld"});
  EXPECT_THAT(strings_of({.op = "StringStrip", .inputs = {x}}), ElementsAre("Hello", "wOrld"));
  EXPECT_THAT(strings_of({.op = "StringUpper", .inputs = {x}}), ElementsAre(" HELLO ", "WORLD"));
  EXPECT_THAT(strings_of({.op = "StringLower", .inputs = {x}}), ElementsAre(" hello ", "world"));
  const Array from = Array::scalar<int32_t>(-3), count = Array::scalar<int32_t>(2);
  EXPECT_THAT(strings_of({.op = "Substr", .inputs = {texts({"hello", "abc"}), from, count}}),
              ElementsAre("ll", "ab"));
  EXPECT_THAT(error_of({.op = "Substr", .inputs = {texts({"ab"}), from, count}}),
              HasSubstr("pos -3 out of range"));
  const Array n = run_op({.op = "StringToNumber",
                          .inputs = {texts({"1.5", " -2e3 "})},
                          .attrs = {{"out_type", DType::kFloat}}})[0];
  EXPECT_THAT(n.as<float>(), ElementsAre(1.5f, -2000.f));
  EXPECT_THAT(
      error_of({.op = "StringToNumber", .inputs = {texts({"12x"})}, .attrs = {{"out_type", DType::kInt32}}}),
      HasSubstr("StringToNumberOp could not correctly convert string: 12x"));
  EXPECT_THAT(strings_of({.op = "ShardedFilespec", .inputs = {text("m"), Array::scalar<int32_t>(3)}}),
              ElementsAre("m-?\?\?\?\?-of-00003"));
}

}  // namespace
}  // namespace sluice::optest
