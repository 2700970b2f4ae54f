#include "runtime/data/imagenet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include "graph/support/check.h"
#include "runtime/io/example.h"
#include "runtime/io/record.h"
#include "tests/data/image_golden.h"
#include "tests/support/temp_folder.h"

namespace sluice::runtime::data {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class ImagenetFolder : public testing::Test {
 protected:
  // A file of `count` records labelled first, first + 1, …
  std::string write(const std::string& name, int64_t first, int count, bool label = true) {
    const std::string path = (dir_ / name).string();
    io::RecordWriter out(path);
    for (int i = 0; i < count; ++i) {
      io::Example e;
      e["image/encoded"] = {io::Feature::Kind::kBytes, {std::string(jpeg_)}, {}, {}};
      if (label) e["image/class/label"] = {io::Feature::Kind::kInt64, {}, {}, {first + i}};
      out.write(io::serialize_example(e));
    }
    out.close();
    return path;
  }
  std::vector<std::string> files(bool training) const { return imagenet_files(dir_.string(), training); }

  testing_support::TempFolder folder_;
  const fs::path dir_ = folder_.path();
  const std::string_view jpeg_{reinterpret_cast<const char*>(golden::kJpeg), std::size(golden::kJpeg)};
};

const PreprocessOptions kSmall{.height = 8, .width = 8};

std::vector<int32_t> labels_of(Prefetcher& p, int batches = 1 << 20) {
  std::vector<int32_t> all;
  for (int i = 0; i < batches; ++i) {
    const std::optional<Batch> b = p.next();
    if (!b) break;
    for (int32_t l : b->labels.as<int32_t>()) all.push_back(l);
  }
  return all;
}

void expect_error(Code code, const std::string& part, const std::function<void()>& f) {
  try {
    f();
    ADD_FAILURE() << "no error; expected one with '" << part << "'";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_THAT(e.what(), HasSubstr(part));
  }
}

TEST_F(ImagenetFolder, FilesFollowTheirPattern) {
  write("train-00001-of-00002", 1, 1);
  write("train-00000-of-00002", 1, 1);
  write("validation-00000-of-00001", 1, 1);
  write("training.txt", 1, 1);
  EXPECT_EQ(files(true).size(), 2u);
  EXPECT_THAT(files(true)[0], HasSubstr("train-00000"));
  EXPECT_EQ(files(false).size(), 1u);
  EXPECT_EQ(count_records(files(true)), 2);
  fs::remove(dir_ / "validation-00000-of-00001");
  expect_error(Code::kNotFound,
               "Found no files in --data_dir matching: " + (dir_ / "validation-*-of-*").string(),
               [&] { files(false); });
  expect_error(Code::kNotFound, "/nonexistent", [] { imagenet_files("/nonexistent", true); });
}

TEST_F(ImagenetFolder, EvaluationReadsEveryRecordOnceInOrder) {
  write("validation-00000-of-00002", 1, 3);
  write("validation-00001-of-00002", 4, 4);
  for (int threads : {1, 3}) {
    Prefetcher p(imagenet_producer(files(false), {.batch = 3}, kSmall), threads);
    EXPECT_THAT(labels_of(p), testing::ElementsAre(1, 2, 3, 4, 5, 6, 7));
  }
}

TEST_F(ImagenetFolder, TrainingMixesRepeatsAndDependsOnTheSeedOnly) {
  write("train-00000-of-00002", 1, 10);
  write("train-00001-of-00002", 11, 10);
  auto run = [&](uint64_t seed, int threads) {
    Prefetcher p(imagenet_producer(files(true), {.batch = 5, .shuffle = true, .repeat = true, .seed = seed},
                                   kSmall, {.interleave = 2, .buffer = 8}),
                 threads);
    std::vector<float> pixels;
    std::vector<int32_t> labels;
    for (int i = 0; i < 8; ++i) {
      const std::optional<Batch> b = p.next();
      for (int32_t l : b->labels.as<int32_t>()) labels.push_back(l);
      for (float v : b->images.as<float>()) pixels.push_back(v);
    }
    return std::pair(labels, pixels);
  };
  const auto a = run(1, 1), b = run(1, 4), c = run(2, 1);
  EXPECT_EQ(a, b);
  EXPECT_NE(a.first, c.first);
  std::vector<int32_t> seen = a.first;
  std::sort(seen.begin(), seen.end());
  EXPECT_GE(std::unique(seen.begin(), seen.end()) - seen.begin(), 15) << "two epochs' worth of draws";
}

TEST_F(ImagenetFolder, DamageNamesFileAndRecord) {
  const std::string path = write("validation-00000-of-00001", 1, 3);
  fs::resize_file(path, fs::file_size(path) - 7);
  Prefetcher cut(imagenet_producer(files(false), {.batch = 1}, kSmall));
  EXPECT_TRUE(cut.next());
  EXPECT_TRUE(cut.next());
  expect_error(Code::kDataLoss, "truncated record", [&] { cut.next(); });

  write("validation-00000-of-00001", 1, 2, /*label=*/false);
  Prefetcher unlabelled(imagenet_producer(files(false), {.batch = 1}, kSmall));
  expect_error(Code::kDataLoss, "validation-00000-of-00001: record number 0: ", [&] { unlabelled.next(); });

  write("validation-00000-of-00001", 2000, 1);
  Prefetcher beyond(imagenet_producer(files(false), {.batch = 1}, kSmall));
  expect_error(Code::kDataLoss, "label 2000", [&] { beyond.next(); });

  std::ofstream(dir_ / "validation-00000-of-00001").close();
  Prefetcher empty(imagenet_producer(files(false), {.batch = 1}, kSmall));
  expect_error(Code::kDataLoss, "validation-00000-of-00001", [&] { empty.next(); });
}

TEST(FakeImagenet, DecodesInBothModes) {
  const std::string dir = std::string(SLUICE_SHARED_DATA) + "/fake_imagenet";
  if (!fs::exists(dir)) GTEST_SKIP() << dir << " is absent";
  EXPECT_EQ(count_records(imagenet_files(dir, false)), 128);
  EXPECT_EQ(count_records(imagenet_files(dir, true)), 512);
  Prefetcher eval(imagenet_producer(imagenet_files(dir, false), {.batch = 50}, {.height = 64, .width = 64}),
                  2);
  EXPECT_EQ(labels_of(eval).size(), 128u);
  Prefetcher train(imagenet_producer(imagenet_files(dir, true), {.batch = 64, .shuffle = true, .seed = 3},
                                     {.height = 64, .width = 64, .resize = ResizeChoice::kRoundRobin}),
                   2);
  EXPECT_EQ(labels_of(train).size(), 512u);
}

}  // namespace
}  // namespace sluice::runtime::data
