// Reported cases (cases.md, D) and bad input through sluice-graph: exit codes, one line of error, nothing
// half-written.
#include <gmock/gmock.h>

#include <cmath>

#include "graph/graphdef.h"
#include "runtime/io/npy.h"
#include "tests/tools/graph_program.h"

namespace sluice::tools {
namespace {

using graph::DType;
using runtime::Array;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kFloat = "attr { key: 'T' value { type: DT_FLOAT } }";

std::string constant(const std::string& name, const std::string& tensor, const char* dtype = "DT_FLOAT") {
  return cat("node { name: '", name, "' op: 'Const' attr { key: 'dtype' value { type: ", dtype,
             " } } attr { key: 'value' value { tensor { dtype: ", dtype, " ", tensor, " } } } }\n");
}
const std::string kX = constant("x", "tensor_shape { } float_val: 1");

class GraphFileCases : public GraphProgram {};

TEST_F(GraphFileCases, D02HugeShapesAreRefusedBeforeTheyAreAllocated) {
  write("good.pbtxt", kX);
  const long usual = run("dump good.pbtxt").peak_kib;
  std::string deep = "tensor_shape {";
  for (int i = 0; i < 300; ++i) deep += " dim { size: 1 }";
  for (const std::string& tensor :
       {std::string("tensor_shape { dim { size: 2147483647 } dim { size: 2147483647 } dim { size: 4 } }"),
        std::string("tensor_shape { dim { size: 4294967296 } dim { size: 4294967296 } }"),
        std::string("tensor_shape { dim { size: 1000000000000 } } float_val: 1"),
        std::string("tensor_shape { dim { size: -2 } }"), deep + " }",
        std::string("tensor_shape { dim { size: 2 } } tensor_content: 'abcd'")}) {
    write("bad.pbtxt", constant("bad", tensor));
    const Result r = wrong("dump bad.pbtxt", "'bad'");
    EXPECT_LT(r.peak_kib, usual + (32 << 10)) << tensor;
    wrong("check bad.pbtxt", "'bad'", 3);
  }
}

TEST_F(GraphFileCases, D04ToD06DamageStopsEveryCommand) {
  const std::string index = "attr { key: 'Tshape' value { type: DT_INT32 } }";
  const std::pair<std::string, std::string> damaged[] = {
      {cat("node { name: 'bad' op: 'Add' ", kFloat, "}"), "Op<name=Add>"},
      {cat(kX, "node { name: 'bad' op: 'Reshape' input: 'x' ", kFloat, index, "}"), "Op<name=Reshape>"},
      {cat(kX, "node { name: 'bad' op: 'Identity' input: 'x' input: 'x' ", kFloat, "}"), "Op<name=Identity>"},
      {cat(kX, constant("i", "tensor_shape { } int_val: 1", "DT_INT32"),
           "node { name: 'bad' op: 'Add' input: 'x' input: 'i' ", kFloat, "}"),
       "Input 1 of node bad was passed int32 from i:0"},
      {cat(kX, "node { name: 'bad' op: 'Exit' input: 'x' ", kFloat, "}"), "'bad'"},
      {cat("node { name: 'bad' op: 'Identity' input: 'b' ", kFloat, "}",
           "node { name: 'b' op: 'Identity' input: 'bad' ", kFloat, "}"),
       "cycle"},
      {cat("node { name: 'bad' op: 'Identity' input: 'zzz:0' ", kFloat, "}"), "'zzz:0'"},
  };
  for (const auto& [text, part] : damaged) {
    write("g.pbtxt", text);
    wrong("dump g.pbtxt", part);
    wrong("stats g.pbtxt", part);
    wrong("prune g.pbtxt --keep bad --out p.pb", part);
    for (const char* pass : {"gradients --ys bad --xs x", "clip_by_norm --tensors bad --limit 1",
                             "clip_by_value --tensors bad --lo 0 --hi 1", "check_numerics"})
      wrong(cat("pass g.pbtxt ", pass, " --out p.pb"), part);
    wrong("explain g.pbtxt --fetch bad", part);
    wrong("run g.pbtxt --fetch bad", part);
    wrong("check g.pbtxt", part, 3);
  }
  EXPECT_THAT(files(), ElementsAre("g.pbtxt"));
}

TEST_F(GraphFileCases, D09UnusualNamesDumpAndDraw) {
  const std::string longest(300, 'n');
  std::string text = kX;
  for (const std::string& name :
       {longest, std::string("Same"), std::string("same"), std::string("a.b-c/d_e")})
    text += cat("node { name: '", name, "' op: 'Identity' input: 'x' input: '^x' ", kFloat,
                " attr { key: '_note' value { s: 'say \"hi\"\\nthere \\\\' } } }\n");
  write("g.pbtxt", text);
  const Result dump = run("dump g.pbtxt");
  EXPECT_EQ(dump.code, 0) << dump.err;
  EXPECT_EQ(std::count(dump.out.begin(), dump.out.end(), '\n'), 5) << dump.out;
  EXPECT_THAT(dump.out, HasSubstr(longest + " = Identity"));
  const Result dot = run("dump g.pbtxt --format dot");
  EXPECT_EQ(dot.code, 0) << dot.err;
  write("g.dot", dot.out);
  EXPECT_THAT(dot.out, HasSubstr("label=\"same\\nIdentity\""));
  for (const char* bad : {"out:0", "a b", "^c", "/x"}) {
    write("bad.pbtxt", cat("node { name: '", bad, "' op: 'NoOp' }"));
    wrong("dump bad.pbtxt", cat("'", bad, "' is not a valid node name"));
  }
  if (std::system("command -v dot >/dev/null") != 0) GTEST_SKIP() << "graphviz is not installed";
  EXPECT_EQ(std::system(cat("dot -Tsvg ", folder_ / "g.dot", " >/dev/null").c_str()), 0);
}

TEST_F(GraphFileCases, D10TextKeepsEveryFloat) {
  const float values[] = {std::nanf(""), -std::nanf(""),   HUGE_VALF,     -HUGE_VALF,
                          -0.0f,         1.401298464e-45f, 3.4028235e38f, 0.1f};
  graph::Graph g;
  g.add({.op = "Const",
         .name = "c",
         .attrs = {{"dtype", DType::kFloat}, {"value", graph::Literal::vector<float>(values)}}});
  graph::write_graph_file(g, folder_ / "a.pb");
  // Bare names, both ways, and again.
  EXPECT_THAT(run("dump a.pb --out b.pbtxt").err, HasSubstr("wrote b.pbtxt: text GraphDef"));
  EXPECT_THAT(run("dump b.pbtxt --out c.pb").err, HasSubstr("wrote c.pb: binary GraphDef"));
  EXPECT_EQ(run("dump c.pb --out d.pbtxt").code, 0);
  EXPECT_EQ(read_file(folder_ / "c.pb"), read_file(folder_ / "a.pb"));
  EXPECT_EQ(read_file(folder_ / "d.pbtxt"), read_file(folder_ / "b.pbtxt"));
  wrong("dump a.pb --out sub/x.pb", "'sub' does not exist");
}

TEST_F(GraphFileCases, G30DepthIsNoLimit) {
  std::string text = kX;
  for (int i = 0; i < 50'000; ++i)
    text += cat("node { name: 'n", i, "' op: 'Add' input: '", i ? cat("n", i - 1) : "x", "' input: 'x' ",
                kFloat, "}\n");
  write("deep.pbtxt", text);
  EXPECT_EQ(run("check deep.pbtxt").code, 0);
  EXPECT_EQ(run("dump deep.pbtxt --out deep.pb").code, 0);
  EXPECT_THAT(run("run deep.pb --fetch n49999").out, HasSubstr("50001"));
}

TEST_F(GraphFileCases, TruncatedFilesNameFileAndLine) {
  write("cut.pbtxt", kX + "node { name: 'y' op: 'Identity' input: 'x");
  wrong("dump cut.pbtxt", "cut.pbtxt");
  EXPECT_THAT(run("dump cut.pbtxt").err, HasSubstr("line 2"));
  wrong("run cut.pbtxt --fetch y", "cut.pbtxt");
  wrong("pass cut.pbtxt check_numerics --out p.pb", "cut.pbtxt");
  wrong("check cut.pbtxt", "cut.pbtxt", 3);
  EXPECT_THAT(files(), ElementsAre("cut.pbtxt"));
}

TEST_F(GraphFileCases, FeedsThatCannotBeReadAreNamed) {
  write("g.pbtxt",
        cat("node { name: 'p' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } attr "
            "{ key: 'shape' value { shape { dim { size: 2 } } } } }\n",
            "node { name: 'y' op: 'Identity' input: 'p' ", kFloat, "}\n"));
  const std::string good = runtime::io::npy_to_bytes(Array::from<float>({2}, {1, 2}));
  write("cut.npy", good.substr(0, good.size() - 3));
  write("text.npy", "not an array");
  write("shape.npy", runtime::io::npy_to_bytes(Array::from<float>({3}, {1, 2, 3})));
  for (const char* file : {"cut.npy", "text.npy", "missing.npy"})
    wrong(cat("run g.pbtxt --fetch y --feed p=", file), file);
  wrong("run g.pbtxt --fetch y --feed p=./", "./");
  wrong("run g.pbtxt --fetch y --feed p=shape.npy", "Cannot feed value of shape [3] for Tensor 'p:0'");
  wrong("run g.pbtxt --fetch y --feed q=cut.npy", "'q'");
}

// /proc takes no new files, whoever asks.
TEST_F(GraphFileCases, FoldersThatTakeNoFilesAreNamedBeforeTheRun) {
  write("g.pbtxt", kX + cat("node { name: 'y' op: 'Identity' input: 'x' ", kFloat, "}\n"));
  wrong("dump g.pbtxt --out /proc/g.pb", "/proc/g.pb");
  wrong("prune g.pbtxt --keep y --out /proc/g.pb", "/proc/g.pb");
  wrong("pass g.pbtxt check_numerics --out /proc/g.pb", "/proc/g.pb");
  wrong("run g.pbtxt --fetch y --out /proc/y.npy", "/proc/y.npy");
  wrong("run g.pbtxt --fetch y --trace /proc/t.json", "/proc/t.json");
  wrong("run g.pbtxt --fetch y --save /proc/m", "/proc/m");
  wrong("dump g.pbtxt --out g.pbtxt/x.pb", "g.pbtxt/x.pb");
  wrong("dump g.pbtxt --out .", "Is a directory");
  EXPECT_THAT(files(), ElementsAre("g.pbtxt"));
}

TEST_F(GraphFileCases, ADeviceIsWrittenToAndStaysOne) {
  write("g.pbtxt", kX);
  EXPECT_EQ(run("dump g.pbtxt --out /dev/null").code, 0);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

}  // namespace
}  // namespace sluice::tools
