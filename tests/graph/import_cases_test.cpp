// Reported cases of damaged or hostile graph files (cases.md, D), with the standard ops as programs load
// them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/graphdef.h"
#include "graph/support/file.h"
#include "graph/verify.h"

namespace sluice::graph {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string import_error(const std::string& text) {
  Graph g(standard_ops());
  try {
    graph_from_bytes(g, text, FileFormat::kText);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kInvalidArgument) << e.what();
    // A refused import leaves nothing behind, unless it is an op's own shape rule that refuses.
    if (e.message().find("wrong dtype") == std::string::npos) {
      EXPECT_EQ(g.num_nodes(), 0) << e.message();
    }
    return e.message();
  }
  const std::vector<Violation> found = verify(g);
  EXPECT_TRUE(found.empty()) << found[0].node << ": " << found[0].rule;
  return "";
}

std::string type(const char* key, const char* t) {
  return cat(" attr { key: '", key, "' value { type: ", t, " } }");
}
std::string node(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
                 const std::string& attrs) {
  std::string s = cat("node { name: '", name, "' op: '", op, "'");
  for (const std::string& in : inputs) s += cat(" input: '", in, "'");
  return s + attrs + " }\n";
}
std::string constant(const std::string& name, const char* dtype, const std::string& values) {
  return node(name, "Const", {},
              cat(type("dtype", dtype), " attr { key: 'value' value { tensor { dtype: ", dtype,
                  " tensor_shape { } ", values, " } } }"));
}
const std::string kT = type("T", "DT_FLOAT");
const std::string kOne = constant("x", "DT_FLOAT", "float_val: 1");
const std::string kYes = constant("yes", "DT_BOOL", "bool_val: true");
std::string enter(const char* name, const char* input, const char* frame) {
  return node(name, "Enter", {input}, cat(kT, " attr { key: 'frame_name' value { s: '", frame, "' } }"));
}

TEST(ImportCases, D01DuplicateNames) {
  EXPECT_THAT(import_error(constant("a", "DT_FLOAT", "float_val: 1") +
                           constant("a", "DT_FLOAT", "float_val: 2") + node("b", "Identity", {"a"}, kT)),
              HasSubstr("Node 'a' is not unique"));
}

TEST(ImportCases, D04InputsThatANodeDoesNotHave) {
  const std::string index = type("Tshape", "DT_INT32");
  EXPECT_THAT(
      import_error(node("bad", "Add", {}, kT)),
      AllOf(HasSubstr("node 'bad'"), HasSubstr("(2) do not match 0 inputs"), HasSubstr("Op<name=Add>")));
  EXPECT_THAT(import_error(kOne + node("bad", "Reshape", {"x"}, kT + index)),
              AllOf(HasSubstr("node 'bad'"), HasSubstr("(2) do not match 1 inputs"), HasSubstr("Reshape")));
  EXPECT_THAT(import_error(kOne + node("bad", "Identity", {"x", "x"}, kT)),
              AllOf(HasSubstr("node 'bad'"), HasSubstr("(1) do not match 2 inputs"), HasSubstr("Identity")));
}

TEST(ImportCases, D05TypesThatDisagree) {
  EXPECT_THAT(
      import_error(constant("i", "DT_INT32", "int_val: 1") + kOne + node("bad", "Add", {"x", "i"}, kT)),
      HasSubstr("Input 1 of node bad was passed int32 from i:0 incompatible with expected float."));
  EXPECT_THAT(
      import_error(kOne + node("bad", "Cast", {"x"}, type("SrcT", "DT_INT32") + type("DstT", "DT_BOOL"))),
      HasSubstr("Input 0 of node bad was passed float from x:0 incompatible with expected int32."));
  EXPECT_THAT(import_error(constant("bad", "DT_FLOAT", "int_val: 1")), HasSubstr("'bad'"));
  EXPECT_THAT(import_error(node("v", "VarHandleOp", {},
                                type("dtype", "DT_FLOAT") + " attr { key: 'shape' value { shape { } } }") +
                           node("bad", "ReadVariableOp", {"v"}, type("dtype", "DT_INT32"))),
              AllOf(HasSubstr("'bad'"), HasSubstr("Expected float got int32"), HasSubstr("'v'")));
}

TEST(ImportCases, D06EdgesThatLeadNowhere) {
  EXPECT_THAT(import_error(node("bad", "Identity", {"zzz:0"}, kT)),
              AllOf(HasSubstr("'bad'"), HasSubstr("zzz")));
  EXPECT_THAT(import_error(kOne + node("bad", "Identity", {"x:7"}, kT)),
              AllOf(HasSubstr("'bad'"), HasSubstr("invalid output 7 of source node x which has 1 outputs")));
  EXPECT_THAT(import_error(kOne + node("bad", "Identity", {"^x", "x"}, kT)),
              AllOf(HasSubstr("'bad'"), HasSubstr("control inputs must follow")));
  EXPECT_THAT(import_error(node("a", "Identity", {"b"}, kT) + node("b", "Identity", {"a"}, kT)),
              HasSubstr("is on a cycle"));
  EXPECT_THAT(import_error(node("a", "NoOp", {"^a"}, "")), AllOf(HasSubstr("'a'"), HasSubstr("cycle")));
}

