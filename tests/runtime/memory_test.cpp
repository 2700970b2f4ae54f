#include <gtest/gtest.h>

#include <atomic>
#include <random>

#include "runtime/plan/plan.h"
#include "runtime/plan/stages.h"
#include "tests/runtime/toy.h"

// Every operator new of the process, counted in count_new.cpp.
extern std::atomic<int64_t> g_allocations;

namespace sluice::runtime {
namespace {

TEST(Memory, PlacementNeverOverlapsAndStaysNearTheBound) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<plan::Interval> b(1 + random() % 60);
    for (auto& x : b) {
      x.bytes = random() % 5 == 0 ? 0 : random() % 100'000;
      x.first = static_cast<int>(random() % 50);
      x.last = x.first + static_cast<int>(random() % 20);
    }
    const size_t total = plan::place(b);
    size_t sum = 0;
    for (size_t i = 0; i < b.size(); ++i) {
      EXPECT_EQ(b[i].offset % 64, 0u);
      sum += (b[i].bytes + 63) / 64 * 64;
      EXPECT_TRUE(b[i].bytes == 0 || b[i].offset + b[i].bytes <= total);
      for (size_t j = 0; j < i; ++j) {
        if (b[i].bytes == 0 || b[j].bytes == 0 || b[i].last < b[j].first || b[j].last < b[i].first) continue;
        EXPECT_TRUE(b[i].offset + b[i].bytes <= b[j].offset || b[j].offset + b[j].bytes <= b[i].offset);
      }
    }
    EXPECT_LE(total, sum);
  }
}

