// graph-and-training §5.4: the four ways to warm-start, each argument and error text.
#include "dsl/train/warm_start.h"

#include "runtime/io/bundle.h"
#include "tests/dsl/train/folder.h"

namespace sluice::dsl::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace io = runtime::io;

std::vector<std::string> names_of(const std::vector<Variable>& variables) {
  std::vector<std::string> out;
  for (const Variable& v : variables) out.push_back(v.name());
  return out;
}

class WarmStart : public SaverFolderTest {
 protected:
  WarmStart() {
    io::save_tensors(at("old"), {"v", "old_w", "global_step"}, {},
                     {vec({8, 9}), vec({4, 5, 6}), Array::scalar<int64_t>(300)});
  }
};

TEST_F(WarmStart, FromACheckpointByTheVariablesOwnNames) {
  InitFn init_fn = assign_from_checkpoint_fn(at("old"), std::vector<Variable>{v});
  g.finalize();  // the function needs no nodes
  Session s(g);
  initialize(s);
  init_fn(s);
  EXPECT_THAT(get(s, v), ElementsAre(8, 9));
  EXPECT_THAT(get(s, w), ElementsAre(0, 0, 0));
}

TEST_F(WarmStart, RenamedByAMap) {
  InitFn init_fn = assign_from_checkpoint_fn(
      at("old"), {{"v", get_unique_variable(g, "v")}, {"old_w", get_unique_variable(g, "w")}});
  Session s(g);
  init_fn(s);
  EXPECT_THAT(get(s, v), ElementsAre(8, 9));
  EXPECT_THAT(get(s, w), ElementsAre(4, 5, 6));
}

TEST_F(WarmStart, RenamedByARegex) {
  const RestoreList list = renamed_by_regex({v, w}, "^w$", "old_$&");
  ASSERT_EQ(list.items().size(), 2u);
  EXPECT_EQ(list.items()[0].first, "v");
  EXPECT_EQ(list.items()[1].first, "old_w");
  Session s(g);
  assign_from_checkpoint_fn(at("old"), list)(s);
  EXPECT_THAT(get(s, w), ElementsAre(4, 5, 6));
  EXPECT_THAT(error_of([&] { renamed_by_regex({v}, "(", ""); }), HasSubstr("'(' is no regular expression"));
}

TEST_F(WarmStart, RestoringNeverTouchesTheRandomStreamsOfTheNewRun) {
  // A warm start takes values; positions belong to the run they come from.
  io::save_tensors(at("with_state"), {"v", "_sluice/random/nodes", "_sluice/random/streams"}, {},
                   {vec({8, 9}), Array::strings({1}, {"nobody"}), Array::zeros(DType::kUint64, {1, 4})});
  Session s(g);
  assign_from_checkpoint_fn(at("with_state"), std::vector<Variable>{v})(s);
  EXPECT_FALSE(s.resources().stream("nobody")->seeded);
}

TEST_F(WarmStart, EmptyListsAndMissingNamesAreErrorsUnlessIgnored) {
  EXPECT_THAT(error_of([&] { assign_from_checkpoint_fn(at("old"), RestoreList()); }),
              HasSubstr("var_list cannot be empty"));
  EXPECT_THAT(error_of([&] { assign_from_checkpoint(g, at("old"), RestoreList()); }),
              HasSubstr("var_list cannot be empty"));
  Session s(g);
  initialize(s);
  InitFn strict = assign_from_checkpoint_fn(at("old"), std::vector<Variable>{v, w});
  EXPECT_THAT(error_of([&] { strict(s); }), HasSubstr("Key w not found in checkpoint."));
  EXPECT_THAT(get(s, v), ElementsAre(1, 1)) << "all or nothing";
  LogCapture log;
  assign_from_checkpoint_fn(at("old"), std::vector<Variable>{v, w}, {.ignore_missing_vars = true})(s);
  EXPECT_EQ(log.count("Variable w missing in checkpoint " + at("old")), 1);
  EXPECT_THAT(get(s, v), ElementsAre(8, 9));
  EXPECT_EQ(assign_from_checkpoint_fn(at("old"), std::vector<Variable>{w}, {.ignore_missing_vars = true}),
            nullptr);
  EXPECT_EQ(log.count("No Variables to restore"), 1);
}

TEST_F(WarmStart, ShapesMayChangeWhereAsked) {
  io::save_tensors(at("flat"), {"m"}, {}, {vec({1, 2, 3, 4})});
  Variable m = get_variable(g, "m", {2, 2});
  Session s(g);
  EXPECT_THAT(error_of([&] { assign_from_checkpoint_fn(at("flat"), std::vector<Variable>{m})(s); }),
              HasSubstr("Assign requires shapes of both tensors to match"));
  assign_from_checkpoint_fn(at("flat"), std::vector<Variable>{m}, {.reshape_variables = true})(s);
  EXPECT_THAT(get(s, m), ElementsAre(1, 2, 3, 4));
}

