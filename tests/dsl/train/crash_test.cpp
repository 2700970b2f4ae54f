// Issue 4, "What must be shown" 4: a trainer killed at random moments, saves included, resumes each time,
// loses no completed checkpoint and ends where an undisturbed run ends, bit for bit. SLUICE_CRASH_KILLS says
// how often (20).
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <random>
#include <thread>

#include "runtime/io/file.h"
#include "tests/dsl/train/folder.h"

extern char** environ;

namespace sluice::dsl::train {
namespace {

using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

class Crash : public FolderTest {
 protected:
  // Starts the trainer; its output goes to `out`.
  pid_t start(const std::string& directory, const std::string& out) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    posix_spawn_file_actions_addopen(&actions, 2, at("errors").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    std::string program = CRASH_TRAINER, folder = directory, steps = "60";
    char* argv[] = {program.data(), folder.data(), steps.data(), nullptr};
    pid_t pid = 0;
    EXPECT_EQ(posix_spawn(&pid, CRASH_TRAINER, &actions, nullptr, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    return pid;
  }
  int wait(pid_t pid) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    return status;
  }
};

TEST_F(Crash, KilledTrainersLoseNothingAndEndWhereTheOthersEnd) {
  fs::create_directories(at("calm"));
  fs::create_directories(at("killed"));
  const auto before = Clock::now();
  ASSERT_EQ(wait(start(at("calm"), at("calm.out"))), 0) << runtime::io::read_file(at("errors"));
  const double whole = std::chrono::duration<double>(Clock::now() - before).count();
  const char* wanted = std::getenv("SLUICE_CRASH_KILLS");
  const int kills = wanted ? std::atoi(wanted) : 20;
  std::mt19937 random(20);
  int killed = 0, finished = 0;
  for (int k = 0; k < kills; ++k) {
    const pid_t pid = start(at("killed"), at("killed.out"));
    // Somewhere in a run from the start; moments near the end of a resumed run find it finished.
    const double moment = std::uniform_real_distribution<double>(0, whole)(random);
    std::this_thread::sleep_for(std::chrono::duration<double>(moment));
    ::kill(pid, SIGKILL);
    const int status = wait(pid);
    if (WIFSIGNALED(status)) {
      ++killed;
      continue;
    }
    ++finished;
    ASSERT_EQ(status, 0) << "a restart failed: " << runtime::io::read_file(at("errors"));
    ASSERT_EQ(runtime::io::read_file(at("killed.out")), runtime::io::read_file(at("calm.out")));
    fs::remove_all(at("killed"));
    fs::create_directories(at("killed"));
  }
  EXPECT_GT(killed, 0);
  RecordProperty("killed", killed);
  RecordProperty("finished", finished);
  ASSERT_EQ(wait(start(at("killed"), at("killed.out"))), 0) << runtime::io::read_file(at("errors"));
  EXPECT_EQ(runtime::io::read_file(at("killed.out")), runtime::io::read_file(at("calm.out")));
  EXPECT_THAT(runtime::io::read_file(at("calm.out")), HasSubstr("step 60 loss"));
  for (const std::string& f : files("killed")) EXPECT_EQ(f.find(".tempstate"), std::string::npos) << f;
}

}  // namespace
}  // namespace sluice::dsl::train
