// What the program does as a process: exit codes, files, signals, one flag at a time.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "graph/support/cat.h"
#include "tests/golden/program.h"
#include "tools/bench/flag_table.h"

namespace sluice::bench {
namespace {

using namespace testing_support;
using testing::HasSubstr;

std::vector<std::string> tiny(std::vector<std::string> more) {
  std::vector<std::string> a = {"--model=lenet", "--batch_size=2", "--num_batches=2",
                                "--num_warmup_batches=1"};
  a.insert(a.end(), more.begin(), more.end());
  return a;
}

// A value that is not the default, and what else the run needs to make sense of it.
std::vector<std::string> changed(const FlagSpec& f, const TempFolder& dir) {
  const std::string name(f.name);
  const Params defaults;
  if (name == "model") return {"--model=trivial"};
  if (name == "batch_size") return {"--batch_size=3"};
  if (name == "num_batches") return {"--num_batches=3"};
  if (name == "num_warmup_batches") return {"--num_warmup_batches=2"};
  if (name == "display_every") return {"--display_every=1"};
  if (name == "data_dir") return {"--data_dir=" + (dir / "missing_imagenet")};
  if (name == "data_name") return {"--data_name=imagenet"};
  if (name == "resize_method") return {"--resize_method=area"};
  if (name == "eval_method") return {"--eval_method=inception"};
  if (name == "local_parameter_device" || name == "device") return {cat("--", name, "=cpu")};
  if (name == "data_format") return {"--data_format=NCHW"};
  if (name == "num_intra_threads" || name == "num_inter_threads") return {cat("--", name, "=1")};
  if (name == "trace_file") return {"--trace_file=" + (dir / "trace.json")};
  if (name == "graph_file") return {"--graph_file=" + (dir / "graph.pbtxt")};
  if (name == "optimizer") return {"--optimizer=rmsprop"};
  if (name == "num_epochs_per_decay" || name == "learning_rate_decay_factor" ||
      name == "minimum_learning_rate")
    return {"--learning_rate=.01", "--num_epochs_per_decay=2", "--learning_rate_decay_factor=.5",
            "--minimum_learning_rate=.001"};
  if (name == "variable_update") return {"--variable_update=replicated"};
  if (name == "job_name") return {"--job_name=worker"};
  if (name == "train_dir") return {"--train_dir=" + (dir / "train")};
  if (is_boolean(f)) return {cat("--", name, "=", value_text(f, defaults) == "true" ? "false" : "true")};
  if (type_name(f) == "integer") return {cat("--", name, "=7")};
  if (type_name(f) == "float") return {cat("--", name, "=.25")};
  return {cat("--", name, "=word")};
}

TEST(EveryFlag, WorksOrIsRefusedByName) {
  for (const FlagSpec& f : seed_flags()) {
    TempFolder dir;
    const Result r = run_bench(tiny(changed(f, dir)));
    // Evaluation and a data folder need files that this run does not have.
    const bool refused = f.klass == FlagClass::kRefused || f.name == "eval" || f.name == "data_dir";
    EXPECT_EQ(r.code, refused ? 2 : 0) << f.name << "\n" << r.err;
    if (!refused) continue;
    EXPECT_EQ(r.out, "") << f.name;
    EXPECT_THAT(r.err, HasSubstr(f.name == "eval" ? "Trained model directory" : std::string(f.name)));
  }
}

TEST(BadInput, ExitsTwoBeforeAnythingStarts) {
  for (const std::string bad : {"--model=nosuch", "--batch_size=-4", "--batchsize=8", "--num_batches=ten",
                                "stray", "--data_name=imagenet --data_dir=/nonexistent"}) {
    std::vector<std::string> words;
    std::istringstream in(bad);
    for (std::string w; in >> w;) words.push_back(w);
    const Result r = run_bench(words);
    EXPECT_EQ(r.code, 2) << bad;
    EXPECT_EQ(r.out, "") << bad;
    EXPECT_NE(r.err, "") << bad;
  }
}

TEST(BadInput, DamagedDataExitsOneNamingTheFile) {
  TempFolder dir;
  std::ofstream(dir / "train-images-idx3-ubyte") << std::string("\0\0\x08\x03\0\0\0\x02", 8);
  std::ofstream(dir / "train-labels-idx1-ubyte") << std::string("\0\0\x08\x01\0\0\0\x02\1\2", 10);
  const Result idx = run_bench(tiny({"--data_name=fashion_mnist", "--data_dir=" + dir.str()}));
  EXPECT_EQ(idx.code, 1);
  EXPECT_THAT(idx.err, HasSubstr("train-images-idx3-ubyte is truncated"));
  std::ofstream(dir / "train-00000-of-00001") << std::string("\x20\0\0\0\0\0\0\0garbage", 15);
  const Result record = run_bench(tiny({"--data_name=imagenet", "--data_dir=" + dir.str()}));
  EXPECT_EQ(record.code, 1);
  EXPECT_THAT(record.err, HasSubstr("train-00000-of-00001"));
}

TEST(Help, GoesToStdout) {
  const Result r = run_bench({"--help"});
  EXPECT_EQ(r.code, 0);
  EXPECT_THAT(r.out, HasSubstr("--learning_rate"));
  EXPECT_THAT(run_bench({"--version"}).out, HasSubstr("sluice-bench "));
}

// The loss on the line of the given step.
double loss_at(const std::string& out, const std::string& step) {
  std::istringstream in(out);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::vector<std::string> w;
    for (std::string word; words >> word;) w.push_back(word);
    if (w.size() >= 9 && w[0] == step && w[1] == "images/sec:") return std::stod(w[8]);
  }
  ADD_FAILURE() << "no step " << step << " in\n" << out;
  return 0;
}

TEST(Synthetic, LabelsAreDrawnOnceSoLossFalls) {
  const Result r =
      run_bench({"--model=trivial", "--num_batches=50", "--batch_size=8", "--learning_rate=.01"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_LT(loss_at(r.out, "50"), loss_at(r.out, "1"));
}

TEST(DataFormat, NchwGivesTheSameLosses) {
  auto run = [](const char* format) {
    return run_bench({"--model=lenet", "--batch_size=4", "--num_batches=10", "--num_warmup_batches=0",
                      "--learning_rate=.01", std::string("--data_format=") + format});
  };
  const Result a = run("NHWC"), b = run("NCHW");
  ASSERT_EQ(a.code, 0) << a.err;
  ASSERT_EQ(b.code, 0) << b.err;
  EXPECT_NEAR(loss_at(a.out, "1"), loss_at(b.out, "1"), 1.001e-3);
  EXPECT_NEAR(loss_at(a.out, "10"), loss_at(b.out, "10"), 2e-3);
}

TEST(ForwardOnly, GraphHasNoTrainingNodes) {
  TempFolder dir;
  const Result forward = run_bench(tiny({"--forward_only", "--graph_file=" + (dir / "f.pbtxt")}));
  const Result training = run_bench(tiny({"--optimizer=momentum", "--graph_file=" + (dir / "t.pbtxt")}));
  ASSERT_EQ(forward.code, 0) << forward.err;
  ASSERT_EQ(training.code, 0) << training.err;
  EXPECT_THAT(forward.out, HasSubstr("Writing GraphDef as text to "));
  const std::string f = read_text(dir / "f.pbtxt"), t = read_text(dir / "t.pbtxt");
  for (const char* word : {"gradients/", "Momentum", "SparseSoftmaxCrossEntropy", "L2Loss"}) {
    EXPECT_EQ(f.find(word), std::string::npos) << word;
    EXPECT_NE(t.find(word), std::string::npos) << word;
  }
  EXPECT_EQ(f.find("ResourceApply"), std::string::npos);
}

TEST(TrainDir, ResumesAndKeepsParameters) {
  TempFolder dir;
  const std::string train_dir = "--train_dir=" + (dir / "t");
  const Result first = run_bench({"--model=lenet", "--batch_size=2", "--num_batches=4",
                                  "--num_warmup_batches=1", "--display_every=1", train_dir});
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_TRUE(fs::exists(dir / "t/model.ckpt-5.index"));
  EXPECT_TRUE(fs::exists(dir / "t/checkpoint"));
  EXPECT_THAT(read_text(dir / "t/parameters.json"), HasSubstr("\"model\": \"lenet\""));
  const Result second = run_bench({"--model=lenet", "--batch_size=2", "--num_batches=8",
                                   "--num_warmup_batches=1", "--display_every=1", train_dir});
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_EQ(second.out.find("\n4\timages/sec"), std::string::npos) << "8 - 5 steps were left";
  EXPECT_NE(second.out.find("\n3\timages/sec"), std::string::npos);
  EXPECT_TRUE(fs::exists(dir / "t/model.ckpt-9.index"));
}

TEST(TrainDir, EvaluationWithoutACheckpointIsTheCommandLinesFault) {
  TempFolder dir;
  const Result r = run_bench({"--eval", "--model=lenet", "--train_dir=" + dir.str()});
  EXPECT_EQ(r.code, 2);
  EXPECT_EQ(r.out, "");
  EXPECT_THAT(r.err, HasSubstr("Checkpoint not found in " + dir.str()));
}

TEST(Signals, TheStepEndsAndStateIsSaved) {
  for (const auto& [signal, code] : {std::pair{SIGINT, 130}, {SIGTERM, 143}}) {
    TempFolder dir;
    Child child({"--model=lenet", "--batch_size=2", "--num_batches=100000000", "--num_warmup_batches=0",
                 "--flush_stdout", "--train_dir=" + (dir / "t")});
    for (int i = 0; i < 600 && child.out().find("images/sec: ") == std::string::npos; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // no event to wait for in another process
    child.signal(signal);
    const Result r = child.wait();
    EXPECT_EQ(r.code, code) << r.err;
    EXPECT_TRUE(fs::exists(dir / "t/checkpoint"));
  }
}

TEST(TraceFile, IsChromeJson) {
  TempFolder dir;
  const Result r = run_bench(tiny({"--trace_file=" + (dir / "t.json")}));
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("Dumping trace to "));
  const std::string trace = read_text(dir / "t.json");
  EXPECT_THAT(trace, HasSubstr("\"traceEvents\""));
  EXPECT_THAT(trace, HasSubstr("Conv2D"));
}

TEST(FashionMnist, LearnsAndEvaluates) {
  if (!fs::exists("/usr/share/datasets/fashion-mnist"))
    GTEST_SKIP() << "dataset-fashion-mnist is not installed";
  const Result r =
      run_bench({"--model=lenet", "--data_name=fashion_mnist", "--optimizer=momentum", "--learning_rate=0.02",
                 "--batch_size=64", "--num_batches=60", "--eval_after_training"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("Dataset:     fashion_mnist\n"));
  EXPECT_THAT(r.out, HasSubstr("[10000 examples]"));
  const size_t at = r.out.find("Accuracy @ 1 = ");
  ASSERT_NE(at, std::string::npos) << r.out;
  EXPECT_GT(std::stod(r.out.substr(at + 15)), 0.6);
}

}  // namespace
}  // namespace sluice::bench
