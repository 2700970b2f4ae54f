// graph-and-training §7.5: names, retention, state file, arguments of Saver and save.
#include <fstream>
#include <sstream>

#include "runtime/io/bundle.h"
#include "runtime/io/file.h"
#include "tests/dsl/train/folder.h"

namespace sluice::dsl::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
namespace io = runtime::io;

using SaverRules = SaverFolderTest;

TEST_F(SaverRules, DefaultIsEveryGlobalVariableUnderItsName) {
  get_variable(g, "local", {1}, {.trainable = false, .collections = {graph::keys::kLocalVariables}});
  Saver saver(g);
  Session s(g);
  initialize(s);
  saver.save(s, at("m"));
  std::vector<std::string> names;
  const io::BundleReader reader(at("m"));
  for (const auto& [name, e] : reader.entries())
    if (!name.starts_with("_sluice/")) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("v", "w"));
}

TEST_F(SaverRules, NamesOfTheListRenameTensors) {
  Saver saver(g, {.variables = {{{"other/v", v}, {"w", w}}}});
  Session s(g);
  initialize(s);
  set(s, v, {5, 6});
  saver.save(s, at("m"));
  EXPECT_THAT(floats(io::BundleReader(at("m")).read("other/v")), ElementsAre(5, 6));
  set(s, v, {0, 0});
  saver.restore(s, at("m"));
  EXPECT_THAT(get(s, v), ElementsAre(5, 6));
}

TEST_F(SaverRules, NothingToSaveIsAnErrorUnlessAllowed) {
  Graph empty;
  EXPECT_THAT(error_of([&] { Saver none(empty); }), HasSubstr("No variables to save"));
  Saver none(empty, {.allow_empty = true});
  Session s(empty);
  const std::string path = none.save(s, at("m"), 1);
  EXPECT_EQ(latest_checkpoint(dir.string()), path);
  none.restore(s, path);
}

TEST_F(SaverRules, StepsMayBePadded) {
  Saver saver(g, {.pad_step_number = true});
  Session s(g);
  initialize(s);
  EXPECT_EQ(saver.save(s, at("m"), 10), at("m-00000010"));
}

// Case S02.
TEST_F(SaverRules, BareNamesAreFilesHereAndMissingParentsAreNamed) {
  Saver saver(g);
  Session s(g);
  initialize(s);
  EXPECT_THAT(error_of([&] { saver.save(s, at("no/such/m")); }),
              HasSubstr("Parent directory of " + at("no/such/m") + " doesn't exist, can't save."));
  EXPECT_THAT(files(), IsEmpty());
  const fs::path before = fs::current_path();
  fs::current_path(dir);
  saver.save(s, "m");
  EXPECT_EQ(latest_checkpoint("."), "./m");
  fs::create_directory("test");
  saver.save(s, "test/m");
  EXPECT_EQ(latest_checkpoint("test"), "test/m");
  saver.restore(s, latest_checkpoint("test"));
  fs::current_path(before);
}

// Case S04.
TEST_F(SaverRules, AColonIsAPartOfAPath) {
  fs::create_directory(at("a:b"));
  Saver saver(g);
  Session s(g);
  initialize(s);
  saver.restore(s, saver.save(s, at("a:b/m")));
  EXPECT_EQ(latest_checkpoint(at("a:b")), at("a:b/m"));
}

TEST_F(SaverRules, MetaGraphIsWrittenUnlessDisabled) {
  Saver saver(g);
  Session s(g);
  initialize(s);
  saver.save(s, at("a"), {}, {.meta_graph_suffix = "graph"});
  saver.save(s, at("b"), {}, {.write_meta_graph = false});
  EXPECT_TRUE(fs::exists(at("a.graph")));
  EXPECT_FALSE(fs::exists(at("b.meta")));
  Graph back;
  const graph::MetaGraphInfo info = graph::read_graph_file(back, at("a.graph"));
  EXPECT_EQ(info.saver->restore_op, "save/restore_all");
  EXPECT_EQ(info.saver->filename_tensor, "save/Const:0");
}

