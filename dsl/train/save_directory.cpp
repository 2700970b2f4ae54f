#include "dsl/train/save_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <mutex>

#include "graph/support/check.h"
#include "graph/support/log.h"

namespace sluice::dsl::train {
namespace {

namespace fs = std::filesystem;

struct Hold {
  int fd = -1;
  ~Hold() {
    if (fd >= 0) ::close(fd);  // and with it the lock
  }
};

const fs::file_time_type kStart = fs::file_time_type::clock::now();

bool same_path(const std::string& a, const std::string& b) {
  auto whole = [](const std::string& p) {
    std::error_code why;
    const fs::path at = fs::absolute(p, why);
    const fs::path c = why ? fs::path() : fs::weakly_canonical(at, why);
    return why ? fs::path(p).lexically_normal() : c;
  };
  return whole(a) == whole(b);
}

// The process that wrote "<file>.tempstate<pid>_<n>"; 0 for other files.
pid_t writer_of(const std::string& file) {
  constexpr std::string_view kMark = ".tempstate";
  const size_t at = file.rfind(kMark);
  if (at == std::string::npos) return 0;
  const std::string stem = file.substr(0, at);
  const bool checkpoint = stem.ends_with(".index") || stem.ends_with(".meta") ||
                          stem.find(".data-") != std::string::npos || stem == "checkpoint";
  if (!checkpoint) return 0;
  int pid = 0;
  const char* from = file.data() + at + kMark.size();
  const auto r = std::from_chars(from, file.data() + file.size(), pid);
  return r.ec == std::errc() && r.ptr != file.data() + file.size() && *r.ptr == '_' ? pid : 0;
}

}  // namespace

std::string directory_of(const std::string& prefix) {
  std::string d = fs::path(prefix).parent_path().string();
  return d.empty() ? "." : d;
}

std::shared_ptr<void> hold_directory(const std::string& directory) {
  static std::mutex mutex;  // guards held
  static std::map<std::pair<dev_t, ino_t>, std::weak_ptr<Hold>> held;
  auto hold = std::make_shared<Hold>();
  hold->fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct stat info {};
  if (hold->fd < 0 || ::fstat(hold->fd, &info) != 0) return hold;  // writing will say what is wrong
  std::lock_guard lock(mutex);
  std::weak_ptr<Hold>& slot = held[{info.st_dev, info.st_ino}];
  if (auto ours = slot.lock()) return ours;
  if (::flock(hold->fd, LOCK_EX | LOCK_NB) != 0) {
    SLUICE_REQUIRE(errno != EWOULDBLOCK, Code::kFailedPrecondition, "'", directory,
                   "': another process saves checkpoints to this directory. Two writers would delete each "
                   "other's checkpoints: end the other one, or give each run a directory of its own.");
    log_debug(directory, ": cannot be locked; it is taken to have one writer");
  }
  slot = hold;
  return hold;
}

void remove_abandoned_files(const std::string& directory) {
  std::error_code ignored;
  std::vector<fs::path> old;
  for (const auto& f : fs::directory_iterator(directory, ignored)) {
    const pid_t pid = writer_of(f.path().filename().string());
    if (pid <= 0) continue;
    // A process may have the number of one that is gone: then the file is older than the process.
    const bool gone = pid == ::getpid() ? fs::last_write_time(f.path(), ignored) < kStart
                                        : ::kill(pid, 0) != 0 && errno == ESRCH;
    if (gone) old.push_back(f.path());
  }
  for (const fs::path& f : old) {
    log_info("Deleting ", f.string(), ", which a save that was cut off left behind");
    fs::remove(f, ignored);
  }
}

void SaveDirectory::enter(const std::string& directory, const KeepRules& rules, double now) {
  // Each time: the directory may have been deleted and made again.
  hold_ = hold_directory(directory);
  if (directory_ != directory || latest_filename_ != rules.latest_filename) {
    remove_abandoned_files(directory);
    // A list that was set by hand for this directory stays.
    const bool elsewhere = !directory_.empty();
    if (elsewhere) kept_.clear();
    directory_ = directory, latest_filename_ = rules.latest_filename;
    written_.reset();
    last_preserved_ = 0;
  }
  load(rules, now);
}

// Checkpoints of an earlier process, or of another saver of this one, count as well.
void SaveDirectory::load(const KeepRules& rules, double now) {
  auto state = get_checkpoint_state(directory_, rules.latest_filename);
  if (!state) std::erase_if(kept_, [](const auto& k) { return !checkpoint_exists(k.first); });
  if (!state || state == written_) return;
  const bool timed = state->timestamps.size() == state->all_model_checkpoint_paths.size();
  std::vector<std::pair<std::string, double>> all;
  for (size_t i = 0; i < state->all_model_checkpoint_paths.size(); ++i) {
    const std::string& path = state->all_model_checkpoint_paths[i];
    if (!checkpoint_exists(path)) continue;
    const std::vector<double> written =
        timed ? std::vector<double>{state->timestamps[i]} : get_checkpoint_mtimes({path});
    all.emplace_back(path, written.empty() ? now : written[0]);
  }
  // What this saver knows beyond the file goes behind, unless it is gone.
  for (const auto& [path, time] : kept_) {
    const bool known =
        std::any_of(all.begin(), all.end(), [&](const auto& k) { return same_path(k.first, path); });
    if (!known && !written_ && checkpoint_exists(path)) all.emplace_back(path, time);
  }
  kept_ = std::move(all);
  // A clock that went back must not keep everything, or nothing, until it has caught up.
  last_preserved_ = state->last_preserved_timestamp <= now ? state->last_preserved_timestamp : now;
  written_ = std::move(state);
}

void SaveDirectory::keep(const std::string& path, const KeepRules& rules, double now) {
  // Another saver of this process may have entered a checkpoint since enter().
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  load(rules, now);
  const double period = rules.every_n_hours * 3600;
  if (next_keep_ == 0) next_keep_ = (last_preserved_ > 0 ? last_preserved_ : built_) + period;
  std::erase_if(kept_, [&](const auto& k) { return same_path(k.first, path); });
  if (rules.max_to_keep <= 0) kept_.clear();  // all stay on the disk, the file lists the latest
  kept_.emplace_back(path, now);
  const auto former = kept_;
  const double former_next = next_keep_, former_preserved = last_preserved_;
  std::vector<std::string> old;
  while (rules.max_to_keep > 0 && kept_.size() > static_cast<size_t>(rules.max_to_keep)) {
    const auto [oldest, time] = kept_.front();
    kept_.erase(kept_.begin());
    if (time > next_keep_) {
      next_keep_ += period;
      last_preserved_ = time;
      continue;
    }
    old.push_back(oldest);
  }
  CheckpointState state;
  state.model_checkpoint_path = path;
  for (const auto& [p, time] : kept_) {
    state.all_model_checkpoint_paths.push_back(p);
    state.timestamps.push_back(time);
  }
  state.last_preserved_timestamp = last_preserved_;
  try {
    update_checkpoint_state(directory_, state, rules.latest_filename, rules.relative_paths);
  } catch (...) {  // nothing was deleted: the next save decides again
    kept_ = former, next_keep_ = former_next, last_preserved_ = former_preserved;
    throw;
  }
  written_ = get_checkpoint_state(directory_, rules.latest_filename);
  // Only now: were the order reversed, a crash could leave a state file that names deleted files.
  for (const std::string& p : old) remove_checkpoint(p, rules.meta_graph_suffix);
}

std::vector<std::string> SaveDirectory::paths() const {
  std::vector<std::string> out;
  for (const auto& [path, time] : kept_) out.push_back(path);
  return out;
}

}  // namespace sluice::dsl::train
