// sluice-graph from outside: what it prints, what it writes, and the exit code of every way to use it
// wrongly.
#include <nlohmann/json.hpp>

#include "runtime/io/bundle.h"
#include "runtime/io/npy.h"
#include "tests/tools/graph_program.h"

namespace sluice::tools {
namespace {

using nlohmann::json;
using runtime::Array;

class GraphCli : public GraphProgram {
 protected:
  void SetUp() override {
    // y = relu(x·w), loss = mean(y); `unused` is needed by nothing.
    const std::string t = "attr { key: 'T' value { type: DT_FLOAT } }";
    auto constant = [](const char* name, const char* type, const char* tensor) {
      return cat("node { name: '", name, "' op: 'Const' attr { key: 'dtype' value { type: ", type,
                 " } } attr { key: 'value' value { tensor { dtype: ", type, " ", tensor, " } } } }\n");
    };
    write("g.pbtxt",
          cat("node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } "
              "attr { key: 'shape' value { shape { dim { size: -1 } dim { size: 2 } } } } }\n",
              constant("w", "DT_FLOAT",
                       "tensor_shape { dim { size: 2 } dim { size: 2 } } float_val: [1, -2, 3, 4]"),
              "node { name: 'product' op: 'MatMul' input: 'x' input: 'w' ", t, "}\n",
              "node { name: 'y' op: 'Relu' input: 'product' ", t, "}\n",
              constant("axes", "DT_INT32", "tensor_shape { dim { size: 2 } } int_val: [0, 1]"),
              "node { name: 'loss' op: 'Mean' input: 'y' input: 'axes' ", t,
              "attr { key: 'Tidx' value { type: DT_INT32 } } }\n",
              "node { name: 'unused' op: 'Identity' input: 'x' input: '^y' ", t, "}\n"));
    runtime::io::write_npy(folder_ / "x.npy", Array::from<double>({2, 2}, {1, 1, -1, 2}));
  }
};

TEST_F(GraphCli, DumpConvertsBothWaysAndRedumpsEqual) {
  EXPECT_EQ(run("dump g.pbtxt --out g.pb").code, 0);
  EXPECT_NE(run("dump g.pbtxt --out h.pb").err.find("wrote h.pb: binary GraphDef, 7 nodes"),
            std::string::npos);
  EXPECT_EQ(run("dump g.pb --out again.pbtxt").code, 0);
  EXPECT_EQ(run("dump again.pbtxt --out again.pb").code, 0);
  EXPECT_EQ(read_file(folder_ / "g.pb"), read_file(folder_ / "again.pb"));
  const Result text = run("dump g.pb");
  EXPECT_EQ(text.code, 0);
  EXPECT_NE(text.out.find("product = MatMul"), std::string::npos);
  const json j = json::parse(run("dump g.pb --json").out);
  EXPECT_EQ(j["nodes"].size(), 7u);
  EXPECT_EQ(j["nodes"][2]["inputs"], json::array({"x:0", "w:0"}));
  EXPECT_EQ(j["nodes"][1]["attrs"]["value"]["values"], json::array({1, -2, 3, 4}));
  const Result dot = run("dump g.pb --format dot");
  EXPECT_EQ(dot.out.substr(0, 7), "digraph");
  EXPECT_NE(dot.out.find("style=dashed"), std::string::npos);
}

TEST_F(GraphCli, StatsCounts) {
  const json j = json::parse(run("stats --json g.pbtxt").out);
  EXPECT_EQ(j["nodes"], 7);
  EXPECT_EQ(j["edges"], 6);
  EXPECT_EQ(j["control_edges"], 1);
  EXPECT_EQ(j["constant_bytes"], 24);
  EXPECT_EQ(j["ops"]["Const"], 2);
  EXPECT_EQ(j["placeholders"][0]["shape"], json::array({nullptr, 2}));
  EXPECT_NE(run("stats g.pbtxt").out.find("placeholder      x  float[?,2]"), std::string::npos);
}

TEST_F(GraphCli, PruneKeepsWhatIsNeededAndDiffTells) {
  EXPECT_EQ(run("prune g.pbtxt --keep loss --out p.pb").code, 0);
  const Result d = run("diff g.pbtxt p.pb");
  EXPECT_EQ(d.code, 1);
  EXPECT_EQ(d.out, "- unused  Identity\n");
  EXPECT_EQ(run("diff p.pb p.pb").code, 0);
  EXPECT_EQ(json::parse(run("diff --json p.pb g.pbtxt").out)["only_b"], json::array({"unused"}));
  EXPECT_EQ(json::parse(run("prune p.pb --json --keep loss:0 --out q.pb").out)["removed"], 0);
}

TEST_F(GraphCli, PassInsertsGradientsThatRun) {
  const Result r = run("pass g.pbtxt gradients --ys loss --xs x,w --out grads.pb --json");
  ASSERT_EQ(r.code, 0) << r.err;
  const json j = json::parse(r.out);
  const std::string dw = j["results"]["w:0"];
  ASSERT_EQ(run("check grads.pb").code, 0);
  // y = relu([[4, 2], [5, 10]]), every element passes: dw = xᵀ·(1/4)
  const Result g = run(cat("run grads.pb --feed x=x.npy --fetch ", dw, " --out dw.npy"));
  ASSERT_EQ(g.code, 0) << g.err;
  const Array a = runtime::io::read_npy(folder_ / "dw.npy");
  const auto values = a.as<float>();
  EXPECT_EQ(std::vector<float>(values.begin(), values.end()), (std::vector<float>{0, 0, 0.75f, 0.75f}));
  EXPECT_EQ(run("pass g.pbtxt clip_by_norm --tensors y --limit 1 --out clip.pb").code, 0);
  EXPECT_EQ(run("pass g.pbtxt check_numerics --out checked.pb").code, 0);
}

TEST_F(GraphCli, RunFeedsFetchesAndWrites) {
  const Result r = run("run g.pbtxt --feed x=x.npy --fetch loss,y --steps 2");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.out.find("step 1  loss:0 = 5.25\nstep 2  loss:0 = 5.25\n"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("y:0 = float[2,2] {4, 2, 5, 10}"), std::string::npos) << r.out;
  const Result j = run("run g.pbtxt --json --feed x=x.npy --fetch y --fetch loss --out y.npy");
  EXPECT_EQ(json::parse(j.out)["fetches"]["loss:0"]["values"], json::array({5.25}));
  EXPECT_EQ(runtime::io::read_npy(folder_ / "y.npy").dims(), (graph::Dims{2, 2}));
}

TEST_F(GraphCli, ExplainShowsThePlan) {
  const Result r = run("explain g.pbtxt --feed x=x.npy --fetch loss");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.out.find("arena"), std::string::npos);
  const json j = json::parse(run("explain --json g.pbtxt --feed x=x.npy --fetch loss").out);
  EXPECT_TRUE(j.contains("steps"));
  EXPECT_TRUE(j.contains("arena_bytes"));
}

// Eight elementwise ops after each other are one region: one reading and one writing of memory.
TEST_F(GraphCli, ExplainShowsAChainAsOneRegion) {
  const std::string t = " attr { key: 'T' value { type: DT_FLOAT } } }\n";
  std::string text =
      "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'shape' "
      "value { shape { dim { size: 1048576 } } } } }\n";
  std::string last = "x";
  for (const char* op : {"Relu", "Tanh", "Square", "Neg", "Exp", "Abs", "Sqrt", "Sigmoid"}) {
    text += cat("node { name: 'n", op, "' op: '", op, "' input: '", last, "'", t);
    last = cat("n", op);
  }
  write("chain.pbtxt", text);
  const Result r = run(cat("explain chain.pbtxt --json --feed x=[1048576] --fetch ", last));
  ASSERT_EQ(r.code, 0) << r.err;
  const json steps = json::parse(r.out)["steps"];
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0]["op"], "_Region");
  EXPECT_EQ(steps[0]["region"]["ops"], 8);
  EXPECT_EQ(steps[0]["nodes"].size(), 8u);
}

