#include "dsl/train/saver.h"

#include <unistd.h>

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/passes/util.h"

namespace sluice::dsl::train {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SaverTest : public ::testing::Test {
 protected:
  SaverTest() {
    dir = fs::temp_directory_path() / cat("sluice_saver_", static_cast<int64_t>(::getpid()));
    fs::remove_all(dir);
    fs::create_directories(dir);
  }
  ~SaverTest() override { fs::remove_all(dir); }
  std::string at(const char* name) { return (dir / name).string(); }
  fs::path dir;
  Graph g;
  Variable v = get_variable(g, "v", {2}, {.initializer = ones_initializer()});
  Variable w = get_variable(g, "w", {3}, {.initializer = zeros_initializer()});
};

TEST_F(SaverTest, PutsTensorFlowsNodesIntoTheGraph) {
  Saver saver(g);
  EXPECT_THAT(
      nodes_under(g, "save/"),
      ElementsAre("save/filename/input Const()", "save/filename PlaceholderWithDefault(save/filename/input)",
                  "save/Const PlaceholderWithDefault(save/filename)", "save/SaveV2/tensor_names Const()",
                  "save/SaveV2/shape_and_slices Const()",
                  "save/SaveV2 SaveV2(save/Const, save/SaveV2/tensor_names, save/SaveV2/shape_and_slices, "
                  "v/Read/ReadVariableOp, w/Read/ReadVariableOp)",
                  "save/control_dependency Identity(save/Const, ^save/SaveV2)",
                  "save/RestoreV2/tensor_names Const()", "save/RestoreV2/shape_and_slices Const()",
                  "save/RestoreV2 RestoreV2(save/Const, save/RestoreV2/tensor_names, "
                  "save/RestoreV2/shape_and_slices)",
                  "save/Identity Identity(save/RestoreV2)",
                  "save/AssignVariableOp AssignVariableOp(v, save/Identity)",
                  "save/Identity_1 Identity(save/RestoreV2:1)",
                  "save/AssignVariableOp_1 AssignVariableOp(w, save/Identity_1)",
                  "save/restore_all NoOp(^save/AssignVariableOp, ^save/AssignVariableOp_1)"));
  EXPECT_EQ(saver.info().filename_tensor, "save/Const:0");
  EXPECT_EQ(saver.info().save_tensor, "save/control_dependency:0");
  EXPECT_EQ(saver.info().restore_op, "save/restore_all");
}

TEST_F(SaverTest, SavesAndRestores) {
  Saver saver(g);
  Tensor set = assign(w, constant(g, std::vector<float>{1, 2, 3}));
  Session a(g);
  a.run({}, {}, {&global_variables_initializer(g)});
  a.run({set});
  EXPECT_EQ(saver.save(a, at("m"), 7), at("m-7"));
  EXPECT_EQ(latest_checkpoint(dir.string()), at("m-7"));
  EXPECT_TRUE(fs::exists(at("m-7.meta")));
  Session b(g);
  saver.restore(b, latest_checkpoint(dir.string()));
  EXPECT_THAT(floats(b.run({w.snapshot()})[0]), ElementsAre(1, 2, 3));
  EXPECT_THAT(floats(b.run({v.snapshot()})[0]), ElementsAre(1, 1));
}

TEST_F(SaverTest, KeepsTheNewestAndKnowsThoseOfAnEarlierProcess) {
  Saver first(g, {.max_to_keep = 2, .write_meta_graph = false});
  Saver second(g, {.max_to_keep = 2, .write_meta_graph = false});
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  for (int i : {1, 2, 3}) first.save(s, at("m"), i);
  for (int i : {4, 5}) second.save(s, at("m"), i);
  std::vector<std::string> left;
  for (auto& e : fs::directory_iterator(dir)) {
    if (e.path().extension() == ".index") left.push_back(e.path().stem().string());
  }
  EXPECT_THAT(left, ::testing::UnorderedElementsAre("m-4", "m-5"));
  EXPECT_EQ(latest_checkpoint(dir.string()), at("m-5"));
}

TEST_F(SaverTest, ErrorsNameWhatIsMissing) {
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  Saver saver(g, {.variables = {{{"v", v}}}});
  EXPECT_THAT(error_of([&] { saver.save(s, at("no/such/m")); }), HasSubstr("no/such"));
  EXPECT_THAT(error_of([&] { saver.restore(s, at("none")); }), HasSubstr("not a valid checkpoint"));
  saver.save(s, at("part"));
  Saver all(g);
  EXPECT_THAT(error_of([&] { all.restore(s, at("part")); }), HasSubstr("w"));
  Graph empty;
  EXPECT_THAT(error_of([&] { Saver none(empty); }), HasSubstr("No variables to save"));
  EXPECT_THAT(error_of([&] {
                Saver two(g, {.variables = {{{"a", v}, {"a", w}}}});
              }),
              HasSubstr("At least two variables have the same name: a"));
}

}  // namespace
}  // namespace sluice::dsl::train
