// Partitioned variables: names, shapes and what checkpoints hold of them.
#include "dsl/partitioned.h"

#include "dsl/train/restore.h"
#include "runtime/io/bundle.h"
#include "tests/dsl/train/folder.h"

namespace sluice::dsl::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace io = runtime::io;

std::vector<std::string> part_names(const PartitionedVariable& v) {
  std::vector<std::string> out;
  for (const Variable& p : v.parts()) out.push_back(cat(p.name(), p.shape()));
  return out;
}

Initializer counting_up() {
  return [](Graph& g, const Dims& shape, DType, Loc loc) {
    std::vector<float> values(static_cast<size_t>(graph::num_elements(shape)));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    return constant(g, values, shape, "Const", loc);
  };
}

TEST(Partitioners, AnswerAsTensorFlows) {
  EXPECT_THAT(fixed_size_partitioner(3)({10, 4}, DType::kFloat), ElementsAre(3, 1));
  EXPECT_THAT(fixed_size_partitioner(2, 1)({10, 4}, DType::kFloat), ElementsAre(1, 2));
  EXPECT_THAT(fixed_size_partitioner(20)({10, 4}, DType::kFloat), ElementsAre(10, 1));
  // 4·1024 bytes a row of 1024 floats: 16 rows in 64 KiB.
  EXPECT_THAT(variable_axis_size_partitioner(64 << 10)({64, 1024}, DType::kFloat), ElementsAre(4, 1));
  EXPECT_THAT(variable_axis_size_partitioner(64 << 10, 0, 16, 2)({64, 1024}, DType::kFloat),
              ElementsAre(2, 1));
  EXPECT_THAT(variable_axis_size_partitioner(10)({4, 1024}, DType::kFloat), ElementsAre(4, 1));
  EXPECT_THAT(variable_axis_size_partitioner(64)({8}, DType::kString), ElementsAre(2));
  EXPECT_THAT(min_max_variable_partitioner(10)({64, 1024}, DType::kFloat), ElementsAre(1, 1));
  EXPECT_THAT(min_max_variable_partitioner(10)({256, 1024}, DType::kFloat), ElementsAre(4, 1));
  EXPECT_THAT(min_max_variable_partitioner(3)({256, 1024}, DType::kFloat), ElementsAre(3, 1));
  EXPECT_THAT(min_max_variable_partitioner(10, 0, 1)({2, 1024}, DType::kFloat), ElementsAre(2, 1));
  EXPECT_THAT(error_of([] {
                fixed_size_partitioner(2, 2)({10, 4}, DType::kFloat);
              }),
              HasSubstr("Cannot partition variable along axis 2 when shape is only [10,4]"));
  EXPECT_THAT(error_of([] { variable_axis_size_partitioner(0); }), HasSubstr("must be positive"));
}

TEST(PartitionedVariables, PartsAreNamedAndTheFirstTakeTheRest) {
  Graph g;
  VariableScope scope(g, "s");
  PartitionedVariable e =
      get_variable(g, "e", {7, 2}, fixed_size_partitioner(3), {.initializer = counting_up()});
  EXPECT_EQ(e.name(), "s/e");
  EXPECT_THAT(part_names(e), ElementsAre("s/e/part_0[3,2]", "s/e/part_1[2,2]", "s/e/part_2[2,2]"));
  EXPECT_EQ(slice_spec(e.parts()[1]), "7 2 3,2:0,2");
  EXPECT_EQ(saved_name(e.parts()[1]), "s/e");
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  const std::vector<float> whole = floats(s.run({e.as_tensor()})[0]);
  ASSERT_EQ(whole.size(), 14u);
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_EQ(whole[i], static_cast<float>(i));
}

TEST(PartitionedVariables, ReuseSharesTheParts) {
  Graph g;
  PartitionedVariable a, b;
  {
    VariableScope scope(g, "s");
    a = get_variable(g, "e", {4}, fixed_size_partitioner(2));
  }
  const size_t variables = global_variables(g).size();
  {
    VariableScope scope(g, "s", {.reuse = Reuse::kTrue});
    b = get_variable(g, "e", {4}, fixed_size_partitioner(2));
  }
  EXPECT_EQ(global_variables(g).size(), variables);
  EXPECT_TRUE(a.parts()[1] == b.parts()[1]);
}

TEST(PartitionedVariables, AnswersThatDoNotFitAreRefused) {
  Graph g;
  auto with = [](std::vector<int64_t> parts) { return [parts](const Dims&, DType) { return parts; }; };
  auto error = [&](const Partitioner& p) { return error_of([&] { get_variable(g, "e", {4, 4}, p); }); };
  EXPECT_THAT(error(with({2})), HasSubstr("does not match the Variable's rank: [2] vs. [4,4]"));
  EXPECT_THAT(error(with({2, 2})), HasSubstr("Cannot slice along more than one dimension: [2, 2]"));
  EXPECT_THAT(error(with({0, 1})), HasSubstr("Partitioner returned zero partitions for some axes"));
  EXPECT_THAT(error(with({5, 1})), HasSubstr("more than their size"));
}