TEST_F(WarmStart, TheOpFormFeedsPlaceholders) {
  AssignOp assign = assign_from_checkpoint(g, at("old"), {{"old_w", w}, {"v", v}});
  EXPECT_EQ(assign.feeds.size(), 2u);
  Session s(g);
  assign.run(s);
  EXPECT_THAT(get(s, w), ElementsAre(4, 5, 6));
  EXPECT_THAT(get(s, v), ElementsAre(8, 9));
  const std::string missing = error_of([&] {
    assign_from_checkpoint(g, at("old"), std::vector<Variable>{v, w});
  });
  EXPECT_THAT(missing, HasSubstr("Checkpoint is missing variable [w]"));
  EXPECT_THAT(
      error_of([&] {
        assign_from_checkpoint(g, at("old"), {{"old_w", v}});
      }),
      HasSubstr("Total size of new array must be unchanged for old_w lh_shape: [[3]], rh_shape: [[2]]"));
  LogCapture log;
  assign_from_checkpoint(g, at("old"), std::vector<Variable>{v, w}, {.ignore_missing_vars = true}).run(s);
  EXPECT_EQ(log.count("Checkpoint is missing variable [w]"), 1);
}

TEST_F(WarmStart, PartitionedVariablesTakeTheirParts) {
  io::save_tensors(at("wide"), {"e", "renamed"}, {}, {vec({0, 1, 2, 3, 4}), vec({5, 6, 7, 8, 9})});
  PartitionedVariable e = get_variable(g, "e", {5}, fixed_size_partitioner(2));
  Session s(g);
  assign_from_checkpoint_fn(at("wide"), e.parts())(s);
  EXPECT_THAT(floats(s.run({e.as_tensor()})[0]), ElementsAre(0, 1, 2, 3, 4));
  RestoreList renamed;
  renamed.add("renamed", e);
  assign_from_checkpoint(g, at("wide"), renamed).run(s);
  EXPECT_THAT(floats(s.run({e.as_tensor()})[0]), ElementsAre(5, 6, 7, 8, 9));
  assign_from_checkpoint_fn(at("wide"), std::map<std::string, std::vector<Variable>>{{"e", e.parts()}})(s);
  EXPECT_THAT(floats(s.run({e.as_tensor()})[0]), ElementsAre(0, 1, 2, 3, 4));
}

TEST_F(WarmStart, FromValuesInMemory) {
  const size_t before = g.nodes().size();
  InitFn init_fn =
      assign_from_values_fn(g, {{"v", vec({3, 4})}, {"w", Array::from<double>({3, 1}, {7, 8, 9})}});
  EXPECT_THAT(nodes_under(g, "placeholder/"),
              ElementsAre("placeholder/v Placeholder()", "placeholder/w Placeholder()"));
  EXPECT_LE(g.nodes().size(), before + 5) << "values stay out of the graph";
  g.finalize();
  Session s(g);
  init_fn(s);
  EXPECT_THAT(get(s, v), ElementsAre(3, 4));
  EXPECT_THAT(get(s, w), ElementsAre(7, 8, 9)) << "reshaped to the variable's shape";
}

TEST_F(WarmStart, NamesOfValuesAreChecked) {
  get_variable(g, "layer/a", {1});
  get_variable(g, "layer/b", {1});
  get_variable(g, "v2", {1});
  EXPECT_THAT(error_of([&] {
                assign_from_values(g, {{"nothing", vec({1})}});
              }),
              HasSubstr("Variable nothing wasn't found"));
  EXPECT_THAT(error_of([&] {
                assign_from_values(g, {{"layer", vec({1})}});
              }),
              HasSubstr("Variable layer doesn't uniquely identify a variable"));
  EXPECT_THAT(error_of([&] {
                assign_from_values(g, {{"v", vec({1, 2, 3})}});
              }),
              HasSubstr("cannot reshape array of size 3"));
  assign_from_values(g, {{"v", vec({1, 2})}});  // v2 matches too; v is exact
}

