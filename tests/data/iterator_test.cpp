// Iterators in graphs: the ops, initialisation, the end, what a run's end does to a wait, pipelines of loaded
// graphs, positions beside a checkpoint, and the parsing ops.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "dsl/dsl.h"
#include "runtime/io/example.h"
#include "runtime/saveable.h"
#include "tests/data/pipeline_util.h"

namespace sluice {
namespace {

using namespace pipetest;
using dsl::Graph;
using dsl::Node;
using dsl::RunOptions;
using dsl::Session;
using dsl::Tensor;
using dsl::data::Dataset;
using dsl::data::range;
using graph::DType;
using graph::Shape;
using testing::AllOf;
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

std::vector<int64_t> values(const Array& a) { return {a.as<int64_t>().begin(), a.as<int64_t>().end()}; }

TEST(Iterator, AOneShotIteratorFeedsUntilTheEnd) {
  Graph g;
  const auto it = data::make_one_shot_iterator(g, range(0, 6).batch(2, true));
  const data::Next next = it.get_next();
  EXPECT_EQ(next[0].shape(), (Shape{2}));
  EXPECT_EQ(it.handle().op(), "OneShotIterator");
  Tensor doubled = next[0] + next[0];
  Session s(g);
  EXPECT_THAT(values(s.run({doubled})[0]), ElementsAre(0, 2));
  EXPECT_THAT(values(s.run({doubled})[0]), ElementsAre(4, 6));
  EXPECT_THAT(values(s.run({doubled})[0]), ElementsAre(8, 10));
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT(error_of([&] { s.run({doubled}); }), HasSubstr("OUT_OF_RANGE: End of sequence"));
}

TEST(Iterator, ABatchOfAnySizeRunsWhatFollows) {
  Graph h;
  const data::Next next = data::make_one_shot_iterator(h, range(0, 5).batch(2)).get_next();
  EXPECT_EQ(next[0].shape(), (Shape{-1}));
  Tensor squared = next[0] * next[0];
  Session s(h);
  EXPECT_THAT(values(s.run({squared})[0]), ElementsAre(0, 1));
  EXPECT_THAT(values(s.run({squared})[0]), ElementsAre(4, 9));
  EXPECT_THAT(values(s.run({squared})[0]), ElementsAre(16));
}

TEST(Iterator, EverySessionHasItsOwnPosition) {
  Graph g;
  Tensor n = data::make_one_shot_iterator(g, range(0, 6)).get_next()[0];
  Session a(g), b(g);
  EXPECT_EQ(a.run({n})[0].item<int64_t>(), 0);
  EXPECT_EQ(a.run({n})[0].item<int64_t>(), 1);
  EXPECT_EQ(b.run({n})[0].item<int64_t>(), 0);
}

TEST(Iterator, TwoFetchesOfOneRunSeeOneElement) {
  Graph g;
  const data::Next next = data::make_one_shot_iterator(
                              g, data::zip({range(0, 5), range(10, 15)}).shuffle({.buffer = 5, .seed = 1}))
                              .get_next();
  Session s(g);
  for (int i = 0; i < 5; ++i) {
    const auto out = s.run({next[0], next[1]});
    EXPECT_EQ(out[0].item<int64_t>() + 10, out[1].item<int64_t>());
  }
}

TEST(Iterator, AnInitializableIteratorBeginsWhenTold) {
  Graph g;
  const auto it = data::make_initializable_iterator(g, range(0, 3), {.name = "input"});
  Tensor n = it.get_next()[0];
  EXPECT_EQ(it.name(), "input");
  Session s(g);
  EXPECT_THAT(
      error_of([&] { s.run({n}); }),
      AllOf(HasSubstr("FAILED_PRECONDITION: GetNext() failed because the iterator has not been initialized."),
            HasSubstr("Ensure that you have run the initializer operation for this iterator before getting "
                      "the next element.")));
  s.run({}, {}, {&it.initializer()});
  EXPECT_EQ(s.run({n})[0].item<int64_t>(), 0);
  EXPECT_EQ(s.run({n})[0].item<int64_t>(), 1);
  s.run({}, {}, {&it.initializer()});
  EXPECT_EQ(s.run({n})[0].item<int64_t>(), 0);
}

TEST(Iterator, AnotherDatasetOfTheSameSpecMayTakeItsPlace) {
  Graph g;
  const auto it = data::make_initializable_iterator(g, range(0, 3));
  Node& other = it.make_initializer(range(100, 103));
  Tensor n = it.get_next()[0];
  Session s(g);
  s.run({}, {}, {&other});
  EXPECT_EQ(s.run({n})[0].item<int64_t>(), 100);
  s.run({}, {}, {&it.initializer()});
  EXPECT_EQ(s.run({n})[0].item<int64_t>(), 0);
  EXPECT_THAT(error_of([&] { it.make_initializer(range(0, 4).batch(2)); }), HasSubstr("has elements ("));
}

TEST(Iterator, StringsComeThrough) {
  Graph g;
  const data::Next next = data::make_one_shot_iterator(
                              g, data::tensor_slices({Array::strings({3}, {"a", "b", "c"})}, {"s"}).batch(2))
                              .get_next();
  Session s(g);
  EXPECT_THAT(s.run({next["s"]})[0].string_values(), ElementsAre("a", "b"));
  EXPECT_THAT(s.run({next["s"]})[0].string_values(), ElementsAre("c"));
  EXPECT_THAT(error_of([&] { next["t"]; }), HasSubstr("No component 't' in elements (s: string[?])"));
}

TEST(Iterator, FetchedArraysStayAsTheyAre) {
  Graph g;
  Tensor n = data::make_one_shot_iterator(g, range(0, 40).batch(4).prefetch(2)).get_next()[0];
  Session s(g);
  std::vector<Array> kept;
  for (int i = 0; i < 10; ++i) kept.push_back(s.run({n})[0]);
  for (int64_t i = 0; i < 10; ++i) EXPECT_THAT(values(kept[static_cast<size_t>(i)])[0], 4 * i);
}

// Gives 0, then blocks until cancelled.
Dataset stuck() {
  return data::generator({{"", DType::kInt64, {}}}, [] {
    return [n = int64_t{0}](Element& out, const CancelToken& cancel) mutable {
      while (n > 0) {
        cancel.check();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      out.make<int64_t>(0, {})[0] = n++;
      return true;
    };
  });
}

TEST(Iterator, AWaitEndsWithTheRunsTimeout) {
  for (const Dataset& d : {stuck(), stuck().prefetch(2)}) {
    Graph g;
    Tensor n = data::make_one_shot_iterator(g, d).get_next()[0];
    Session s(g);
    s.run({n});
    EXPECT_THAT(error_of([&] { s.run({n}, {}, {}, {.timeout_ms = 30}); }),
                HasSubstr("DEADLINE_EXCEEDED: Timed out waiting for notification"));
  }
}

TEST(Iterator, ClosingTheSessionEndsEveryWait) {
  Graph g;
  Tensor n = data::make_one_shot_iterator(g, stuck().prefetch(1)).get_next()[0];
  Session s(g);
  s.run({n});
  std::vector<std::thread> waiting;
  std::atomic<int> cancelled{0};
  for (int i = 0; i < 3; ++i)
    waiting.emplace_back([&] {
      // A thread that begins late finds the session closed.
      const std::string error = error_of([&] { s.run({n}); });
      if (error.starts_with("CANCELLED") || error.find("closed Session") != std::string::npos) ++cancelled;
    });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  s.close();
  for (std::thread& t : waiting) t.join();
  EXPECT_EQ(cancelled.load(), 3);
}

TEST(Iterator, ManyThreadsShareOneIteratorWithoutLoss) {
  Graph g;
  Tensor n =
      data::make_one_shot_iterator(g, range(0, 400).map(times(1), {.threads = 2}).prefetch(2)).get_next()[0];
  Session s(g);
  std::mutex mutex;
  std::vector<int64_t> all;
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i)
    readers.emplace_back([&] {
      for (;;) {
        try {
          const int64_t v = s.run({n})[0].item<int64_t>();
          std::lock_guard lock(mutex);
          all.push_back(v);
        } catch (const Error& e) {
          EXPECT_EQ(e.code(), Code::kOutOfRange);
          return;
        }
      }
    });
  for (std::thread& t : readers) t.join();
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, numbers(range(0, 400)));
}

TEST(Iterator, ALoadedGraphSaysWhichPipelineItMissesAndTakesOne) {
  Graph g;
  const auto it = data::make_initializable_iterator(g, range(0, 3), {.name = "train_input"});
  const auto shot = data::make_one_shot_iterator(g, range(0, 3), {.name = "eval_input"});
  it.get_next("next");
  shot.get_next("eval_next");
  Graph loaded;
  graph::graph_from_bytes(loaded, graph::graph_to_bytes(g));
  Session s(loaded);
  const auto begin = [&] { s.run({}, {}, {&loaded.node("MakeIterator")}); };
  EXPECT_THAT(error_of(begin),
              AllOf(HasSubstr("FAILED_PRECONDITION: Iterator 'train_input' has no input pipeline"),
                    HasSubstr("data::attach(session, \"train_input\", dataset)"), HasSubstr("(int64[])")));
  EXPECT_THAT(error_of([&] { s.run({loaded.output("eval_next:0")}); }), HasSubstr("Iterator 'eval_input'"));
  data::attach(s, "train_input", range(7, 9).batch(2));
  EXPECT_THAT(error_of(begin), HasSubstr("has elements (int64[?]), the graph declares (int64[])"));
  data::attach(s, "train_input", range(7, 9));
  begin();
  EXPECT_EQ(s.run({loaded.output("next:0")})[0].item<int64_t>(), 7);
}

TEST(Iterator, AGraphFileKeepsItsIterators) {
  Graph g;
  const auto it = data::make_initializable_iterator(g, range(0, 3).batch(2));
  it.get_next();
  Graph loaded;
  graph::graph_from_bytes(loaded, graph::graph_to_bytes(g));
  EXPECT_EQ(loaded.output("IteratorGetNext:0").shape(), (Shape{-1}));
  EXPECT_EQ(loaded.node("MakeIterator").input(1).node, &loaded.node("IteratorV2"));
}

using States = std::map<std::string, std::map<std::string, Array>>;
States saved(Session& s) { return runtime::SaveableRegistry::of(s.resources()).save(); }
void restore(Session& s, States states) {
  runtime::SaveableRegistry::of(s.resources()).restore(std::move(states));
}

TEST(IteratorPosition, IsSavedAndPutBackInAnotherSession) {
  Graph g;
  const Dataset d =
      range(0, 50).shuffle({.buffer = 20}).repeat().map(times(2), {.threads = 2}).batch(3, true).prefetch(2);
  Tensor n = data::make_one_shot_iterator(g, d, {.name = "it"}).get_next()[0];
  Session a(g);
  for (int i = 0; i < 7; ++i) a.run({n});
  const States position = saved(a);
  ASSERT_EQ(position.count("iterator/it"), 1u);
  Session b(g);
  restore(b, position);  // before the iterator exists there
  Session c(g);
  c.run({n});
  restore(c, position);  // while it is under way
  for (int i = 0; i < 30; ++i) {
    const auto want = values(a.run({n})[0]);
    EXPECT_EQ(values(b.run({n})[0]), want);
    EXPECT_EQ(values(c.run({n})[0]), want);
  }
}

TEST(IteratorPosition, AnInitializerAfterRestoringBeginsThere) {
  Graph g;
  const auto it = data::make_initializable_iterator(g, range(0, 9));
  Tensor n = it.get_next()[0];
  Session a(g);
  a.run({}, {}, {&it.initializer()});
  a.run({n});
  a.run({n});
  Session b(g);
  restore(b, saved(a));
  b.run({}, {}, {&it.initializer()});  // a scaffold's local_init_op runs after restoring
  b.run({}, {}, {&it.initializer()});
  EXPECT_EQ(saved(b).at("iterator/IteratorV2").at("position").bytes(),
            saved(a).at("iterator/IteratorV2").at("position").bytes());
  EXPECT_EQ(b.run({n})[0].item<int64_t>(), 2);
  b.run({}, {}, {&it.initializer()});
  EXPECT_EQ(b.run({n})[0].item<int64_t>(), 0) << "later ones begin anew";
}

TEST(IteratorPosition, OfAnotherPipelineIsRefusedByName) {
  Graph g, h;
  Tensor n = data::make_one_shot_iterator(g, range(0, 9), {.name = "it"}).get_next()[0];
  Tensor m = data::make_one_shot_iterator(h, range(0, 8), {.name = "it"}).get_next()[0];
  Session a(g), b(h);
  a.run({n});
  restore(b, saved(a));
  EXPECT_THAT(
      error_of([&] { b.run({m}); }),
      AllOf(
          HasSubstr("INVALID_ARGUMENT: Iterator 'it': The saved position belongs to another input pipeline"),
          HasSubstr("Range(0,9,1)"), HasSubstr("Range(0,8,1)")));
}

std::string example(std::vector<float> x, std::vector<int64_t> y) {
  runtime::io::Example e;
  e["x"] = {runtime::io::Feature::Kind::kFloat, {}, std::move(x), {}};
  e["y"] = {runtime::io::Feature::Kind::kInt64, {}, {}, std::move(y)};
  return runtime::io::serialize_example(e);
}

TEST(ParseOps, ParseExampleGivesDenseAndSparseTensors) {
  Graph g;
  Tensor records = dsl::placeholder(g, DType::kString, {2}, "records");
  auto parsed = data::parse_example(
      records, {data::fixed_len("x", {2}, DType::kFloat), data::var_len("y", DType::kInt64),
                data::fixed_len_sequence("z", {}, DType::kInt64, Array::scalar<int64_t>(-1)),
                data::fixed_len("w", {}, DType::kString, Array::strings({}, {"none"}))});
  EXPECT_EQ(parsed["x"].shape(), (Shape{2, 2}));
  EXPECT_EQ(parsed["y/indices"].shape(), (Shape{-1, 2}));
  Session s(g);
  const Array in = Array::strings({2}, {example({1, 2}, {5}), example({3, 4}, {6, 7})});
  const auto out = s.run({parsed["x"], parsed["y/indices"], parsed["y/values"], parsed["y/dense_shape"],
                          parsed["z"], parsed["w"], parsed["x"] * 2.0},
                         {{records, in}});
  EXPECT_THAT(out[0].as<float>(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(values(out[1]), ElementsAre(0, 0, 1, 0, 1, 1));
  EXPECT_THAT(values(out[2]), ElementsAre(5, 6, 7));
  EXPECT_THAT(values(out[3]), ElementsAre(2, 2));
  EXPECT_EQ(out[4].dims(), (graph::Dims{2, 0}));
  EXPECT_THAT(out[5].string_values(), ElementsAre("none", "none"));
  EXPECT_THAT(out[6].as<float>(), ElementsAre(2, 4, 6, 8));
  EXPECT_THAT(
      error_of([&] {
        s.run({parsed["x"]}, {{records, Array::strings({2}, {"", ""})}});
      }),
      HasSubstr("Name: <unknown>, Feature: x (data type: float) is required but could not be found."));
}

TEST(ParseOps, ParseSingleExampleAndV2) {
  Graph g;
  Tensor record = dsl::placeholder(g, DType::kString, {}, "record");
  auto parsed = data::parse_single_example(
      record, {data::fixed_len("x", {2}, DType::kFloat), data::var_len("y", DType::kInt64)});
  auto strings = [&](std::vector<std::string> v) {
    return dsl::constant(g, Array::strings({static_cast<int64_t>(v.size())}, v).to_literal());
  };
  Tensor batch = dsl::placeholder(g, DType::kString, {2}, "batch");
  Node& v2 = g.add({.op = "ParseExampleV2",
                    .inputs = {batch, strings({}), strings({}), strings({"x"}), strings({"y"}),
                               dsl::constant(g, Array(DType::kFloat, {0}).to_literal())},
                    .attrs = {{"Tdense", std::vector<DType>{DType::kFloat}},
                              {"num_sparse", 0},
                              {"sparse_types", std::vector<DType>{}},
                              {"ragged_value_types", std::vector<DType>{DType::kInt64}},
                              {"ragged_split_types", std::vector<DType>{DType::kInt64}},
                              {"dense_shapes", std::vector<Shape>{Shape{2}}}}});
  Session s(g);
  const auto one =
      s.run({parsed["x"], parsed["y/values"]}, {{record, Array::strings({}, {example({1, 2}, {5, 6})})}});
  EXPECT_THAT(one[0].as<float>(), ElementsAre(1, 2));
  EXPECT_THAT(values(one[1]), ElementsAre(5, 6));
  const auto two = s.run({v2.output(0), v2.output(1), v2.output(2)},
                         {{batch, Array::strings({2}, {example({1, 2}, {5, 6}), example({3, 4}, {7})})}});
  EXPECT_THAT(two[0].as<float>(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(values(two[1]), ElementsAre(5, 6, 7));
  EXPECT_THAT(values(two[2]), ElementsAre(0, 2, 3));
}

}  // namespace
}  // namespace sluice