TEST(Memory, VeryManyBuffersArePlacedWithoutOverlap) {
  std::mt19937 random(2);
  std::vector<plan::Interval> b(20'000);
  for (size_t i = 0; i < b.size(); ++i) {
    b[i].bytes = 1 + random() % 1000;
    b[i].first = static_cast<int>(i);
    b[i].last = b[i].first + static_cast<int>(random() % 10);
  }
  const size_t total = plan::place(b);
  EXPECT_LE(total, 64u * 1024u);
  for (size_t i = 0; i < b.size(); ++i)
    for (size_t j = i + 1; j < std::min(b.size(), i + 12); ++j)
      EXPECT_TRUE(b[j].first > b[i].last || b[i].offset + b[i].bytes <= b[j].offset ||
                  b[j].offset + b[j].bytes <= b[i].offset);
}

// Random graphs: optimised plans (in place, reused memory, any schedule) give what reference plans give, and
// no two values that live together share bytes.
TEST(Memory, RandomGraphsKeepTheirValues) {
  std::mt19937 random(3);
  for (int round = 0; round < 60; ++round) {
    Toy t;
    Output x = t.placeholder({-1});
    std::vector<Output> made{x};
    auto pick = [&] { return made[random() % made.size()]; };
    for (int k = 0; k < 40; ++k) {
      switch (random() % 4) {
        case 0:
          made.push_back(t.op("Add", {pick(), pick()}));
          break;
        case 1:
          made.push_back(t.op("Mul", {pick(), t.scalar(0.5f)}));
          break;
        case 2:
          made.push_back(t.op("Neg", {pick()}));
          break;
        default:
          made.push_back(t.op("Identity", {pick()}));
      }
    }
    std::vector<Output> fetches{made.back()};
    for (int k = 0; k < 3; ++k) {
      Output f = pick();
      if (!(f == x)) fetches.push_back(f);
    }
    if (fetches[0] == x) continue;
    const std::vector<Feed> feeds{{x, vec({1, -2, 3, 0.5f, 8})}};
    SessionOptions reference = t.options();
    reference.mode = PlanMode::kReference;
    SessionOptions side_by_side = t.options();
    side_by_side.inter_op_threads = 3;
    Session a(t.g, t.options()), b(t.g, reference), c(t.g, side_by_side);
    auto ra = a.run(fetches, feeds), rb = b.run(fetches, feeds), rc = c.run(fetches, feeds);
    for (size_t i = 0; i < ra.size(); ++i) {
      EXPECT_EQ(floats(ra[i]), floats(rb[i]));
      EXPECT_EQ(floats(ra[i]), floats(rc[i]));
    }
    auto plan = a.plan(fetches, feeds, {});
    EXPECT_LE(plan->live_peak(), plan->arena_bytes());
    const auto& values = plan->values();
    for (size_t i = 0; i < values.size(); ++i)
      for (size_t j = 0; j < i; ++j) {
        const auto &v = values[i], &w = values[j];
        if (v.storage != plan::Storage::kArena || w.storage != plan::Storage::kArena || v.buffer_of >= 0 ||
            w.buffer_of >= 0 || v.last < v.first || w.last < w.first || v.last < w.first || w.last < v.first)
          continue;
        EXPECT_TRUE(v.offset + v.spec.bytes() <= w.offset || w.offset + w.spec.bytes() <= v.offset);
      }
  }
}

// x[i+1] = cheap(heavy(x[i])) forward; the gradient of heavy wants its input and its output.
TEST(Memory, CheapValuesAreMadeAgainInsteadOfKept) {
  Toy t;
  Output x = t.placeholder({-1});
  Output v = t.variable("v", {65'536});
  Node* init = t.assign(v, t.op("Mul", {x, x}));
  constexpr int kLayers = 20;
  std::vector<Output> in{x}, out;
  for (int k = 0; k < kLayers; ++k) {
    out.push_back(t.op("Heavy", {in.back()}));
    in.push_back(t.op("Neg", {out.back()}));
  }
  Output dy = in.back();
  for (int k = kLayers; k-- > 0;)
    dy = t.op("HeavyGrad", {in[static_cast<size_t>(k)], out[static_cast<size_t>(k)], dy});
  Node* update = t.assign_add(v, dy);
  Output read = t.read(v, {update});
  Array feed(DType::kFloat, {65'536});
  for (size_t i = 0; i < 65'536; ++i) feed.as<float>()[i] = static_cast<float>(i % 100) * 0.01f;
  std::vector<Array> results[2];
  size_t arena[2];
  for (int kept : {0, 1}) {
    SessionOptions o = t.options();
    if (kept) o.disabled_passes = {"recompute"};
    Session s(t.g, o);
    s.run({}, {{x, feed}}, {init});
    results[kept] = s.run({read}, {{x, feed}});
    arena[kept] = s.plan({read}, {{x, feed}}, {})->arena_bytes();
  }
  EXPECT_EQ(floats(results[0][0]), floats(results[1][0]));
  EXPECT_LT(static_cast<double>(arena[0]), 0.75 * static_cast<double>(arena[1]));
}

TEST(Memory, SteadyRunsAllocateNothing) {
  Toy t;
  Output x = t.placeholder({-1});
  Output v = t.variable("v", {3});
  Node* init = t.assign(v, t.constant(Literal::vector<float>({1, 2, 3})));
  Output r = t.read(v);
  Output y = t.op("Add", {t.op("Mul", {x, r}), t.scalar(1)});
  Node* update = t.assign_add(v, y);
  Session s(t.g, t.options());
  s.run({}, {}, {init});
  const std::vector<Output> fetches{y, t.op("Neg", {y})};
  const std::vector<Feed> feeds{{x, vec({1, 2, 3})}};
  const std::vector<Node*> targets{update};
  std::vector<Array> results;
  for (int k = 0; k < 2; ++k) s.run_into(results, fetches, feeds, targets);
  const int64_t before = g_allocations.load(), buffers = allocation_count();
  for (int k = 0; k < 100; ++k) s.run_into(results, fetches, feeds, targets);
  EXPECT_EQ(g_allocations.load(), before);
  EXPECT_EQ(allocation_count(), buffers);
}

TEST(Memory, ResultsThatTheCallerSharesAreNotOverwritten) {
  Toy t;
  Output x = t.placeholder({1});
  Output y = t.op("Neg", {x});
  Session s(t.g, t.options());
  std::vector<Array> results;
  s.run_into(results, {y}, {{x, vec({1})}});
  const Array kept = results[0];
  s.run_into(results, {y}, {{x, vec({2})}});
  EXPECT_EQ(kept.item<float>(), -1);
  EXPECT_EQ(results[0].item<float>(), -2);
}

TEST(Memory, PlansOfOneSessionShareTheArena) {
  Toy t;
  Output x = t.placeholder({-1});
  Output y = t.op("Neg", {x});
  Session s(t.g, t.options());
  s.run({y}, {{x, Array::zeros(DType::kFloat, {100'000})}});
  const size_t bytes = s.counters().arena_bytes;
  s.run({y}, {{x, Array::zeros(DType::kFloat, {50'000})}});
  EXPECT_EQ(s.counters().arena_bytes, bytes);
}

}  // namespace
}  // namespace sluice::runtime
