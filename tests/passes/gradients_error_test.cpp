#include "graph/infer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/passes/util.h"

namespace sluice::dsl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Ops of a program's own, one of them without a gradient.
OpRegistry own_ops() {
  OpRegistry ops = standard_ops();
  ops.add({.name = "Opaque",
           .inputs = {"x: T"},
           .outputs = {"y: T"},
           .attrs = {"T: {float, double}"},
           .doc = "Something.",
           .infer = graph::same_shape});
  ops.add({.name = "Wrong",
           .inputs = {"x: T"},
           .outputs = {"y: T"},
           .attrs = {"T: {float, double}"},
           .doc = "A gradient of a wrong shape.",
           .infer = graph::same_shape,
           .grad = [](graph::Grad& g) { return graph::Gradients{g.scalar_like(g.x(), 1.0)}; }});
  ops.add_gradient("Twice", [](graph::Grad& g) {
    return graph::Gradients{g.op("Mul", {g.dy(), g.scalar_like(g.dy(), 2.0)})};
  });
  return ops;
}

class GradientErrors : public ::testing::Test {
 protected:
  OpRegistry ops = own_ops();
  Graph g{ops};
  Tensor x = placeholder(g, DType::kFloat, {2}, "x");
  Tensor own(const char* op, Tensor in, const char* name, AttrMap attrs = {}) {
    return g.add({.op = op, .name = name, .inputs = {in}, .attrs = std::move(attrs)});
  }
};

TEST_F(GradientErrors, ListsEveryOpWithoutAGradientWithItsLine) {
  Tensor a = own("Opaque", x, "first");
  Tensor b = own("Opaque", tanh(a), "second");
  std::string text = error_of([&] { gradients({b + a}, {x}); });
  EXPECT_THAT(text, AllOf(HasSubstr("No gradient defined"), HasSubstr("'first' (op type: Opaque)"),
                          HasSubstr("'second' (op type: Opaque)"), HasSubstr("gradients_error_test.cpp")));
}

TEST_F(GradientErrors, AnOpOffThePathNeedsNoGradient) {
  own("Opaque", x, "aside");
  EXPECT_FALSE(gradients({tanh(x)}, {x})[0].none());
  Tensor before = own("Opaque", x, "before");
  EXPECT_FALSE(gradients({tanh(before)}, {before})[0].none());
}

TEST_F(GradientErrors, TheAttributeGradientOpTypeOverrides) {
  Tensor y = own("Opaque", x, "y", {{"_gradient_op_type", "Twice"}});
  Output d = dense(gradients({y}, {x})[0]);
  EXPECT_EQ(d.node->name(), "gradients/y_grad/Mul");
}

TEST_F(GradientErrors, AGradientOfAnotherShapeIsNamed) {
  Tensor y = own("Wrong", x, "y");
  EXPECT_THAT(error_of([&] { gradients({y}, {x}); }),
              AllOf(HasSubstr("Incompatible shapes between op input and calculated input gradient"),
                    HasSubstr("Forward operation: y"), HasSubstr("Input index: 0")));
}

TEST_F(GradientErrors, GradYsMustMatchInNumberAndKind) {
  GradientOptions o;
  o.grad_ys = {GradValue(x.output()), GradValue(x.output())};
  EXPECT_THAT(error_of([&] { gradients({tanh(x)}, {x}, o); }), HasSubstr("Passed 2 grad_ys for 1 ys"));
  o.grad_ys = {GradValue(placeholder(g, DType::kBool, {2}).output())};
  EXPECT_THAT(error_of([&] { gradients({tanh(x)}, {x}, o); }), HasSubstr("must be real or integer"));
}

TEST_F(GradientErrors, AnotherGraphsTensorIsRefused) {
  Graph other;
  Tensor z = placeholder(other, DType::kFloat, {2}, "z");
  EXPECT_THAT(error_of([&] { gradients({tanh(x)}, {z}); }), HasSubstr("must be from the same graph as"));
}

TEST_F(GradientErrors, AFinalizedGraphIsLeftAlone) {
  Tensor y = tanh(x);
  g.finalize();
  EXPECT_THAT(error_of([&] { gradients({y}, {x}); }), HasSubstr("finalized"));
}

TEST_F(GradientErrors, CuttingOpsNamesWhereThePathEnds) {
  Tensor y = square(cast(argmax(x * 2.0, 0, "best"), DType::kFloat));
  std::vector<Node*> cuts = passes::cutting_ops({y}, x);
  ASSERT_EQ(cuts.size(), 1u);
  EXPECT_EQ(cuts[0]->name(), "best");
  EXPECT_TRUE(passes::cutting_ops({tanh(placeholder(g, DType::kFloat, {2}))}, x).empty());
}

}  // namespace
}  // namespace sluice::dsl