using PartitionedSaves = FolderTest;

TEST_F(PartitionedSaves, AreOneTensorThatAnyPartitionReads) {
  Graph g;
  PartitionedVariable e =
      get_variable(g, "e", {7, 2}, fixed_size_partitioner(3), {.initializer = counting_up()});
  Saver saver(g, {.num_shards = 2});
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  saver.save(s, at("m"));
  const io::BundleReader reader(at("m"));
  EXPECT_EQ(reader.entries().size(), 1u);
  EXPECT_EQ(reader.get("e").slices.size(), 3u);
  const std::vector<float> whole = floats(reader.read("e"));
  for (int parts : {1, 2, 5, 7}) {
    Graph h;
    PartitionedVariable f = get_variable(h, "e", {7, 2}, fixed_size_partitioner(parts));
    Saver again(h);
    Session t(h);
    again.restore(t, at("m"));
    EXPECT_EQ(floats(t.run({f.as_tensor()})[0]), whole) << parts;
    const std::string other = again.save(t, at(cat("n", parts)));
    EXPECT_EQ(floats(io::BundleReader(other).read("e")), whole);
  }
  Graph h;
  Variable plain = get_variable(h, "e", {7, 2});
  Saver again(h);
  Session t(h);
  again.restore(t, at("m"));
  EXPECT_EQ(floats(t.run({plain.snapshot()})[0]), whole);
  again.save(t, at("plain"));
  saver.restore(s, at("plain"));
  EXPECT_EQ(floats(s.run({e.as_tensor()})[0]), whole);
}

TEST_F(PartitionedSaves, TheNodesOfTheSaverDoTheSame) {
  Graph g;
  PartitionedVariable e =
      get_variable(g, "e", {5, 2}, fixed_size_partitioner(2), {.initializer = counting_up()});
  Saver saver(g, {.num_shards = 2});
  const auto info = saver.info();
  const std::vector<runtime::Feed> name{{g.output(info.filename_tensor), Array::strings({}, {at("n")})}};
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  s.run({g.output(info.save_tensor)}, name);
  EXPECT_EQ(files(), (std::vector<std::string>{"n.data-00000-of-00002", "n.data-00001-of-00002", "n.index"}));
  Session t(g);
  t.run({}, name, {&g.node(info.restore_op)});
  EXPECT_EQ(floats(t.run({e.as_tensor()})[0]), floats(io::BundleReader(at("n")).read("e")));
}

TEST_F(PartitionedSaves, SlotsOfThePartsAreOneSlot) {
  Graph g;
  PartitionedVariable e =
      get_variable(g, "e", {5, 2}, fixed_size_partitioner(2), {.initializer = counting_up()});
  AdamOptimizer optimizer(0.1);
  optimizer.minimize(reduce_sum(square(e.as_tensor())));
  Saver saver(g);
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  saver.save(s, at("m"));
  const io::BundleReader reader(at("m"));
  for (const char* name : {"e", "e/Adam", "e/Adam_1"}) {
    ASSERT_TRUE(reader.find(name)) << name;
    EXPECT_EQ(reader.read(name).dims(), (Dims{5, 2}));
  }
  EXPECT_FALSE(reader.find("e/part_0/Adam"));
}

TEST_F(PartitionedSaves, MayBeRenamedAndMustFit) {
  Graph g;
  PartitionedVariable e =
      get_variable(g, "e", {4}, fixed_size_partitioner(2), {.initializer = counting_up()});
  Saver saver(g, {.variables = {{{"old", e.parts()[1]}, {"old", e.parts()[0]}}}});
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  saver.save(s, at("m"));
  EXPECT_THAT(floats(io::BundleReader(at("m")).read("old")), ElementsAre(0, 1, 2, 3));
  Graph h;
  get_variable(h, "old", {6}, fixed_size_partitioner(2));
  Saver wrong(h);
  Session t(h);
  EXPECT_THAT(
      error_of([&] { wrong.restore(t, at("m")); }),
      HasSubstr("shape in shape_and_slice spec [6] does not match the shape stored in checkpoint: [4]"));
  EXPECT_THAT(error_of([&] {
                Saver twice(g, {.variables = {{{"x", e.parts()[0]}, {"x", e.parts()[0]}}}, .name = "twice"});
              }),
              HasSubstr("At least two variables have the same name: x"));
}

}  // namespace
}  // namespace sluice::dsl::train
