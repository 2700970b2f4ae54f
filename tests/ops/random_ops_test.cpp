// Random ops against TensorFlow's own streams (graph-and-training §1.8): values printed by TensorFlow for no
// graph seed and op seed 1, first and second run.

#include <gtest/gtest.h>

#include "kernels/reference/philox.h"
#include "tests/ops/direct_run.h"

namespace sluice::optest {
namespace {

using kernels::Philox;

TEST(Philox, GivesThePublishedBlocks) {
  EXPECT_EQ(Philox(0, 0).next(), (Philox::Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox(87654321, 1).next(), (Philox::Block{0xab1e98c7, 0xcdf5cfa7, 0xf1867731, 0x4c3f748e}));
}

TEST(Philox, CarriesIntoTheUpperCounter) {
  Philox a(7, ~uint64_t{0}, 4);
  a.skip(1);
  EXPECT_EQ(a.low(), 0u);
  EXPECT_EQ(a.high(), 5u);
}

class Streams : public testing::Test {
 protected:
  // Runs a random op of n elements once more in this session.
  Array draw(const std::string& op, int32_t n, DType dtype, std::vector<Operand> more = {}) {
    std::vector<Operand> in{Array::from<int32_t>({1}, {n})};
    for (Operand& o : more) in.push_back(std::move(o));
    graph::AttrMap attrs{{"seed", 87654321}, {"seed2", 1}};
    if (op != "RandomUniformInt") attrs["dtype"] = dtype;
    return run_op(
        {.op = op, .inputs = std::move(in), .attrs = attrs, .name = "rnd", .resources = &resources_})[0];
  }
  template <class T>
  void expect_values(const Array& got, std::vector<T> want, double tolerance) {
    ASSERT_GE(got.elements(), static_cast<int64_t>(want.size()));
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(static_cast<double>(got.as<T>()[i]), static_cast<double>(want[i]), tolerance)
          << "element " << i;
  }
  runtime::ResourceManager resources_;
};

TEST_F(Streams, UniformFloat) {
  expect_values<float>(draw("RandomUniform", 7, DType::kFloat),
                       {0.2390373945236206f, 0.92039954662323f, 0.05051243305206299f, 0.4957444667816162f,
                        0.8355222940444946f, 0.026470422744750977f, 0.08811306953430176f},
                       0);
  expect_values<float>(draw("RandomUniform", 7, DType::kFloat),
                       {0.038484930992126465f, 0.907341480255127f, 0.9381697177886963f, 0.49623215198516846f},
                       0);
}

TEST_F(Streams, UniformDouble) {
  expect_values<double>(draw("RandomUniform", 7, DType::kDouble),
                        {0.9122999234504989, 0.4040997484619626, 0.6841790844248057, 0.704905089841523,
                         0.15071409333057018, 0.2803963540345922, 0.21491778307177345},
                        0);
  expect_values<double>(draw("RandomUniform", 7, DType::kDouble),
                        {0.307879512957002, 0.5053579760645184, 0.7106656005322443, 0.5067460672522641}, 0);
}

TEST_F(Streams, NormalFloat) {
  expect_values<float>(draw("RandomStandardNormal", 7, DType::kFloat),
                       {-0.8113182187080383f, 1.4845987558364868f, 0.06532937288284302f, -2.442704200744629f,
                        0.09924840182065964f, 0.5912243127822876f, 0.5928229689598083f},
                       3e-7);
  expect_values<float>(draw("RandomStandardNormal", 7, DType::kFloat),
                       {-1.403475284576416f, 2.131955623626709f, 0.008457508869469166f, -0.3571796417236328f},
                       3e-7);
}

TEST_F(Streams, NormalDouble) {
  expect_values<double>(draw("RandomStandardNormal", 7, DType::kDouble),
                        {0.24282754598505307, -0.35299821810996557, -0.8365077914900015, -0.24356901971324732,
                         1.9100682898663162, -0.36929723159349664, 0.3600773345152879},
                        1e-14);
  expect_values<double>(draw("RandomStandardNormal", 7, DType::kDouble),
                        {-0.05166481320640266, -1.534087440650118, -0.03502230383647911, -0.8257602577888806},
                        1e-14);
}

TEST_F(Streams, TruncatedNormalFloat) {
  expect_values<float>(draw("TruncatedNormal", 11, DType::kFloat),
                       {-0.8113182187080383f, 1.4845987558364868f, 0.06532937288284302f, 0.09924840182065964f,
                        0.6396970748901367f, 1.6108711957931519f, 0.16353562474250793f, -1.5157055854797363f,
                        1.358777403831482f, 0.5417413115501404f, -0.8600988388061523f},
                       3e-7);
  expect_values<float>(
      draw("TruncatedNormal", 11, DType::kFloat),
      {-0.4934983551502228f, -1.057506799697876f, -0.8663179278373718f, -1.9345728158950806f}, 3e-7);
}

TEST_F(Streams, TruncatedNormalDouble) {
  expect_values<double>(draw("TruncatedNormal", 11, DType::kDouble),
                        {0.24282754598505307, -0.35299821810996557, -0.16554790468414687, 0.34224683233230957,
                         -0.012115088506327797, -0.7023301545951528, -1.0235360261015545, 0.3367880895564435,
                         -0.12718172324792773, -0.7577485633474333, 0.9171962597634039},
                        1e-14);
}

TEST_F(Streams, UniformInt) {
  auto bounds = [](auto lo, auto hi) { return std::vector<Operand>{Array::scalar(lo), Array::scalar(hi)}; };
  expect_values<int32_t>(draw("RandomUniformInt", 7, DType::kInt32, bounds(int32_t{-3}, int32_t{100})),
                         {12, 9, 38, 82, 4, 69, 89}, 0);
  expect_values<int32_t>(draw("RandomUniformInt", 7, DType::kInt32, bounds(int32_t{-3}, int32_t{100})),
                         {73, 48, 98, 2}, 0);
}

TEST_F(Streams, UniformInt64) {
  expect_values<int64_t>(
      draw("RandomUniformInt", 7, DType::kInt64, {Array::scalar(int64_t{-3}), Array::scalar(int64_t{100})}),
      {47, 37, 8, 34, 9, 7, 67}, 0);
}

TEST_F(Streams, Shuffle) {
  auto shuffled = [&] {
    return run_op({.op = "RandomShuffle",
                   .inputs = {Array::from<int32_t>({9}, {0, 1, 2, 3, 4, 5, 6, 7, 8})},
                   .attrs = {{"seed", 87654321}, {"seed2", 1}},
                   .name = "rnd",
                   .resources = &resources_})[0];
  };
  expect_values<int32_t>(shuffled(), {0, 8, 7, 2, 6, 3, 4, 1, 5}, 0);
  expect_values<int32_t>(shuffled(), {2, 7, 4, 8}, 0);
}

TEST_F(Streams, TwoNodesHaveStreamsOfTheirOwn) {
  const Array a = draw("RandomUniform", 4, DType::kFloat);
  const Array b = run_op({.op = "RandomUniform",
                          .inputs = {Array::from<int32_t>({1}, {4})},
                          .attrs = {{"seed", 87654321}, {"seed2", 1}, {"dtype", DType::kFloat}},
                          .name = "other",
                          .resources = &resources_})[0];
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(a.as<float>()[i], b.as<float>()[i]);
}

TEST_F(Streams, NoSeedsGiveValuesThatDiffer) {
  auto fresh = [](const char* name) {
    runtime::ResourceManager own;
    return run_op({.op = "RandomUniform",
                   .inputs = {Array::from<int32_t>({1}, {4})},
                   .attrs = {{"dtype", DType::kFloat}},
                   .name = name,
                   .resources = &own})[0];
  };
  const Array a = fresh("a"), b = fresh("a");
  bool differ = false;
  for (size_t i = 0; i < 4; ++i) differ |= a.as<float>()[i] != b.as<float>()[i];
  EXPECT_TRUE(differ);
}

}  // namespace
}  // namespace sluice::optest
