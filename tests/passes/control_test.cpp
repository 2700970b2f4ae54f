#include "passes/control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/passes/util.h"

namespace sluice::dsl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ControlTest : public ::testing::Test {
 protected:
  Graph g;
  Tensor x = placeholder(g, DType::kFloat, {2, 3}, "x");
};

TEST_F(ControlTest, GroupIsOneNoOpOnOneDevice) {
  Tensor y = tanh(x);
  EXPECT_EQ(group(g, {&x.node(), &y.node()}, "gg").name(), "gg");
  EXPECT_EQ(group(g, {}).name(), "group_deps");
  EXPECT_THAT(nodes_under(g, "gg"), ElementsAre("gg NoOp(^x, ^Tanh)"));
}

TEST_F(ControlTest, GroupJoinsOneNoOpADevice) {
  Node *a, *b;
  {
    DeviceScope d(g, "/device:CPU:1");
    a = &no_op(g, "a");
  }
  b = &no_op(g, "b");
  Node& all = group(g, {a, b});
  EXPECT_EQ(all.control_inputs().size(), 2u);
  EXPECT_EQ(all.control_inputs()[0]->device(), "");
  EXPECT_EQ(all.control_inputs()[1]->device(), "/device:CPU:1");
}

TEST_F(ControlTest, TupleHoldsEverythingBack) {
  Tensor y = x + 1.0;
  auto out = tuple({x, Tensor(), y});
  EXPECT_FALSE(static_cast<bool>(out[1]));
  EXPECT_THAT(nodes_under(g, "tuple/"),
              ElementsAre("tuple/group_deps NoOp(^x, ^add)",
                          "tuple/control_dependency Identity(x, ^tuple/group_deps)",
                          "tuple/control_dependency_1 Identity(add, ^tuple/group_deps)"));
  EXPECT_THAT(error_of([&] { tuple({Tensor()}); }), HasSubstr("Must have at least one Tensor"));
}

TEST_F(ControlTest, WithDependenciesStandsBesideItsTensor) {
  Tensor y = with_dependencies({&no_op(g, "first")}, x);
  EXPECT_THAT(nodes_under(g, "control_dependency"), ElementsAre("control_dependency Identity(x, ^first)"));
  EXPECT_THAT(y.node().attr<std::vector<std::string>>("_class"), ElementsAre("loc:@x"));
}

}  // namespace
}  // namespace sluice::dsl
