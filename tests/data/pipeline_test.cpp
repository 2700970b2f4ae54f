// What each transformation of an input pipeline does, and that threads change nothing.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "tests/data/pipeline_util.h"

namespace sluice {
namespace {

using namespace pipetest;
using dsl::data::Dataset;
using dsl::data::range;
using graph::DType;
using graph::Shape;
using testing::ElementsAre;
using testing::HasSubstr;
namespace data = dsl::data;

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return cat(code_name(e.code()), ": ", e.message());
  }
  return "no error";
}

TEST(Pipeline, SlicesGiveRowsUnderTheirNames) {
  const Dataset d = data::tensor_slices(
      {Array::from<float>({2, 2}, {1, 2, 3, 4}), Array::strings({2}, {"a", "b"})}, {"x", "s"});
  EXPECT_EQ(runtime::data::spec_string(d.spec()), "(x: float[2], s: string[])");
  EXPECT_EQ(d.cardinality(), 2);
  Pipeline p = d.iterate();
  Element e;
  ASSERT_TRUE(p.next(e));
  EXPECT_THAT(e[0].as<float>(), ElementsAre(1, 2));
  ASSERT_TRUE(p.next(e));
  EXPECT_THAT(e[0].as<float>(), ElementsAre(3, 4));
  EXPECT_EQ(e[1].string_values()[0], "b");
  EXPECT_FALSE(p.next(e));
  EXPECT_FALSE(p.next(e)) << "the end stays the end";
}

TEST(Pipeline, SlicesOfUnequalLengthAreRefused) {
  EXPECT_THAT(error_of([] {
                data::tensor_slices({Array::from<float>({2}, {1, 2}), Array::from<float>({3}, {1, 2, 3})});
              }),
              HasSubstr("2 and 3 rows"));
}

TEST(Pipeline, RangeCountsBothWays) {
  EXPECT_THAT(numbers(range(2, 11, 3)), ElementsAre(2, 5, 8));
  EXPECT_THAT(numbers(range(5, 0, -2)), ElementsAre(5, 3, 1));
  EXPECT_THAT(numbers(range(0, -3)), ElementsAre());
  EXPECT_EQ(range(2, 11, 3).cardinality(), 3);
}