// while (true) x = x: every kind of loop node in its place, a nested loop in the body.
std::string loop() {
  const std::string n2 = kT + " attr { key: 'N' value { i: 2 } }";
  return kOne + kYes + enter("e", "x", "outer") + node("m", "Merge", {"e", "next"}, n2) +
         node("ye", "Enter", {"yes"},
              type("T", "DT_BOOL") + " attr { key: 'frame_name' value { s: 'outer' } }") +
         node("cond", "LoopCond", {"ye"}, "") + node("s", "Switch", {"m", "cond"}, kT) +
         node("out", "Exit", {"s"}, kT) + enter("in", "s:1", "inner") + node("back", "Exit", {"in"}, kT) +
         node("next", "NextIteration", {"back"}, kT);
}

TEST(ImportCases, D06LoopsThatAreWholeLoad) {
  EXPECT_EQ(import_error(loop()), "");
  EXPECT_EQ(
      import_error(loop() + node("y", "Identity", {"out"}, kT) + node("z", "Add", {"y", "x", "^out"}, kT)),
      "");
  // A conditional is no loop.
  EXPECT_EQ(import_error(kOne + kYes + node("s", "Switch", {"x", "yes"}, kT) +
                         node("m", "Merge", {"s", "s:1"}, kT + " attr { key: 'N' value { i: 2 } }")),
            "");
}

TEST(ImportCases, D06UnpairedLoopNodesAreNamed) {
  EXPECT_THAT(import_error(kOne + node("bad", "Exit", {"x"}, kT)),
              AllOf(HasSubstr("'bad'"), HasSubstr("no Enter leads to it")));
  EXPECT_THAT(import_error(kOne + node("bad", "NextIteration", {"x"}, kT)),
              AllOf(HasSubstr("'bad'"), HasSubstr("no Enter leads to it")));
  EXPECT_THAT(import_error(loop() + node("twice", "Exit", {"out"}, kT)), HasSubstr("'twice'"));
  EXPECT_THAT(import_error(loop() + node("bad", "Add", {"m", "x"}, kT)),
              AllOf(HasSubstr("'bad' has inputs from different frames"), HasSubstr("'m' is in loop 'outer'"),
                    HasSubstr("'x' in no loop")));
  EXPECT_THAT(import_error(loop() + node("bad", "NoOp", {"^m", "^in"}, "")), HasSubstr("different frames"));
}

TEST(ImportCases, D06TheVerifierFindsWhatWasBuiltWrong) {
  Graph g(standard_ops());
  const Output x = g.add({.op = "Const",
                          .name = "x",
                          .attrs = {{"dtype", DType::kFloat}, {"value", Literal::scalar(1.0f)}}})
                       .output();
  g.add({.op = "Exit", .name = "bad", .inputs = {x}});
  const auto found = verify(g);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].node, "bad");
  EXPECT_THAT(found[0].rule, HasSubstr("no Enter"));
}

// 70 MB of constant make a text of more than 64 MB, too.
TEST(ImportCases, D08LargeTextFilesComeBackBitEqual) {
  Graph g(standard_ops());
  std::vector<std::byte> big(70 << 20);
  for (size_t i = 0; i < big.size(); i += 4) big[i] = static_cast<std::byte>('a' + i % 23);
  for (size_t i = 0; i < big.size(); ++i)
    if (i % 4) big[i] = static_cast<std::byte>('?');
  g.add({.op = "Const",
         .name = "c",
         .attrs = {{"dtype", DType::kFloat}, {"value", Literal(DType::kFloat, {(70 << 20) / 4}, big)}}});
  const std::string text = graph_to_bytes(g, FileFormat::kText);
  EXPECT_GT(text.size(), size_t{70} << 20);
  Graph back(standard_ops());
  graph_from_bytes(back, text, FileFormat::kText);
  EXPECT_TRUE(graph_to_bytes(back) == graph_to_bytes(g));
}

TEST(ImportCases, TruncatedTextNamesTheFileAndTheLine) {
  const std::string text = kOne + node("y", "Identity", {"x"}, kT);
  for (size_t cut : {text.size() - 3, text.size() / 2, size_t{20}}) {
    Graph g(standard_ops());
    try {
      graph_from_bytes(g, text.substr(0, cut), FileFormat::kText, {.source = "cut.pbtxt"});
      ADD_FAILURE() << cut;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kDataLoss) << e.what();
      EXPECT_THAT(e.message(), AllOf(HasSubstr("cut.pbtxt"), HasSubstr("line ")));
    }
    EXPECT_EQ(g.num_nodes(), 0);
  }
}

}  // namespace
}  // namespace sluice::graph