// A counter without saver nodes: restored and saved straight from its variable.
class GraphCliCounter : public GraphCli {
 protected:
  void SetUp() override {
    const std::string type = "attr { key: 'dtype' value { type: DT_FLOAT } }";
    write("v.pbtxt",
          cat("node { name: 'v' op: 'VarHandleOp' ", type, " attr { key: 'shape' value { shape { } } } }\n",
              "node { name: 'one' op: 'Const' ", type,
              " attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 1 } } } }\n",
              "node { name: 'init' op: 'AssignVariableOp' input: 'v' input: 'one' ", type, "}\n",
              "node { name: 'step' op: 'AssignAddVariableOp' input: 'v' input: 'one' ", type, "}\n",
              "node { name: 'read' op: 'ReadVariableOp' input: 'v' ", type, "}\n"));
  }
};

TEST_F(GraphCliCounter, SavesAndRestoresWithoutSaverNodes) {
  Result r = run("run v.pbtxt --init init --target step --steps 3 --save m");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(runtime::io::BundleReader(folder_ / "m").read("v").item<float>(), 4.0f);
  EXPECT_NE(read_file(folder_ / "checkpoint").find("model_checkpoint_path: \"m\""), std::string::npos);
  r = run("run v.pbtxt --restore m --fetch read");
  EXPECT_EQ(r.out, "step 1  read:0 = 4\n") << r.err;
  r = run("run v.pbtxt --fetch read");
  EXPECT_EQ(r.code, 1);
  EXPECT_NE(r.err.find("v"), std::string::npos) << r.err;
  write("m.index", read_file(folder_ / "m.index").substr(0, 20));
  wrong("run v.pbtxt --restore m --fetch read", "m.index");
}

