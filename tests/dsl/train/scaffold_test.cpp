#include "dsl/train/scaffold.h"

#include "dsl/train/readiness.h"
#include "dsl/train/session_manager.h"
#include "runtime/local_master.h"
#include "tests/dsl/train/loop_util.h"

namespace sluice::dsl::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace keys = graph::keys;

class ScaffoldTest : public ::testing::Test {
 protected:
  Graph g;
  Variable v = get_variable(g, "v", {2}, {.initializer = ones_initializer()});
  VariableOptions local_options() {
    return {.initializer = ones_initializer(), .trainable = false, .collections = {keys::kLocalVariables}};
  }
  Variable local = get_variable(g, "local", {}, local_options());
  Scaffold* b_ = nullptr;
};

TEST_F(ScaffoldTest, FillsEachFieldAndItsCollection) {
  summary::scalar("s", constant(g, 1.0));
  Scaffold s;
  s.finalize(g);
  EXPECT_TRUE(s.init_op() && s.ready_op() && s.ready_for_local_init_op() && s.local_init_op() &&
              s.summary_op() && s.saver());
  for (const char* key :
       {keys::kInitOp, keys::kReadyOp, keys::kReadyForLocalInitOp, keys::kLocalInitOp, keys::kSummaryOp})
    EXPECT_EQ(g.collections().elements(key).size(), 1u) << key;
  EXPECT_THAT(savers(g), ElementsAre(s.saver()));
  EXPECT_TRUE(g.finalized());
}

TEST_F(ScaffoldTest, HasNoSummaryOpWithoutSummaries) {
  Scaffold s;
  s.finalize(g);
  EXPECT_FALSE(s.summary_op());
}

TEST_F(ScaffoldTest, TakesTheSingleElementOfACollection) {
  Node& mine = no_op(g, "mine");
  g.collections().add(keys::kInitOp, graph::GraphElement{&mine, -1});
  auto saver = std::make_shared<Saver>(g);
  savers(g).push_back(saver);
  Scaffold s;
  s.finalize(g);
  EXPECT_EQ(s.init_op(), &mine);
  EXPECT_EQ(s.saver(), saver);
}

TEST_F(ScaffoldTest, RefusesToChooseBetweenTwo) {
  for (const char* n : {"a", "b"}) g.collections().add(keys::kInitOp, graph::GraphElement{&no_op(g, n), -1});
  EXPECT_THAT(
      error_of([&] { Scaffold().finalize(g); }),
      AllOf(HasSubstr("More than one item in the collection \"init_op\". Please indicate which one to use"),
            HasSubstr("tf.Scaffold(init_op=item to use)")));
  for (int i = 0; i < 2; ++i) savers(g).push_back(std::make_shared<Saver>(g));
  EXPECT_THAT(error_of([&] { Scaffold(ScaffoldOptions{.init_op = &no_op(g)}).finalize(g); }),
              HasSubstr("More than one item in the collection \"savers\""));
}

TEST_F(ScaffoldTest, KeepsWhatTheAuthorGives) {
  Node& init = no_op(g, "my_init");
  Node& local_init = no_op(g, "my_local");
  Tensor ready = constant(g, std::vector<int32_t>{}), summary = constant(g, "text");
  Scaffold s({.init_op = &init,
              .ready_op = ready,
              .ready_for_local_init_op = ready,
              .local_init_op = &local_init,
              .summary_op = summary});
  s.finalize(g);
  EXPECT_EQ(s.init_op(), &init);
  EXPECT_EQ(s.ready_op(), ready);
  EXPECT_EQ(s.ready_for_local_init_op(), ready);
  EXPECT_EQ(s.local_init_op(), &local_init);
  EXPECT_EQ(s.summary_op(), summary);
  EXPECT_TRUE(g.collections().empty(keys::kInitOp));
}

TEST_F(ScaffoldTest, CopiesOnlyWhatIsLeftOut) {
  Node& one = no_op(g, "one");
  Node& two = no_op(g, "two");
  auto from = std::make_shared<Scaffold>(ScaffoldOptions{.init_op = &one,
                                                         .init_fn = [](Session&) {},
                                                         .local_init_op = &one,
                                                         .saver = std::make_shared<Saver>(g)});
  Scaffold s({.init_op = &two, .copy_from_scaffold = from});
  EXPECT_EQ(s.init_op(), &two);
  EXPECT_EQ(s.local_init_op(), &one);
  EXPECT_EQ(s.saver(), from->saver());
  EXPECT_TRUE(static_cast<bool>(s.init_fn()));
}

TEST_F(ScaffoldTest, FinalizeTwiceIsOnce) {
  Scaffold s;
  s.finalize(g);
  const int nodes = g.num_nodes();
  s.finalize(g);
  EXPECT_EQ(g.num_nodes(), nodes);
}

