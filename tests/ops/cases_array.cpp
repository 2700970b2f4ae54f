// Ops that move, cut, join, index and count elements.

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/ops/op_case.h"

namespace sluice::optest {
namespace {

using V = const std::vector<Doubles>&;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Formula fixed(std::vector<Doubles> out) {
  return [out = std::move(out)](V) { return out; };
}
Formula same_values(Dims dims) {
  return [dims](V in) { return std::vector<Doubles>{{dims, in[0].v}}; };
}
In i64(std::vector<double> v) {
  Dims d{static_cast<int64_t>(v.size())};
  return given(std::move(d), std::move(v), DType::kInt64);
}

void add_shapes(std::vector<OpCase>& t) {
  t.push_back({.name = "Identity",
               .op = "Identity",
               .inputs = {f({2, 3})},
               .expect = same_values({2, 3}),
               .gradient = {0}});
  t.push_back({.name = "Reshape",
               .op = "Reshape",
               .inputs = {f({2, 6}), i32({3, -1})},
               .expect = same_values({3, 4}),
               .gradient = {0}});
  t.push_back({.name = "ExpandDims",
               .op = "ExpandDims",
               .inputs = {f({2, 3}), i32_scalar(-2)},
               .expect = same_values({2, 1, 3}),
               .gradient = {0}});
  t.push_back({.name = "Squeeze",
               .op = "Squeeze",
               .inputs = {f({1, 2, 1, 3})},
               .expect = same_values({1, 2, 3}),
               .attrs = {{"squeeze_dims", std::vector<int64_t>{2}}},
               .gradient = {0}});
  t.push_back(
      {.name = "Shape", .op = "Shape", .inputs = {f({2, 0, 5})}, .expect = fixed({{{3}, {2, 0, 5}}})});
  t.push_back({.name = "Shape_of_scalar", .op = "Shape", .inputs = {f({})}, .expect = fixed({{{0}, {}}})});
  t.push_back({.name = "ShapeN",
               .op = "ShapeN",
               .inputs = {f({2}), f({3, 4})},
               .expect = fixed({{{1}, {2}}, {{2}, {3, 4}}}),
               .attrs = {{"out_type", DType::kInt64}}});
  t.push_back({.name = "Rank", .op = "Rank", .inputs = {f({2, 3, 4})}, .expect = fixed({{{}, {3}}})});
  t.push_back({.name = "Size", .op = "Size", .inputs = {f({2, 3, 4})}, .expect = fixed({{{}, {24}}})});
  t.push_back({.name = "ZerosLike",
               .op = "ZerosLike",
               .inputs = {given({2}, {kNan, 3})},
               .expect = fixed({{{2}, {0, 0}}})});
  t.push_back({.name = "OnesLike", .op = "OnesLike", .inputs = {f({2})}, .expect = fixed({{{2}, {1, 1}}})});
  t.push_back({.name = "Fill",
               .op = "Fill",
               .inputs = {i32({2, 2}), given({}, {7})},
               .expect = fixed({{{2, 2}, {7, 7, 7, 7}}}),
               .gradient = {1}});
  t.push_back({.name = "Range_int",
               .op = "Range",
               .inputs = {i32_scalar(10), i32_scalar(0), i32_scalar(-3)},
               .expect = fixed({{{4}, {10, 7, 4, 1}}})});
  t.push_back({.name = "Range_float",
               .op = "Range",
               .inputs = {given({}, {0}), given({}, {1}), given({}, {0.25})},
               .expect = fixed({{{4}, {0, 0.25, 0.5, 0.75}}})});
  t.push_back({.name = "LinSpace",
               .op = "LinSpace",
               .inputs = {given({}, {1}), given({}, {2}), i32_scalar(5)},
               .expect = fixed({{{5}, {1, 1.25, 1.5, 1.75, 2}}})});
  t.push_back({.name = "InvertPermutation",
               .op = "InvertPermutation",
               .inputs = {i32({2, 0, 1})},
               .expect = fixed({{{3}, {1, 2, 0}}})});
  t.push_back({.name = "BroadcastTo",
               .op = "BroadcastTo",
               .inputs = {given({3, 1}, {1, 2, 3}), i32({2, 3, 2})},
               .expect = fixed({{{2, 3, 2}, {1, 1, 2, 2, 3, 3, 1, 1, 2, 2, 3, 3}}}),
               .gradient = {0}});
  auto gradient_args = [&](const char* name, std::vector<double> a, std::vector<double> b,
                           std::vector<double> x, std::vector<double> y) {
    const Dims dx{static_cast<int64_t>(x.size())}, dy{static_cast<int64_t>(y.size())};
    t.push_back({.name = name,
                 .op = "BroadcastGradientArgs",
                 .inputs = {i32(a), i32(b)},
                 .expect = fixed({{dx, x}, {dy, y}})});
  };
  gradient_args("BroadcastGradientArgs_row", {2, 3, 5}, {5}, {}, {0, 1});
  gradient_args("BroadcastGradientArgs_both", {2, 1, 3}, {4, 1}, {1}, {0, 2});
  gradient_args("BroadcastGradientArgs_ones", {2, 1}, {1, 1}, {1}, {0, 1});
  gradient_args("BroadcastGradientArgs_equal", {2, 1}, {2, 1}, {}, {});
  gradient_args("BroadcastGradientArgs_scalar", {2, 3}, {}, {}, {0, 1});
  t.push_back({.name = "ConcatOffset",
               .op = "ConcatOffset",
               .inputs = {i32_scalar(1), i32({2, 3}), i32({2, 4}), i32({2, 5})},
               .expect = fixed({{{2}, {0, 0}}, {{2}, {0, 3}}, {{2}, {0, 7}}})});
}

void add_moves(std::vector<OpCase>& t) {
  t.push_back({.name = "Transpose_3d",
               .op = "Transpose",
               .inputs = {f({2, 3, 4}), i32({2, 0, 1})},
               .expect = elements({4, 2, 3},
                                  [](V in, const Dims& i) {
                                    return in[0].at({i[1], i[2], i[0]});
                                  }),
               .gradient = {0}});
  t.push_back({.name = "Transpose_nhwc_nchw",
               .op = "Transpose",
               .inputs = {f({2, 3, 4, 5}), i32({0, 3, 1, 2})},
               .expect = elements({2, 5, 3, 4},
                                  [](V in, const Dims& i) {
                                    return in[0].at({i[0], i[2], i[3], i[1]});
                                  }),
               .gradient = {0}});
  t.push_back({.name = "Transpose_int64",
               .op = "Transpose",
               .inputs = {ints({2, 3}, 0, 9, DType::kInt64), i32({1, 0})},
               .expect = elements({3, 2}, [](V in, const Dims& i) {
                 return in[0].at({i[1], i[0]});
               })});
  t.push_back({.name = "Slice",
               .op = "Slice",
               .inputs = {f({4, 5}), i32({1, 2}), i32({2, -1})},
               .expect = elements({2, 3},
                                  [](V in, const Dims& i) {
                                    return in[0].at({i[0] + 1, i[1] + 2});
                                  }),
               .gradient = {0}});
  t.push_back({.name = "Slice_empty",
               .op = "Slice",
               .inputs = {f({4, 5}), i32({1, 2}), i32({0, -1})},
               .expect = fixed({{{0, 3}, {}}})});
  t.push_back(
      {.name = "ConcatV2",
       .op = "ConcatV2",
       .inputs = {f({2, 1, 2}), f({2, 3, 2}), i32_scalar(-2)},
       .expect = elements({2, 4, 2},
                          [](V in, const Dims& i) {
                            return i[1] < 1 ? in[0].at({i[0], i[1], i[2]}) : in[1].at({i[0], i[1] - 1, i[2]});
                          }),
       .gradient = {0, 1}});
  t.push_back({.name = "ConcatV2_with_empty",
               .op = "ConcatV2",
               .inputs = {f({0, 2}), f({3, 2}), i32_scalar(0)},
               .expect = [](V in) { return std::vector<Doubles>{in[1]}; }});
  t.push_back({.name = "Concat",
               .op = "Concat",
               .inputs = {i32_scalar(0), f({1, 2}), f({2, 2})},
               .expect = elements({3, 2},
                                  [](V in, const Dims& i) {
                                    return i[0] < 1 ? in[1].at({0, i[1]}) : in[2].at({i[0] - 1, i[1]});
                                  }),
               .gradient = {1, 2}});
  t.push_back({.name = "Split",
               .op = "Split",
               .inputs = {i32_scalar(1), f({2, 6})},
               .expect =
                   [](V in) {
                     std::vector<Doubles> out{zeros({2, 2}), zeros({2, 2}), zeros({2, 2})};
                     for (int64_t i = 0; i < 2; ++i)
                       for (int64_t j = 0; j < 6; ++j)
                         out[static_cast<size_t>(j / 2)].at({i, j % 2}) = in[1].at({i, j});
                     return out;
                   },
               .attrs = {{"num_split", 3}},
               .gradient = {1}});
  t.push_back({.name = "SplitV",
               .op = "SplitV",
               .inputs = {f({2, 6}), i32({1, -1, 2}), i32_scalar(1)},
               .expect =
                   [](V in) {
                     std::vector<Doubles> out{zeros({2, 1}), zeros({2, 3}), zeros({2, 2})};
                     for (int64_t i = 0; i < 2; ++i)
                       for (int64_t j = 0; j < 6; ++j) {
                         const size_t k = j < 1 ? 0 : j < 4 ? 1 : 2;
                         out[k].at({i, j - (k == 0 ? 0 : k == 1 ? 1 : 4)}) = in[0].at({i, j});
                       }
                     return out;
                   },
               .attrs = {{"num_split", 3}},
               .gradient = {0}});
  t.push_back({.name = "Pack_axis1",
               .op = "Pack",
               .inputs = {f({2, 3}), f({2, 3})},
               .expect = elements({2, 2, 3},
                                  [](V in, const Dims& i) {
                                    return in[static_cast<size_t>(i[1])].at({i[0], i[2]});
                                  }),
               .attrs = {{"axis", 1}},
               .gradient = {0, 1}});
  t.push_back({.name = "Pack_scalars",
               .op = "Pack",
               .inputs = {i32_scalar(4), i32_scalar(5)},
               .expect = fixed({{{2}, {4, 5}}})});
  t.push_back({.name = "Unpack",
               .op = "Unpack",
               .inputs = {f({3, 2})},
               .expect =
                   [](V in) {
                     return std::vector<Doubles>{{{3}, {in[0][0], in[0][2], in[0][4]}},
                                                 {{3}, {in[0][1], in[0][3], in[0][5]}}};
                   },
               .attrs = {{"axis", -1}, {"num", 2}},
               .gradient = {0}});
  t.push_back({.name = "Tile",
               .op = "Tile",
               .inputs = {f({2, 3}), i32({2, 3})},
               .expect = elements({4, 9},
                                  [](V in, const Dims& i) {
                                    return in[0].at({i[0] % 2, i[1] % 3});
                                  }),
               .gradient = {0}});
  t.push_back({.name = "Tile_by_zero",
               .op = "Tile",
               .inputs = {f({2, 3}), i32({0, 1})},
               .expect = fixed({{{0, 3}, {}}})});
  t.push_back({.name = "ReverseV2",
               .op = "ReverseV2",
               .inputs = {f({2, 3, 4}), i32({-1, 0})},
               .expect = elements({2, 3, 4},
                                  [](V in, const Dims& i) {
                                    return in[0].at({1 - i[0], i[1], 3 - i[2]});
                                  }),
               .gradient = {0}});
  t.push_back(
      {.name = "Pad",
       .op = "Pad",
       .inputs = {f({2, 3}), given({2, 2}, {1, 0, 2, 1}, DType::kInt32)},
       .expect = elements({3, 6},
                          [](V in, const Dims& i) {
                            return i[0] < 1 || i[1] < 2 || i[1] > 4 ? 0 : in[0].at({i[0] - 1, i[1] - 2});
                          }),
       .gradient = {0}});
  t.push_back({.name = "PadV2",
               .op = "PadV2",
               .inputs = {f({2, 3}), given({2, 2}, {0, 1, 1, 0}, DType::kInt32), given({}, {9})},
               .expect = elements({3, 4},
                                  [](V in, const Dims& i) {
                                    return i[0] > 1 || i[1] < 1 ? 9 : in[0].at({i[0], i[1] - 1});
                                  }),
               .gradient = {0}});
  for (bool reflect : {false, true})
    t.push_back({.name = reflect ? "MirrorPad_reflect" : "MirrorPad_symmetric",
                 .op = "MirrorPad",
                 .inputs = {f({3, 4}), given({2, 2}, {2, 1, 1, 2}, DType::kInt32)},
                 .expect =
                     [reflect](V in) {
                       Doubles y = zeros({6, 7});
                       auto fold = [&](int64_t k, int64_t n) {
                         return k < 0    ? (reflect ? -k : -k - 1)
                                : k >= n ? (reflect ? 2 * n - 2 - k : 2 * n - 1 - k)
                                         : k;
                       };
                       for (int64_t i = 0; i < 6; ++i)
                         for (int64_t j = 0; j < 7; ++j)
                           y.at({i, j}) = in[0].at({fold(i - 2, 3), fold(j - 1, 4)});
                       return std::vector<Doubles>{y};
                     },
                 .attrs = {{"mode", reflect ? "REFLECT" : "SYMMETRIC"}},
                 .gradient = {0}});
  auto strided = [&](const char* name, std::vector<double> b, std::vector<double> e, std::vector<double> s,
                     AttrMap masks, Dims dims, double (*g)(V, const Dims&)) {
    t.push_back({.name = name,
                 .op = "StridedSlice",
                 .inputs = {f({4, 5, 3}), i32(b), i32(e), i32(s)},
                 .expect = elements(dims, g),
                 .attrs = masks,
                 .gradient = {0}});
  };
  strided("StridedSlice_plain", {1, 0, 1}, {3, 5, 3}, {1, 2, 1}, {}, {2, 3, 2}, [](V in, const Dims& i) {
    return in[0].at({i[0] + 1, 2 * i[1], i[2] + 1});
  });
  strided("StridedSlice_backwards", {-1, 4, 0}, {-4, 0, 3}, {-1, -2, 1}, {}, {3, 2, 3},
          [](V in, const Dims& i) {
            return in[0].at({3 - i[0], 4 - 2 * i[1], i[2]});
          });
  strided("StridedSlice_shrink", {1, 0, -1}, {2, 0, 0}, {1, 1, 1}, {{"shrink_axis_mask", 5}, {"end_mask", 2}},
          {5}, [](V in, const Dims& i) {
            return in[0].at({1, i[0], 2});
          });
  strided("StridedSlice_ellipsis_newaxis", {0, 0, 1}, {0, 0, 2}, {1, 1, 1},
          {{"ellipsis_mask", 1}, {"new_axis_mask", 2}}, {4, 5, 1, 1}, [](V in, const Dims& i) {
            return in[0].at({i[0], i[1], 1});
          });
  strided("StridedSlice_masks", {2, 3, 1}, {1, 2, 0}, {1, -1, 1}, {{"begin_mask", 2}, {"end_mask", 5}},
          {2, 2, 2}, [](V in, const Dims& i) {
            return in[0].at({i[0] + 2, 4 - i[1], i[2] + 1});
          });
  t.push_back(
      {.name = "StridedSliceGrad",
       .op = "StridedSliceGrad",
       .inputs = {i32({3, 4}), i32({0, 3}), i32({3, 0}), i32({2, -2}), f({2, 2})},
       .expect = elements({3, 4}, [](V in, const Dims& i) {
         return i[0] % 2 == 0 && (i[1] == 3 || i[1] == 1) ? in[4].at({i[0] / 2, i[1] == 3 ? 0 : 1}) : 0;
       })});
}

void add_indexing(std::vector<OpCase>& t) {
  t.push_back({.name = "Gather",
               .op = "Gather",
               .inputs = {f({4, 3}), given({2, 2}, {3, 0, 0, 1}, DType::kInt32)},
               .expect = elements({2, 2, 3},
                                  [](V in, const Dims& i) {
                                    return in[0].at({static_cast<int64_t>(in[1].at({i[0], i[1]})), i[2]});
                                  }),
               .gradient = {0}});
  t.push_back({.name = "GatherV2_axis1",
               .op = "GatherV2",
               .inputs = {f({2, 4, 3}), i64({3, 0, 3}), i32_scalar(1)},
               .expect = elements({2, 3, 3},
                                  [](V in, const Dims& i) {
                                    return in[0].at({i[0], static_cast<int64_t>(in[1][i[1]]), i[2]});
                                  }),
               .gradient = {0}});
  t.push_back({.name = "GatherV2_batch",
               .op = "GatherV2",
               .inputs = {f({2, 4}), given({2, 3}, {3, 0, 1, 2, 2, 0}, DType::kInt32), i32_scalar(1)},
               .expect = elements({2, 3},
                                  [](V in, const Dims& i) {
                                    return in[0].at({i[0], static_cast<int64_t>(in[1].at({i[0], i[1]}))});
                                  }),
               .attrs = {{"batch_dims", 1}},
               .gradient = {0}});
  t.push_back({.name = "GatherNd",
               .op = "GatherNd",
               .inputs = {f({3, 4, 2}), given({2, 2}, {2, 1, 0, 3}, DType::kInt32)},
               .expect = elements({2, 2},
                                  [](V in, const Dims& i) {
                                    return in[0].at({static_cast<int64_t>(in[1].at({i[0], 0})),
                                                     static_cast<int64_t>(in[1].at({i[0], 1})), i[1]});
                                  }),
               .gradient = {0}});
  t.push_back(
      {.name = "ScatterNd_adds_duplicates",
       .op = "ScatterNd",
       .inputs = {given({3, 1}, {1, 3, 1}, DType::kInt32), given({3, 2}, {1, 2, 3, 4, 5, 6}), i32({4, 2})},
       .expect = fixed({{{4, 2}, {0, 0, 6, 8, 0, 0, 3, 4}}}),
       .gradient = {1}});
  t.push_back({.name = "TensorScatterUpdate",
               .op = "TensorScatterUpdate",
               .inputs = {given({4}, {1, 2, 3, 4}), given({2, 1}, {2, 0}, DType::kInt32), given({2}, {9, 8})},
               .expect = fixed({{{4}, {8, 2, 9, 4}}}),
               .gradient = {0, 1}});
  t.back().gradient = {0, 2};
  t.push_back({.name = "TensorScatterAdd",
               .op = "TensorScatterAdd",
               .inputs = {given({4}, {1, 2, 3, 4}), given({2, 1}, {2, 2}, DType::kInt32), given({2}, {9, 8})},
               .expect = fixed({{{4}, {1, 2, 20, 4}}}),
               .gradient = {0, 2}});
  t.push_back({.name = "OneHot",
               .op = "OneHot",
               .inputs = {i32({0, 2, -1, 5}), i32_scalar(3), given({}, {1}), given({}, {0})},
               .expect = fixed({{{4, 3}, {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0}}})});
  t.push_back({.name = "OneHot_axis0",
               .op = "OneHot",
               .inputs = {i64({0, 2}), i32_scalar(3), given({}, {5}), given({}, {-1})},
               .expect = fixed({{{3, 2}, {5, -1, -1, -1, -1, 5}}}),
               .attrs = {{"axis", 0}}});
  t.push_back({.name = "DynamicStitch",
               .op = "DynamicStitch",
               .inputs = {i32({0, 3}), i32({1, 2}), given({2, 2}, {1, 2, 3, 4}), given({2, 2}, {5, 6, 7, 8})},
               .expect = fixed({{{4, 2}, {1, 2, 5, 6, 7, 8, 3, 4}}}),
               .gradient = {2, 3}});
  t.push_back({.name = "DynamicPartition",
               .op = "DynamicPartition",
               .inputs = {given({4}, {1, 2, 3, 4}), i32({1, 0, 1, 1})},
               .expect = fixed({{{1}, {2}}, {{3}, {1, 3, 4}}}),
               .attrs = {{"num_partitions", 2}}});
  t.push_back({.name = "TopKV2",
               .op = "TopKV2",
               .inputs = {given({2, 5}, {1, 5, 3, 5, 2, 0, -1, 4, 4, 9}), i32_scalar(3)},
               .expect = fixed({{{2, 3}, {5, 5, 3, 9, 4, 4}}, {{2, 3}, {1, 3, 2, 4, 2, 3}}})});
  t.push_back({.name = "TopKV2_all",
               .op = "TopKV2",
               .inputs = {f({1, 100}), i32_scalar(100)},
               .expect =
                   [](V in) {
                     std::vector<double> v = in[0].v;
                     std::stable_sort(v.begin(), v.end(), std::greater<>());
                     return std::vector<Doubles>{{{1, 100}, v}};
                   },
               .gradient = {0}});
  for (const char* op : {"InTopKV2"})
    t.push_back(
        {.name = op,
         .op = op,
         .inputs = {given({4, 3}, {1, 3, 2, 3, 3, 1, kNan, 0, 1, 1, 2, 3}), i32({2, 1, 1, 7}), i32_scalar(2)},
         .expect = fixed({{{4}, {1, 1, 0, 0}}})});
  t.push_back({.name = "Select",
               .op = "Select",
               .inputs = {given({4}, {1, 0, 1, 0}, DType::kBool), f({4}), f({4})},
               .expect = elements(
                   {4}, [](V in, const Dims& i) { return in[0][i[0]] != 0 ? in[1][i[0]] : in[2][i[0]]; }),
               .gradient = {1, 2}});
  t.push_back({.name = "Select_rows",
               .op = "Select",
               .inputs = {given({2}, {1, 0}, DType::kBool), f({2, 3}), f({2, 3})},
               .expect = elements({2, 3},
                                  [](V in, const Dims& i) {
                                    return in[0][i[0]] != 0 ? in[1].at({i[0], i[1]}) : in[2].at({i[0], i[1]});
                                  }),
               .gradient = {1, 2}});
  t.push_back({.name = "SelectV2_broadcast",
               .op = "SelectV2",
               .inputs = {given({2, 1}, {1, 0}, DType::kBool), f({2, 3}), f({})},
               .expect = elements({2, 3},
                                  [](V in, const Dims& i) {
                                    return in[0][i[0]] != 0 ? in[1].at({i[0], i[1]}) : in[2][0];
                                  }),
               .gradient = {1, 2}});
  t.push_back({.name = "Cast_to_int",
               .op = "Cast",
               .inputs = {given({5}, {1.9, -1.9, 0, 300.5, -0.5})},
               .expect = fixed({{{5}, {1, -1, 0, 300, 0}}}),
               .attrs = {{"DstT", DType::kInt32}}});
  t.push_back({.name = "Cast_to_bool",
               .op = "Cast",
               .inputs = {given({4}, {kNan, 0, -0.0, 0.3})},
               .expect = fixed({{{4}, {1, 0, 0, 1}}}),
               .attrs = {{"DstT", DType::kBool}}});
  t.push_back({.name = "Cast_out_of_range",
               .op = "Cast",
               .inputs = {given({4}, {kNan, 3e9, -3e9, 1e30})},
               .expect = fixed({{{4}, {-2147483648.0, -2147483648.0, -2147483648.0, -2147483648.0}}}),
               .attrs = {{"DstT", DType::kInt32}}});
  t.push_back({.name = "Cast_from_int64",
               .op = "Cast",
               .inputs = {i64({-3, 0, 7})},
               .expect = fixed({{{3}, {-3, 0, 7}}}),
               .attrs = {{"DstT", DType::kFloat}}});
  t.push_back({.name = "ClipByValue",
               .op = "ClipByValue",
               .inputs = {given({5}, {-3, -1, 0, 1, 3}), given({}, {-1}), given({}, {2})},
               .expect = fixed({{{5}, {-1, -1, 0, 1, 2}}})});
}

}  // namespace

std::vector<OpCase> array_cases() {
  std::vector<OpCase> t;
  add_shapes(t);
  add_moves(t);
  add_indexing(t);
  return t;
}

}  // namespace sluice::optest