// There, float variables are doubles.
TEST_F(GraphCliCounter, RestoresFloatsForTheReferenceInDouble) {
  Result r = run("run v.pbtxt --init init --target step --steps 3 --save m");
  EXPECT_EQ(r.code, 0) << r.err;
  ::setenv("SLUICE_PLAN", "reference64", 1);
  r = run("run v.pbtxt --restore m --target step --steps 1 --save wide");
  ::unsetenv("SLUICE_PLAN");
  EXPECT_EQ(r.code, 0) << r.err;
  const Array wide = runtime::io::BundleReader(folder_ / "wide").read("v");
  EXPECT_EQ(wide.dtype(), graph::DType::kDouble);
  EXPECT_EQ(wide.item<double>(), 5.0);
}

TEST_F(GraphCliCounter, AnInterruptEndsAfterTheStepAndTheSave) {
  const std::string words = "run v.pbtxt --init init --target step --steps 1000000000 --save m";
  const std::string command = cat("cd ", folder_.str(), " && timeout --preserve-status -s INT 2 ",
                                  SLUICE_GRAPH_PROGRAM, " ", words, " >out 2>err");
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 130);
  EXPECT_NE(read_file(folder_ / "err").find("stopped by signal 2"), std::string::npos);
  EXPECT_GT(runtime::io::BundleReader(folder_ / "m").read("v").item<float>(), 1.0f);
}

TEST_F(GraphCli, WrongCommandLinesExit2) {
  wrong("", "which command");
  wrong("dmp", "unknown command 'dmp'. Did you mean 'dump'");
  wrong("dump g.pbtxt --formt dot", "'format'");
  wrong("dump", "FILE is missing");
  wrong("dump a b", "too many arguments");
  wrong("dump g.pbtxt --format svg", "--format is");
  wrong("dump g.pbtxt --out no/such/g.pb", "no/such");
  wrong("prune g.pbtxt --out p.pb", "--keep is missing");
  wrong("prune g.pbtxt --keep lss --out p.pb", "there is no node 'lss' in the graph. Did you mean 'loss'");
  wrong("pass g.pbtxt frobnicate --out p.pb", "unknown pass 'frobnicate'");
  wrong("pass g.pbtxt gradients --ys loss --out p.pb", "--xs is missing");
  wrong("run g.pbtxt", "nothing to run");
  wrong("run g.pbtxt --fetch loss:3", "loss");
  wrong("run g.pbtxt --fetch loss --steps x", "--steps takes a whole number");
  wrong("run g.pbtxt --fetch loss --steps 0", "at least one step");
  wrong("run g.pbtxt --fetch loss --feed x", "--feed takes NAME=FILE.npy");
  wrong("run g.pbtxt --fetch loss --feed x=none.npy", "none.npy");
  wrong("run g.pbtxt --fetch loss --feed x=3", "Cannot feed value of shape []");
  wrong("run g.pbtxt --fetch loss --out a.npy --out b.npy", "2 --out for 1 --fetch");
  wrong("run g.pbtxt --fetch loss --restore nothing", "nothing.index");
  wrong("run g.pbtxt --fetch loss --save no/such/m", "no/such");
  EXPECT_FALSE(file_exists(folder_ / "p.pb"));
}

TEST_F(GraphCli, DamagedFilesExit2AndCheckExits3) {
  wrong("dump nowhere.pb", "nowhere.pb");
  wrong("dump .", "Is a directory");
  EXPECT_EQ(run("dump g.pbtxt --out g.pb").code, 0);
  write("cut.pb", read_file(folder_ / "g.pb").substr(0, 300));
  write("twice.pbtxt", "node { name: 'a' op: 'NoOp' } node { name: 'a' op: 'NoOp' }");
  write("unknown.pbtxt", "node { name: 'a' op: 'Frob' }");
  write("empty.pb", "");
  wrong("dump cut.pb", "cut.pb");
  wrong("stats twice.pbtxt", "Node 'a' is not unique");
  wrong("run unknown.pbtxt --target a", "Op type not registered 'Frob' (node 'a')");
  wrong("dump empty.pb", "the file is empty");
  wrong("check cut.pb", "cut.pb", 3);
  wrong("check twice.pbtxt", "Node 'a' is not unique", 3);
  wrong("check nowhere.pb", "nowhere.pb", 2);
  const json j = json::parse(run("check --json twice.pbtxt").out);
  EXPECT_EQ(j["ok"], false);
  EXPECT_EQ(j["violations"][0]["node"], "a");
  write("npy.npy", "\x93NUMPY garbage");
  wrong("run g.pbtxt --fetch loss --feed x=npy.npy", "npy.npy");
}

TEST_F(GraphCli, AFailingRunExits1) {
  const Result r = run("run g.pbtxt --fetch loss");
  EXPECT_EQ(r.code, 1);
  EXPECT_NE(r.err.find("You must feed a value for placeholder tensor 'x'"), std::string::npos) << r.err;
}

TEST_F(GraphCli, HelpIsPrinted) {
  EXPECT_NE(run("--help").out.find("explain"), std::string::npos);
  for (const char* c : {"dump", "stats", "prune", "diff", "check", "pass", "explain", "run"}) {
    const Result r = run(cat(c, " --help"));
    EXPECT_EQ(r.code, 0);
    EXPECT_NE(r.out.find("--json"), std::string::npos);
  }
}

}  // namespace
}  // namespace sluice::tools
