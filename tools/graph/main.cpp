// sluice-graph: looks at, changes and runs graph files. See commands.h for exit codes.
#include <csignal>
#include <iostream>
#include <new>

#include "graph/support/check.h"
#include "graph/support/near.h"
#include "graph/support/version.h"
#include "tools/graph/args.h"
#include "tools/graph/commands.h"

namespace {

using namespace sluice;
using namespace sluice::tools;

constexpr Command kCommands[] = {
    {"dump", "print or convert a graph file (text, pb, pbtxt, meta, dot, JSON)", run_dump},
    {"stats", "count nodes, ops, parameters, bytes", run_stats},
    {"prune", "keep only what some outputs need", run_prune},
    {"diff", "compare two graph files (exit 1 when they differ)", run_diff},
    {"check", "verify a graph file (exit 3 when it is damaged)", run_check},
    {"pass", "run one insertion pass: gradients, clipping, numeric checks", run_pass},
    {"explain", "show the plan that a run would use", run_explain},
    {"run", "run the graph: feed, fetch, train, save", run_run},
};

void usage(std::ostream& out) {
  out << "usage: sluice-graph COMMAND FILE [options]     (sluice-graph COMMAND --help tells more)\n\n";
  for (const Command& c : kCommands)
    out << "  " << c.name << std::string(10 - std::string_view(c.name).size(), ' ') << c.summary << '\n';
}

int dispatch(const std::vector<std::string>& words) {
  if (words.empty()) throw UsageError("which command? (sluice-graph --help lists them)");
  if (words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    usage(std::cout);
    return 0;
  }
  if (words[0] == "--version") {
    std::cout << "sluice-graph " << SLUICE_VERSION_STRING << '\n';
    return 0;
  }
  std::vector<std::string> names;
  for (const Command& c : kCommands) {
    if (words[0] == c.name) return c.run({words.begin() + 1, words.end()});
    names.push_back(c.name);
  }
  throw UsageError(cat("unknown command '", words[0], "'.", did_you_mean(words[0], names)));
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_DFL);
  int code = 1;
  try {
    code = dispatch({argv + 1, argv + argc});
  } catch (const UsageError& e) {
    std::cerr << "sluice-graph: " << e.what() << '\n';
    code = 2;
  } catch (const std::bad_alloc&) {
    std::cerr << "sluice-graph: out of memory\n";
  } catch (const std::exception& e) {
    std::cerr << "sluice-graph: " << e.what() << '\n';
  }
  std::cout.flush();
  if (!std::cout && code == 0) {
    std::cerr << "sluice-graph: writing to standard output failed\n";
    code = 1;
  }
  return code;
}