TEST(Pipeline, TakeSkipShardRepeatConcatenateAreThoseOfTfData) {
  EXPECT_THAT(numbers(range(0, 10).take(3)), ElementsAre(0, 1, 2));
  EXPECT_THAT(numbers(range(0, 4).take(-1)), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(numbers(range(0, 5).skip(3)), ElementsAre(3, 4));
  EXPECT_THAT(numbers(range(0, 5).skip(-1)), ElementsAre());
  EXPECT_THAT(numbers(range(0, 10).shard(4, 1)), ElementsAre(1, 5, 9));
  EXPECT_THAT(numbers(range(0, 2).repeat(3)), ElementsAre(0, 1, 0, 1, 0, 1));
  EXPECT_THAT(numbers(range(0, 2).repeat(), 5), ElementsAre(0, 1, 0, 1, 0));
  EXPECT_THAT(numbers(range(0, 0).repeat()), ElementsAre()) << "nothing for ever is nothing";
  EXPECT_THAT(numbers(range(0, 2).concatenate(range(7, 9))), ElementsAre(0, 1, 7, 8));
  EXPECT_THAT(error_of([] { range(0, 3).shard(2, 2); }), HasSubstr("Index must be between 0 and 1"));
}

TEST(Pipeline, CardinalityFollowsTheSteps) {
  EXPECT_EQ(range(0, 10).batch(4).cardinality(), 3);
  EXPECT_EQ(range(0, 10).batch(4, true).cardinality(), 2);
  EXPECT_EQ(range(0, 10).repeat(3).skip(5).cardinality(), 25);
  EXPECT_EQ(range(0, 10).repeat().cardinality(), Dataset::kInfinite);
  EXPECT_EQ(range(0, 10).repeat().take(7).cardinality(), 7);
  EXPECT_EQ(range(0, 10).filter([](const Element&) { return true; }).cardinality(), Dataset::kUnknown);
  EXPECT_EQ(range(0, 10).shard(4, 1).cardinality(), 3);
  EXPECT_EQ(data::zip({range(0, 10), range(0, 4)}).cardinality(), 4);
}

TEST(Pipeline, MapChangesTypeAndShapeAsDeclared) {
  const Dataset d = range(0, 3).map(
      [](Element& in, Element& out) {
        const auto v = static_cast<float>(in[0].as<int64_t>()[0]);
        auto to = out.make<float>(0, {2});
        to[0] = v, to[1] = -v;
        out.take(1, in, 0);
      },
      {.output = {{"pair", DType::kFloat, {2}}, {"number", DType::kInt64, {}}}});
  Pipeline p = d.iterate();
  Element e;
  p.next(e);
  p.next(e);
  EXPECT_THAT(e[0].as<float>(), ElementsAre(1, -1));
  EXPECT_EQ(e[1].as<int64_t>()[0], 1);
}

TEST(Pipeline, AnElementThatIsNotAsDeclaredNamesItsComponent) {
  const Dataset d = range(0, 3).map([](Element&, Element& out) { out.make<float>(0, {2}); },
                                    {.output = {{"x", DType::kFloat, {3}}}});
  EXPECT_THAT(run(d)[0], HasSubstr("component 0 (x) has shape [2] where [3] was declared"));
  const Dataset t = range(0, 3).map([](Element&, Element& out) { out.make<float>(0, {}); });
  EXPECT_THAT(run(t)[0], HasSubstr("is float where int64 was declared"));
}

TEST(Pipeline, ParallelMapKeepsTheOrder) {
  std::vector<int64_t> want;
  for (int64_t i = 0; i < 1000; ++i) want.push_back(7 * i);
  for (int threads : {2, 4}) EXPECT_EQ(numbers(range(0, 1000).map(times(7), {.threads = threads})), want);
  const auto uneven = [](Element& in, Element& out) {
    const int64_t v = in[0].as<int64_t>()[0];
    if (v % 5 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
    out.make<int64_t>(0, {})[0] = v * 7;
  };
  EXPECT_EQ(numbers(range(0, 1000).map(uneven, {.threads = 4})), want);
}

TEST(Pipeline, AnUnorderedMapLosesAndInventsNothing) {
  std::vector<int64_t> got = numbers(range(0, 1000).map(times(3), {.threads = 4, .ordered = false}));
  std::sort(got.begin(), got.end());
  ASSERT_EQ(got.size(), 1000u);
  for (int64_t i = 0; i < 1000; ++i) EXPECT_EQ(got[static_cast<size_t>(i)], 3 * i);
}

TEST(Pipeline, FilterKeepsWhatItIsToldTo) {
  EXPECT_THAT(numbers(range(0, 9).filter([](const Element& e) { return e[0].as<int64_t>()[0] % 4 == 1; })),
              ElementsAre(1, 5));
}

TEST(Pipeline, ShuffleIsAPermutationThatItsSeedDecides) {
  const auto a = numbers(range(0, 100).shuffle({.buffer = 30, .seed = 5})),
             b = numbers(range(0, 100).shuffle({.buffer = 30, .seed = 5})),
             c = numbers(range(0, 100).shuffle({.buffer = 30, .seed = 6}));
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
  std::vector<int64_t> sorted = a;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, numbers(range(0, 100)));
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_LT(a[i], static_cast<int64_t>(i) + 30) << "the buffer looks no further ahead";
}

TEST(Pipeline, ShuffleGivesOneOrderWhetherItHoldsNumbersOrElements) {
  const auto pass = [](const Element&) { return true; };
  EXPECT_EQ(numbers(range(0, 100).shuffle({.buffer = 17, .seed = 3})),
            numbers(range(0, 100).filter(pass).shuffle({.buffer = 17, .seed = 3})));
}

TEST(Pipeline, EachPassIsShuffledAnewUnlessToldOtherwise) {
  const auto anew = numbers(range(0, 20).shuffle({.buffer = 20, .seed = 1}).repeat(2));
  const auto same =
      numbers(range(0, 20).shuffle({.buffer = 20, .seed = 1, .reshuffle_each_iteration = false}).repeat(2));
  EXPECT_NE(std::vector(anew.begin(), anew.begin() + 20), std::vector(anew.begin() + 20, anew.end()));
  EXPECT_EQ(std::vector(same.begin(), same.begin() + 20), std::vector(same.begin() + 20, same.end()));
  EXPECT_EQ(std::set(anew.begin(), anew.begin() + 20).size(), 20u) << "passes do not mix";
}

TEST(Pipeline, UnseededShufflesDiffer) {
  const Dataset d = range(0, 50).shuffle({.buffer = 50});
  EXPECT_NE(numbers(d), numbers(d));
}

TEST(Pipeline, BatchJoinsAlongANewDimension) {
  EXPECT_THAT(run(range(0, 5).batch(2)), ElementsAre("int64[2]:0,1,", "int64[2]:2,3,", "int64[1]:4,"));
  EXPECT_THAT(run(range(0, 5).batch(2, true)), ElementsAre("int64[2]:0,1,", "int64[2]:2,3,"));
  EXPECT_EQ(range(0, 5).batch(2).spec()[0].shape, (Shape{-1}));
  EXPECT_EQ(range(0, 5).batch(2, true).spec()[0].shape, (Shape{2}));
  EXPECT_THAT(run(range(0, 8).batch(2).batch(2)), ElementsAre("int64[2,2]:0,1,2,3,", "int64[2,2]:4,5,6,7,"));
  const Dataset words = data::tensor_slices({Array::strings({3}, {"a", "b", "c"})});
  EXPECT_THAT(run(words.batch(2)), ElementsAre("string[2]:'a''b'", "string[1]:'c'"));
}

// n ones for each n.
Dataset ones(int64_t from, int64_t to) {
  return range(from, to).map(
      [](Element& in, Element& out) {
        const int64_t n = in[0].as<int64_t>()[0];
        for (int64_t& v : out.make<int64_t>(0, {n})) v = n;
      },
      {.output = {{"n", DType::kInt64, {-1}}}});
}

TEST(Pipeline, BatchingUnequalShapesIsTfsError) {
  EXPECT_THAT(
      run(ones(2, 4).batch(2))[0],
      HasSubstr("Cannot batch tensors with different shapes in component 0. First element had shape [2] "
                "and element 1 had shape [3]."));
}

TEST(Pipeline, PaddedBatchPadsToTheLongest) {
  EXPECT_THAT(run(ones(0, 4).padded_batch({.size = 2})),
              ElementsAre("int64[2,1]:0,1,", "int64[2,3]:2,2,0,3,3,3,"));
  EXPECT_THAT(run(ones(1, 4).padded_batch(
                  {.size = 2, .shapes = {Shape{4}}, .padding_values = {Array::scalar<int64_t>(-1)}})),
              ElementsAre("int64[2,4]:1,-1,-1,-1,2,2,-1,-1,", "int64[1,4]:3,3,3,-1,"));
  EXPECT_THAT(run(ones(3, 4).padded_batch({.size = 2, .shapes = {Shape{2}}}))[0],
              HasSubstr("Attempted to pad to a smaller size than the input element"));
  const Dataset square = ones(1, 3).map(
      [](Element& in, Element& out) {
        const int64_t n = in[0].elements();
        for (int64_t& v : out.make<int64_t>(0, {n, n})) v = n;
      },
      {.output = {{"", DType::kInt64, {-1, -1}}}});
  EXPECT_THAT(run(square.padded_batch({.size = 2})), ElementsAre("int64[2,2,2]:1,0,0,0,2,2,2,2,"));
}

TEST(Pipeline, ZipEndsWithTheShortest) {
  EXPECT_THAT(run(data::zip({range(0, 3), range(10, 12)})),
              ElementsAre("int64[]:0, int64[]:10,", "int64[]:1, int64[]:11,"));
}

TEST(Pipeline, CacheAsksItsInputOnce) {
  std::atomic<int> calls{0};
  const Dataset d = range(0, 4)
                        .map([&](Element& in, Element& out) {
                          ++calls;
                          out.take(0, in, 0);
                        })
                        .cache()
                        .repeat(3);
  EXPECT_THAT(numbers(d), ElementsAre(0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3));
  EXPECT_EQ(calls.load(), 4);
  EXPECT_EQ(numbers(range(0, 5).cache().take(3).repeat(2)), (std::vector<int64_t>{0, 1, 2, 0, 1, 2}))
      << "of a partial pass nothing is kept";
}

TEST(Pipeline, InterleaveTurnsAsTfDataDoes) {
  // tf.data.Dataset.range(1, 6).interleave(lambda x: Dataset.from_tensors(x).repeat(6), 2, 4)
  const auto six = [](const Element& e) {
    return data::tensors({Array::scalar<int64_t>(e[0].as<int64_t>()[0])}).repeat(6);
  };
  const std::vector<int64_t> want{1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 2, 2, 3, 3, 3,
                                  3, 4, 4, 4, 4, 3, 3, 4, 4, 5, 5, 5, 5, 5, 5};
  for (bool parallel : {false, true})
    EXPECT_EQ(numbers(range(1, 6).interleave(six, {{"", DType::kInt64, {}}},
                                             {.cycle = 2, .block = 4, .parallel = parallel})),
              want);
  EXPECT_THAT(numbers(range(0, 4).flat_map([](const Element& e) { return range(0, e[0].as<int64_t>()[0]); },
                                           {{"", DType::kInt64, {}}})),
              ElementsAre(0, 0, 1, 0, 1, 2));
}

TEST(Pipeline, GeneratorGivesUntilItSaysNo) {
  const Dataset d = data::generator({{"n", DType::kInt64, {}}}, [] {
    return [n = int64_t{0}](Element& out, const CancelToken&) mutable {
      if (n == 3) return false;
      out.make<int64_t>(0, {})[0] = n++;
      return true;
    };
  });
  EXPECT_THAT(numbers(d.repeat(2)), ElementsAre(0, 1, 2, 0, 1, 2));
}

TEST(Pipeline, PrefetchChangesNothingButWhen) {
  for (int depth : {1, 2, 100}) EXPECT_EQ(numbers(range(0, 500).prefetch(depth)), numbers(range(0, 500)));
}

TEST(Pipeline, AnErrorCostsItsElementOnly) {
  const auto fails_at_3 = [](Element& in, Element& out) {
    SLUICE_REQUIRE(in[0].as<int64_t>()[0] != 3, Code::kInvalidArgument, "three");
    out.take(0, in, 0);
  };
  for (int threads : {1, 3}) {
    const Dataset d = range(0, 7).map(fails_at_3, {.threads = threads});
    EXPECT_THAT(run(d.prefetch(2)), ElementsAre("int64[]:0,", "int64[]:1,", "int64[]:2,", "error: three",
                                                "int64[]:4,", "int64[]:5,", "int64[]:6,"));
    EXPECT_THAT(run(d.batch(2)),
                ElementsAre("int64[2]:0,1,", "error: three", "int64[2]:2,4,", "int64[2]:5,6,"))
        << "the batch goes on";
    std::atomic<int64_t> skipped{0};
    EXPECT_THAT(run(d.batch(2).ignore_errors(&skipped)),
                ElementsAre("int64[2]:0,1,", "int64[2]:2,4,", "int64[2]:5,6,"));
    EXPECT_EQ(skipped.load(), 1);
  }
}

TEST(Pipeline, AnErrorOfAnotherKindComesThroughThreads) {
  const Dataset d =
      range(0, 2).map([](Element&, Element&) { throw std::runtime_error("other"); }, {.threads = 2});
  Pipeline p = d.iterate();
  Element e;
  EXPECT_THROW(p.next(e), std::runtime_error);
}

TEST(Pipeline, AnIteratorThatGoesTakesItsThreadsAlong) {
  for (int i = 0; i < 20; ++i) {
    Pipeline p = range(0, 1000)
                     .repeat()
                     .map(times(1), {.threads = 3})
                     .shuffle({.buffer = 10})
                     .batch(7)
                     .prefetch(3)
                     .iterate();
    Element e;
    for (int k = 0; k < i; ++k) ASSERT_TRUE(p.next(e));
  }
}

TEST(Pipeline, ACancelledWaitEndsAndCostsNothing) {
  // Blocks at 3 until let go.
  auto gate = std::make_shared<std::atomic<bool>>(false);
  auto blocking = data::generator({{"n", DType::kInt64, {}}}, [gate] {
    return [gate, n = int64_t{0}](Element& out, const CancelToken& cancel) mutable {
      while (n == 3 && !gate->load()) {
        cancel.check();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      if (n == 6) return false;
      out.make<int64_t>(0, {})[0] = n++;
      return true;
    };
  });
  for (const Dataset& d : {blocking.batch(2), blocking.batch(2).prefetch(1), blocking.prefetch(2).batch(2),
                           blocking.map(times(1), {.threads = 2}).batch(2)}) {
    gate->store(false);
    Pipeline p = d.iterate();
    Element e;
    ASSERT_TRUE(p.next(e));
    const CancelToken soon =
        CancelToken::watch(CancelToken::none(), CancelToken::none(),
                           std::chrono::steady_clock::now() + std::chrono::milliseconds(30));
    EXPECT_THAT(error_of([&] { p.next(e, soon); }), HasSubstr("DEADLINE_EXCEEDED"));
    CancelToken mine;
    std::thread canceller([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      mine.cancel();
    });
    EXPECT_THAT(error_of([&] { p.next(e, mine); }), HasSubstr("CANCELLED"));
    canceller.join();
    gate->store(true);
    EXPECT_THAT(run(p), ElementsAre("int64[2]:2,3,", "int64[2]:4,5,")) << d.str();
  }
}

TEST(Pipeline, SteadyStateAllocatesNoBuffers) {
  const Dataset d =
      data::tensor_slices({Array::zeros(DType::kUint8, {64, 28, 28}), Array::zeros(DType::kInt64, {64})})
          .shuffle({.buffer = 64, .seed = 1})
          .repeat()
          .map(
              [](Element& in, Element& out) {
                const auto from = std::as_const(in[0]).as<uint8_t>();
                auto to = out.make<float>(0, {28, 28});
                for (size_t i = 0; i < from.size(); ++i) to[i] = static_cast<float>(from[i]);
                out.take(1, in, 1);
              },
              {.output = {{"", DType::kFloat, {28, 28}}, {"", DType::kInt64, {}}}})
          .batch(16);
  Pipeline p = d.iterate();
  Element e;
  for (int i = 0; i < 10; ++i) p.next(e);
  const int64_t before = runtime::allocation_count();
  for (int i = 0; i < 50; ++i) p.next(e);
  EXPECT_EQ(runtime::allocation_count(), before);
}

}  // namespace
}  // namespace sluice
