// Shape rules, gradients' shapes and value rules of element-wise ops, reductions and matrix products.

#include "graph/grad.h"
#include "tests/graph/op_shapes.h"

namespace sluice::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int64_t kAny = kUnknownDim;

class MathOps : public OpTest {};

TEST_F(MathOps, BinaryOpsBroadcast) {
  EXPECT_EQ(shape("Add", {Shape{2, 3}, Shape{3}}), "[2,3]");
  EXPECT_EQ(shape("Mul", {Shape{2, 1, kAny}, Shape{5, 4}}), "[2,5,4]");
  EXPECT_EQ(shape("Sub", {Shape{}, Shape{3}}), "<unknown>");
  EXPECT_EQ(shape("Less", {Shape{kAny}, Shape{1}}), "[?]");
}

TEST_F(MathOps, ABroadcastClashIsNamedAsInTensorFlow) {
  EXPECT_THAT(refusal("Add", {Shape{2, 3}, Shape{4}}),
              StartsWith("Dimensions must be equal, but are 3 and 4 for 'Add' (op: 'Add') with input shapes: "
                         "[2,3], [4]."));
}

TEST_F(MathOps, EqualMayAnswerWithAScalarInsteadOfRefusing) {
  EXPECT_THAT(refusal("Equal", {Shape{2}, Shape{3}}), HasSubstr("Dimensions must be equal, but are 2 and 3"));
  EXPECT_EQ(shape("Equal", {Shape{2}, Shape{3}}, {{"incompatible_shape_error", false}}), "[]");
  EXPECT_EQ(shape("Equal", {Shape{2}, Shape{2}}, {{"incompatible_shape_error", false}}), "[2]");
}

TEST_F(MathOps, SumsMergeTheShapesOfTheirTerms) {
  EXPECT_EQ(shape("AddN", {Shape{2, kAny}, Shape{kAny, 3}}), "[2,3]");
  EXPECT_THAT(refusal("AddN", {Shape{2}, Shape{3}}),
              HasSubstr("Dimension 0 in both shapes must be equal, but are 2 and 3. Shapes are [2] and [3]"));
  EXPECT_THAT(refusal("AddN", {Shape{2}, Shape{3, 1}}),
              HasSubstr("Shapes must be equal rank, but are 1 and 2"));
}

TEST_F(MathOps, SelectTakesAScalarAVectorOfRowsOrTheValuesShape) {
  const auto c = [](Shape s) { return Arg(std::move(s), DType::kBool); };
  EXPECT_EQ(shape("Select", {c(Shape::scalar()), Shape{2, 3}, Shape{2, 3}}), "[2,3]");
  EXPECT_EQ(shape("Select", {c(Shape{2}), Shape{2, 3}, Shape{2, 3}}), "[2,3]");
  EXPECT_EQ(shape("Select", {c(Shape()), Shape{kAny, 3}, Shape{2, kAny}}), "[2,3]");
  EXPECT_THAT(refusal("Select", {c(Shape{3}), Shape{2, 3}, Shape{2, 3}}),
              HasSubstr("Dimension 0 in both shapes must be equal, but are 3 and 2. Shapes are [3] and [2]"));
  EXPECT_THAT(refusal("Select", {c(Shape{2, 2}), Shape{2, 3}, Shape{2, 3}}),
              HasSubstr("Dimension 1 in both shapes must be equal, but are 3 and 2"));
  EXPECT_THAT(refusal("Select", {c(Shape{2, 3}), Shape{2, 3, 4}, Shape{2, 3, 4}}),
              HasSubstr("Shapes must be equal rank, but are 3 and 2"));
}

TEST_F(MathOps, SelectV2BroadcastsAllThree) {
  const Arg c(Shape{2, 1}, DType::kBool);
  EXPECT_EQ(shape("SelectV2", {c, Shape{3}, Shape::scalar()}), "[2,3]");
  EXPECT_THAT(refusal("SelectV2", {c, Shape{3}, Shape{4}}),
              HasSubstr("Dimensions must be equal, but are 3 and 4"));
}

TEST_F(MathOps, CastKeepsTheShapeAndChangesTheType) {
  Node& n = make("Cast", {Shape{2, 3}}, {{"DstT", DType::kInt32}});
  EXPECT_EQ(n.output_type(0), DType::kInt32);
  EXPECT_EQ(n.output_shape(0).str(), "[2,3]");
}

