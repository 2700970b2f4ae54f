#pragma once
// What the saver's tests share: a folder of their own and a small model.

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dsl/train/saver.h"
#include "tests/passes/util.h"

namespace sluice::dsl::train {

namespace fs = std::filesystem;

class FolderTest : public ::testing::Test {
 protected:
  FolderTest() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    dir = fs::temp_directory_path() /
          cat("sluice_", info->test_suite_name(), "_", info->name(), "_", static_cast<int64_t>(::getpid()));
    fs::remove_all(dir);
    fs::create_directories(dir);
  }
  ~FolderTest() override { fs::remove_all(dir); }
  std::string at(const std::string& name) const { return (dir / name).string(); }
  /// File names, sorted.
  std::vector<std::string> files(const std::string& below = {}) const {
    std::vector<std::string> out;
    for (const auto& f : fs::directory_iterator(dir / below)) out.push_back(f.path().filename().string());
    std::sort(out.begin(), out.end());
    return out;
  }
  /// Names of checkpoints, sorted.
  std::vector<std::string> checkpoints(const std::string& below = {}) const {
    std::vector<std::string> out;
    for (const std::string& f : files(below))
      if (f.ends_with(".index")) out.push_back(f.substr(0, f.size() - 6));
    return out;
  }
  fs::path dir;
};

/// Two variables, 2 and 3 elements.
class SaverFolderTest : public FolderTest {
 protected:
  void initialize(Session& s) { s.run({}, {}, {init}); }
  void set(Session& s, const Variable& var, const std::vector<float>& values) {
    s.resources().find_variable(resource_key(var).first, resource_key(var).second)->assign(vec(values));
  }
  std::vector<float> get(Session& s, const Variable& var) { return floats(s.run({var.snapshot()})[0]); }
  Graph g;
  Variable v = get_variable(g, "v", {2}, {.initializer = ones_initializer()});
  Variable w = get_variable(g, "w", {3}, {.initializer = zeros_initializer()});
  Node* init = &global_variables_initializer(g);
};

}  // namespace sluice::dsl::train
