// Ops that search for elements, reduce by segment and write by index; text ops that give numbers.

#include "tests/ops/op_case.h"

namespace sluice::optest {
namespace {

using V = const std::vector<Doubles>&;

Formula fixed(std::vector<Doubles> out) {
  return [out = std::move(out)](V) { return out; };
}

In texts(std::vector<std::string> s) {
  In in;
  in.dims = {static_cast<int64_t>(s.size())};
  in.dtype = DType::kString;
  in.strings = std::move(s);
  return in;
}

void add_search(std::vector<OpCase>& t) {
  t.push_back({.name = "Where",
               .op = "Where",
               .inputs = {given({2, 3}, {0, 1, 0, 1, 0, 1}, DType::kBool)},
               .expect = fixed({{{3, 2}, {0, 1, 1, 0, 1, 2}}})});
  t.push_back({.name = "Where_none",
               .op = "Where",
               .inputs = {given({3}, {0, 0, 0}, DType::kBool)},
               .expect = fixed({{{0, 1}, {}}})});
  t.push_back({.name = "Where_numbers",
               .op = "Where",
               .inputs = {given({4}, {0, -2, 0, 0.5})},
               .expect = fixed({{{2, 1}, {1, 3}}})});
  t.push_back({.name = "Unique",
               .op = "Unique",
               .inputs = {i32({7, 3, 7, 7, 1, 3})},
               .expect = fixed({{{3}, {7, 3, 1}}, {{6}, {0, 1, 0, 0, 2, 1}}})});
  t.push_back({.name = "Unique_floats64",
               .op = "Unique",
               .inputs = {given({4}, {0.5, 2, 0.5, -1})},
               .expect = fixed({{{3}, {0.5, 2, -1}}, {{4}, {0, 1, 0, 2}}}),
               .attrs = {{"out_idx", DType::kInt64}}});
  t.push_back({.name = "UniqueWithCounts",
               .op = "UniqueWithCounts",
               .inputs = {i32({7, 3, 7, 7, 1, 3})},
               .expect = fixed({{{3}, {7, 3, 1}}, {{6}, {0, 1, 0, 0, 2, 1}}, {{3}, {3, 2, 1}}})});
  t.push_back({.name = "UniqueV2_columns",
               .op = "UniqueV2",
               .inputs = {given({2, 3}, {1, 1, 2, 3, 3, 4}), i32({1})},
               .expect = fixed({{{2, 2}, {1, 2, 3, 4}}, {{3}, {0, 0, 1}}}),
               .attrs = {{"Taxis", DType::kInt32}}});
  t.push_back({.name = "UniqueV2_vector",
               .op = "UniqueV2",
               .inputs = {i32({5, 5, 4}), ints({0}, 0, 0)},
               .expect = fixed({{{2}, {5, 4}}, {{3}, {0, 0, 1}}}),
               .attrs = {{"Taxis", DType::kInt32}}});
  t.push_back({.name = "UniqueWithCountsV2_rows",
               .op = "UniqueWithCountsV2",
               .inputs = {given({3, 2}, {1, 2, 3, 4, 1, 2}), i32({0})},
               .expect = fixed({{{2, 2}, {1, 2, 3, 4}}, {{3}, {0, 1, 0}}, {{2}, {2, 1}}}),
               .attrs = {{"Taxis", DType::kInt32}}});
}

void add_segments(std::vector<OpCase>& t) {
  const In rows = given({4, 2}, {1, 2, 3, 4, 5, 7, 6, -8});
  auto sorted = [&](const char* op, std::vector<double> want, bool gradient = true) {
    t.push_back({.name = op,
                 .op = op,
                 .inputs = {rows, i32({0, 0, 2, 2})},
                 .expect = fixed({{{3, 2}, std::move(want)}}),
                 .gradient = gradient ? std::vector<int>{0} : std::vector<int>{}});
  };
  sorted("SegmentSum", {4, 6, 0, 0, 11, -1});
  sorted("SegmentMean", {2, 3, 0, 0, 5.5, -0.5});
  sorted("SegmentProd", {3, 8, 1, 1, 30, -56}, false);
  sorted("SegmentMax", {3, 4, 0, 0, 6, 7});
  sorted("SegmentMin", {1, 2, 0, 0, 5, -8});
  auto unsorted = [&](const char* op, std::vector<double> ids, int64_t segments, std::vector<double> want) {
    t.push_back({.name = op,
                 .op = op,
                 .inputs = {rows, i32(std::move(ids)), i32_scalar(static_cast<double>(segments))},
                 .expect = fixed({{{segments, 2}, std::move(want)}}),
                 .gradient = {0}});
  };
  unsorted("UnsortedSegmentSum", {2, 0, 2, -1}, 4, {3, 4, 0, 0, 6, 9, 0, 0});
  unsorted("UnsortedSegmentProd", {2, 0, 2, -1}, 4, {3, 4, 1, 1, 5, 14, 1, 1});
  // An empty segment gives the type's own extreme, so these rows have none.
  unsorted("UnsortedSegmentMax", {2, 0, 2, 1}, 3, {3, 4, 6, -8, 5, 7});
  unsorted("UnsortedSegmentMin", {2, 0, 2, 1}, 3, {3, 4, 6, -8, 1, 2});
  t.push_back({.name = "UnsortedSegmentProd_zeros",
               .op = "UnsortedSegmentProd",
               .inputs = {given({5}, {0, 3, 2, 0, 0}), i32({0, 0, 1, 1, 1}), i32_scalar(2)},
               .expect = fixed({{{2}, {0, 0}}}),
               .gradient = {0}});
  t.push_back(
      {.name = "UnsortedSegmentMax_matrix_ids",
       .op = "UnsortedSegmentMax",
       .inputs = {given({2, 2}, {1, 5, 4, 2}), given({2, 2}, {0, 1, 0, 1}, DType::kInt32), i32_scalar(2)},
       .expect = fixed({{{2}, {4, 5}}}),
       .gradient = {0}});
}

void add_scatter(std::vector<OpCase>& t) {
  const std::vector<In> in = {given({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), given({2, 1}, {2, 0}, DType::kInt32),
                              given({2, 2}, {-1, 9, 4, 0.5})};
  t.push_back({.name = "TensorScatterMax",
               .op = "TensorScatterMax",
               .inputs = in,
               .expect = fixed({{{4, 2}, {4, 2, 3, 4, 5, 9, 7, 8}}}),
               .gradient = {0, 2}});
  t.push_back({.name = "TensorScatterMin",
               .op = "TensorScatterMin",
               .inputs = in,
               .expect = fixed({{{4, 2}, {1, 0.5, 3, 4, -1, 6, 7, 8}}}),
               .gradient = {0, 2}});
  t.push_back({.name = "ScatterNdNonAliasingAdd",
               .op = "ScatterNdNonAliasingAdd",
               .inputs = in,
               .expect = fixed({{{4, 2}, {5, 2.5, 3, 4, 4, 15, 7, 8}}}),
               .gradient = {0, 2}});
}

void add_text(std::vector<OpCase>& t) {
  t.push_back({.name = "StringLength",
               .op = "StringLength",
               .inputs = {texts({"", "abc", "\xC3\xA4x"})},
               .expect = fixed({{{3}, {0, 3, 3}}}),
               .in_tensorflow = false});  // the values travel as numbers
  t.push_back({.name = "StringLength_utf8",
               .op = "StringLength",
               .inputs = {texts({"", "abc", "\xC3\xA4x"})},
               .expect = fixed({{{3}, {0, 3, 2}}}),
               .attrs = {{"unit", "UTF8_CHAR"}},
               .in_tensorflow = false});
  t.push_back({.name = "RegexFullMatch",
               .op = "RegexFullMatch",
               .inputs = {texts({"ab", "aab", "b"}), {{}, 0, 0, DType::kString, {}, {"a+b"}}},
               .expect = fixed({{{3}, {1, 1, 0}}}),
               .in_tensorflow = false});
}

}  // namespace

std::vector<OpCase> index_cases() {
  std::vector<OpCase> t;
  add_search(t);
  add_segments(t);
  add_scatter(t);
  add_text(t);
  return t;
}

}  // namespace sluice::optest