TEST_F(MathOps, TypesOutsideTheOpsSetAreRefused) {
  EXPECT_THAT(refusal("Exp", {Arg(Shape{2}, DType::kInt32)}), HasSubstr("int32"));
  EXPECT_THAT(refusal("Sqrt", {Arg(Shape{2}, DType::kBool)}), HasSubstr("bool"));
}

TEST_F(MathOps, ReductionsDropOrKeepTheirAxes) {
  EXPECT_EQ(shape("Sum", {Shape{2, 3, 4}, ints({1})}), "[2,4]");
  EXPECT_EQ(shape("Mean", {Shape{2, 3, 4}, ints({-1, 0})}), "[3]");
  EXPECT_EQ(shape("Max", {Shape{2, 3}, ints({1})}, {{"keep_dims", true}}), "[2,1]");
  EXPECT_EQ(shape("Sum", {Shape{2, 3}, ints({1, -1})}), "[2]");
  EXPECT_EQ(shape("Sum", {Shape{2, 3}, int_scalar(0)}), "[3]");
  EXPECT_EQ(shape("Mean", {Shape{2, 3}, Arg(Shape{1}, DType::kInt32)}), "<unknown>");
  EXPECT_EQ(shape("Mean", {Shape{2, 3}, Arg(Shape{1}, DType::kInt32)}, {{"keep_dims", true}}), "[?,?]");
}

TEST_F(MathOps, AReductionAxisOutOfRangeIsRefused) {
  EXPECT_THAT(refusal("Sum", {Shape{2, 3}, ints({2})}),
              HasSubstr("Invalid reduction dimension 2 for input with 2 dimensions"));
  EXPECT_THAT(refusal("Sum", {Shape{2, 3}, Arg(Shape{1, 1}, DType::kInt32)}),
              HasSubstr("Shape must be at most rank 1"));
}

TEST_F(MathOps, ArgMaxDropsItsAxis) {
  EXPECT_EQ(shape("ArgMax", {Shape{2, 3}, int_scalar(-1)}), "[2]");
  EXPECT_EQ(shape("ArgMin", {Shape{2, 3}, int_scalar(0)}), "[3]");
  EXPECT_EQ(shape("ArgMax", {Shape{2, 3}, Arg(Shape::scalar(), DType::kInt32)}), "[?]");
  EXPECT_EQ(make("ArgMax", {Shape{2, 3}, int_scalar(0)}).output_type(0), DType::kInt64);
  EXPECT_THAT(
      refusal("ArgMax", {Shape{2, 3}, int_scalar(2)}),
      HasSubstr("Dimension (2) must be in the range [-2, 2), where 2 is the number of dimensions in the "
                "input."));
  EXPECT_THAT(refusal("ArgMax", {Shape{2, 3}, ints({1})}), HasSubstr("Shape must be rank 0 but is rank 1"));
}

TEST_F(MathOps, SegmentSumHasAsManyRowsAsItsLastIdSays) {
  EXPECT_EQ(shape("SegmentSum", {Shape{3, 4}, ints({0, 0, 4})}), "[5,4]");
  EXPECT_EQ(shape("SegmentSum", {Shape{3, 4}, Arg(Shape{3}, DType::kInt32)}), "[?,4]");
  EXPECT_THAT(refusal("SegmentSum", {Shape{2, 3}, Arg(Shape{1, 2}, DType::kInt32)}),
              HasSubstr("Shape must be rank 1 but is rank 2"));
}

TEST_F(MathOps, MatMulMultipliesInnerDimensionsAfterTransposition) {
  EXPECT_EQ(shape("MatMul", {Shape{2, 3}, Shape{3, 4}}), "[2,4]");
  EXPECT_EQ(shape("MatMul", {Shape{3, 2}, Shape{4, 3}}, {{"transpose_a", true}, {"transpose_b", true}}),
            "[2,4]");
  EXPECT_THAT(
      refusal("MatMul", {Shape{2, 3}, Shape{4, 5}}),
      HasSubstr("Dimensions must be equal, but are 3 and 4 for 'MatMul_2' (op: 'MatMul') with input shapes: "
                "[2,3], [4,5]."));
  EXPECT_THAT(refusal("MatMul", {Shape{2, 3, 4}, Shape{4, 5}}),
              HasSubstr("Shape must be rank 2 but is rank 3"));
}

