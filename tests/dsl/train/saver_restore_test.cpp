// Restoring: all or nothing, one error for everything, and what survives damage, full disks, other writers.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>
#include <fstream>

#include "dsl/train/save_directory.h"
#include "runtime/io/bundle.h"
#include "runtime/io/file.h"
#include "tests/dsl/train/folder.h"

namespace sluice::dsl::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
namespace io = runtime::io;

using Restore = SaverFolderTest;

TEST_F(Restore, RefusesWhatIsNoCheckpoint) {
  Saver saver(g);
  Session s(g);
  EXPECT_THAT(error_of([&] { saver.restore(s, ""); }), HasSubstr("Can't load save_path when it is None."));
  EXPECT_THAT(error_of([&] { saver.restore(s, at("none")); }),
              HasSubstr("The passed save_path is not a valid checkpoint: " + at("none")));
}

// Case S12, and issue 4: one error lists everything and nothing is changed.
TEST_F(Restore, OneErrorListsAllThatIsMissingOrDoesNotFit) {
  io::save_tensors(at("m"), {"conv/w", "kernel", "step", "v", "extra"}, {},
                   {Array::scalar(1.0f), Array::zeros(DType::kFloat, {4}), Array::scalar<int64_t>(1),
                    vec({8, 9}), Array::scalar(1.0f)});
  get_variable(g, "conv1/w", {});
  get_variable(g, "bias", {2});
  get_variable(g, "kernel", {2, 3});
  get_variable(g, "step", {}, {.dtype = DType::kInt32});
  Saver saver(g);
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  const std::string text = error_of([&] { saver.restore(s, at("m")); });
  EXPECT_THAT(
      text, AllOf(HasSubstr("Restoring from checkpoint failed. This is most likely due to a Variable name or "
                            "other graph key that is missing from the checkpoint."),
                  HasSubstr(at("m")), HasSubstr("3 of 6 variables are missing"),
                  HasSubstr("Key conv1/w not found in checkpoint. Did you mean 'conv/w'"),
                  HasSubstr("Key bias not found"), HasSubstr("Key w not found")));
  EXPECT_THAT(
      text,
      AllOf(HasSubstr("2 of 6 variables do not fit"),
            HasSubstr("tensor_name = step; expected dtype int32 does not equal original dtype int64"),
            HasSubstr("Assign requires shapes of both tensors to match. lhs shape= [2,3] rhs shape= [4]"),
            HasSubstr("conv/w, extra"), HasSubstr("No variable was changed.")));
  EXPECT_THAT(get(s, v), ElementsAre(1, 1));
}

TEST_F(Restore, AMismatchAloneIsSaidAsOne) {
  io::save_tensors(at("m"), {"v", "w"}, {}, {Array::scalar(1.0), vec({1, 2, 3})});
  Saver saver(g);
  Session s(g);
  initialize(s);
  try {
    saver.restore(s, at("m"));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kInvalidArgument);
    EXPECT_THAT(e.message(),
                HasSubstr("most likely due to a mismatch between the current graph and the graph"));
  }
  EXPECT_THAT(get(s, w), ElementsAre(0, 0, 0));
}

TEST_F(Restore, SurplusTensorsAreToldNotRefused) {
  io::save_tensors(at("m"), {"v", "v/Momentum", "w"}, {}, {vec({1, 2}), vec({0, 0}), vec({1, 2, 3})});
  Saver saver(g);
  Session s(g);
  LogCapture log;
  saver.restore(s, at("m"));
  EXPECT_EQ(log.count("also holds 1 tensors that no variable takes: v/Momentum"), 1);
  EXPECT_THAT(get(s, w), ElementsAre(1, 2, 3));
}

TEST_F(Restore, MissingOnesMayBeIgnored) {
  io::save_tensors(at("m"), {"v"}, {}, {vec({1, 2})});
  Saver saver(g, {.ignore_missing = true});
  Session s(g);
  initialize(s);
  LogCapture log;
  saver.restore(s, at("m"));
  EXPECT_EQ(log.count("Variable w missing in checkpoint"), 1);
  EXPECT_THAT(get(s, v), ElementsAre(1, 2));
}

TEST_F(Restore, ShapesMayChangeWhereAsked) {
  io::save_tensors(at("m"), {"v", "w"}, {}, {Array::from<float>({2, 1}, {1, 2}), vec({1, 2, 3})});
  Session s(g);
  Saver strict(g);
  EXPECT_THAT(error_of([&] { strict.restore(s, at("m")); }), HasSubstr("Assign requires shapes"));
  Saver saver(g, {.name = "reshaping", .reshape = true});
  saver.restore(s, at("m"));
  EXPECT_THAT(get(s, v), ElementsAre(1, 2));
  s.run({}, {{g.output(saver.info().filename_tensor), Array::strings({}, {at("m")})}},
        {&g.node(saver.info().restore_op)});
  EXPECT_THAT(get(s, v), ElementsAre(1, 2));
}

