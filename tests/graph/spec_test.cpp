#include <gtest/gtest.h>

#include "graph/infer.h"
#include "graph/op.h"

namespace sluice::graph {
namespace {

TEST(AttrSpec, ReadsKindsSetsMinimaAndDefaults) {
  AttrSpec a = parse_attr_spec("T: {float, double} = double");
  EXPECT_EQ(a.kind, "type");
  EXPECT_EQ(a.allowed.size(), 2u);
  EXPECT_EQ(*a.default_value.get_if<DType>(), DType::kDouble);
  a = parse_attr_spec("padding: {'SAME', 'VALID'}");
  EXPECT_EQ(a.kind, "string");
  EXPECT_FALSE(a.default_value.has_value());
  a = parse_attr_spec("dilations: list(int) >= 1 = [1, 1, -1]");
  EXPECT_EQ(a.kind, "list(int)");
  EXPECT_TRUE(a.has_minimum);
  EXPECT_EQ(*a.default_value.get_if<std::vector<int64_t>>(), (std::vector<int64_t>{1, 1, -1}));
  a = parse_attr_spec("shape: shape = {unknown_rank: true}");
  EXPECT_FALSE(a.default_value.get_if<Shape>()->known_rank());
  a = parse_attr_spec("epsilon: float = 1e-3");
  EXPECT_FLOAT_EQ(*a.default_value.get_if<float>(), 1e-3f);
  a = parse_attr_spec("T: list({int32, int64})");
  EXPECT_EQ(a.kind, "list(type)");
  EXPECT_THROW(parse_attr_spec("T float"), Error);
  EXPECT_THROW(parse_attr_spec("b: bool = maybe"), Error);
}

TEST(Window, AgreesWithTheReferenceVectors) {
  struct Row {
    int64_t in, k, s, d, out, before, after, valid;
  };
  for (const Row& r : std::vector<Row>{{5, 3, 1, 1, 5, 1, 1, 3},
                                       {5, 3, 2, 1, 3, 1, 1, 2},
                                       {6, 3, 2, 1, 3, 0, 1, 2},
                                       {7, 2, 2, 1, 4, 0, 1, 3},
                                       {224, 7, 2, 1, 112, 2, 3, 109},
                                       {5, 4, 1, 1, 5, 1, 2, 2},
                                       {8, 3, 1, 2, 8, 2, 2, 4},
                                       {10, 3, 3, 2, 4, 2, 2, 2},
                                       {5, 1, 2, 1, 3, 0, 0, 3}}) {
    const Window same = window(r.in, r.k, r.s, r.d, "SAME"), valid = window(r.in, r.k, r.s, r.d, "VALID");
    EXPECT_EQ(same.out, r.out);
    EXPECT_EQ(same.before, r.before);
    EXPECT_EQ(same.after, r.after);
    EXPECT_EQ(valid.out, r.valid);
  }
  EXPECT_THROW(window(2, 5, 1, 1, "VALID"), Error);
}

PartialInts ints(std::vector<int64_t> v) {
  PartialInts p;
  for (int64_t x : v) p.values.emplace_back(x);
  return p;
}

TEST(StridedSlice, ResolvesMasksNegativesAndEllipsis) {
  auto dims = [](Shape in, std::vector<int64_t> b, std::vector<int64_t> e, std::vector<int64_t> s, int bm = 0,
                 int em = 0, int el = 0, int na = 0, int sh = 0) {
    return resolve_strided_slice(in, ints(b), ints(e), ints(s), bm, em, el, na, sh).final_dims;
  };
  EXPECT_EQ(dims({5, 6}, {1}, {-1}, {1}), (Dims{3, 6}));
  EXPECT_EQ(dims({5, 6}, {0, 0}, {0, 0}, {-1, 2}, 3, 3), (Dims{5, 3}));             // x[::-1, ::2]
  EXPECT_EQ(dims({5, 6, 7}, {0, 2}, {0, 0}, {1, 1}, 0, 0, 1, 0, 2), (Dims{5, 6}));  // x[..., 2]
  EXPECT_EQ(dims({5}, {0, 0}, {0, 0}, {1, 1}, 2, 2, 0, 1), (Dims{1, 5}));           // x[newaxis, :]
  EXPECT_EQ(dims({5}, {4}, {1}, {1}), (Dims{0}));
  EXPECT_THROW(dims({5}, {5}, {6}, {1}, 0, 0, 0, 0, 1), Error);
  EXPECT_THROW(dims({5}, {0, 0}, {1, 1}, {1, 1}), Error);
  EXPECT_THROW(dims({5}, {0}, {1}, {0}), Error);
}

TEST(Broadcast, TreatsUnknownDimsAsTheReferenceSays) {
  EXPECT_EQ(*broadcast_shapes({-1}, {3}), (Shape{3}));
  EXPECT_EQ(*broadcast_shapes({-1}, {1}), (Shape{-1}));
  EXPECT_EQ(*broadcast_shapes({2, 1}, {3}), (Shape{2, 3}));
  EXPECT_FALSE(broadcast_shapes({2}, {3}).has_value());
  EXPECT_FALSE(broadcast_shapes(Shape(), {3})->known_rank());
}

}  // namespace
}  // namespace sluice::graph
