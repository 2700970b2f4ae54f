#include "graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/graph/toy_ops.h"

namespace sluice::graph {
namespace {

using ::testing::HasSubstr;

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "(no error)";
}

class GraphTest : public ::testing::Test {
 protected:
  Graph g{toy_ops()};
};

TEST_F(GraphTest, NamesAreMadeUniqueAsTensorFlowDoes) {
  EXPECT_EQ(in(g, {}, "a").node->name(), "a");
  EXPECT_EQ(in(g, {}, "a").node->name(), "a_1");
  EXPECT_EQ(in(g, {}, "a").node->name(), "a_2");
  EXPECT_EQ(in(g, {}, "A").node->name(), "A_3");  // names differ in more than case
  EXPECT_EQ(in(g, {}, "b_1").node->name(), "b_1");
  EXPECT_EQ(in(g, {}, "b").node->name(), "b");
  EXPECT_EQ(in(g, {}, "b").node->name(), "b_2");  // b_1 is taken
}

TEST_F(GraphTest, ANameEndingInSlashIsExact) {
  EXPECT_EQ(in(g, {}, "s/").node->name(), "s");
  EXPECT_THAT(error_of([&] { in(g, {}, "s/"); }), HasSubstr("already exists"));
}

TEST_F(GraphTest, BadNamesAreRefused) {
  EXPECT_THAT(error_of([&] { in(g, {}, "_x"); }), HasSubstr("'_x' is not a valid node name"));
  EXPECT_THAT(error_of([&] { in(g, {}, "a b"); }), HasSubstr("'a b' is not a valid node name"));
}

TEST_F(GraphTest, ShapesBroadcastAtBuildTime) {
  const Output y = g.add({.op = "Plus", .inputs = {in(g, {2, -1, 1}), in(g, {3, 4})}}).output();
  EXPECT_EQ(y.shape(), (Shape{2, 3, 4}));
}

TEST_F(GraphTest, AShapeErrorNamesNodeOpShapesAndTheAuthorsLine) {
  const Output a = in(g, {2, 3}), b = in(g, {4});
  const int nodes = g.num_nodes();
  const std::string e = error_of([&] { g.add({.op = "Plus", .name = "sum", .inputs = {a, b}}); });
  EXPECT_THAT(
      e,
      HasSubstr(
          "Dimensions must be equal, but are 3 and 4 for 'sum' (op: 'Plus') with input shapes: [2,3], [4]."));
  EXPECT_THAT(e, HasSubstr("graph_test.cpp:"));
  EXPECT_EQ(g.num_nodes(), nodes);  // nothing half-made stays behind
  EXPECT_TRUE(a.node->uses().empty());
}

TEST_F(GraphTest, ATypeErrorNamesBothArguments) {
  const Output a = in(g, {}), b = in(g, {}, "i", DType::kInt32);
  EXPECT_THAT(
      error_of([&] {
        g.add({.op = "Plus", .inputs = {a, b}});
      }),
      HasSubstr("Input 'y' of 'Plus' Op has type int32 that does not match type float of argument 'x'."));
  const Output d = in(g, {}, "d", DType::kDouble);
  EXPECT_THAT(
      error_of([&] {
        g.add({.op = "Plus", .inputs = {d, d}});
      }),
      HasSubstr(
          "Value passed to parameter 'x' has DataType double not in list of allowed values: float, int32"));
}

TEST_F(GraphTest, ListInputsGiveTheirOwnAttrs) {
  const Output a = in(g, {}), b = in(g, {}), i = in(g, {}, "i", DType::kInt32);
  Node& join = g.add({.op = "Join", .inputs = {a, b, i}});
  EXPECT_EQ(join.attr<int64_t>("N"), 2);
  EXPECT_EQ(join.input_range("axis"), (std::pair<int, int>{2, 3}));
  Node& many = g.add({.op = "Many", .inputs = {a, i}});
  EXPECT_EQ(many.num_outputs(), 2);
  EXPECT_EQ(many.output(1).dtype(), DType::kInt32);
  EXPECT_THAT(error_of([&] {
                g.add({.op = "Join", .inputs = {a, i}});
              }),
              HasSubstr("must be at least minimum 2"));
}

TEST_F(GraphTest, RefInputsWantARef) {
  const Output v =
      g.add({.op = "Var", .name = "v", .attrs = {{"dtype", DType::kFloat}, {"shape", Shape{2}}}}).output();
  const Output x = in(g, {2});
  EXPECT_TRUE(is_ref(g.add({.op = "Set", .inputs = {v, x}}).output_type(0)));
  EXPECT_THAT(error_of([&] { g.add({.op = "Set", .inputs = {x, x}}); }), HasSubstr("expected ref type"));
}

TEST_F(GraphTest, UnknownOpsAndAttrsAreNamedWithNearOnes) {
  EXPECT_THAT(error_of([&] { g.add({.op = "Plas"}); }), HasSubstr("Did you mean 'Plus'?"));
  EXPECT_THAT(error_of([&] {
                g.add({.op = "Nothing", .attrs = {{"x", 1}}});
              }),
              HasSubstr("NodeDef mentions attr 'x' not in Op<name=Nothing"));
}

TEST_F(GraphTest, LookUpErrorsSayWhatIsWrong) {
  in(g, {}, "x");
  EXPECT_EQ(g.output("x:0").node->name(), "x");
  EXPECT_THAT(error_of([&] { g.output("x"); }), HasSubstr("refers to an Operation, not a Tensor"));
  EXPECT_THAT(error_of([&] { g.output("x:1"); }), HasSubstr("exists but only has 1 outputs"));
  EXPECT_THAT(error_of([&] { g.output("y:0"); }),
              HasSubstr("The operation, 'y', does not exist in the graph."));
  EXPECT_THAT(error_of([&] { g.output("a:b:c"); }), HasSubstr("<op_name>:<output_index>"));
}

TEST_F(GraphTest, AFinalizedGraphCannotBeChanged) {
  const Output x = in(g, {});
  g.finalize();
  EXPECT_THAT(error_of([&] { in(g, {}); }), HasSubstr("Graph is finalized and cannot be modified."));
  EXPECT_THAT(error_of([&] { g.set_attr(*x.node, "_a", 1); }), HasSubstr("finalized"));
}

TEST_F(GraphTest, SeedsFollowTensorFlowsTable) {
  EXPECT_EQ(g.op_seeds(std::nullopt), (std::pair<int64_t, int64_t>{0, 0}));
  EXPECT_EQ(g.op_seeds(7), (std::pair<int64_t, int64_t>{87654321, 7}));
  g.set_seed(5);
  in(g, {});
  in(g, {});
  EXPECT_EQ(g.op_seeds(std::nullopt), (std::pair<int64_t, int64_t>{5, 2}));
  EXPECT_EQ(g.op_seeds(9), (std::pair<int64_t, int64_t>{5, 9}));
  g.set_seed(0);
  EXPECT_EQ(g.op_seeds(0), (std::pair<int64_t, int64_t>{0, (int64_t{1} << 31) - 1}));
}

TEST_F(GraphTest, TopologicalOrderAndAncestorsSurviveDepth) {
  const Output one = in(g, {});
  Output y = one;
  for (int i = 0; i < 50'000; ++i) y = g.add({.op = "Plus", .inputs = {y, one}}).output();
  EXPECT_EQ(topological_order(g).size(), 50'001u);
  Node* root = y.node;
  EXPECT_EQ(ancestors(std::span<Node* const>(&root, 1)).size(), 50'001u);
}

TEST_F(GraphTest, ACycleIsNamed) {
  const Output a = in(g, {});
  Node& p = g.add({.op = "Plus", .name = "p", .inputs = {a, a}});
  Node& q = g.add({.op = "Plus", .name = "q", .inputs = {p.output(), a}});
  g.set_input(p, 1, q.output());
  EXPECT_THAT(error_of([&] { topological_order(g); }), HasSubstr("cycle through node 'p'"));
}

TEST_F(GraphTest, TextHasOneLineANodeWhateverItsAttrsHold) {
  Node& x = *in(g, {2}, "x").node;
  g.set_attr(x, "_s", "a\n\"b\"\\\t\x01ü");
  g.set_attr(x, "_l", std::vector<std::string>{"p\r", "q"});
  g.set_attr(x, "_t", Literal::strings({"two\nlines"}));
  in(g, {}, "y");
  const std::string text = g.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
  EXPECT_THAT(text, HasSubstr("_s=\"a\\n\\\"b\\\"\\\\\\t\\x01ü\""));
  EXPECT_THAT(text, HasSubstr("_l=[\"p\\r\",\"q\"]"));
  EXPECT_THAT(text, HasSubstr("\"two\\nlines\""));
}

TEST_F(GraphTest, CollectionsKeepOrderAndFilterByScopeAtTheStart) {
  const Output a = in(g, {}, "m/a"), b = in(g, {}, "n/b");
  g.collections().add("c", GraphElement{a.node, 0});
  g.collections().add("c", GraphElement{b.node, -1});
  g.collections().add("c", std::string("text"));
  EXPECT_EQ(g.collections().get("c").size(), 3u);
  const auto m = g.collections().elements("c", "m");
  ASSERT_EQ(m.size(), 1u);
  EXPECT_EQ(item_name(m[0]), "m/a:0");
  EXPECT_TRUE(g.collections().get("c", "b").empty());  // matched at the start only
}

}  // namespace
}  // namespace sluice::graph