TEST_F(SaverRules, TheStateFileMayBearAnotherNameWithoutParts) {
  Saver saver(g);
  Session s(g);
  initialize(s);
  saver.save(s, at("m"), 1, {.latest_filename = "mine"});
  EXPECT_EQ(latest_checkpoint(dir.string()), "");
  EXPECT_EQ(latest_checkpoint(dir.string(), "mine"), at("m-1"));
  EXPECT_THAT(error_of([&] { saver.save(s, at("m"), 2, {.latest_filename = "a/b"}); }),
              HasSubstr("'latest_filename' must not contain path components"));
  saver.save(s, at("m"), 3, {.write_state = false});
  EXPECT_EQ(latest_checkpoint(dir.string(), "mine"), at("m-1"));
}

TEST_F(SaverRules, OldestGoesFirstAndSavingAPathAgainMakesItNewest) {
  Saver saver(g, {.max_to_keep = 2});
  Session s(g);
  initialize(s);
  for (int i : {1, 2, 1, 3}) saver.save(s, at("m"), i);
  EXPECT_THAT(checkpoints(), ElementsAre("m-1", "m-3"));
  EXPECT_THAT(saver.last_checkpoints(), ElementsAre(at("m-1"), at("m-3")));
  EXPECT_FALSE(fs::exists(at("m-2.meta")));
}

// Case S05.
TEST_F(SaverRules, RetentionKnowsAnEarlierRunAndMayBeLowered) {
  Session s(g);
  initialize(s);
  {
    Saver first(g, {.max_to_keep = 5});
    for (int i : {1, 2, 3, 4, 5}) first.save(s, at("m"), i);
  }
  Saver second(g, {.max_to_keep = 2});
  second.save(s, at("m"), 6);
  EXPECT_THAT(checkpoints(), ElementsAre("m-5", "m-6"));
  EXPECT_EQ(latest_checkpoint(dir.string()), at("m-6"));
}

// Case S06.
TEST_F(SaverRules, ZeroKeepsAllAndListsTheLatest) {
  Saver saver(g, {.max_to_keep = 0});
  Session s(g);
  initialize(s);
  for (int i = 1; i <= 7; ++i) saver.save(s, at("m"), i);
  EXPECT_EQ(checkpoints().size(), 7u);
  const auto state = get_checkpoint_state(dir.string());
  EXPECT_EQ(state->model_checkpoint_path, at("m-7"));
  EXPECT_THAT(state->all_model_checkpoint_paths, ElementsAre(at("m-7")));
}

TEST_F(SaverRules, OneInSoManyHoursIsKeptForever) {
  double now = 1000;
  Saver saver(g, {.max_to_keep = 1, .keep_checkpoint_every_n_hours = 2, .clock = [&] { return now; }});
  Session s(g);
  initialize(s);
  // Saved 30 minutes apart; those later than two hours, four hours … after the start stay.
  for (int i = 1; i <= 10; ++i) {
    now += 1800;
    saver.save(s, at("m"), i);
  }
  EXPECT_THAT(checkpoints(), ::testing::UnorderedElementsAre("m-5", "m-9", "m-10"));
  EXPECT_DOUBLE_EQ(get_checkpoint_state(dir.string())->last_preserved_timestamp, 1000 + 9 * 1800);
}

TEST_F(SaverRules, AClockThatGoesBackChangesNeitherOrderNorLatest) {
  double now = 5000;
  Session s(g);
  initialize(s);
  {
    Saver saver(g, {.max_to_keep = 2, .clock = [&] { return now; }});
    for (int i : {1, 2, 3}) {
      saver.save(s, at("m"), i);
      now -= 1000;
    }
    EXPECT_THAT(checkpoints(), ElementsAre("m-2", "m-3"));
  }
  now = 10;
  Saver again(g, {.max_to_keep = 2, .clock = [&] { return now; }});
  again.save(s, at("m"), 4);
  EXPECT_THAT(checkpoints(), ElementsAre("m-3", "m-4"));
  EXPECT_EQ(latest_checkpoint(dir.string()), at("m-4"));
}

