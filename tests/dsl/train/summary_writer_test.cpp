// FileWriter: what is in the file when, what a kill leaves, one writer a folder, resume.
#include "dsl/train/summary_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "dsl/dsl.h"
#include "graph/support/log.h"
#include "runtime/io/file.h"

namespace sluice::dsl::train {
namespace {

namespace fs = std::filesystem;
using runtime::io::event_files;
using runtime::io::EventsReader;
using runtime::io::scalar_summary;
using testing::ElementsAre;
using testing::HasSubstr;
using Kind = Event::Kind;

class SummaryWriter : public testing::Test {
 protected:
  SummaryWriter() {
    std::string t = fs::temp_directory_path() / "sluice_events_XXXXXX";
    dir_ = mkdtemp(t.data());
  }
  ~SummaryWriter() override {
    FileWriterCache::clear();
    fs::remove_all(dir_);
  }
  std::vector<Event> events() const {
    std::vector<Event> out;
    for (const std::string& path : event_files(dir_)) {
      EventsReader in(path);
      while (auto e = in.next()) out.push_back(*e);
    }
    return out;
  }
  std::vector<int64_t> steps() const {
    std::vector<int64_t> out;
    for (const Event& e : events())
      if (e.kind == Kind::kSummary) out.push_back(e.step);
    return out;
  }
  std::string dir_;
};

TEST_F(SummaryWriter, FlushPutsEverythingAddedIntoTheFileInOrder) {
  FileWriter w(dir_);
  for (int64_t i = 0; i < 100; ++i) w.add_summary(scalar_summary("loss", 1), i);
  w.flush();
  const auto all = events();
  ASSERT_EQ(all.size(), 101u);
  EXPECT_EQ(all[0].kind, Kind::kFileVersion);
  for (size_t i = 1; i < all.size(); ++i) {
    EXPECT_EQ(all[i].step, static_cast<int64_t>(i) - 1);
    EXPECT_GE(all[i].wall_time, all[i - 1].wall_time);
  }
}

// Case R04: what was flushed survives kill -9; what was not may be lost, and the file stays readable.
TEST_F(SummaryWriter, NothingFlushedIsLostByAKill) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    FileWriter w(dir_);
    for (int64_t i = 0; i < 10; ++i) w.add_summary(scalar_summary("loss", 1), i);
    w.flush();
    for (int64_t i = 10; i < 15; ++i) w.add_summary(scalar_summary("loss", 1), i);
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  const auto seen = steps();
  ASSERT_GE(seen.size(), 10u);
  for (size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], static_cast<int64_t>(i));
  EXPECT_EQ(events()[0].data, "brain.Event:2");
}

TEST_F(SummaryWriter, TheIntervalFlushesByItself) {
  FileWriter w(dir_, {.flush_secs = 0});
  w.add_summary(scalar_summary("loss", 1), 5);
  while (steps().empty()) std::this_thread::yield();  // ctest's limit ends a writer that never flushes
  EXPECT_THAT(steps(), ElementsAre(5));
}

TEST_F(SummaryWriter, MetadataStaysWithTheFirstValueOfATag) {
  Graph g;
  const Tensor words = summary::text("words", constant(g, "hi"));
  Session s(g);
  FileWriter w(dir_);
  for (int64_t i = 0; i < 3; ++i) w.add_summary(s.run({words})[0], i);
  w.close();
  std::vector<std::string> plugins;
  for (const Event& e : events())
    if (e.kind == Kind::kSummary)
      plugins.push_back(
          runtime::io::parse_summary_metadata(runtime::io::parse_summary(e.data)[0].metadata).plugin);
  EXPECT_THAT(plugins, ElementsAre("text", "", ""));
}

TEST_F(SummaryWriter, GraphMetaGraphRunMetadataAndSessionLog) {
  Graph g;
  const Tensor x = square(constant(g, 2.0), "x");
  g.collections().add("mine", graph::GraphElement{&x.node(), 0});
  Session s(g);
  RunMetadata m;
  s.run({x}, {}, {}, {.trace_level = runtime::TraceLevel::kFull}, &m);
  FileWriter w(dir_, {.graph = &g});
  w.add_run_metadata(m, "step_1", 1);
  EXPECT_THROW(w.add_run_metadata(m, "step_1", 2), Error);
  w.add_session_log({.status = SessionLog::Status::kStart}, 10);
  w.close();
  const auto all = events();
  ASSERT_EQ(all.size(), 5u);
  Graph back, meta_back;
  graph::graph_from_bytes(back, all[1].data);
  EXPECT_NE(back.find("x"), nullptr);
  graph::meta_graph_from_bytes(meta_back, all[2].data);
  EXPECT_FALSE(meta_back.collections().empty("mine"));
  EXPECT_EQ(all[3].tag, "step_1");
  EXPECT_FALSE(all[3].data.empty());
  EXPECT_EQ(all[4].session_log.status, SessionLog::Status::kStart);
  EXPECT_EQ(all[4].step, 10);
}

