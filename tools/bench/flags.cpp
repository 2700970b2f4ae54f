#include "tools/bench/flags.h"

#include <algorithm>
#include <boost/program_options.hpp>
#include <sstream>

#include "graph/support/check.h"
#include "graph/support/near.h"
#include "tools/bench/flag_table.h"

namespace sluice::bench {

namespace po = boost::program_options;

namespace {

/// "--noname" of a boolean flag becomes (name, false); anything else is left to the library.
std::pair<std::string, std::string> negated(const std::string& token) {
  if (!token.starts_with("--no")) return {};
  std::string name = token.substr(4);
  const FlagSpec* flag = find_flag(name);
  if (flag == nullptr || !is_boolean(*flag)) return {};
  return {name, "false"};
}

po::options_description describe(FlagGroup group, unsigned width) {
  po::options_description d(std::string(group_title(group)), width, width / 2);
  const Params defaults;
  for (const FlagSpec& f : flag_table()) {
    if (f.group != group) continue;
    auto* value = po::value<std::string>()->value_name(std::string(type_name(f)));
    if (is_boolean(f)) value->implicit_value("true");
    std::string help =
        cat(f.help, " Default: ", value_text(f, defaults).empty() ? "''" : value_text(f, defaults));
    if (f.klass == FlagClass::kRefused) help += cat(". Not available: ", f.reason);
    if (f.klass == FlagClass::kNeutral) help += cat(". Changes nothing here: ", f.reason);
    d.add_options()(std::string(f.name).c_str(), value, help.c_str());
  }
  return d;
}

po::options_description describe_all(unsigned width) {
  po::options_description all(width, width / 2);
  for (int g = 0; g <= static_cast<int>(FlagGroup::kTool); ++g)
    all.add(describe(static_cast<FlagGroup>(g), width));
  po::options_description other("Help", width, width / 2);
  other.add_options()("help", "Print this text.")("version", "Print the version.");
  all.add(other);
  return all;
}

[[noreturn]] void refuse_unknown(const std::string& token) {
  const size_t start = std::min(token.find_first_not_of('-'), token.size());
  const std::string name = cat("--", token.substr(start, token.find('=', start) - start));
  std::vector<std::string> names;
  for (const FlagSpec& f : flag_table()) {
    names.push_back(cat("--", f.name));
    if (is_boolean(f)) names.push_back(cat("--no", f.name));
  }
  throw_error(Code::kInvalidArgument,
              cat("unknown flag ", name, ".", did_you_mean(name, names), " --help lists the flags."));
}

}  // namespace

CommandLine parse_command_line(const std::vector<std::string>& arguments) {
  // Two habits of the library are not the original's: it takes "--name=" for a mistake, where a string flag
  // means the empty string, and it lets a boolean flag swallow the word behind it.
  std::vector<std::string> tokens;
  for (const std::string& a : arguments) {
    const bool empty_value = a.starts_with("--") && a.ends_with("=");
    const FlagSpec* flag =
        a.starts_with("--") ? find_flag(std::string_view(a).substr(2, a.size() - 2 - (empty_value ? 1 : 0)))
                            : nullptr;
    if (flag != nullptr && empty_value && !is_boolean(*flag)) {
      tokens.push_back(a.substr(0, a.size() - 1));
      tokens.emplace_back();
    } else if (flag != nullptr && !empty_value && is_boolean(*flag)) {
      tokens.push_back(a + "=true");
    } else {
      tokens.push_back(a);
    }
  }
  using namespace po::command_line_style;
  const po::options_description all = describe_all(100);
  CommandLine line;
  try {
    po::parsed_options parsed = po::command_line_parser(tokens)
                                    .options(all)
                                    .style(allow_long | long_allow_adjacent | long_allow_next)
                                    .extra_parser(negated)
                                    .allow_unregistered()
                                    .run();
    std::string positional;
    for (const po::option& o : parsed.options) {
      if (o.position_key >= 0 || o.string_key.empty()) {
        std::string word = o.value.empty() ? "" : o.value[0];
        if (word.starts_with("-") && word.size() > 1) refuse_unknown(word);
        positional += cat(positional.empty() ? "'" : ", '", word, "'");
        continue;
      }
      if (o.unregistered) refuse_unknown(o.string_key);
      if (o.string_key == "help") {
        line.help = true;
      } else if (o.string_key == "version") {
        line.version = true;
      } else {
        const FlagSpec& flag = *find_flag(o.string_key);
        set_value(flag, o.value.empty() ? "" : o.value[0], line.params);
        line.given.emplace(flag.name);
      }
    }
    SLUICE_REQUIRE(positional.empty(), Code::kInvalidArgument, "Received unknown positional arguments: [",
                   positional, "]");
  } catch (const po::error& e) {
    throw_error(Code::kInvalidArgument, e.what());
  }
  return line;
}

std::string help_text() {
  std::ostringstream out;
  out << "sluice-bench: trains, times and evaluates convolutional networks.\n"
         "usage: sluice-bench [--flag=value | --flag value | --flag | --noflag]...\n\n"
      << describe_all(110);
  return out.str();
}

}  // namespace sluice::bench
