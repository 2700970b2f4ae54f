#pragma once
// The commands of sluice-graph. Each takes the words after its name and returns the exit code (decisions
// #17): 0 done, 1 the run failed, 2 wrong use, 3 damage found by `check`. Results go to stdout, everything
// else to stderr.

#include <string>
#include <vector>

namespace sluice::tools {

struct Command {
  const char* name;
  const char* summary;
  int (*run)(const std::vector<std::string>& words);
};

int run_check(const std::vector<std::string>& words);
int run_diff(const std::vector<std::string>& words);
int run_dump(const std::vector<std::string>& words);
int run_explain(const std::vector<std::string>& words);
int run_pass(const std::vector<std::string>& words);
int run_prune(const std::vector<std::string>& words);
int run_run(const std::vector<std::string>& words);
int run_stats(const std::vector<std::string>& words);

}  // namespace sluice::tools
