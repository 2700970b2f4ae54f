#pragma once
// The command line of one command: what it takes, its help, and what was given. Values are plain strings
// here; Boost stays in args.cpp. Wrong use is a UsageError, which ends the program with exit code 2. One
// thread.

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace sluice::tools {

/// The command line, or a path or file named on it, is wrong: exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Args {
 public:
  Args(std::string command, std::string summary);
  ~Args();

  Args& positional(const std::string& name, const std::string& help, bool repeated = false);
  Args& flag(const std::string& name, const std::string& help);
  Args& option(const std::string& name, const std::string& help, const std::string& fallback = {});
  /// May be given several times; order is kept.
  Args& repeated(const std::string& name, const std::string& help);

  /// False when the help was asked for (and printed on stdout). UsageError names a wrong flag, with near
  /// names.
  bool parse(const std::vector<std::string>& words);

  bool has(const std::string& name) const;
  std::string get(const std::string& name) const;
  /// UsageError when it was not given.
  std::string need(const std::string& name) const;
  std::vector<std::string> all(const std::string& name) const;
  /// All values of a repeated option, each split at commas.
  std::vector<std::string> list(const std::string& name) const;
  int64_t integer(const std::string& name) const;
  double number(const std::string& name) const;
  std::string help() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::tools
