// Shape rules of array, state and control ops, and TensorFlow's wording where they fail.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/graph/ops_build.h"

namespace sluice::graph {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class OpShape : public ::testing::Test, protected OpsGraph {
 protected:
  Output resource(Shape s) {
    return op("VarHandleOp", {}, {{"dtype", DType::kFloat}, {"shape", std::move(s)}});
  }
  Output reference(Shape s, DType t = DType::kFloat) {
    return op("VariableV2", {}, {{"dtype", t}, {"shape", std::move(s)}});
  }
};

// TensorFlow's words; its shape rules of the Apply ops leave the check to the run.
TEST_F(OpShape, ResourceOpsHaveTheTypeOfTheirVariable) {
  const Output v =
      g.add(
           {.op = "VarHandleOp", .name = "weights", .attrs = {{"dtype", DType::kFloat}, {"shape", Shape{2}}}})
          .output();
  const Output same = op("Identity", {v}), i = vec({1, 2});
  const Output d = in(Dims{2}, "d", DType::kDouble), rate = in(Dims{}, "rate", DType::kDouble);
  const AttrMap as_int{{"dtype", DType::kInt32}};
  for (const std::string& e :
       {error("ReadVariableOp", {v}, as_int), error("ReadVariableOp", {same}, as_int),
        error("AssignVariableOp", {v, i}), error("AssignAddVariableOp", {v, i}),
        error("ResourceGather", {v, i}, as_int), error("ResourceScatterAdd", {v, i, i})})
    EXPECT_THAT(e, AllOf(HasSubstr("Trying to read variable with wrong dtype. Expected float got int32"),
                         HasSubstr("the variable is 'weights' [2]")));
  EXPECT_THAT(error("ResourceApplyGradientDescent", {v, rate, d}), HasSubstr("Expected float got double"));
  EXPECT_EQ(op("ReadVariableOp", {same}, {{"dtype", DType::kFloat}}).shape(), (Shape{2}));
}

TEST_F(OpShape, TheStandardOpsAllParse) { EXPECT_GT(standard_ops().names().size(), 250u); }

TEST_F(OpShape, ErrorsNameNodeOpAndShapes) {
  EXPECT_EQ(
      error("Reshape", {in(Dims{2, 3}), vec({4, 2})}),
      "Cannot reshape a tensor with 6 elements to shape [4,2] (8 elements) for 'Reshape' (op: 'Reshape') "
      "with input shapes: [2,3], [2].");
}

TEST_F(OpShape, Reshape) {
  EXPECT_EQ(shape("Reshape", {in(Dims{2, 6}), vec({4, -1})}), (Shape{4, 3}));
  EXPECT_EQ(shape("Reshape", {in(Dims{-1, 3}), vec({-1, 6})}), (Shape{-1, 6}));
  EXPECT_EQ(shape("Reshape", {in(Dims{0, 3}), vec({0, -1})}), (Shape{0, -1}));
  EXPECT_EQ(shape("Reshape", {in(Dims{2, 3}), ints_in(Dims{3})}), Shape::of_rank(3));
  EXPECT_EQ(shape("Reshape", {in(Dims{2, 3}), ints_in(Dims{-1})}), Shape());
  EXPECT_THAT(error("Reshape", {in(Dims{2, 3}), vec({4, -1})}),
              StartsWith("Dimension size must be evenly divisible by 4 but is 6"));
  EXPECT_THAT(error("Reshape", {in(Dims{2, 3}), matrix({1, 1}, {6})}),
              StartsWith("Shape must be rank 1 but is rank 2"));
}

TEST_F(OpShape, ExpandDimsAndSqueeze) {
  EXPECT_EQ(shape("ExpandDims", {in(Dims{2, 3}), scalar(-1)}), (Shape{2, 3, 1}));
  EXPECT_EQ(shape("ExpandDims", {in(Dims{2, 3}), vec({1})}), (Shape{2, 1, 3}));
  EXPECT_EQ(shape("ExpandDims", {in(Dims{2, 3}), ints_in(Dims{})}), Shape::of_rank(3));
  EXPECT_THAT(error("ExpandDims", {in(Dims{2, 3}), scalar(4)}),
              StartsWith("dim 4 not in the interval [-3, 2]."));
  EXPECT_THAT(error("ExpandDims", {in(Dims{2, 3}), vec({1, 2})}),
              StartsWith("'dim' input must be a tensor with a single value"));
  const std::vector<int64_t> zero{0}, two{2};
  EXPECT_EQ(shape("Squeeze", {in(Dims{1, 3, 1})}), (Shape{3}));
  EXPECT_EQ(shape("Squeeze", {in(Dims{-1, 1})}), Shape());
  EXPECT_EQ(shape("Squeeze", {in(Dims{-1, 1})}, {{"squeeze_dims", zero}}), (Shape{1}));
  EXPECT_THAT(error("Squeeze", {in(Dims{2, 1})}, {{"squeeze_dims", two}}),
              StartsWith("squeeze_dims[0] not in [-2,2)."));
  EXPECT_THAT(error("Squeeze", {in(Dims{2, 1})}, {{"squeeze_dims", zero}}),
              StartsWith("Can not squeeze dim[0], expected a dimension of 1, got 2"));
}

TEST_F(OpShape, Transpose) {
  EXPECT_EQ(shape("Transpose", {in(Dims{2, 3, -1}), vec({2, 0, 1})}), (Shape{-1, 2, 3}));
  EXPECT_EQ(shape("Transpose", {in({}), ints_in(Dims{3})}), Shape::of_rank(3));
  EXPECT_THAT(error("Transpose", {in(Dims{2, 3}), vec({0})}), StartsWith("Dimension must be 2 but is 1"));
  EXPECT_THAT(error("Transpose", {in(Dims{2, 3}), vec({0, 2})}),
              StartsWith("perm dim 2 is out of range of input rank 2"));
  EXPECT_THAT(error("Transpose", {in(Dims{2, 3}), vec({0, 0})}), StartsWith("1 is missing from"));
}

TEST_F(OpShape, Concat) {
  EXPECT_EQ(shape("ConcatV2", {in(Dims{2, 3}), in(Dims{-1, 4}), scalar(1)}), (Shape{2, 7}));
  EXPECT_EQ(shape("ConcatV2", {in(Dims{2, 3}), in(Dims{2, -1}), scalar(-1)}), (Shape{2, -1}));
  EXPECT_EQ(shape("ConcatV2", {in(Dims{2, 3}), in(Dims{2, 4}), ints_in(Dims{})}), Shape::of_rank(2));
  EXPECT_EQ(shape("ConcatV2", {in({}), in(Dims{2, 3}), scalar(0)}), (Shape{-1, 3}));
  EXPECT_EQ(shape("Concat", {scalar(-1), in(Dims{2, 3}), in(Dims{2, 3})}), (Shape{2, 6}));
  EXPECT_THAT(error("ConcatV2", {in(Dims{2}), in(Dims{2, 3}), scalar(0)}),
              StartsWith("Shape must be rank 1 but is rank 2"));
  EXPECT_THAT(
      error("ConcatV2", {in(Dims{2, 3}), in(Dims{3, 3}), scalar(1)}),
      StartsWith("Dimension 0 in both shapes must be equal, but are 2 and 3. Shapes are [2] and [3]."));
  EXPECT_THAT(error("ConcatV2", {in(Dims{}), in(Dims{}), scalar(0)}),
              StartsWith("Can't concatenate scalars (use tf.stack instead)"));
  EXPECT_THAT(error("ConcatV2", {in(Dims{2, 3}), in(Dims{2, 3}), scalar(-3)}),
              StartsWith("Shape must be at least rank 3 but is rank 2"));
}

TEST_F(OpShape, Split) {
  EXPECT_EQ(shape("Split", {scalar(1), in(Dims{2, 4})}, {{"num_split", 2}}), (Shape{2, 2}));
  EXPECT_EQ(shape("Split", {ints_in(Dims{}), in(Dims{2, 4})}, {{"num_split", 2}}), Shape::of_rank(2));
  EXPECT_THAT(
      error("Split", {scalar(1), in(Dims{2, 3})}, {{"num_split", 2}}),
      StartsWith("Dimension size must be evenly divisible by 2 but is 3\n\tNumber of ways to split should "
                 "evenly divide the split dimension"));
  EXPECT_THAT(error("Split", {scalar(2), in(Dims{2, 3})}, {{"num_split", 2}}),
              StartsWith("Dimension size, given by scalar input 2 must be in range [-2, 2)"));
}

TEST_F(OpShape, SplitV) {
  auto split = [&](std::vector<int32_t> sizes) {
    return add("SplitV", {in(Dims{2, 3}), vec(std::move(sizes)), scalar(1)}, {{"num_split", 2}});
  };
  EXPECT_EQ(split({1, -1}).output(1).shape(), (Shape{2, 2}));
  auto why = [&](std::vector<int32_t> sizes) {
    return error("SplitV", {in(Dims{2, 3}), vec(std::move(sizes)), scalar(1)}, {{"num_split", 2}});
  };
  EXPECT_THAT(why({1, 1}), StartsWith("can't split axis of size 3 into pieces of size [1,1]"));
  EXPECT_THAT(why({-1, -1}), StartsWith("size_splits can only have one -1"));
  EXPECT_THAT(why({4, -1}), StartsWith("Split size at index 1 must be >= 0. Got: -1"));
  EXPECT_THAT(why({3}), StartsWith("Length of size_splits should be equal to num_outputs"));
}

TEST_F(OpShape, PackAndUnpack) {
  EXPECT_EQ(shape("Pack", {in(Dims{2, -1}), in(Dims{-1, 3})}, {{"axis", -1}}), (Shape{2, 3, 2}));
  EXPECT_THAT(
      error("Pack", {in(Dims{2}), in(Dims{3})}),
      StartsWith("Dimension 0 in both shapes must be equal, but are 2 and 3. Shapes are [2] and [3]."));
  EXPECT_THAT(error("Pack", {in(Dims{2}), in(Dims{2, 2})}),
              StartsWith("Shapes must be equal rank, but are 1 and 2"));
  EXPECT_THAT(error("Pack", {in(Dims{2}), in(Dims{2})}, {{"axis", 2}}),
              StartsWith("Invalid axis: 2; must be in [-2,2)"));
  EXPECT_EQ(shape("Unpack", {in(Dims{2, 3})}, {{"num", 3}, {"axis", 1}}), (Shape{2}));
  EXPECT_THAT(error("Unpack", {in(Dims{2, 3})}, {{"num", 3}}), StartsWith("Dimension must be 3 but is 2"));
}

TEST_F(OpShape, Slice) {
  EXPECT_EQ(shape("Slice", {in(Dims{2, 3}), vec({1, 1}), vec({-1, -1})}), (Shape{1, 2}));
  EXPECT_EQ(shape("Slice", {in(Dims{2, 3}), ints_in(Dims{2}), vec({2, -1})}), (Shape{2, -1}));
  EXPECT_EQ(shape("Slice", {in(Dims{-1, 3}), vec({1, 1}), vec({-1, 2})}), (Shape{-1, 2}));
  EXPECT_THAT(error("Slice", {in(Dims{2, 3}), vec({0, 4}), vec({2, -1})}),
              StartsWith("Negative dimension size caused by subtracting 4 from 3"));
  EXPECT_THAT(error("Slice", {in(Dims{2, 3}), vec({0, 2}), vec({2, 2})}),
              StartsWith("Expected size[1] in [0, 1], but got 2"));
  EXPECT_THAT(error("Slice", {in(Dims{2, 3}), vec({0, 0, 0}), vec({2, 1, 1})}),
              StartsWith("Shape must be rank 3 but is rank 2"));
}

TEST_F(OpShape, StridedSlice) {
  auto slice = [&](AttrMap masks, std::vector<int32_t> b, std::vector<int32_t> e, std::vector<int32_t> s) {
    return shape("StridedSlice",
                 {in(Dims{4, -1, 6}), vec(std::move(b)), vec(std::move(e)), vec(std::move(s))},
                 std::move(masks));
  };
  EXPECT_EQ(slice({}, {1, 0, -1}, {3, 2, 0}, {1, 1, -2}), (Shape{2, -1, 3}));
  EXPECT_EQ(slice({{"shrink_axis_mask", 1}}, {-1}, {0}, {1}), (Shape{-1, 6}));
  EXPECT_EQ(slice({{"ellipsis_mask", 2}, {"new_axis_mask", 1}}, {0, 0, 1}, {0, 0, 3}, {1, 1, 1}),
            (Shape{1, 4, -1, 2}));
  auto why = [&](AttrMap masks, std::vector<int32_t> b, std::vector<int32_t> s) {
    std::vector<int32_t> e = b;
    for (int32_t& v : e) ++v;
    return error("StridedSlice", {in(Dims{2, 3}), vec(std::move(b)), vec(std::move(e)), vec(std::move(s))},
                 std::move(masks));
  };
  EXPECT_THAT(why({{"shrink_axis_mask", 1}}, {5}, {1}),
              StartsWith("slice index 5 of dimension 0 out of bounds. for 'StridedSlice"));
  EXPECT_THAT(why({}, {0, 0, 0}, {1, 1, 1}),
              StartsWith("Index out of range using input dim 2; input has only 2 dims"));
  EXPECT_THAT(why({}, {0}, {0}), StartsWith("strides[0] must be non-zero"));
  EXPECT_THAT(why({{"shrink_axis_mask", 1}}, {0}, {-1}),
              StartsWith("only stride 1 allowed on non-range indexing."));
  EXPECT_THAT(why({{"ellipsis_mask", 3}}, {0, 0}, {1, 1}),
              StartsWith("Multiple ellipses in slice spec not allowed"));
}

TEST_F(OpShape, Padding) {
  EXPECT_EQ(shape("Pad", {in(Dims{2, -1}), matrix({2, 2}, {1, 1, 0, 2})}), (Shape{4, -1}));
  EXPECT_EQ(shape("Pad", {in({}), ints_in(Dims{2, 2})}), Shape::of_rank(2));
  EXPECT_EQ(shape("MirrorPadGrad", {in(Dims{6, 5}), matrix({2, 2}, {2, 1, 1, 1})}, {{"mode", "REFLECT"}}),
            (Shape{3, 3}));
  EXPECT_THAT(error("Pad", {in(Dims{2, 3}), matrix({1, 2}, {1, 1})}),
              StartsWith("Shape must be rank 1 but is rank 2"));
  EXPECT_THAT(error("Pad", {in(Dims{2, 3}), matrix({2, 3}, {1, 1, 1, 1, 1, 1})}),
              StartsWith("Dimension must be 2 but is 3"));
  EXPECT_THAT(error("Pad", {in(Dims{2, 3}), matrix({2, 2}, {-1, 1, 1, 1})}),
              StartsWith("Paddings must be non-negative"));
  EXPECT_THAT(error("MirrorPad", {in(Dims{2, 3}), matrix({2, 2}, {2, 1, 1, 1})}, {{"mode", "REFLECT"}}),
              StartsWith("paddings must be less than the dimension size: 2, 1 not less than 2"));
  EXPECT_THAT(error("MirrorPadGrad", {in(Dims{2, 3}), matrix({2, 2}, {2, 1, 1, 1})}, {{"mode", "REFLECT"}}),
              StartsWith("Negative dimension size caused by subtracting 3 from 2"));
}

TEST_F(OpShape, TileFillRange) {
  EXPECT_EQ(shape("Tile", {in(Dims{2, -1}), vec({3, 0})}), (Shape{6, 0}));
  EXPECT_THAT(error("Tile", {in(Dims{2, 3}), vec({2})}), StartsWith("Shape must be rank 2 but is rank 1"));
  EXPECT_EQ(shape("Fill", {vec({2, 3}), in(Dims{})}), (Shape{2, 3}));
  EXPECT_THAT(error("Fill", {vec({-1}), in(Dims{})}), StartsWith("Fill dimensions must be >= 0"));
  EXPECT_THAT(error("Fill", {vec({1}), in(Dims{1})}), StartsWith("Shape must be rank 0 but is rank 1"));
  EXPECT_EQ(shape("Range", {scalar(0), scalar(10), scalar(3)}), (Shape{4}));
  EXPECT_EQ(shape("Range", {scalar(3), scalar(-4), scalar(-2)}), (Shape{4}));
  EXPECT_EQ(shape("Range", {constant(Literal::scalar(0.f)), constant(Literal::scalar(1.f)),
                            constant(Literal::scalar(.3f))}),
            (Shape{4}));
  EXPECT_THAT(error("Range", {scalar(0), scalar(3), scalar(0)}), StartsWith("Requires delta != 0"));
  EXPECT_THAT(error("Range", {scalar(3), scalar(0), scalar(1)}),
              StartsWith("Requires start <= limit when delta > 0: 3/0"));
  EXPECT_THAT(error("Range", {vec({0}), scalar(3), scalar(1)}),
              StartsWith("Shape must be rank 0 but is rank 1\n\t for 'start'"));
  EXPECT_THAT(error("LinSpace", {in(Dims{}), in(Dims{}), scalar(0)}), StartsWith("Requires num > 0: 0"));
}

TEST_F(OpShape, OneHot) {
  EXPECT_EQ(shape("OneHot", {ints_in(Dims{2}), scalar(3), in(Dims{}), in(Dims{})}), (Shape{2, 3}));
  EXPECT_EQ(shape("OneHot", {ints_in(Dims{2}), scalar(3), in(Dims{}), in(Dims{})}, {{"axis", 0}}),
            (Shape{3, 2}));
  EXPECT_THAT(error("OneHot", {ints_in(Dims{2}), scalar(-1), in(Dims{}), in(Dims{})}),
              StartsWith("Dimension size, given by scalar input 1, must be non-negative but is -1"));
}

TEST_F(OpShape, GatherAndScatter) {
  EXPECT_EQ(shape("Gather", {in(Dims{5, 3}), ints_in(Dims{2, 2})}), (Shape{2, 2, 3}));
  EXPECT_EQ(shape("GatherV2", {in(Dims{5, 3}), ints_in(Dims{2}), ints_in(Dims{})}), Shape::of_rank(2));
  EXPECT_THAT(error("GatherV2", {in(Dims{2, 3}), vec({0}), scalar(2)}),
              StartsWith("Shape must be at least rank 3 but is rank 2"));
  EXPECT_THAT(error("GatherV2", {in(Dims{2, 3}), ints_in(Dims{3, 1}), scalar(1)}, {{"batch_dims", 1}}),
              StartsWith("Dimension 0 in both shapes must be equal, but are 2 and 3."));
  EXPECT_EQ(shape("GatherNd", {in(Dims{4, 5, 3}), ints_in(Dims{7, 2})}), (Shape{7, 3}));
  EXPECT_THAT(
      error("GatherNd", {in(Dims{2, 3}), ints_in(Dims{1, 3})}),
      StartsWith("indices.shape[-1] must be <= params.rank, but saw indices shape: [1,3] and params shape: "
                 "[2,3]"));
  EXPECT_EQ(shape("ScatterNd", {ints_in(Dims{2, 1}), in(Dims{2, 3}), vec({7, 3})}), (Shape{7, 3}));
  EXPECT_THAT(
      error("ScatterNd", {ints_in(Dims{2, 1}), in(Dims{3, 3}), vec({7, 3})}),
      StartsWith("Dimensions [0,1) of indices[shape=[2,1]] = [2] must match dimensions [0,1) of "
                 "updates[shape=[3,3]] = [3]: Dimension 0 in both shapes must be equal, but are 2 and 3. "
                 "Shapes are [2] and [3]."));
  EXPECT_THAT(error("ScatterNd", {ints_in(Dims{2, 1}), in(Dims{2, 4}), vec({7, 3})}),
              StartsWith("Dimensions [1,2) of input[shape=[7,3]] = [3] must match dimensions [1,2) of "
                         "updates[shape=[2,4]] = [4]: "));
  EXPECT_EQ(shape("DynamicStitch", {vec({0, 5}), in(Dims{2, 3})}), (Shape{6, 3}));
  EXPECT_EQ(shape("Where", {in(Dims{2, 3}, "b", DType::kBool)}), (Shape{-1, 2}));
  EXPECT_THAT(error("UnsortedSegmentSum", {in(Dims{2, 3}), vec({0, 1}), scalar(-4)}),
              StartsWith("Dimension size, given by scalar input 2, must be non-negative but is -4"));
}

TEST_F(OpShape, BroadcastToAndReverse) {
  EXPECT_EQ(shape("BroadcastTo", {in(Dims{-1, 3}), vec({2, 3})}), (Shape{2, 3}));
  EXPECT_THAT(error("BroadcastTo", {in(Dims{2, 3}), vec({2, 4})}),
              StartsWith("Dimensions must be equal, but are 3 and 4"));
  EXPECT_THAT(error("BroadcastTo", {in(Dims{2, 3}), vec({3})}),
              StartsWith("Shape must be at most rank 1 but is rank 2"));
  EXPECT_THAT(error("ReverseV2", {in(Dims{2, 3}), vec({2})}),
              StartsWith("'axis'[0] = 2 is out of valid range"));
  EXPECT_THAT(error("ReverseV2", {in(Dims{2, 3}), vec({1, 1})}),
              StartsWith("axis 1 specified more than once."));
}

TEST_F(OpShape, PlaceholdersAndChecks) {
  EXPECT_EQ(shape("Placeholder", {}, {{"dtype", DType::kFloat}}), Shape());
  EXPECT_EQ(shape("PlaceholderWithDefault", {in(Dims{2, 3})}, {{"shape", Shape{-1, 3}}}), (Shape{-1, 3}));
  EXPECT_THAT(error("PlaceholderWithDefault", {in(Dims{2, 3})}, {{"shape", Shape{2, 4}}}),
              StartsWith("Dimension 1 in both shapes must be equal, but are 3 and 4."));
  EXPECT_EQ(shape("EnsureShape", {in(Dims{-1, 3})}, {{"shape", Shape{2, -1}}}), (Shape{2, 3}));
  EXPECT_THAT(error("CheckNumerics", {ints_in(Dims{2})}, {{"message", "m"}}),
              HasSubstr("not in list of allowed values"));
  EXPECT_EQ(shape("Bitcast", {in(Dims{2, 3})}, {{"type", DType::kInt8}}), (Shape{2, 3, 4}));
  EXPECT_EQ(shape("Bitcast", {in(Dims{2, 4}, "b", DType::kInt8)}, {{"type", DType::kInt32}}), (Shape{2}));
  EXPECT_THAT(error("Bitcast", {in(Dims{2, 3}, "b", DType::kInt8)}, {{"type", DType::kInt32}}),
              HasSubstr("due to shape. 3 does not match 4"));
}

TEST_F(OpShape, ResourceVariables) {
  const Output v = resource({2, 3});
  EXPECT_EQ(shape("ReadVariableOp", {v}, {{"dtype", DType::kFloat}}), (Shape{2, 3}));
  EXPECT_EQ(shape("VariableShape", {v}), (Shape{2}));
  EXPECT_THAT(
      error("AssignVariableOp", {v, in(Dims{2, 4})}),
      StartsWith("Dimension 1 in both shapes must be equal, but are 3 and 4. Shapes are [2,3] and [2,4]."));
  EXPECT_THAT(error("ResourceScatterAdd", {v, vec({0, 1, 1}), in(Dims{2, 3})}),
              StartsWith("Dimension 0 in both shapes must be equal, but are 2 and 3."));
  EXPECT_EQ(error("ResourceScatterAdd", {v, vec({0, 1, 1}), in(Dims{})}), "");
}

TEST_F(OpShape, ReferenceVariables) {
  const Output v = reference({2, 3});
  EXPECT_EQ(shape("Assign", {v, in(Dims{-1, 3})}), (Shape{2, 3}));
  EXPECT_EQ(shape("Assign", {v, in(Dims{4})}, {{"validate_shape", false}}), (Shape{4}));
  EXPECT_THAT(error("Assign", {v, in(Dims{2, 4})}), HasSubstr("Dimension 1 in both shapes must be equal"));
  EXPECT_THAT(error("Assign", {in(Dims{2, 3}), in(Dims{2, 3})}), HasSubstr("expected ref type"));
  EXPECT_EQ(shape("CountUpTo", {reference(Shape::scalar(), DType::kInt32)}, {{"limit", 3}}), Shape::scalar());
}

TEST_F(OpShape, Updates) {
  const Output v = reference({2, 3}), a = reference({2, 3}), r = resource({2, 3});
  EXPECT_EQ(shape("ApplyMomentum", {v, a, in(Dims{}), in(Dims{2, 3}), in(Dims{})}), (Shape{2, 3}));
  EXPECT_THAT(error("ApplyMomentum", {v, reference({2, 4}), in(Dims{}), in(Dims{2, 3}), in(Dims{})}),
              HasSubstr("Dimension 1 in both shapes must be equal, but are 3 and 4."));
  EXPECT_THAT(error("ApplyGradientDescent", {v, in(Dims{1}), in(Dims{2, 3})}),
              StartsWith("Shape must be rank 0 but is rank 1"));
  EXPECT_THAT(
      error("ResourceApplyGradientDescent", {r, in(Dims{}), in(Dims{2, 4})}),
      StartsWith("Dimension 1 in both shapes must be equal, but are 3 and 4. Shapes are [2,3] and [2,4]."));
  EXPECT_THAT(error("SparseApplyMomentum", {v, a, in(Dims{}), in(Dims{2, 3}), vec({0, 1, 1}), in(Dims{})}),
              HasSubstr("Dimensions must be equal, but are 3 and 2"));
  EXPECT_THAT(
      error("SparseApplyMomentum", {v, a, in(Dims{}), in(Dims{2, 4}), vec({0, 1}), in(Dims{})}),
      StartsWith("Dimension 1 in both shapes must be equal, but are 3 and 4. Shapes are [2,3] and [?,4]."));
}

TEST_F(OpShape, ControlFlow) {
  const Output p = in(Dims{}, "p", DType::kBool);
  EXPECT_EQ(add("Switch", {in(Dims{2}), p}).output(1).shape(), (Shape{2}));
  EXPECT_EQ(shape("Merge", {in(Dims{2, 3}), in(Dims{2, 4})}), (Shape{2, -1}));
  EXPECT_EQ(shape("Merge", {in(Dims{2, 3}), in(Dims{4})}), Shape());
  EXPECT_EQ(shape("Enter", {in(Dims{2})}, {{"frame_name", "f"}}), Shape());
  EXPECT_EQ(shape("Enter", {in(Dims{2})}, {{"frame_name", "f"}, {"is_constant", true}}), (Shape{2}));
  EXPECT_THAT(error("LoopCond", {in(Dims{1}, "b", DType::kBool)}),
              StartsWith("Shape must be rank 0 but is rank 1"));
}

TEST_F(OpShape, Checkpoints) {
  auto strings = [&](std::vector<std::string> s) { return constant(Literal::strings(std::move(s))); };
  const Output prefix = constant(Literal::scalar("model"));
  EXPECT_THAT(error("SaveV2", {prefix, strings({"x", "y"}), strings({""}), in(Dims{2})}),
              StartsWith("Dimension must be 1 but is 2"));
  const std::vector<DType> two{DType::kFloat, DType::kFloat};
  Node& r = add("RestoreV2", {prefix, strings({"x", "y"}), strings({"", "2 3 0,2:0,1"})}, {{"dtypes", two}});
  EXPECT_EQ(r.output(0).shape(), Shape());
  EXPECT_EQ(r.output(1).shape(), (Shape{2, 1}));
  EXPECT_THAT(error("RestoreV2", {prefix, strings({"x"}), strings({""})}, {{"dtypes", two}}),
              StartsWith("The number of shape_and_slice doesn't match tensor outputs."));
  EXPECT_EQ(shape("StringJoin", {in(Dims{}, "s", DType::kString), strings({"a", "b"})}), (Shape{2}));
}

TEST_F(OpShape, RandomShapes) {
  EXPECT_EQ(shape("RandomUniform", {vec({2, 3})}, {{"dtype", DType::kFloat}}), (Shape{2, 3}));
  EXPECT_THAT(error("RandomUniform", {ints_in(Dims{2, 2})}, {{"dtype", DType::kFloat}}),
              StartsWith("Shape must be rank 1 but is rank 2"));
  EXPECT_THAT(error("RandomUniformInt", {vec({2}), vec({1}), scalar(2)}),
              StartsWith("minval must be a scalar; got a tensor of shape [1]"));
}

TEST_F(OpShape, AttrsOfLaterTensorFlowsAreDroppedAtTheirDefault) {
  const AttrMap attrs{{"dtype", DType::kFloat},         {"shape", Shape{2}}, {"debug_name", "v/"},
                      {"allowed_devices", EmptyList{}}, {"container", ""},   {"shared_name", "v"}};
  Node& v = g.import_node({.name = "v", .op = "VarHandleOp", .attrs = attrs}, 2000);
  EXPECT_EQ(v.find_attr("debug_name"), nullptr);
  AttrMap other = attrs;
  other["allowed_devices"] = std::vector<std::string>{"/device:CPU:0"};
  EXPECT_THROW(g.import_node({.name = "w", .op = "VarHandleOp", .attrs = other}, 2000), Error);
}

TEST_F(OpShape, ImageSummaryHasTensorFlowsBadColor) {
  Node& n = add("ImageSummary", {constant(Literal::scalar("t")), in(Dims{1, 2, 2, 3})});
  EXPECT_EQ(n.attr<Literal>("bad_color"), (Literal::vector<uint8_t>({255, 0, 0, 255})));
}

}  // namespace
}  // namespace sluice::graph
