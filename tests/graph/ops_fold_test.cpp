// Values of the integer subgraphs that feed shapes are known while the graph is built, in part if need be.
#include <gtest/gtest.h>

#include "graph/fold.h"
#include "tests/graph/ops_build.h"

namespace sluice::graph {
namespace {

class OpFold : public ::testing::Test, protected OpsGraph {
 protected:
  /// "[2,?,3]", "7" or "nothing".
  std::string value(Output o) {
    const auto p = partial_value(o);
    if (!p) return "nothing";
    std::string s;
    for (const auto& v : p->values) s += (s.empty() ? "" : ",") + (v ? std::to_string(*v) : std::string("?"));
    if (p->dims().size() > 1) s = dims_string(p->dims()) + s;
    return p->scalar ? s : "[" + s + "]";
  }
  Output at(Output v, int32_t i) {
    return op("StridedSlice", {v, vec({i}), vec({i + 1}), vec({1})}, {{"shrink_axis_mask", 1}});
  }
};

TEST_F(OpFold, ReshapeKeepsWhatIsKnownThroughShapeArithmetic) {
  const Output x = in(Dims{-1, 3, 4});
  const Output target = op("Pack", {scalar(-1), at(op("Shape", {x}), 1)});
  EXPECT_EQ(value(target), "[-1,3]");
  EXPECT_EQ(shape("Reshape", {x, target}), (Shape{-1, 3}));
  const Output flat = op("Pack", {at(op("Shape", {x}), 0), scalar(12)});
  EXPECT_EQ(value(flat), "[?,12]");
  EXPECT_EQ(shape("Reshape", {x, flat}), (Shape{-1, 12}));
}

TEST_F(OpFold, ReadersOfShapes) {
  const Output x = in(Dims{2, -1, 4});
  EXPECT_EQ(value(op("Shape", {x})), "[2,?,4]");
  EXPECT_EQ(value(op("Rank", {x})), "3");
  EXPECT_EQ(value(op("Size", {in(Dims{2, 5})})), "10");
  EXPECT_EQ(value(op("Size", {x})), "nothing");
  Node& all = add("ShapeN", {in(Dims{1}), in(Dims{-1, 2})});
  EXPECT_EQ(value(all.output(1)), "[?,2]");
  const Output v = op("VarHandleOp", {}, {{"dtype", DType::kFloat}, {"shape", Shape{7, 8}}});
  EXPECT_EQ(value(op("VariableShape", {v})), "[7,8]");
}

TEST_F(OpFold, JoiningAndCutting) {
  const Output s = op("Shape", {in(Dims{2, -1, 4})});
  EXPECT_EQ(value(op("ConcatV2", {s, vec({9}), scalar(0)})), "[2,?,4,9]");
  EXPECT_EQ(value(op("Slice", {s, vec({1}), vec({-1})})), "[?,4]");
  EXPECT_EQ(value(op("StridedSlice", {s, vec({-1}), vec({-4}), vec({-1})})), "[4,?,2]");
  EXPECT_EQ(value(op("GatherV2", {s, vec({2, 0, 0}), scalar(0)})), "[4,2,2]");
  EXPECT_EQ(value(op("ReverseV2", {s, vec({0})})), "[4,?,2]");
  EXPECT_EQ(value(op("Tile", {vec({1, 2}), vec({2})})), "[1,2,1,2]");
  Node& parts = add("Split", {scalar(0), vec({1, 2, 3, 4})}, {{"num_split", 2}});
  EXPECT_EQ(value(parts.output(1)), "[3,4]");
  Node& each = add("Unpack", {s}, {{"num", 3}});
  EXPECT_EQ(value(each.output(2)), "4");
  EXPECT_EQ(value(each.output(1)), "?");
}

TEST_F(OpFold, OffsetsOfAConcatenation) {
  Node& n =
      add("ConcatOffset", {scalar(1), vec({2, 3}), vec({2, 4}), op("Shape", {in(Dims{2, -1})}), vec({2, 5})});
  EXPECT_EQ(value(n.output(0)), "[0,0]");
  EXPECT_EQ(value(n.output(2)), "[0,7]");
  EXPECT_EQ(value(n.output(3)), "[0,?]");
}

TEST_F(OpFold, TensorsMadeFromARule) {
  EXPECT_EQ(value(op("Range", {scalar(0), op("Rank", {in(Dims{5, 5, 5})}), scalar(1)})), "[0,1,2]");
  EXPECT_EQ(value(op("Fill", {vec({3}), scalar(7)})), "[7,7,7]");
  EXPECT_EQ(value(op("OnesLike", {vec({5, 6})})), "[1,1]");
  EXPECT_EQ(value(op("ZerosLike", {in(Dims{2})})), "nothing");  // floats are the plan's business
  EXPECT_EQ(value(op("ExpandDims", {scalar(3), scalar(0)})), "[3]");
  EXPECT_EQ(value(op("Squeeze", {vec({3})})), "3");
  EXPECT_EQ(value(op("InvertPermutation", {vec({2, 0, 1})})), "[1,2,0]");
  EXPECT_EQ(
      value(op("DynamicStitch", {vec({0, 1, 2}), vec({1}), op("Shape", {in(Dims{-1, 3, 4})}), vec({1})})),
      "[?,1,4]");
}

TEST_F(OpFold, MatricesOfIntegers) {
  const Output pairs = op("Pack", {vec({2, 3}), op("Shape", {in(Dims{-1, 5})})});
  EXPECT_EQ(value(pairs), "[[2,2]2,3,?,5]");
  const Output turned = op("Transpose", {pairs, vec({1, 0})});
  EXPECT_EQ(value(turned), "[[2,2]2,?,3,5]");
  EXPECT_EQ(value(op("Reshape", {turned, vec({-1})})), "[2,?,3,5]");
  const Output paddings = op("ConcatV2", {matrix({2, 1}, {1, 0}), matrix({2, 1}, {1, 2}), scalar(1)});
  EXPECT_EQ(shape("Pad", {in(Dims{4, -1}), paddings}), (Shape{6, -1}));
  EXPECT_EQ(constant_value(paddings)->dims(), (Dims{2, 2}));
}

TEST_F(OpFold, BroadcastGradientArgs) {
  auto axes = [&](Dims a, Dims b) {
    Node& n =
        add("BroadcastGradientArgs", {op("Shape", {in(std::move(a))}), op("Shape", {in(std::move(b))})});
    return value(n.output(0)) + " " + value(n.output(1));
  };
  EXPECT_EQ(axes({2, 3}, {2, 3}), "[] []");
  EXPECT_EQ(axes({2, 3}, {3}), "[] [0]");
  EXPECT_EQ(axes({2, 1}, {1, 3}), "[1] [0]");
  EXPECT_EQ(axes({2, 1}, {1}), "[1] [0,1]");  // both 1: both lists
  EXPECT_EQ(axes({1, 1}, {1, 1}), "[] []");
  EXPECT_EQ(axes({-1, 3}, {3}), "nothing [0]");          // ?: 1 or not decides the first list only
  EXPECT_EQ(axes({-1, 3}, {-1, 3}), "nothing nothing");  // may be the same shape
}

}  // namespace
}  // namespace sluice::graph
