#pragma once
// What the lessons share: a check that says what failed, and a folder that goes away.

#include <stdlib.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>

/// Ends the lesson with exit code 1 when `condition` does not hold.
#define EXPECT_THAT_HERE(condition)                                                              \
  do {                                                                                           \
    if (!(condition)) {                                                                          \
      std::fprintf(stderr, "%s:%d: it does not hold that %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                                              \
    }                                                                                            \
  } while (0)

namespace lesson {

inline bool near(double a, double b, double tolerance) { return std::fabs(a - b) <= tolerance; }

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sluice_lesson_XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  operator const std::string&() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace lesson