// Case R07: a resumed run's file begins with its version, then START at the step it goes on from.
TEST_F(SummaryWriter, AResumedRunBeginsANewFileWithStart) {
  for (int64_t start : {0, 10}) {
    FileWriter w(dir_);
    w.add_session_log({.status = SessionLog::Status::kStart}, start);
    for (int64_t i = start; i <= start + 15; i += 5) w.add_summary(scalar_summary("loss", 1), i);
  }
  const auto files = event_files(dir_);
  ASSERT_EQ(files.size(), 2u);
  for (const std::string& path : files) {
    EventsReader in(path);
    EXPECT_EQ(in.next()->kind, Kind::kFileVersion);
    EXPECT_EQ(in.next()->session_log.status, SessionLog::Status::kStart);
  }
  // A reader that purges: events beyond a START's step go.
  std::vector<int64_t> kept;
  for (const Event& e : events()) {
    if (e.kind == Kind::kSessionLog) std::erase_if(kept, [&](int64_t s) { return s >= e.step; });
    if (e.kind == Kind::kSummary) kept.push_back(e.step);
  }
  EXPECT_THAT(kept, ElementsAre(0, 5, 10, 15, 20, 25));
}

TEST_F(SummaryWriter, SeveralThreadsLoseNothingWithATinyQueue) {
  FileWriter w(dir_, {.max_queue = 1});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&w, t] {
      for (int64_t i = 0; i < 50; ++i) w.add_summary(scalar_summary(cat("t", t), 1), i);
      w.flush();
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(steps().size(), 200u);
}

TEST_F(SummaryWriter, AClosedOneWarnsAndReopensInANewFile) {
  std::vector<std::string> lines;
  FileWriter w(dir_);
  w.add_summary(scalar_summary("loss", 1), 1);
  w.close();
  w.close();
  EXPECT_TRUE(w.closed());
  const LogSink former = set_log_sink([&](LogLevel, std::string_view line) { lines.emplace_back(line); });
  w.add_summary(scalar_summary("loss", 1), 2);
  set_log_sink(former);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("Attempting to use a closed FileWriter"));
  w.reopen();
  w.add_summary(scalar_summary("loss", 1), 3);
  w.close();
  EXPECT_EQ(event_files(dir_).size(), 2u);
  EXPECT_THAT(steps(), ElementsAre(1, 3));
}

TEST_F(SummaryWriter, ADeletedFileIsToldByTheNextCall) {
  FileWriter w(dir_);
  fs::remove(w.path());
  w.add_summary(scalar_summary("loss", 1), 1);
  try {
    w.flush();
    ADD_FAILURE() << "the file is gone";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kNotFound);
    EXPECT_THAT(e.message(), HasSubstr("events are lost"));
  }
}

TEST_F(SummaryWriter, RefusesWhatIsNoSummaryAndBadOptions) {
  FileWriter w(dir_);
  EXPECT_THROW(w.add_summary("\xff\xff", 1), Error);
  EXPECT_THROW(w.add_summary(runtime::Array::scalar(1.0f), 1), Error);
  EXPECT_THROW(FileWriter(dir_, {.max_queue = 0}), Error);
  EXPECT_THROW(FileWriter(dir_, {.flush_secs = -1}), Error);
  runtime::io::write_file_atomically(dir_ + "/file", "x");
  EXPECT_THROW(FileWriter(dir_ + "/file/sub"), Error);
}

// Case S04: a colon is an ordinary character of a path.
TEST_F(SummaryWriter, AColonInTheFolderIsNoScheme) {
  FileWriter w(dir_ + "/a:b/logs");
  w.add_summary(scalar_summary("loss", 1), 1);
  w.close();
  EXPECT_EQ(event_files(dir_ + "/a:b/logs").size(), 1u);
}

TEST_F(SummaryWriter, TheCacheGivesOneWriterAFolder) {
  const auto a = FileWriterCache::get(dir_), b = FileWriterCache::get(dir_ + "/./");
  EXPECT_EQ(a, b);
  EXPECT_NE(a, FileWriterCache::get(dir_ + "/other"));
  a->add_summary(scalar_summary("loss", 1), 1);
  FileWriterCache::clear();
  EXPECT_THAT(steps(), ElementsAre(1));
  EXPECT_NE(a, FileWriterCache::get(dir_));
}

}  // namespace
}  // namespace sluice::dsl::train