TEST_F(Restore, EveryKindOfVariable) {
  Graph h;
  Variable ref = get_variable(h, "ref", {2}, {.initializer = ones_initializer(), .use_resource = false});
  Variable big = get_variable(h, "big", {600, 1000}, {.initializer = ones_initializer()});
  Variable step = get_variable(h, "step", {}, {.dtype = DType::kInt64, .initializer = zeros_initializer()});
  Saver saver(h);
  Session s(h);
  s.run({}, {}, {&global_variables_initializer(h)});
  set(s, ref, {3, 4});
  saver.save(s, at("m"));
  Session t(h);
  saver.restore(t, at("m"));
  EXPECT_THAT(floats(t.run({ref.snapshot()})[0]), ElementsAre(3, 4));
  EXPECT_EQ(t.run({step.snapshot()})[0].item<int64_t>(), 0);
  EXPECT_EQ(floats(t.run({big.snapshot()})[0]), std::vector<float>(600000, 1));
}

// Case S08.
TEST_F(Restore, DamageIsDataLossNamesTheFileAndChangesNothing) {
  Saver saver(g);
  Session s(g);
  initialize(s);
  saver.save(s, at("m"), 1);
  set(s, v, {7, 7});
  saver.save(s, at("m"), 2);
  const std::string data = io::shard_path(at("m-2"), 0, 1), index = at("m-2.index");
  auto damaged = [&](const std::string& file, const std::function<void(std::string&)>& change) {
    const std::string good = io::read_file(file);
    std::string bad = good;
    change(bad);
    io::write_file_atomically(file, bad);
    set(s, v, {5, 5});
    try {
      saver.restore(s, at("m-2"));
      ADD_FAILURE() << "restored a damaged checkpoint";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kDataLoss) << e.what();
      EXPECT_THAT(e.message(), HasSubstr(file));
    }
    EXPECT_THAT(get(s, v), ElementsAre(5, 5));
    EXPECT_EQ(latest_whole_checkpoint(dir.string()), at("m-1"));
    io::write_file_atomically(file, good);
  };
  damaged(data, [](std::string& b) { b.pop_back(); });
  damaged(data, [](std::string& b) { b[3] = static_cast<char>(b[3] ^ 1); });
  damaged(index, [](std::string& b) { b.resize(10); });
  EXPECT_EQ(latest_whole_checkpoint(dir.string()), at("m-2"));
}

// Case S10.
TEST_F(Restore, AFullDiskKeepsTheLastCheckpointAndLeavesNothingBehind) {
  Variable big = get_variable(g, "big", {2 << 20}, {.initializer = zeros_initializer()});
  Saver small(g, {.variables = {{{"v", v}, {"w", w}}}});
  Saver all(g, {.name = "all"});
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  small.save(s, at("m"), 1);
  const std::vector<std::string> before = files();
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  rlimit limit = old;
  limit.rlim_cur = 1 << 20;
  setrlimit(RLIMIT_FSIZE, &limit);
  const std::string text = error_of([&] { all.save(s, at("m"), 2); });
  SaveHandle h = all.save_async(s, at("m"), 3);
  const std::string later = error_of([&] { h.wait(); });
  setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_THAT(text, AllOf(HasSubstr(at("m-2")), HasSubstr("File too large")));
  EXPECT_THAT(later, AllOf(HasSubstr(at("m-3")), HasSubstr("File too large")));
  EXPECT_EQ(files(), before);
  EXPECT_EQ(latest_checkpoint(dir.string()), at("m-1"));
  small.restore(s, at("m-1"));
  all.save(s, at("m"), 4);  // what went wrong was told already
}

TEST_F(Restore, AVanishedDirectoryIsNamed) {
  Saver saver(g);
  Session s(g);
  initialize(s);
  fs::create_directory(at("gone"));
  saver.save(s, at("gone/m"), 1);
  fs::remove_all(at("gone"));
  EXPECT_THAT(error_of([&] { saver.save(s, at("gone/m"), 2); }),
              HasSubstr("Parent directory of " + at("gone/m-2")));
  fs::create_directory(at("gone"));
  saver.save(s, at("gone/m"), 3);
  EXPECT_EQ(latest_checkpoint(at("gone")), at("gone/m-3"));
  EXPECT_THAT(saver.last_checkpoints(), ElementsAre(at("gone/m-3")));
}

