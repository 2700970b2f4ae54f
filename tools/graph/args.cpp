#include "tools/graph/args.h"

#include <boost/program_options.hpp>
#include <charconv>
#include <iostream>
#include <sstream>

#include "graph/support/cat.h"
#include "graph/support/near.h"

namespace sluice::tools {

namespace po = boost::program_options;

struct Args::Impl {
  std::string command, summary, usage;
  po::options_description visible{"options"}, hidden;
  po::positional_options_description order;
  std::vector<std::string> names;  // of visible options, for near matches
  po::variables_map values;
};

Args::Args(std::string command, std::string summary) : impl_(std::make_unique<Impl>()) {
  impl_->command = std::move(command);
  impl_->summary = std::move(summary);
  flag("help", "print this");
  flag("json", "print JSON");
}
Args::~Args() = default;

Args& Args::positional(const std::string& name, const std::string& help, bool repeated) {
  impl_->hidden.add_options()(name.c_str(), po::value<std::vector<std::string>>(), help.c_str());
  impl_->order.add(name.c_str(), repeated ? -1 : 1);
  impl_->usage += cat(" ", name, repeated ? "…" : "");
  return *this;
}

Args& Args::flag(const std::string& name, const std::string& help) {
  impl_->visible.add_options()(name.c_str(), help.c_str());
  impl_->names.push_back(name);
  return *this;
}

Args& Args::option(const std::string& name, const std::string& help, const std::string& fallback) {
  auto* value = po::value<std::string>();
  if (!fallback.empty()) value->default_value(fallback);
  impl_->visible.add_options()(name.c_str(), value, help.c_str());
  impl_->names.push_back(name);
  return *this;
}

Args& Args::repeated(const std::string& name, const std::string& help) {
  impl_->visible.add_options()(name.c_str(), po::value<std::vector<std::string>>(), help.c_str());
  impl_->names.push_back(name);
  return *this;
}

bool Args::parse(const std::vector<std::string>& words) {
  po::options_description all;
  all.add(impl_->visible).add(impl_->hidden);
  try {
    // Guessing abbreviations would make a later flag's arrival change what a script means.
    const auto style = po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
    po::store(po::command_line_parser(words).options(all).positional(impl_->order).style(style).run(),
              impl_->values);
    po::notify(impl_->values);
  } catch (const po::unknown_option& e) {
    std::string name = e.get_option_name();
    name.erase(0, name.find_first_not_of('-'));
    throw UsageError(cat("unknown option '", e.get_option_name(), "'.", did_you_mean(name, impl_->names)));
  } catch (const po::too_many_positional_options_error&) {
    throw UsageError(
        cat("too many arguments; usage: sluice-graph ", impl_->command, impl_->usage, " [options]"));
  } catch (const po::error& e) {
    throw UsageError(e.what());
  }
  if (!has("help")) return true;
  std::cout << help();
  return false;
}

std::string Args::help() const {
  std::ostringstream s;
  s << "usage: sluice-graph " << impl_->command << impl_->usage << " [options]\n\n"
    << impl_->summary << "\n\n"
    << impl_->visible;
  return s.str();
}

bool Args::has(const std::string& name) const { return impl_->values.count(name) > 0; }

std::vector<std::string> Args::all(const std::string& name) const {
  if (!has(name)) return {};
  return impl_->values[name].as<std::vector<std::string>>();
}

std::string Args::get(const std::string& name) const {
  if (!has(name)) return {};
  const boost::any& value = impl_->values[name].value();
  if (const auto* list = boost::any_cast<std::vector<std::string>>(&value)) return list->at(0);
  return boost::any_cast<std::string>(value);
}

std::string Args::need(const std::string& name) const {
  if (!has(name))
    throw UsageError(
        cat(name, " is missing; usage: sluice-graph ", impl_->command, impl_->usage, " [options]"));
  return get(name);
}

std::vector<std::string> Args::list(const std::string& name) const {
  std::vector<std::string> out;
  for (const std::string& value : all(name)) {
    std::istringstream parts(value);
    for (std::string part; std::getline(parts, part, ',');)
      if (!part.empty()) out.push_back(part);
  }
  return out;
}

int64_t Args::integer(const std::string& name) const {
  const std::string text = need(name);
  int64_t v = 0;
  const auto r = std::from_chars(text.data(), text.data() + text.size(), v);
  if (r.ec != std::errc() || r.ptr != text.data() + text.size())
    throw UsageError(cat("--", name, " takes a whole number, not '", text, "'"));
  return v;
}

double Args::number(const std::string& name) const {
  const std::string text = need(name);
  double v = 0;
  const auto r = std::from_chars(text.data(), text.data() + text.size(), v);
  if (r.ec != std::errc() || r.ptr != text.data() + text.size())
    throw UsageError(cat("--", name, " takes a number, not '", text, "'"));
  return v;
}

}  // namespace sluice::tools
