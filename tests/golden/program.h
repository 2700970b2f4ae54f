#pragma once
// Runs sluice-bench as a child process and keeps what it printed and how it ended. For tests; one thread.

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/temp_folder.h"

namespace sluice::bench::testing_support {

namespace fs = std::filesystem;

using sluice::testing_support::TempFolder;

inline std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Result {
  int code = -1;
  std::string out, err;
};

class Child {
 public:
  explicit Child(std::vector<std::string> arguments) {
    pid_ = ::fork();
    if (pid_ != 0) return;
    redirect(folder_ / "out", STDOUT_FILENO);
    redirect(folder_ / "err", STDERR_FILENO);
    std::vector<char*> argv;
    std::string program = SLUICE_BENCH_PROGRAM;
    argv.push_back(program.data());
    for (std::string& a : arguments) argv.push_back(a.data());
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  void signal(int number) const { ::kill(pid_, number); }
  std::string out() const { return read_text(folder_ / "out"); }
  Result wait() const {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), out(), read_text(folder_ / "err")};
  }

 private:
  static void redirect(const std::string& path, int fd) {
    int file = ::open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
    ::dup2(file, fd);
    ::close(file);
  }
  TempFolder folder_;
  pid_t pid_;
};

inline Result run_bench(std::vector<std::string> arguments) { return Child(std::move(arguments)).wait(); }

/// Figures become '#': the version, and every decimal number on a line of speeds or accuracies.
inline std::string mask(const std::string& text) {
  std::istringstream in(text);
  std::string masked;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("TensorFlow:  ")) line = "TensorFlow:  #";
    if (line.find("images/sec") != std::string::npos || line.find("Accuracy @") != std::string::npos)
      line = std::regex_replace(line, std::regex("-?([0-9]+\\.[0-9]+|nan|inf)"), "#");
    masked += line + "\n";
  }
  return masked;
}

}  // namespace sluice::bench::testing_support
