#include "graph/scopes.h"

#include <gtest/gtest.h>

#include "tests/graph/toy_ops.h"

namespace sluice::graph {
namespace {

std::vector<std::string> controls_of(const Node& n) {
  std::vector<std::string> out;
  for (Node* c : n.control_inputs()) out.push_back(c->name());
  return out;
}

TEST(NameScope, NestsReentersAndResets) {
  Graph g{toy_ops()};
  {
    NameScope a(g, "a");
    EXPECT_EQ(in(g, {}, "x").node->name(), "a/x");
    NameScope b(g, "_b");  // legal only when nested
    EXPECT_EQ(b.scope(), "a/_b/");
    NameScope root(g, "");
    EXPECT_EQ(in(g, {}, "x").node->name(), "x");
  }
  NameScope again(g, "a");
  EXPECT_EQ(again.scope(), "a_1/");
  NameScope exact(g, "a/");
  EXPECT_EQ(in(g, {}, "x").node->name(), "a/x_1");
  EXPECT_THROW(NameScope(g, "a b"), Error);
}

TEST(DeviceScope, InnermostSettingOfEachFieldWins) {
  Graph g{toy_ops()};
  DeviceScope job(g, "/job:ps");
  {
    DeviceScope gpu(g, "/gpu:0");
    EXPECT_EQ(in(g, {}).node->device(), "/job:ps/device:GPU:0");
    DeviceScope none(g, std::nullopt);
    EXPECT_EQ(in(g, {}).node->device(), "");
  }
  EXPECT_EQ(g.add({.op = "Nothing", .device = "/task:3"}).device(), "/job:ps/task:3");
  EXPECT_THROW(DeviceSpec::parse("/cpu:0/gpu:0"), Error);
  EXPECT_THROW(DeviceSpec::parse("/what:0"), Error);
  EXPECT_EQ(DeviceSpec::parse("/device:GPU:*").str(), "/device:GPU:*");
}

TEST(ColocateWith, SetsClassAndTakesTheDevice) {
  Graph g{toy_ops()};
  Node& v = g.add({.op = "Nothing", .name = "v", .device = "/cpu:1"});
  DeviceScope outer(g, "/gpu:0");
  ColocateWith with(g, &v);
  Node& n = g.add({.op = "Nothing", .name = "n"});
  EXPECT_EQ(n.device(), "/device:CPU:1");
  EXPECT_EQ(n.attr<std::vector<std::string>>("_class"), std::vector<std::string>{"loc:@v"});
  ColocateWith chain(g, &n);  // a colocated op passes its own group on
  EXPECT_EQ(g.add({.op = "Nothing"}).attr<std::vector<std::string>>("_class"),
            std::vector<std::string>{"loc:@v"});
}

TEST(ControlDependencies, AccumulateAndSkipWhatIsAlreadyDominated) {
  Graph g{toy_ops()};
  Node &a = g.add({.op = "Nothing", .name = "a"}), &b = g.add({.op = "Nothing", .name = "b"});
  const Output x = in(g, {}, "x");
  ControlDependencies after_a(g, {&a, &a});
  Node& first = g.add({.op = "Plus", .name = "first", .inputs = {x, x}});
  EXPECT_EQ(controls_of(first), std::vector<std::string>{"a"});
  Node& second = g.add({.op = "Plus", .name = "second", .inputs = {first.output(), x}});
  EXPECT_TRUE(controls_of(second).empty());  // first was made inside the block
  {
    ControlDependencies after_b(g, {&a, &b});
    EXPECT_EQ(controls_of(g.add({.op = "Nothing"})), (std::vector<std::string>{"a", "b"}));
    ControlDependencies clear(g, ControlDependencies::Clear{});
    EXPECT_TRUE(controls_of(g.add({.op = "Nothing"})).empty());
  }
  ControlDependencies on_x(g, {x.node});
  EXPECT_EQ(controls_of(g.add({.op = "Plus", .name = "p", .inputs = {x, x}})), std::vector<std::string>{"a"});
}

}  // namespace
}  // namespace sluice::graph