TEST_F(MathOps, BatchMatMulBroadcastsInItsSecondVersionOnly) {
  EXPECT_EQ(shape("BatchMatMulV2", {Shape{2, 1, 3, 4}, Shape{5, 4, 6}}), "[2,5,3,6]");
  EXPECT_EQ(shape("BatchMatMul", {Shape{2, 4, 3}, Shape{2, 4, 6}}, {{"adj_x", true}}), "[2,3,6]");
  EXPECT_EQ(shape("BatchMatMulV2", {Shape(), Shape{3, 4, 5}}), "<unknown>");
  EXPECT_THAT(refusal("BatchMatMul", {Shape{2, 3, 4}, Shape{3, 4, 5}}),
              HasSubstr("Dimension 0 in both shapes must be equal, but are 2 and 3. Shapes are [2] and [3]"));
  EXPECT_THAT(refusal("BatchMatMulV2", {Shape{2, 3, 4}, Shape{3, 4, 5}}),
              HasSubstr("Dimensions must be equal, but are 2 and 3"));
  EXPECT_THAT(refusal("BatchMatMulV2", {Shape{2, 3, 4}, Shape{2, 5, 5}}),
              HasSubstr("Dimensions must be equal, but are 4 and 5"));
  EXPECT_THAT(refusal("BatchMatMulV2", {Shape{2}, Shape{3, 4, 5}}),
              HasSubstr("Shape must be at least rank 2 but is rank 1"));
}

class ValueRules : public OpTest {
 protected:
  std::vector<int64_t> folded(const std::string& op, const std::vector<Arg>& args, AttrMap attrs = {}) {
    const auto v = partial_value(make(op, args, std::move(attrs)).output());
    return v ? v->with_unknowns() : std::vector<int64_t>{};
  }
};

TEST_F(ValueRules, IntegerArithmeticOnConstantsIsKnown) {
  EXPECT_THAT(folded("Add", {ints({1, 2}), ints({10, 20})}), ElementsAre(11, 22));
  EXPECT_THAT(folded("Mul", {ints({3, 4}), int_scalar(5)}), ElementsAre(15, 20));
  EXPECT_THAT(folded("Sub", {int_scalar(5), ints({1, 2})}), ElementsAre(4, 3));
  EXPECT_THAT(folded("Maximum", {ints({1, 7}), int_scalar(3)}), ElementsAre(3, 7));
  EXPECT_THAT(folded("Minimum", {ints({1, 7}), int_scalar(3)}), ElementsAre(1, 3));
  EXPECT_THAT(folded("Neg", {ints({1, -2})}), ElementsAre(-1, 2));
}

TEST_F(ValueRules, MatricesKeepTheirShape) {
  const std::vector<int32_t> values{1, 2, 3, 4};
  const Arg matrix(Literal::from<int32_t>({2, 2}, values));
  const auto doubled = partial_value(make("Mul", {matrix, int_scalar(2)}).output());
  ASSERT_TRUE(doubled);
  EXPECT_EQ(doubled->dims(), (Dims{2, 2}));
  EXPECT_THAT(doubled->with_unknowns(), ElementsAre(2, 4, 6, 8));
  EXPECT_FALSE(partial_value(make("Sum", {matrix, ints({0})}).output()));
}

TEST_F(ValueRules, DivisionRoundsAsEachOpSays) {
  EXPECT_THAT(folded("FloorDiv", {ints({-7, 7, -8}), int_scalar(2)}), ElementsAre(-4, 3, -4));
  EXPECT_THAT(folded("FloorMod", {ints({-7, 7, -8}), int_scalar(2)}), ElementsAre(1, 1, 0));
  EXPECT_THAT(folded("TruncateDiv", {ints({-7, 7}), int_scalar(2)}), ElementsAre(-3, 3));
  EXPECT_THAT(folded("TruncateMod", {ints({-7, 7}), int_scalar(2)}), ElementsAre(-1, 1));
}

TEST_F(ValueRules, WhatAKernelWouldRefuseStaysUnknown) {
  EXPECT_THAT(folded("FloorDiv", {ints({6, 7}), ints({2, 0})}), ElementsAre(3, -1));
  EXPECT_THAT(folded("Mul", {ints({1 << 20, 2}), ints({1 << 20, 2})}), ElementsAre(-1, 4));
}

TEST_F(ValueRules, AProductOfDimensionsIsKnownWhereTheyAre) {
  EXPECT_THAT(folded("Prod", {ints({2, 3, 4}), ints({0})}), ElementsAre(24));
  EXPECT_THAT(folded("Prod", {ints({}), ints({0})}), ElementsAre(1));
  EXPECT_THAT(folded("Sum", {ints({2, 3}), int_scalar(-1)}), ElementsAre(5));
}