TEST_F(SaverRules, RecoveredListDropsWhatIsGone) {
  Saver saver(g, {.max_to_keep = 2});
  Session s(g);
  initialize(s);
  for (int i : {1, 2}) saver.save(s, at("m"), i);
  saver.recover_last_checkpoints({at("m-0"), at("m-1"), at("m-2")});
  EXPECT_THAT(saver.last_checkpoints(), ElementsAre(at("m-1"), at("m-2")));
}

TEST_F(SaverRules, DeletionErrorsAreIgnored) {
  Saver saver(g, {.max_to_keep = 1});
  Session s(g);
  initialize(s);
  saver.save(s, at("m"), 1);
  fs::remove(at("m-1.index"));
  fs::create_directories(at("m-1.index/full"));  // cannot be deleted as a file
  LogCapture log;
  saver.save(s, at("m"), 2);
  EXPECT_EQ(latest_checkpoint(dir.string()), at("m-2"));
  EXPECT_EQ(log.count("Ignoring: "), 1);
}

// Case S01.
TEST_F(SaverRules, PathsAreRelativeToTheDirectoryUnlessAskedOtherwise) {
  fs::create_directory(at("a"));
  Saver saver(g);
  Session s(g);
  initialize(s);
  set(s, v, {3, 4});
  saver.save(s, at("a/m"), 5);
  EXPECT_THAT(io::read_file(at("a/checkpoint")), HasSubstr("model_checkpoint_path: \"m-5\"\n"));
  fs::rename(at("a"), at("b"));
  EXPECT_EQ(latest_checkpoint(at("b")), at("b/m-5"));
  set(s, v, {0, 0});
  saver.restore(s, latest_checkpoint(at("b")));
  EXPECT_THAT(get(s, v), ElementsAre(3, 4));
  Saver absolute(g, {.save_relative_paths = false});
  absolute.save(s, at("b/m"), 6);
  EXPECT_THAT(io::read_file(at("b/checkpoint")),
              HasSubstr(cat("model_checkpoint_path: \"", at("b/m-6"), "\"")));
}

TEST_F(SaverRules, AnUnreadableStateFileIsIgnoredWithAWarning) {
  io::write_file_atomically(at("checkpoint"), "nonsense {");
  LogCapture log;
  EXPECT_FALSE(get_checkpoint_state(dir.string()));
  EXPECT_EQ(latest_checkpoint(dir.string()), "");
  EXPECT_GE(log.count("Checkpoint ignored"), 1);
}

TEST_F(SaverRules, LatestNeedsItsFiles) {
  Saver saver(g);
  Session s(g);
  initialize(s);
  saver.save(s, at("m"), 1);
  fs::remove(at("m-1.index"));
  EXPECT_EQ(latest_checkpoint(dir.string()), "");
}

TEST_F(SaverRules, StateFileArgumentsAreChecked) {
  EXPECT_THAT(error_of([&] {
                update_checkpoint_state(dir.string(), {.model_checkpoint_path = at("m"),
                                                       .all_model_checkpoint_paths = {at("m")},
                                                       .timestamps = {1, 2}});
              }),
              HasSubstr("must match checkpoint paths"));
  EXPECT_THAT(
      error_of([&] { update_checkpoint_state(dir.string(), {.model_checkpoint_path = at("checkpoint")}); }),
      HasSubstr("conflicts with path used for checkpoint state"));
  update_checkpoint_state(dir.string(),
                          {.model_checkpoint_path = at("m-2"), .all_model_checkpoint_paths = {at("m-1")}});
  EXPECT_THAT(get_checkpoint_state(dir.string())->all_model_checkpoint_paths,
              ElementsAre(at("m-1"), at("m-2")));
}

TEST_F(SaverRules, BuildMayWaitButNotForever) {
  Saver saver(g, {.defer_build = true});
  Session s(g);
  initialize(s);
  EXPECT_THAT(error_of([&] { saver.save(s, at("m")); }), HasSubstr("`build()` should be called before save"));
  EXPECT_THAT(error_of([&] { saver.restore(s, at("m")); }),
              HasSubstr("`build()` should be called before restore"));
  saver.build();
  const size_t nodes = g.nodes().size();
  saver.build();
  EXPECT_EQ(g.nodes().size(), nodes);
  saver.restore(s, saver.save(s, at("m")));
}

