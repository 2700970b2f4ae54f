#pragma once
// The command line. Reads argv into Params by the flag table; --help and --version are answered by the
// caller. Booleans: --name, --noname, --name=true|false|t|f|1|0; other flags: --name=value or --name value;
// the last of several wins. One thread.
//
//   CommandLine c = parse_command_line(argc, argv);

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tools/bench/params.h"

namespace sluice::bench {

struct CommandLine {
  Params params;
  std::set<std::string, std::less<>> given;  // names that stood on the command line
  bool help = false, version = false;
};

/// `arguments` without the program's name. Throws InvalidArgument: an unknown flag (with the nearest known
/// one), a stray positional, a value of the wrong type.
CommandLine parse_command_line(const std::vector<std::string>& arguments);

/// All flags by group, with type, default and help.
std::string help_text();

}  // namespace sluice::bench