TEST_F(ValueRules, CastBetweenIntegersPassesValues) {
  EXPECT_THAT(folded("Cast", {ints({2, 3})}, {{"DstT", DType::kInt64}}), ElementsAre(2, 3));
}

// Every gradient must have its input's type and a shape that agrees with the input's.
struct GradCase {
  std::string op;
  std::vector<Arg> args;
  AttrMap attrs = {};
};

class Gradient : public OpTest {
 protected:
  Gradients of(const GradCase& c) {
    Node& n = make(c.op, c.args, c.attrs);
    std::vector<GradValue> dys;
    for (int i = 0; i < n.num_outputs(); ++i)
      dys.push_back(is_trainable(n.output_type(i))
                        ? GradValue(make_input(g, Arg(n.output_shape(i), n.output_type(i))))
                        : GradValue());
    NameScope scope(g, "grad");
    Grad grad(g, n, dys);
    Gradients out = n.def().grad(grad);
    EXPECT_EQ(out.size(), c.args.size()) << c.op;
    for (size_t i = 0; i < out.size() && i < c.args.size(); ++i) {
      if (out[i].none()) continue;
      const Output x = n.input(static_cast<int>(i)), dx = out[i].dense;
      EXPECT_EQ(dx.dtype(), x.dtype()) << c.op << " input " << i;
      EXPECT_TRUE(dx.shape().compatible(x.shape()))
          << c.op << " input " << i << ": " << dx.shape().str() << " for " << x.shape().str();
    }
    return out;
  }
  std::vector<std::string> names(const std::string& prefix) {
    std::vector<std::string> out;
    for (Node* n : g.nodes())
      if (n->name().starts_with(prefix)) out.push_back(n->name() + "=" + n->op());
    return out;
  }
};

TEST_F(Gradient, AgreesWithItsInputForEveryUnaryOp) {
  for (const char* op : {"Square", "Sqrt", "Rsqrt", "Reciprocal", "Inv",     "Exp", "Expm1", "Log",
                         "Log1p",  "Erf",  "Erfc",  "Sin",        "Cos",     "Tan", "Asin",  "Acos",
                         "Atan",   "Sinh", "Cosh",  "Tanh",       "Sigmoid", "Neg", "Abs",   "Sign"}) {
    for (const Shape& s : {Shape{2, 3}, Shape{kAny, 3}, Shape()}) {
      const Gradients grads = of({op, {s}});
      EXPECT_FALSE(grads[0].none()) << op;
    }
    of({op, {Arg(Shape{2}, DType::kDouble)}});
  }
}

TEST_F(Gradient, AgreesWithItsInputsForEveryBinaryOp) {
  for (const char* op : {"Add", "AddV2", "Sub", "Mul", "MulNoNan", "Div", "RealDiv", "DivNoNan", "FloorMod",
                         "Pow", "Maximum", "Minimum", "SquaredDifference", "Xlogy", "Xdivy"}) {
    for (const auto& [x, y] : std::vector<std::pair<Shape, Shape>>{{{2, 3}, {2, 3}},
                                                                   {{2, 3}, {3}},
                                                                   {{2, 1}, {3}},
                                                                   {Shape::scalar(), {3}},
                                                                   {{kAny, 3}, {2, 3}},
                                                                   {Shape(), {3}}}) {
      const Gradients grads = of({op, {x, y}});
      EXPECT_FALSE(grads[0].none() || grads[1].none()) << op;
      for (int i = 0; i < 2; ++i) {
        const Shape& want = i == 0 ? x : y;
        if (want.fully_known()) {
          EXPECT_EQ(grads[static_cast<size_t>(i)].dense.shape(), want) << op << " operand " << i;
        }
      }
    }
  }
}

TEST_F(Gradient, FusedGradientsHaveOneToo) {
  for (const char* op : {"TanhGrad", "SigmoidGrad", "SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad"}) {
    const Gradients grads = of({op, {Shape{2, 3}, Shape{2, 3}}});
    EXPECT_FALSE(grads[0].none() || grads[1].none()) << op;
  }
}

TEST_F(Gradient, RoundingPassesNothing) {
  for (const char* op : {"Floor", "Ceil", "Round", "Rint"}) EXPECT_TRUE(of({op, {Shape{2}}})[0].none()) << op;
  for (const char* op : {"FloorDiv", "TruncateDiv"})
    EXPECT_TRUE(of({op, {Shape{2}, Shape{2}}})[1].none()) << op;
}

