#include "runtime/data/idx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "graph/support/check.h"
#include "runtime/data/image_set.h"
#include "tests/support/temp_folder.h"

namespace sluice::runtime::data {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

struct Folder : testing_support::TempFolder {
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(*this / name, std::ios::binary) << bytes;
    return *this / name;
  }
};

std::string idx(std::vector<uint32_t> dims, const std::string& values, char type = 8) {
  std::string s{0, 0, type, static_cast<char>(dims.size())};
  for (uint32_t d : dims)
    for (int shift = 24; shift >= 0; shift -= 8) s.push_back(static_cast<char>(d >> shift));
  return s + values;
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

TEST(Idx, ReadsDimensionsAndValues) {
  Folder f;
  const IdxData d = read_idx(f.write("a", idx({2, 3}, "abcdef")));
  EXPECT_THAT(d.dims, ElementsAre(2, 3));
  EXPECT_THAT(d.values, ElementsAre('a', 'b', 'c', 'd', 'e', 'f'));
}

TEST(Idx, TruncatedFileIsNamed) {
  Folder f;
  expect_error(Code::kDataLoss, f.str() + "/cut is truncated", [&] {
    read_idx(f.write("cut", idx({2, 3}, "abc")));
  });
  expect_error(Code::kDataLoss, "header", [&] { read_idx(f.write("head", idx({2, 3}, "").substr(0, 9))); });
  expect_error(Code::kDataLoss, "/empty", [&] { read_idx(f.write("empty", "")); });
}

TEST(Idx, HostileHeaderAllocatesNothing) {
  Folder f;
  expect_error(Code::kDataLoss, "16 GiB", [&] {
    read_idx(f.write("big", idx({0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu}, "")));
  });
  expect_error(Code::kDataLoss, "truncated", [&] { read_idx(f.write("claim", idx({0x7fffffffu}, "x"))); });
  expect_error(Code::kDataLoss, "element type", [&] { read_idx(f.write("ints", idx({1}, "abcd", 0x0c))); });
  expect_error(Code::kDataLoss, "magic", [&] { read_idx(f.write("text", "hello world")); });
  expect_error(Code::kDataLoss, "bytes after", [&] { read_idx(f.write("long", idx({2}, "abc"))); });
}

TEST(Idx, DamagedGzipIsNamed) {
  Folder f;
  std::string bytes("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03garbage that is no deflate stream", 40);
  expect_error(Code::kDataLoss, "/bad.gz", [&] { read_idx(f.write("bad.gz", bytes)); });
}

TEST(FashionMnist, MissingFolderNamesThePackage) {
  expect_error(Code::kNotFound, "dataset-fashion-mnist",
               [] { load_fashion_mnist("/nonexistent/folder", true); });
}

TEST(FashionMnist, CountsMustAgree) {
  Folder f;
  f.write("train-images-idx3-ubyte", idx({2, 1, 1}, "ab"));
  f.write("train-labels-idx1-ubyte", idx({3}, std::string("\0\1\2", 3)));
  expect_error(Code::kDataLoss, "train-labels", [&] { load_fashion_mnist(f.str(), true); });
  f.write("train-labels-idx1-ubyte", idx({2}, "\x09\x0a"));
  expect_error(Code::kDataLoss, "label 10", [&] { load_fashion_mnist(f.str(), true); });
}

TEST(FashionMnist, DebianPackageLoads) {
  if (!fs::exists(kFashionMnistDir)) GTEST_SKIP() << kFashionMnistDir << " is absent";
  const ImageSet test = load_fashion_mnist(kFashionMnistDir, false);
  EXPECT_EQ(test.count, 10000);
  EXPECT_EQ(test.height, 28);
  EXPECT_EQ(test.labels[0], 10);  // the first test image is an ankle boot, stored as 9
  std::vector<int> histogram(11);
  for (int32_t l : test.labels) ++histogram[static_cast<size_t>(l)];
  EXPECT_EQ(histogram[0], 0);
  for (size_t c = 1; c <= 10; ++c) EXPECT_EQ(histogram[c], 1000);
}

std::shared_ptr<const ImageSet> tiny(int count) {
  auto set = std::make_shared<ImageSet>();
  set->count = count;
  set->height = set->width = set->channels = 1;
  for (int i = 0; i < count; ++i) {
    set->pixels.push_back(static_cast<uint8_t>(i));
    set->labels.push_back(i);
  }
  return set;
}

std::vector<int32_t> drain(Prefetcher& p, std::vector<int64_t>* sizes = nullptr) {
  std::vector<int32_t> all;
  while (auto b = p.next()) {
    for (int32_t l : b->labels.as<int32_t>()) all.push_back(l);
    if (sizes) sizes->push_back(b->size());
  }
  return all;
}

TEST(Prefetch, DeliversEveryExampleOnceInOrderWithAPartialLastBatch) {
  for (int threads : {1, 3}) {
    Prefetcher p(image_set_producer(tiny(10), {.batch = 4}), threads, 2);
    std::vector<int64_t> sizes;
    EXPECT_THAT(drain(p, &sizes), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
    EXPECT_THAT(sizes, ElementsAre(4, 4, 2));
    EXPECT_FALSE(p.next());
  }
}

TEST(Prefetch, ShuffleIsSeededAndThreadIndependent) {
  auto order = [](uint64_t seed, int threads) {
    Prefetcher p(image_set_producer(tiny(50), {.batch = 7, .shuffle = true, .seed = seed}), threads, 3);
    return drain(p);
  };
  EXPECT_EQ(order(1, 1), order(1, 4));
  EXPECT_NE(order(1, 1), order(2, 1));
  std::vector<int32_t> sorted = order(3, 2);
  std::sort(sorted.begin(), sorted.end());
  for (int i = 0; i < 50; ++i) EXPECT_EQ(sorted[static_cast<size_t>(i)], i);
}

TEST(Prefetch, RepeatingBatchesStraddleEpochs) {
  Prefetcher p(image_set_producer(tiny(3), {.batch = 2, .repeat = true}), 1, 2);
  std::vector<int32_t> seen;
  for (int i = 0; i < 3; ++i) {
    const std::optional<Batch> batch = p.next();
    for (int32_t l : batch->labels.as<int32_t>()) seen.push_back(l);
  }
  EXPECT_THAT(seen, ElementsAre(0, 1, 2, 0, 1, 2));
}

TEST(Prefetch, AnErrorComesOutInItsPlace) {
  struct Failing : BatchProducer {
    int n = 0;
    BatchJob claim() override {
      const int i = n++;
      return [i]() -> Batch {
        if (i == 1) throw_error(Code::kDataLoss, "record 1");
        return {Array::zeros(graph::DType::kFloat, {1, 1, 1, 1}), Array::zeros(graph::DType::kInt32, {1})};
      };
    }
  };
  Prefetcher p(std::make_unique<Failing>(), 2, 4);
  EXPECT_TRUE(p.next());
  expect_error(Code::kDataLoss, "record 1", [&] { p.next(); });
}

TEST(Prefetch, DestructionEndsWaitingThreads) {
  Prefetcher p(image_set_producer(tiny(3), {.batch = 1, .repeat = true}), 3, 1);
  EXPECT_TRUE(p.next());
}

}  // namespace
}  // namespace sluice::runtime::data
