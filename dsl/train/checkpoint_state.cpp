#include "dsl/train/checkpoint_state.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "graph/support/log.h"
#include "runtime/io/bundle.h"
#include "runtime/io/v1_tables.h"

namespace sluice::dsl::train {

namespace fs = std::filesystem;
namespace io = runtime::io;

std::optional<CheckpointState> get_checkpoint_state(const std::string& directory,
                                                    const std::string& latest_filename) {
  return io::read_checkpoint_state(directory, latest_filename);
}

void update_checkpoint_state(const std::string& directory, CheckpointState state,
                             const std::string& latest_filename, bool save_relative_paths) {
  SLUICE_REQUIRE(!latest_filename.empty() && latest_filename.find('/') == std::string::npos,
                 Code::kInvalidArgument,
                 "'latest_filename' must not contain path components: ", latest_filename);
  auto& all = state.all_model_checkpoint_paths;
  SLUICE_REQUIRE(state.timestamps.empty() || state.timestamps.size() == all.size(), Code::kInvalidArgument,
                 "Checkpoint timestamps, if provided, must match checkpoint paths (got paths ", all.size(),
                 " and timestamps ", state.timestamps.size(), ")");
  if (all.empty() || all.back() != state.model_checkpoint_path) {
    if (!state.timestamps.empty()) state.timestamps.push_back(state.timestamps.back());
    all.push_back(state.model_checkpoint_path);
  }
  SLUICE_REQUIRE(fs::path(state.model_checkpoint_path).lexically_normal() !=
                     (fs::path(directory) / latest_filename).lexically_normal(),
                 Code::kInvalidArgument, "Save path '", state.model_checkpoint_path,
                 "' conflicts with path used for checkpoint state.  Please use a different save path.");
  io::write_checkpoint_state(directory, state, latest_filename, save_relative_paths);
}

std::string latest_checkpoint(const std::string& directory, const std::string& latest_filename) {
  return io::latest_checkpoint(directory, latest_filename);
}

std::string latest_whole_checkpoint(const std::string& directory, const std::string& latest_filename) {
  const auto state = get_checkpoint_state(directory, latest_filename);
  if (!state) return {};
  std::vector<std::string> newest_first = state->all_model_checkpoint_paths;
  std::reverse(newest_first.begin(), newest_first.end());
  std::erase(newest_first, state->model_checkpoint_path);
  newest_first.insert(newest_first.begin(), state->model_checkpoint_path);
  for (const std::string& path : newest_first) {
    try {
      io::BundleReader(path).verify();
      return path;
    } catch (const Error& e) {
      log_warning("Passing over a checkpoint that cannot be read: ", e.what());
    }
  }
  return {};
}

bool checkpoint_exists(const std::string& prefix) { return io::checkpoint_exists(prefix); }

void remove_checkpoint(const std::string& prefix, const std::string& meta_graph_suffix) {
  io::remove_checkpoint_files(prefix);
  io::remove_checkpoint_files(prefix + ".resume");
  std::error_code why;
  fs::remove(prefix + "." + meta_graph_suffix, why);
  if (why) log_warning("Ignoring: ", prefix, ".", meta_graph_suffix, "; ", why.message());
}

std::vector<double> get_checkpoint_mtimes(const std::vector<std::string>& prefixes) {
  std::vector<double> out;
  for (const std::string& prefix : prefixes) {
    std::vector<std::string> files{prefix + ".index"};
    for (const std::string& f : io::v1_files(prefix)) files.push_back(f);
    for (const std::string& f : files) {
      struct stat info {};
      if (::stat(f.c_str(), &info) != 0) continue;
      out.push_back(static_cast<double>(info.st_mtim.tv_sec) +
                    static_cast<double>(info.st_mtim.tv_nsec) * 1e-9);
      break;
    }
  }
  return out;
}

}  // namespace sluice::dsl::train