TEST_F(Gradient, OfReductionsHasTheInputsShape) {
  for (const char* op : {"Sum", "Mean", "Max", "Min", "Prod"}) {
    for (bool keep : {false, true}) {
      for (const Shape& s : {Shape{2, 3, 4}, Shape{kAny, 3, 4}, Shape()}) {
        for (const Arg& axes : {ints({1}), ints({-1, 0}), ints({0, 1, 2}), Arg(Shape{kAny}, DType::kInt32)}) {
          const Gradients grads = of({op, {s, axes}, {{"keep_dims", keep}}});
          EXPECT_TRUE(!grads[0].none() && grads[1].none()) << op;
          if (s.fully_known() && axes.value) {
            EXPECT_EQ(grads[0].dense.shape(), s) << op;
          }
        }
      }
    }
  }
}

TEST_F(Gradient, OfScansAndSegmentsHasTheInputsShape) {
  of({"Cumsum", {Shape{2, 3}, int_scalar(1)}});
  of({"Cumprod", {Shape{2, 3}, int_scalar(1)}, {{"exclusive", true}}});
  of({"SegmentSum", {Shape{3, 4}, ints({0, 0, 1})}});
}

TEST_F(Gradient, OfMatrixProductsHasTheInputsShapes) {
  for (bool ta : {false, true}) {
    for (bool tb : {false, true}) {
      const Shape a = ta ? Shape{3, 2} : Shape{2, 3}, b = tb ? Shape{4, 3} : Shape{3, 4};
      Gradients d = of({"MatMul", {a, b}, {{"transpose_a", ta}, {"transpose_b", tb}}});
      EXPECT_EQ(d[0].dense.shape(), a);
      EXPECT_EQ(d[1].dense.shape(), b);
      const Shape ba = Shape{5}.concat(a), bb = Shape{1}.concat(b);
      d = of({"BatchMatMulV2", {ba, bb}, {{"adj_x", ta}, {"adj_y", tb}}});
      EXPECT_EQ(d[0].dense.shape(), ba);
      EXPECT_EQ(d[1].dense.shape(), bb);
    }
  }
}

TEST_F(Gradient, OfChoicesGoesToTheValuesOnly) {
  const Gradients s = of({"Select", {Arg(Shape{2, 3}, DType::kBool), Shape{2, 3}, Shape{2, 3}}});
  EXPECT_TRUE(s[0].none() && !s[1].none() && !s[2].none());
  const Gradients v = of({"SelectV2", {Arg(Shape{2, 1}, DType::kBool), Shape{3}, Shape::scalar()}});
  EXPECT_EQ(v[1].dense.shape().str(), "[3]");
  EXPECT_EQ(v[2].dense.shape().str(), "[]");
  const Gradients c = of({"ClipByValue", {Shape{2, 3}, Shape::scalar(), Shape{2, 3}}});
  EXPECT_EQ(c[1].dense.shape().str(), "[]");
  EXPECT_EQ(c[2].dense.shape().str(), "[2,3]");
}

TEST_F(Gradient, OfCastGoesBackBetweenFloatingTypesOnly) {
  EXPECT_FALSE(of({"Cast", {Shape{2}}, {{"DstT", DType::kDouble}}})[0].none());
  EXPECT_TRUE(of({"Cast", {Arg(Shape{2}, DType::kInt32)}, {{"DstT", DType::kFloat}}})[0].none());
}

TEST_F(Gradient, NamesItsNodesAsTensorFlowDoes) {
  of({"RealDiv", {Shape{2, 3}, Shape{3}}});
  EXPECT_THAT(names("grad/"),
              ElementsAre("grad/RealDiv=RealDiv", "grad/Neg=Neg", "grad/RealDiv_1=RealDiv",
                          "grad/RealDiv_2=RealDiv", "grad/mul=Mul", "grad/Shape=Const", "grad/Shape_1=Const",
                          "grad/Sum/reduction_indices=Const", "grad/Sum=Sum", "grad/Reshape=Reshape"));
}

TEST_F(Gradient, OfSquareWaitsForDy) {
  of({"Square", {Shape{2}}});
  EXPECT_THAT(names("grad/"), ElementsAre("grad/Const=Const", "grad/Mul=Mul", "grad/Mul_1=Mul"));
  Node* two = g.find("grad/Const");
  ASSERT_NE(two, nullptr);
  ASSERT_EQ(two->control_inputs().size(), 1u);
  EXPECT_EQ(two->control_inputs()[0]->op(), "Placeholder");
}

}  // namespace
}  // namespace sluice::graph