TEST_F(ScaffoldTest, TheReadyOpsNameWhatIsNotInitialised) {
  Scaffold s;
  s.finalize(g);
  Session session(g);
  auto names = [&](const Tensor& t) { return session.run({t})[0].string_values(); };
  EXPECT_THAT(names(s.ready_op()), ::testing::UnorderedElementsAre("v", "local"));
  EXPECT_THAT(names(s.ready_for_local_init_op()), ElementsAre("v"));
  session.run({}, {}, {s.init_op()});
  EXPECT_THAT(names(s.ready_for_local_init_op()), IsEmpty());
  EXPECT_THAT(names(s.ready_op()), ElementsAre("local"));
  session.run({}, {}, {s.local_init_op()});
  EXPECT_THAT(names(s.ready_op()), IsEmpty());
}

TEST_F(ScaffoldTest, TheDefaultSaverIsShardedAndMayBeEmpty) {
  Graph empty;
  Scaffold s;
  EXPECT_NO_THROW(s.finalize(empty));
  EXPECT_TRUE(s.saver()->options().sharded);
}

TEST_F(ScaffoldTest, InitFnTakesOneOrTwoArguments) {
  int one = 0, two = 0;
  auto a = std::make_shared<Scaffold>(ScaffoldOptions{.init_fn = [&](Session&) { ++one; }});
  auto b =
      std::make_shared<Scaffold>(ScaffoldOptions{.init_fn = [&](Scaffold& s, Session&) { two += &s == b_; }});
  b_ = b.get();
  chief(g, {.scaffold = a})->create_session();
  chief(g, {.scaffold = b})->create_session();
  EXPECT_EQ(one, 1);
  EXPECT_EQ(two, 1);
  EXPECT_FALSE(static_cast<bool>(ScaffoldInitFn(std::function<void(Session&)>())));  // nothing to restore
}

class Manager : public ScaffoldTest {
 protected:
  TempDir dir;
  Node& init = global_variables_initializer(g);
  Node& local_init = local_variables_initializer(g);
  Tensor not_ready = report({"w", "u"}), ready = report({});
  Tensor report(std::vector<std::string> names) {
    return constant(g, Literal({static_cast<int64_t>(names.size())}, names));
  }
  std::vector<float> value(Session& s) { return floats(s.run({v.snapshot()})[0]); }
};

TEST_F(Manager, InitialisesWhenThereIsNoCheckpoint) {
  Saver saver(g);
  SessionManager m(g, {.local_init_op = &local_init});
  auto s = m.prepare_session({.init_op = &init, .saver = &saver, .checkpoint_dir = dir.str()});
  EXPECT_THAT(value(*s), ElementsAre(1, 1));
  EXPECT_EQ(s->run({local.snapshot()})[0].item<float>(), 1);
}

TEST_F(Manager, InitFnRunsAfterInitOpAndBeforeLocalInit) {
  SessionManager m(g, {.local_init_op = &local_init});
  bool initialised = false, local_done = true;
  Tensor local_ok = is_variable_initialized(local);
  auto s = m.prepare_session({.init_op = &init, .init_fn = [&](Session& session) {
                                initialised = value(session) == std::vector<float>{1, 1};
                                local_done = session.run({local_ok})[0].item<bool>();
                              }});
  EXPECT_TRUE(initialised);
  EXPECT_FALSE(local_done);
}

TEST_F(Manager, FeedsTheInitOp) {
  Tensor x = placeholder(g, DType::kFloat, {2});
  Node& op = assign_op(v, x);
  auto s = SessionManager(g).prepare_session({.init_op = &op, .init_feed_dict = {{x, vec({3, 4})}}});
  EXPECT_THAT(value(*s), ElementsAre(3, 4));
}

TEST_F(Manager, RestoresTheLatestAndRunsNoInit) {
  Saver saver(g);
  Node& change = assign_op(v, constant(g, std::vector<float>{5, 6}));
  {
    Session s(g);
    s.run({}, {}, {&init});
    s.run({}, {}, {&change});
    saver.save(s, dir / "model.ckpt", 7);
  }
  Saver again(g, {.name = "again"});
  int calls = 0;
  auto s = SessionManager(g).prepare_session({.init_op = &init,
                                              .init_fn = [&](Session&) { ++calls; },
                                              .saver = &again,
                                              .checkpoint_dir = dir.str()});
  EXPECT_THAT(value(*s), ElementsAre(5, 6));
  EXPECT_EQ(calls, 0);
  EXPECT_THAT(again.last_checkpoints(), ElementsAre(HasSubstr("model.ckpt-7")));  // it goes on counting
  auto named = SessionManager(g).prepare_session(
      {.saver = &again, .checkpoint_filename_with_path = dir / "model.ckpt-7"});
  EXPECT_THAT(value(*named), ElementsAre(5, 6));
}

