// Reported cases (cases.md, B and D10) and bad input through sluice-bench: what a graph file holds, what
// runs, exit codes, nothing half-written.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "graph/graphdef.h"
#include "graph/support/cat.h"
#include "tests/golden/program.h"

namespace sluice::bench {
namespace {

using namespace testing_support;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> lenet(std::vector<std::string> more) {
  std::vector<std::string> a = {"--model=lenet", "--batch_size=2", "--num_batches=2",
                                "--num_warmup_batches=1"};
  a.insert(a.end(), more.begin(), more.end());
  return a;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& e : fs::directory_iterator(folder)) names.push_back(e.path().filename().string());
  return names;
}

// Refused before anything starts: exit code, one error that names `part`, silence on standard output.
void refused(const std::vector<std::string>& arguments, const std::string& part, int code = 2) {
  const Result r = run_bench(arguments);
  EXPECT_EQ(r.code, code) << r.err;
  EXPECT_EQ(r.out, "") << arguments.back();
  EXPECT_THAT(r.err, AllOf(HasSubstr("sluice-bench: "), HasSubstr(part)));
  EXPECT_EQ(r.err.find("sluice-bench: "), r.err.rfind("sluice-bench: ")) << r.err;
}

TEST(BenchCases, B02WarmUpsAreAsManyAsAskedFor) {
  const auto steps_run = [](std::vector<std::string> more) {
    TempFolder dir;
    more.insert(more.end(), {"--model=lenet", "--batch_size=2", "--num_batches=5", "--display_every=1",
                             "--train_dir=" + (dir / "t")});
    const Result r = run_bench(more);
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_THAT(r.out, AllOf(HasSubstr("\n5\timages/sec: "), testing::Not(HasSubstr("\n6\timages/sec: "))));
    for (int step = 0; step < 40; ++step)
      if (fs::exists(dir / cat("t/model.ckpt-", step, ".index"))) return step;
    return -1;
  };
  EXPECT_EQ(steps_run({"--num_warmup_batches=0"}), 5);
  EXPECT_EQ(steps_run({}), 15);
  refused({"--model=lenet", "--num_batches=0"}, "--num_batches=0");
}

TEST(BenchCases, B05ForwardOnlyUpdatesNothing) {
  TempFolder dir;
  const auto graph_of = [&](const std::string& mode, graph::Graph& g) {
    const Result r = run_bench({"--model=resnet50", "--batch_size=1", "--num_batches=1",
                                "--num_warmup_batches=0", mode, "--graph_file=" + (dir / "g.pb")});
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_THAT(r.out, HasSubstr("Writing GraphDef as binary to "));
    graph::read_graph_file(g, dir / "g.pb");
    return r;
  };
  graph::Graph forward, training;
  EXPECT_THAT(graph_of("--forward_only", forward).out, HasSubstr("Mode:        forward only\n"));
  EXPECT_THAT(graph_of("--optimizer=momentum", training).out, HasSubstr("Mode:        training\n"));
  // Whatever writes a variable in the forward graph is its initialiser.
  std::vector<std::string> writers;
  for (const graph::Node* n : forward.nodes())
    if (n->has(graph::kWritesVariable) && !n->name().ends_with("/Assign")) writers.push_back(n->name());
  EXPECT_THAT(writers, IsEmpty());
  int updates = 0, slots = 0;
  for (const graph::Node* n : training.nodes()) {
    updates += n->name().find("AssignMovingAvg") != std::string::npos;
    slots += n->has(graph::kVariable) && n->name().ends_with("/Momentum");
  }
  EXPECT_GT(updates, 0);
  EXPECT_GT(slots, 0);
  for (const graph::Node* n : forward.nodes()) {
    EXPECT_EQ(n->name().find("Momentum"), std::string::npos) << n->name();
    EXPECT_FALSE(n->name().starts_with("gradients/")) << n->name();
  }
}

TEST(BenchCases, B08MisspeltFlagsGetTheNearest) {
  refused({"--batchsize=8"}, "Did you mean '--batch_size'");
  refused({"--num_batches=ten"}, "--num_batches=ten: not an integer");
  refused({"--model=nosuch"}, "Invalid model name 'nosuch'");
  refused({"--model=resnet5"}, "Did you mean 'resnet50'");
  refused({"--model=lenet", "stray"}, "'stray'");
}

double first_loss(const std::string& out) {
  const size_t line = out.find("\n1\timages/sec: ");
  const size_t at = line == std::string::npos ? line : out.find(")\t", line);
  if (at == std::string::npos) ADD_FAILURE() << out;
  return at == std::string::npos ? 0 : std::stod(out.substr(at + 2));
}

// The printed loss has three decimals, which of about 7 is the case's 1e-4.
TEST(BenchCases, B09LayoutsGiveTheSameLossOfANetOfAlexnetsSize) {
  double loss[2];
  for (int i : {0, 1}) {
    const Result r =
        run_bench({"--model=alexnet", "--batch_size=2", "--num_batches=1", "--num_warmup_batches=0",
                   "--device=cpu", "--tf_random_seed=7", i ? "--data_format=NCHW" : "--data_format=NHWC"});
    ASSERT_EQ(r.code, 0) << r.err;
    loss[i] = first_loss(r.out);
  }
  EXPECT_GT(loss[0], 1.0);
  EXPECT_NEAR(loss[0], loss[1], 1.001e-3);
}

TEST(BenchCases, B10NoRandomOpInTheTimedGraph) {
  TempFolder dir;
  const Result r = run_bench({"--model=trivial", "--batch_size=2", "--num_batches=1",
                              "--num_warmup_batches=0", "--graph_file=" + (dir / "g.pb")});
  ASSERT_EQ(r.code, 0) << r.err;
  graph::Graph g;
  graph::read_graph_file(g, dir / "g.pb");
  std::vector<graph::Node*> updates, writers;
  for (graph::Node* n : g.nodes()) {
    if (n->has(graph::kWritesVariable) && !n->name().ends_with("/Assign")) updates.push_back(n);
    if (n->has(graph::kWritesVariable) && n->num_inputs() > 0 &&
        n->input(0).node->name() == "synthetic_labels")
      writers.push_back(n);
  }
  ASSERT_FALSE(updates.empty());
  bool sees_labels = false;
  for (const graph::Node* n : graph::ancestors(updates)) {
    EXPECT_FALSE(n->has(graph::kRandom)) << n->name();
    sees_labels |= n->name() == "synthetic_labels";
  }
  EXPECT_TRUE(sees_labels);
  ASSERT_EQ(writers.size(), 1u) << "labels are drawn by their initialiser and never again";
}

TEST(BenchCases, D10GraphFilesAreTextWhenTheNameSaysSo) {
  TempFolder dir;
  const fs::path before = fs::current_path();
  fs::current_path(dir.str());
  const Result text = run_bench(lenet({"--graph_file=x.pbtxt"}));
  const Result binary = run_bench(lenet({"--graph_file=x.pb"}));
  fs::current_path(before);
  EXPECT_THAT(text.out, HasSubstr("Writing GraphDef as text to x.pbtxt\n")) << text.err;
  EXPECT_THAT(binary.out, HasSubstr("Writing GraphDef as binary to x.pb\n")) << binary.err;
  EXPECT_TRUE(read_text(dir / "x.pbtxt").starts_with("node {"));
  graph::Graph a, b;
  graph::read_graph_file(a, dir / "x.pbtxt");
  graph::read_graph_file(b, dir / "x.pb");
  EXPECT_EQ(graph::graph_to_bytes(a), read_text(dir / "x.pb"));
  EXPECT_EQ(graph::graph_to_bytes(b, graph::FileFormat::kText), read_text(dir / "x.pbtxt"));
  refused(lenet({"--graph_file=" + (dir / "sub/x.pb")}), "there is no folder " + (dir / "sub"));
  EXPECT_FALSE(fs::exists(dir / "sub"));
}

// /proc takes no new files, whoever asks.
TEST(BenchBadInput, PathsThatCannotBeWrittenStopTheRunAtTheStart) {
  TempFolder dir;
  std::ofstream(dir / "file") << "a file";
  for (const std::string flag :
       {"--graph_file=/proc/g.pb", "--trace_file=/proc/t.json", "--train_dir=/proc/t"})
    refused(lenet({flag}), "flag " + flag);
  refused(lenet({"--train_dir=" + (dir / "file")}), "is not a folder");
  refused(lenet({"--train_dir=" + (dir / "file/t")}), "is not a folder");
  refused(lenet({"--graph_file=" + dir.str()}), "is a folder");
  refused(lenet({"--trace_file=" + (dir / "none/t.json")}), "there is no folder " + (dir / "none"));
  EXPECT_THAT(names_in(dir.str()), testing::ElementsAre("file"));
}

TEST(BenchBadInput, ARefusedCommandLineLeavesNothingBehind) {
  TempFolder dir;
  const std::string train_dir = "--train_dir=" + (dir / "t"), graph_file = "--graph_file=" + (dir / "g.pb");
  refused({"--model=lenet", train_dir, graph_file, "--batch_size=-4"}, "--batch_size=-4");
  refused({"--model=nosuch", train_dir, graph_file}, "nosuch");
  refused({"--model=lenet", train_dir, graph_file, "--data_name=imagenet", "--data_dir=" + (dir / "none")},
          dir / "none");
  refused({"--model=lenet", train_dir, graph_file, "--optimizer=adagrad"}, "adagrad");
  EXPECT_THAT(names_in(dir.str()), IsEmpty());
}

TEST(BenchBadInput, DamagedParametersOfATrainingRunAreNamed) {
  TempFolder dir;
  fs::create_directories(dir / "t");
  std::ofstream(dir / "t/parameters.json") << "{\"model\": \"len";
  refused({"--eval", "--train_dir=" + (dir / "t")}, dir / "t/parameters.json");
}

}  // namespace
}  // namespace sluice::bench