// Runs f in a child and says whether it returned true; the child owns no threads.
bool in_child(const std::function<bool()>& f) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(f() ? 0 : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(Restore, ADirectoryThatCannotBeWrittenIsAClearError) {
  fs::create_directory(at("locked"));
  io::save_tensors(at("locked/m"), {"a"}, {}, {Array::scalar(1.0f)});
  fs::permissions(dir, fs::perms::all);
  fs::permissions(at("locked"), fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read |
                                    fs::perms::others_exec);
  EXPECT_TRUE(in_child([&] {
    if (::geteuid() == 0 && ::seteuid(65534) != 0) return false;
    try {
      io::save_tensors(at("locked/m"), {"a"}, {}, {Array::scalar(2.0f)});
      return false;
    } catch (const Error& e) {
      return e.code() == Code::kPermissionDenied && e.message().find(at("locked/m")) != std::string::npos;
    }
  }));
  fs::permissions(at("locked"), fs::perms::all);
  EXPECT_EQ(io::BundleReader(at("locked/m")).read("a").item<float>(), 1.0f);
}

TEST_F(Restore, TwoProcessesMayNotSaveToOneDirectory) {
  Session s(g);
  initialize(s);
  {
    Saver saver(g), second(g, {.name = "second"});
    saver.save(s, at("m"), 1);
    second.save(s, at("m"), 2);  // one process is one writer
    EXPECT_TRUE(in_child([&] {
      try {
        // A process of its own has a lock of its own: what the parent left open is not passed on by exec, and
        // here is opened anew.
        const int fd = ::open(dir.c_str(), O_RDONLY | O_DIRECTORY);
        return ::flock(fd, LOCK_EX | LOCK_NB) != 0;
      } catch (const Error&) {
        return false;
      }
    }));
  }
  // The other way round: another process holds it.
  int ready[2], done[2];
  ASSERT_EQ(::pipe(ready) | ::pipe(done), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const int fd = ::open(dir.c_str(), O_RDONLY | O_DIRECTORY);
    char c = ::flock(fd, LOCK_EX | LOCK_NB) == 0 ? 'y' : 'n';
    if (::write(ready[1], &c, 1) != 1 || ::read(done[0], &c, 1) != 1) ::_exit(1);
    ::_exit(0);
  }
  char c = 0;
  ASSERT_EQ(::read(ready[0], &c, 1), 1);
  ASSERT_EQ(c, 'y');
  Saver late(g, {.name = "late"});
  const std::string text = error_of([&] { late.save(s, at("m"), 3); });
  ASSERT_EQ(::write(done[1], "x", 1), 1);
  ::waitpid(child, nullptr, 0);
  EXPECT_THAT(text, AllOf(HasSubstr(dir.string()), HasSubstr("another process saves checkpoints")));
  EXPECT_EQ(latest_checkpoint(dir.string()), at("m-2"));
  EXPECT_THAT(checkpoints(), ElementsAre("m-1", "m-2"));
  late.save(s, at("m"), 3);
}

TEST_F(Restore, WhatKilledSavesLeftIsDeleted) {
  Session s(g);
  initialize(s);
  pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  ::waitpid(gone, nullptr, 0);
  const std::string mark = cat(".tempstate", static_cast<int64_t>(gone), "_0");
  for (const char* name : {"m-9.data-00000-of-00001", "m-9.index", "m-9.meta", "checkpoint", "notes"})
    std::ofstream(at(name + mark)) << "x";
  std::ofstream(at(cat("m-8.index.tempstate", static_cast<int64_t>(::getppid()), "_0"))) << "of a live one";
  Saver saver(g, {.write_meta_graph = false});
  saver.save(s, at("m"), 1);
  EXPECT_THAT(files(), ElementsAre("checkpoint", "m-1.data-00000-of-00001", "m-1.index",
                                   cat("m-8.index.tempstate", static_cast<int64_t>(::getppid()), "_0"),
                                   "notes" + mark));
}

TEST_F(Restore, BackgroundSavesHoldTheValuesOfTheirMoment) {
  Variable big = get_variable(g, "big", {1 << 20}, {.initializer = zeros_initializer()});
  Saver saver(g);
  Node& add = assign_add_op(big, constant(g, std::vector<float>(1 << 20, 1.0f)));
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  for (int k = 0; k < 3; ++k) {
    SaveHandle h = saver.save_async(s, at("m"), k);
    for (int i = 0; i < 5; ++i) s.run({}, {}, {&add});
    EXPECT_EQ(h.wait(), at(cat("m-", k)));
    EXPECT_TRUE(h.done());
    const Array saved = io::BundleReader(h.path()).read("big");
    EXPECT_EQ(floats(saved), std::vector<float>(1 << 20, 5.0f * static_cast<float>(k)));
  }
  EXPECT_EQ(latest_checkpoint(dir.string()), at("m-2"));
}

TEST_F(Restore, ABackgroundErrorThatNobodyAwaitedIsToldByTheNextSave) {
  Saver saver(g);
  Session s(g);
  initialize(s);
  fs::create_directories(at("m-1.index/in_the_way"));
  saver.save_async(s, at("m"), 1);
  EXPECT_THAT(error_of([&] { saver.save(s, at("m"), 2); }), HasSubstr(at("m-1")));
  EXPECT_EQ(saver.save(s, at("m"), 2), at("m-2"));
  SaveHandle none;
  EXPECT_THAT(error_of([&] { none.wait(); }), HasSubstr("no save to wait for"));
}

}  // namespace
}  // namespace sluice::dsl::train