TEST_F(WarmStart, IncludeAndExcludeAreRegexesAtTheStart) {
  Graph h;
  for (const char* name : {"conv1/w", "conv1/w/Momentum", "conv2/w", "fc8/w", "fc80/w", "model/conv1/w"})
    get_variable(h, name, {1});
  auto names = [&](const std::optional<std::vector<std::string>>& include,
                   const std::vector<std::string>& exclude = {}) {
    return names_of(get_variables_to_restore(h, include, exclude));
  };
  EXPECT_EQ(names({}).size(), 6u);
  EXPECT_THAT(names({{"conv"}}), ElementsAre("conv1/w", "conv1/w/Momentum", "conv2/w"));
  EXPECT_THAT(names({{"conv1/w:0"}}), ElementsAre("conv1/w"));
  EXPECT_THAT(names({{"conv2", "conv"}}), ElementsAre("conv2/w", "conv1/w", "conv1/w/Momentum", "conv2/w"));
  EXPECT_THAT(names({}, {"fc8", "conv"}), ElementsAre("model/conv1/w"));
  EXPECT_THAT(names({{"fc"}}, {"fc8/"}), ElementsAre("fc80/w"));
  EXPECT_THAT(names(std::vector<std::string>{}), IsEmpty());
  // One that stands twice is restored once.
  EXPECT_EQ(RestoreList(get_variables_to_restore(h, {{"conv2", "conv"}})).items().size(), 3u);
}

TEST_F(WarmStart, UniqueVariables) {
  Graph h;
  get_variable(h, "a/w", {1});
  get_variable(h, "a/w2", {1});
  EXPECT_EQ(get_unique_variable(h, "a/w").name(), "a/w");
  EXPECT_THAT(error_of([&] { get_unique_variable(h, "b"); }), HasSubstr("Couldn't find variable b"));
  EXPECT_THAT(error_of([&] { get_unique_variable(h, "a"); }),
              HasSubstr("Variable a does not uniquely identify a variable"));
}

TEST_F(WarmStart, ListsByCollectionNameAndPattern) {
  Graph h;
  const std::vector<std::string> model{graph::keys::kGlobalVariables, graph::keys::kModelVariables};
  get_variable(h, "a/weights", {1}, {.collections = model});
  get_variable(h, "a/biases", {1}, {.collections = model});
  get_variable(h, "b/weights", {1}, {.collections = model});
  get_variable(h, "b/weights/Adam", {1});
  EXPECT_THAT(names_of(get_model_variables(h)), ElementsAre("a/weights", "a/biases", "b/weights"));
  EXPECT_THAT(names_of(get_model_variables(h, "a")), ElementsAre("a/weights", "a/biases"));
  EXPECT_THAT(names_of(get_model_variables(h, "", "weights")), ElementsAre("a/weights", "b/weights"));
  EXPECT_THAT(names_of(get_variables_by_suffix(h, "Adam")), ElementsAre("b/weights/Adam"));
  EXPECT_THAT(names_of(get_variables_by_name(h, "weights", "b")), ElementsAre("b/weights"));
  const std::vector<Variable> all = global_variables(h);
  EXPECT_THAT(names_of(filter_variables(all, {"weights"}, {"Adam$"})), ElementsAre("a/weights", "b/weights"));
  EXPECT_THAT(names_of(filter_variables(all, {"weights"}, {}, true)), IsEmpty());
  EXPECT_EQ(filter_variables(all, {}).size(), 4u);
}

TEST_F(WarmStart, InitializersMayReadACheckpoint) {
  io::save_tensors(at("scoped"), {"old/a", "old/b", "e"}, {}, {vec({1}), vec({2}), vec({0, 1, 2})});
  Graph h;
  Variable a = get_variable(h, "new/a", {1}), b = get_variable(h, "new/b", {1});
  PartitionedVariable e = get_variable(h, "e2", {3}, fixed_size_partitioner(2));
  init_from_checkpoint(h, at("scoped"), {{"old/", "new/"}, {"e", "e2"}});
  Session s(h);
  s.run({}, {}, {&global_variables_initializer(h)});
  EXPECT_THAT(floats(s.run({a.snapshot()})[0]), ElementsAre(1));
  EXPECT_THAT(floats(s.run({b.snapshot()})[0]), ElementsAre(2));
  EXPECT_THAT(floats(s.run({e.as_tensor()})[0]), ElementsAre(0, 1, 2));
  EXPECT_THAT(error_of([&] {
                init_from_checkpoint(h, at("scoped"), {{"old/", "new"}});
              }),
              HasSubstr("Should be 'scope/': 'other_scope/'."));
  EXPECT_THAT(error_of([&] {
                init_from_checkpoint(h, at("scoped"), {{"/", "new/"}});
              }),
              HasSubstr("Tensor a is not found in " + at("scoped") + " checkpoint."));
  EXPECT_THAT(error_of([&] {
                init_from_checkpoint(h, at("scoped"), {{"e", "new/a"}});
              }),
              HasSubstr("Shape of variable new/a ([1]) doesn't match with shape of tensor e ([3])"));
  EXPECT_THAT(error_of([&] {
                init_from_checkpoint(h, at("scoped"), {{"e", "nobody"}});
              }),
              HasSubstr("the graph has no variable nobody"));
}

}  // namespace
}  // namespace sluice::dsl::train