TEST_F(Manager, RefusesDirAndFileTogether) {
  Saver saver(g);
  EXPECT_THAT(error_of([&] {
                SessionManager(g).prepare_session({.init_op = &init,
                                                   .saver = &saver,
                                                   .checkpoint_dir = dir.str(),
                                                   .checkpoint_filename_with_path = "x"});
              }),
              HasSubstr("Can not provide both checkpoint_dir and checkpoint_filename_with_path."));
}

TEST_F(Manager, NeedsSomethingThatInitialises) {
  EXPECT_THAT(error_of([&] { SessionManager(g).prepare_session({}); }),
              HasSubstr("Model is not initialized and no init_op or init_fn or local_init_op was given"));
}

TEST_F(Manager, SaysWhenTheModelIsNotReady) {
  SessionManager m(g, {.ready_op = not_ready});
  EXPECT_THAT(error_of([&] { m.prepare_session({.init_op = &init}); }),
              AllOf(HasSubstr("Init operations did not make model ready.  Init op: init"),
                    HasSubstr("Variables not initialized: w, u")));
  SessionManager l(g, {.local_init_op = &local_init, .ready_for_local_init_op = not_ready});
  EXPECT_THAT(error_of([&] { l.prepare_session({.init_op = &init}); }),
              AllOf(HasSubstr("Init operations did not make model ready for local_init.  Init op: init"),
                    HasSubstr("Variables not initialized: w, u")));
}

TEST_F(Manager, AnInt32OrAnEmptyValueMeansReady) {
  for (const Tensor& t : {constant(g, std::vector<int32_t>{1, 2}), ready}) {
    EXPECT_NO_THROW(SessionManager(g, {.ready_op = t}).prepare_session({.init_op = &init}));
  }
}

TEST_F(Manager, AnUninitialisedVariableErrorMeansNotReady) {
  Variable other = get_variable(g, "other", {}, {.initializer = ones_initializer()});
  Node& only_v = variables_initializer(g, {v});
  SessionManager m(g, {.ready_op = other.snapshot()});
  EXPECT_THAT(error_of([&] { m.prepare_session({.init_op = &only_v}); }),
              HasSubstr("Init operations did not make model ready."));
}

TEST_F(Manager, WaitsForACheckpointWhenAskedTo) {
  ManualClock clock;
  Saver saver(g);
  SessionManager m(g, {.recovery_wait_secs = 30, .clock = &clock});
  LogCapture log;
  auto s = m.prepare_session({.init_op = &init,
                              .saver = &saver,
                              .checkpoint_dir = dir.str(),
                              .wait_for_checkpoint = true,
                              .max_wait_secs = 90});
  EXPECT_EQ(log.count("Waiting for checkpoint to be available."), 3);
  EXPECT_EQ(clock.now(), 90);
  EXPECT_THAT(value(*s), ElementsAre(1, 1));
}

TEST_F(Manager, RecoverSaysWhetherItDid) {
  Saver saver(g);
  EXPECT_FALSE(SessionManager(g).recover_session({.saver = &saver, .checkpoint_dir = dir.str()}).second);
  {
    Session s(g);
    s.run({}, {}, {&init});
    saver.save(s, dir / "model.ckpt", 1);
  }
  EXPECT_TRUE(SessionManager(g, {.ready_op = ready})
                  .recover_session({.saver = &saver, .checkpoint_dir = dir.str()})
                  .second);
  EXPECT_FALSE(SessionManager(g, {.ready_op = not_ready})
                   .recover_session({.saver = &saver, .checkpoint_dir = dir.str()})
                   .second);
}

TEST_F(Manager, AWorkerGivesUpAfterItsTime) {
  ManualClock clock;
  SessionManager m(g, {.ready_op = not_ready, .recovery_wait_secs = 30, .clock = &clock});
  LogCapture log;
  EXPECT_THAT(error_of([&] { m.wait_for_session("", {}, 100); }),
              HasSubstr("Session was not ready after waiting 100 secs."));
  EXPECT_EQ(clock.now(), 90);  // a fourth wait would pass the limit
  EXPECT_EQ(log.count("Waiting for model to be ready."), 3);
}

TEST_F(Manager, AWorkerFindsWhatTheChiefInitialised) {
  Session chief_session(g, {.resources = runtime::local_master("manager_test")});
  chief_session.run({}, {}, {&init});
  SessionManager m(g, {.ready_op = report_uninitialized_variables(g, global_variables(g))});
  auto s = m.wait_for_session("local:manager_test", {}, 10);
  EXPECT_THAT(value(*s), ElementsAre(1, 1));
}

TEST_F(Manager, OtherMastersAreNotThereYet) {
  EXPECT_THAT(
      error_of([&] { SessionManager(g).prepare_session({.master = "grpc://a:1", .init_op = &init}); }),
      AllOf(HasSubstr("grpc://a:1"), HasSubstr("local:NAME")));
}

}  // namespace
}  // namespace sluice::dsl::train
