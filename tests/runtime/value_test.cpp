#include <gtest/gtest.h>

#include <atomic>
#include <numeric>

#include "runtime/array.h"
#include "runtime/region.h"
#include "runtime/resource.h"
#include "runtime/work_queue.h"

namespace sluice::runtime {
namespace {

TEST(Array, CopiesShareAndClonesDoNot) {
  Array a = Array::from<float>({2}, {1, 2});
  Array b = a, c = a.clone();
  EXPECT_FALSE(a.unique());
  EXPECT_TRUE(c.unique());
  c.as<float>()[0] = 9;
  EXPECT_EQ(b.as<float>()[0], 1);
}

TEST(Array, CastsBetweenNumericTypes) {
  Array a = Array::from<float>({3}, {1.9f, -2.5f, 0});
  Array b = a.cast(DType::kInt32);
  EXPECT_EQ(b.as<int32_t>()[0], 1);
  EXPECT_EQ(b.as<int32_t>()[1], -2);
  EXPECT_EQ(a.cast(DType::kBool).as<bool>()[2], false);
}

TEST(Array, RefusesWrongNumberOfValues) {
  EXPECT_THROW(Array::from<float>({3}, {1, 2}), Error);
  EXPECT_THROW(Array(DType::kFloat, {int64_t{1} << 62, 8}), Error);
}

Layout blocked(int dim, int size) {
  Layout l;
  l.blocks.push_back({dim, size});
  return l;
}

TEST(Layout, OffsetFollowsOrderAndBlocks) {
  const Dims dims{1, 4, 2, 2};
  EXPECT_EQ(Layout::channels_last(4).offset(dims, {0, 1, 0, 1}), 1 * 4 + 1);
  EXPECT_EQ(blocked(1, 2).offset(dims, {0, 3, 1, 0}), ((1 * 2 + 1) * 2 + 0) * 2 + 1);
}

// Whatever the pair of layouts, each logical element arrives.
TEST(Layout, ReorderMovesEveryElement) {
  const Dims dims{2, 8, 3, 4};
  const int64_t n = graph::num_elements(dims);
  std::vector<float> plain(static_cast<size_t>(n)), there(plain.size()), back(plain.size());
  std::iota(plain.begin(), plain.end(), 0.0f);
  Layout two = blocked(1, 4);
  two.blocks.push_back({0, 2});
  two.blocks.push_back({1, 2});
  for (const Layout& l : {Layout::channels_last(4), blocked(1, 4), blocked(1, 8), two}) {
    reorder(DType::kFloat, dims, {}, plain.data(), l, there.data());
    for (int64_t c = 0; c < 8; ++c)
      EXPECT_EQ(there[static_cast<size_t>(l.offset(dims, {1, c, 2, 3}))],
                plain[static_cast<size_t>(((8 + c) * 3 + 2) * 4 + 3)]);
    for (const Layout& m : {Layout::channels_last(4), blocked(1, 2), two}) {
      std::vector<float> other(plain.size());
      reorder(DType::kFloat, dims, l, there.data(), m, other.data());
      reorder(DType::kFloat, dims, m, other.data(), {}, back.data());
      EXPECT_EQ(back, plain) << l.str() << " " << m.str();
    }
  }
}

TEST(WorkQueue, RunsEveryElementOnceAtAnyWidth) {
  for (auto& queue : {make_serial_queue(), make_thread_queue(3), make_default_queue(2)}) {
    for (int64_t n : {0, 1, 7, 1000}) {
      std::vector<std::atomic<int>> hits(static_cast<size_t>(n));
      queue->parallel_for(n, 3, [&](int64_t b, int64_t e) {
        EXPECT_EQ(b % 3, 0);
        for (int64_t i = b; i < e; ++i) ++hits[static_cast<size_t>(i)];
      });
      for (auto& h : hits) EXPECT_EQ(h, 1);
    }
  }
}

TEST(WorkQueue, RethrowsTheFirstErrorAndGoesOn) {
  for (auto& queue : {make_thread_queue(2), make_default_queue(2)}) {
    EXPECT_THROW(queue->parallel_for(100, 1,
                                     [](int64_t b, int64_t) {
                                       if (b == 50) throw_error(Code::kInternal, "boom");
                                     }),
                 Error);
    std::atomic<int64_t> sum{0};
    queue->parallel_for(100, 1, [&](int64_t b, int64_t) { sum += b; });
    EXPECT_EQ(sum, 4950);
  }
}

TEST(Variable, AReaderNeverSeesALaterWrite) {
  Variable v("v", DType::kFloat);
  EXPECT_FALSE(v.initialized());
  EXPECT_THROW(v.value(), Error);
  v.assign(Array::from<float>({2}, {1, 2}));
  auto held = v.read();
  const void* before = held->buffer.data();
  {
    Variable::WriteGuard w(v);
    static_cast<float*>(w.buffer().buffer.data())[0] = 7;
  }
  EXPECT_EQ(static_cast<const float*>(held->buffer.data())[0], 1);
  EXPECT_EQ(v.value().as<float>()[0], 7);
  held.reset();
  before = v.read()->buffer.data();
  { Variable::WriteGuard w(v); }
  EXPECT_EQ(v.read()->buffer.data(), before);  // nobody looks: in place
}

TEST(Variable, KeepsItsLayoutAndGivesRowMajor) {
  Variable v("v", DType::kFloat);
  Array a(DType::kFloat, {1, 4, 1, 2});
  for (size_t i = 0; i < 8; ++i) a.as<float>()[i] = static_cast<float>(i);
  v.assign(a, Layout::channels_last(4));
  const Array b = v.value();
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(b.as<float>()[i], static_cast<float>(i));
}

TEST(Region, HashFollowsContent) {
  RegionProgram p;
  p.rows = 2, p.cols = 3;
  p.inputs.push_back({});
  p.insts.push_back({"Relu", {0}});
  p.outputs.push_back({1});
  RegionProgram q = p;
  EXPECT_EQ(p.hash(), q.hash());
  q.insts[0].op = "Neg";
  EXPECT_NE(p.hash(), q.hash());
}

}  // namespace
}  // namespace sluice::runtime