TEST_F(SaverRules, WritingV1IsRefused) {
  EXPECT_THAT(error_of([&] { Saver saver(g, {.write_version = 1}); }), HasSubstr("write_version must be 2"));
}

TEST_F(SaverRules, AnotherGraphsSessionIsRefused) {
  Saver saver(g);
  Graph other;
  Session s(other);
  EXPECT_THAT(error_of([&] { saver.save(s, at("m")); }), HasSubstr("another graph"));
}

TEST_F(SaverRules, UninitializedVariablesAreAllNamed) {
  Saver saver(g);
  Session s(g);
  EXPECT_THAT(error_of([&] { saver.save(s, at("m")); }),
              AllOf(HasSubstr("Attempting to use uninitialized value v, w"), HasSubstr("2 of 2")));
}

TEST_F(SaverRules, ShardsAreFilesOfOneCheckpoint) {
  Saver saver(g, {.num_shards = 2});
  Session s(g);
  initialize(s);
  set(s, w, {1, 2, 3});
  saver.save(s, at("m"));
  EXPECT_THAT(files(), ElementsAre("checkpoint", "m.data-00000-of-00002", "m.data-00001-of-00002", "m.index",
                                   "m.meta"));
  set(s, w, {0, 0, 0});
  saver.restore(s, at("m"));
  EXPECT_THAT(get(s, w), ElementsAre(1, 2, 3));
  // A whole saver of the same variables reads it too.
  Saver plain(g, {.name = "plain"});
  plain.restore(s, at("m"));
}

TEST_F(SaverRules, ShardedNodesWriteWhatTheSaverWrites) {
  {
    graph::DeviceScope other(g, "/device:CPU:0");
    get_variable(g, "u", {1}, {.initializer = ones_initializer()});
  }
  Node& all = global_variables_initializer(g);
  Saver saver(g, {.sharded = true});
  EXPECT_TRUE(saver.info().sharded);
  Session s(g);
  s.run({}, {}, {&all});
  set(s, w, {7, 8, 9});
  // The nodes, as a program that only has the graph file runs them.
  const auto info = saver.info();
  const std::vector<runtime::Feed> name{{g.output(info.filename_tensor), Array::strings({}, {at("n")})}};
  s.run({g.output(info.save_tensor)}, name);
  EXPECT_THAT(files(), ElementsAre("n.data-00000-of-00002", "n.data-00001-of-00002", "n.index"));
  set(s, w, {0, 0, 0});
  s.run({}, name, {&g.node(info.restore_op)});
  EXPECT_THAT(get(s, w), ElementsAre(7, 8, 9));
  saver.save(s, at("m"));
  const io::BundleReader a(at("n")), b(at("m"));
  EXPECT_EQ(a.num_shards(), b.num_shards());
  for (const auto& [key, e] : a.entries()) EXPECT_THAT(floats(a.read(key)), floats(b.read(key))) << key;
}

TEST_F(SaverRules, ASaverOfAGraphFileRunsItsNodes) {
  Saver made(g);
  Session s(g);
  initialize(s);
  set(s, w, {4, 5, 6});
  made.save(s, at("m"), 1);
  Graph file;
  const graph::MetaGraphInfo info = graph::read_graph_file(file, at("m-1.meta"));
  Session t(file);
  const std::unique_ptr<Saver> found = Saver::of_graph(file, *info.saver);
  found->restore(t, at("m-1"));
  EXPECT_THAT(floats(t.run({file.output("w/Read/ReadVariableOp:0")})[0]), ElementsAre(4, 5, 6));
  EXPECT_EQ(found->save(t, at("m"), 2), at("m-2"));
  EXPECT_EQ(latest_checkpoint(dir.string()), at("m-2"));
}

}  // namespace
}  // namespace sluice::dsl::train
