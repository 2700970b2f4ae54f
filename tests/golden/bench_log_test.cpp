// Standard output, mode by mode, against upstream's own logs with the figures masked.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/golden/program.h"

namespace sluice::bench {
namespace {

using namespace testing_support;
using testing::HasSubstr;

std::string golden(const std::string& name) { return read_text(std::string(SLUICE_GOLDEN_DIR) + "/" + name); }

std::vector<std::string> trivial(std::vector<std::string> more = {}) {
  std::vector<std::string> a = {"--model=trivial", "--batch_size=4", "--num_batches=20",
                                "--num_warmup_batches=2"};
  a.insert(a.end(), more.begin(), more.end());
  return a;
}

void expect_log(const Result& r, const std::string& name) {
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(mask(r.out), golden(name));
}

TEST(GoldenLog, Training) { expect_log(run_bench(trivial()), "train_trivial.txt"); }

TEST(GoldenLog, ForwardOnly) { expect_log(run_bench(trivial({"--forward_only"})), "forward_trivial.txt"); }

TEST(GoldenLog, TrainingAccuracy) {
  expect_log(run_bench(trivial({"--print_training_accuracy", "--optimizer=momentum"})), "acc_trivial.txt");
}

TEST(GoldenLog, EvaluationOfRealImages) {
  const std::string data = std::string(SLUICE_SHARED_DATA) + "/fake_imagenet";
  if (!fs::exists(data)) GTEST_SKIP() << data << " is absent";
  TempFolder dir;
  const std::string train_dir = "--train_dir=" + (dir / "t");
  const Result train =
      run_bench({"--model=trivial", "--batch_size=4", "--num_batches=8", "--num_warmup_batches=2",
                 "--data_name=imagenet", "--data_dir=" + data, train_dir});
  ASSERT_EQ(train.code, 0) << train.err;
  Result eval = run_bench({"--eval", "--model=trivial", "--batch_size=4", "--num_batches=5", train_dir});
  const std::string path = dir / "t";
  size_t at = eval.out.find(path);
  ASSERT_NE(at, std::string::npos) << eval.out << eval.err;
  eval.out.replace(at, path.size(), "TRAIN_DIR");
  expect_log(eval, "real_eval.txt");
  // Without a count, every example once.
  const Result whole = run_bench({"--eval", "--batch_size=24", train_dir});
  EXPECT_EQ(whole.code, 0) << whole.err;
  EXPECT_THAT(whole.out, HasSubstr("[128 examples]"));
}

TEST(GoldenLog, StepLinesOfShortRuns) {
  auto steps = [](const std::string& count) {
    const Result r =
        run_bench({"--model=lenet", "--batch_size=2", "--num_warmup_batches=0", "--num_batches=" + count});
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_THAT(r.out, HasSubstr("total images/sec: "));
    std::vector<std::string> found;
    std::istringstream in(r.out);
    for (std::string line; std::getline(in, line);)
      if (line.find("images/sec: ") != std::string::npos && line[0] != 't')
        found.push_back(line.substr(0, line.find('\t')));
    return found;
  };
  EXPECT_THAT(steps("1"), testing::ElementsAre("1"));
  EXPECT_THAT(steps("3"), testing::ElementsAre("1"));
  EXPECT_THAT(steps("20"), testing::ElementsAre("1", "10", "20"));
}

}  // namespace
}  // namespace sluice::bench
