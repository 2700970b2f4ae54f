#pragma once
// Runs sluice-graph as a child process in a folder of its own. For tests; one thread.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "graph/support/file.h"
#include "tests/runtime/io_test_util.h"

namespace sluice::tools {

struct Result {
  int code = -1;
  std::string out, err;
  long peak_kib = 0;  // resident memory at its highest
};

class GraphProgram : public ::testing::Test {
 protected:
  /// `words` go through a shell.
  Result run(const std::string& words) {
    const std::string command =
        cat("cd ", folder_.str(), " && exec ", SLUICE_GRAPH_PROGRAM, " ", words, " >out 2>err");
    const pid_t child = ::fork();
    if (child == 0) {
      ::execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
      ::_exit(127);
    }
    int status = 0;
    struct rusage usage {};
    ::wait4(child, &status, 0, &usage);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(folder_ / "out"),
            read_file(folder_ / "err"), usage.ru_maxrss};
  }
  void write(const std::string& name, const std::string& bytes) {
    write_file_atomically(folder_ / name, bytes);
  }
  /// Wrong use: exit code, exactly one line on stderr, nothing on stdout.
  Result wrong(const std::string& words, const std::string& part, int code = 2) {
    Result r = run(words);
    EXPECT_EQ(r.code, code) << words << "\n" << r.err;
    EXPECT_NE(r.err.find(part), std::string::npos) << words << "\n" << r.err;
    EXPECT_EQ(r.out, "") << words;
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
    return r;
  }
  /// Names in the folder, what this class itself writes left out.
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& e : std::filesystem::directory_iterator(folder_.path()))
      if (e.path().filename() != "out" && e.path().filename() != "err")
        names.push_back(e.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

  runtime::io::TempFolder folder_;
};

}  // namespace sluice::tools
