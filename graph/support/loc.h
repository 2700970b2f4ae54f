#pragma once
// Where in the author's source a node was made. Cheap to copy; `file` must outlive the process's use of it,
// so it is either a string literal (the compiler's __builtin_FILE) or null for nodes read from a file.
// Example: `Tensor relu(Tensor x, Loc loc = Loc::current());`

#include <string>

namespace sluice {

struct Loc {
  const char* file = nullptr;
  int line = 0;

  /// The place of the call that omitted this default argument.
  static constexpr Loc current(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
  bool known() const { return file != nullptr; }
  /// "dir/file.cpp:12", or "" when unknown.
  std::string str() const { return known() ? std::string(file) + ":" + std::to_string(line) : std::string(); }
};

}  // namespace sluice
