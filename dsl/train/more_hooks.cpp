#include "dsl/train/more_hooks.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "dsl/train/checkpoint_state.h"
#include "dsl/train/coordinator.h"
#include "dsl/train/hook_support.h"
#include "graph/support/file.h"
#include "graph/support/log.h"
#include "runtime/io/events.h"

namespace sluice::dsl::train {

namespace fs = std::filesystem;

namespace {

// "1:02:03", "4:05".
std::string duration_text(double seconds) {
  const auto total = static_cast<int64_t>(std::llround(std::max(0.0, seconds)));
  char text[48];
  if (total >= 3600) {
    std::snprintf(text, sizeof text, "%lld:%02d:%02d", static_cast<long long>(total / 3600),
                  static_cast<int>(total / 60 % 60), static_cast<int>(total % 60));
  } else {
    std::snprintf(text, sizeof text, "%d:%02d", static_cast<int>(total / 60), static_cast<int>(total % 60));
  }
  return text;
}

std::string fixed1(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", v);
  return text;
}

}  // namespace

ProgressHook::ProgressHook(ProgressOptions o)
    : o_(std::move(o)),
      terminal_(o_.terminal.value_or(isatty(STDERR_FILENO) == 1)),
      timer_(terminal_ ? o_.every : Every{.secs = o_.line_secs}) {
  if (!o_.out) {
    o_.out = [](std::string_view s) {
      std::fwrite(s.data(), 1, s.size(), stderr);
      std::fflush(stderr);
    };
  }
}

void ProgressHook::begin(const HookSetup& setup) {
  clock_ = &setup.clock;
  timer_.use(setup.clock);
  step_ = require_global_step_read(setup.graph, "ProgressHook");
  plain_.fetches = {step_};
  with_loss_.fetches = {step_};
  if (o_.loss) with_loss_.fetches.push_back(o_.loss);
}

void ProgressHook::after_create_session(Session& session, Coordinator&) {
  first_step_ = seen_step_ = read_step(session, step_);
  started_ = clock_->now();
  timer_.update(first_step_);
}

const SessionRunArgs* ProgressHook::before_run(SessionRunContext&) {
  due_ = timer_.should_trigger(seen_step_ + 1);
  return due_ ? &with_loss_ : &plain_;
}

void ProgressHook::after_run(SessionRunContext& context, const SessionRunValues& values) {
  seen_step_ = std::max(seen_step_ + 1, values[0].item<int64_t>());
  if (!due_) return;
  seen_step_ = read_step(context.session(), step_);
  timer_.update(seen_step_);
  show(seen_step_, values.size() > 1 ? &values[1] : nullptr);
}

void ProgressHook::end(Session& session) {
  const int64_t step = read_step(session, step_);
  show(step, nullptr);
  if (terminal_) o_.out("\n");
}

void ProgressHook::show(int64_t step, const Array* loss) {
  const double secs = clock_->now() - started_;
  const double rate = secs > 0 ? static_cast<double>(step - first_step_) / secs : 0;
  std::string line;
  if (o_.last_step && *o_.last_step > 0) {
    const double part = std::clamp(static_cast<double>(step) / static_cast<double>(*o_.last_step), 0.0, 1.0);
    if (terminal_) {
      constexpr int kWidth = 30;
      const int full = static_cast<int>(part * kWidth);
      line += '[';
      line.append(static_cast<size_t>(full), '=');
      if (full < kWidth) line += '>';
      line.append(static_cast<size_t>(std::max(0, kWidth - full - 1)), ' ');
      line += "]  ";
    }
    line += cat(terminal_ ? "" : "step ", step, "/", *o_.last_step, "  ", static_cast<int>(part * 100), "%");
  } else {
    line += cat("step ", step);
  }
  if (rate > 0) line += cat("  ", fixed1(rate), " steps/s");
  if (rate > 0 && o_.last_step && step < *o_.last_step) {
    line += cat("  ", duration_text(static_cast<double>(*o_.last_step - step) / rate), " left");
  }
  if (loss) line += cat("  loss ", value_text(*loss));
  if (!terminal_) {
    o_.out(line + "\n");
    return;
  }
  const size_t width = line.size();
  if (width < width_) line.append(width_ - width, ' ');
  width_ = width;
  o_.out("\r" + line);
}

EarlyStoppingHook::EarlyStoppingHook(EarlyStoppingOptions o) : o_(std::move(o)), timer_(o_.every) {
  SLUICE_REQUIRE(static_cast<bool>(o_.metric) != static_cast<bool>(o_.evaluate), Code::kInvalidArgument,
                 "EarlyStoppingHook needs exactly one of metric and evaluate");
  SLUICE_REQUIRE(o_.patience > 0, Code::kInvalidArgument,
                 "EarlyStoppingHook: patience must be positive, not ", o_.patience);
}

void EarlyStoppingHook::begin(const HookSetup& setup) {
  timer_.use(setup.clock);
  step_ = require_global_step_read(setup.graph, "EarlyStoppingHook");
  plain_.fetches = with_metric_.fetches = {step_};
  if (o_.metric) with_metric_.fetches.push_back(o_.metric);
}

const SessionRunArgs* EarlyStoppingHook::before_run(SessionRunContext&) {
  due_ = timer_.should_trigger(next_step_);
  return due_ ? &with_metric_ : &plain_;
}

void EarlyStoppingHook::after_run(SessionRunContext& context, const SessionRunValues& values) {
  next_step_ = values[0].item<int64_t>() + 2;
  if (!due_) return;
  const int64_t step = read_step(context.session(), step_);
  next_step_ = step + 1;
  timer_.update(step);
  const double v = o_.evaluate ? o_.evaluate(context.session(), step) : values[1].item<double>();
  const bool better =
      !std::isnan(v) &&
      (!best_ || (o_.higher_is_better ? v > *best_ + o_.min_delta : v < *best_ - o_.min_delta));
  if (better) {
    best_ = v;
    best_step_ = step;
    looks_ = 0;
    return;
  }
  if (++looks_ < o_.patience || step < o_.min_steps) return;
  log_info("No improvement in ", looks_, " looks; the best was ",
           best_ ? general(*best_) : std::string("none"), " at step ", best_step_,
           ". Training stops at step ", step, ".");
  stopped_ = true;
  context.request_stop();
}

BestCheckpointExporter::BestCheckpointExporter(BestCheckpointOptions o) : o_(std::move(o)) {
  SLUICE_REQUIRE(!o_.export_dir.empty() && o_.metric, Code::kInvalidArgument,
                 "BestCheckpointExporter needs an export_dir and a metric");
  std::ifstream in(o_.export_dir + "/best_metric");
  double v;
  if (in >> v) best_ = v;
}

bool BestCheckpointExporter::after_save(Session& session, int64_t step, const std::string& path) {
  const double v = o_.metric(session, step);
  if (std::isnan(v) || (best_ && !(o_.higher_is_better ? v > *best_ : v < *best_))) return false;
  fs::create_directories(o_.export_dir);
  const std::string name = fs::path(path).filename().string();
  const std::string target = (fs::path(o_.export_dir) / name).string();
  // The index comes last: without it a half-copied checkpoint is none.
  std::vector<fs::path> files;
  const fs::path from = fs::path(path).parent_path().empty() ? fs::path(".") : fs::path(path).parent_path();
  for (const auto& entry : fs::directory_iterator(from)) {
    const std::string file = entry.path().filename().string();
    if (file.rfind(name + ".", 0) == 0 && file.find(".tmp") == std::string::npos)
      files.push_back(entry.path());
  }
  std::stable_partition(files.begin(), files.end(),
                        [](const fs::path& f) { return f.extension() != ".index"; });
  for (const fs::path& f : files) {
    const fs::path to = fs::path(o_.export_dir) / f.filename();
    const fs::path temporary = to.string() + ".tmp";
    fs::copy_file(f, temporary, fs::copy_options::overwrite_existing);
    fs::rename(temporary, to);
  }
  CheckpointState state = get_checkpoint_state(o_.export_dir).value_or(CheckpointState{});
  auto& all = state.all_model_checkpoint_paths;
  all.erase(std::remove(all.begin(), all.end(), target), all.end());
  all.push_back(target);
  std::vector<std::string> old;
  while (o_.max_to_keep > 0 && all.size() > static_cast<size_t>(o_.max_to_keep)) {
    old.push_back(all.front());
    all.erase(all.begin());
  }
  state.model_checkpoint_path = target;
  state.timestamps.clear();
  update_checkpoint_state(o_.export_dir, state);
  write_file_atomically(o_.export_dir + "/best_metric", cat(v, "\n"));
  for (const std::string& p : old) remove_checkpoint(p);
  log_info("The best checkpoint so far (", general(v), ") is ", target);
  best_ = v;
  return false;
}

TimeLimitHook::TimeLimitHook(double seconds) : seconds_(seconds) {
  SLUICE_REQUIRE(seconds > 0, Code::kInvalidArgument, "TimeLimitHook: the limit must be positive, not ",
                 seconds);
}

void TimeLimitHook::begin(const HookSetup& setup) {
  clock_ = &setup.clock;
  started_ = clock_->now();
}

void TimeLimitHook::after_run(SessionRunContext& context, const SessionRunValues&) {
  if (clock_->now() - started_ < seconds_) return;
  log_info("The time limit of ", general(seconds_), " s is reached: training stops.");
  context.request_stop();
}

MemoryUse memory_use() {
  MemoryUse m;
  std::ifstream in("/proc/self/status");
  for (std::string word; in >> word;) {
    int64_t kib = 0;
    if (word == "VmRSS:" && in >> kib) m.now = kib * 1024;
    if (word == "VmHWM:" && in >> kib) m.peak = kib * 1024;
  }
  return m;
}

ResourceUsageHook::ResourceUsageHook(ResourceUsageOptions o) : o_(std::move(o)), timer_(o_.every) {}

void ResourceUsageHook::begin(const HookSetup& setup) {
  timer_.use(setup.clock);
  step_ = require_global_step_read(setup.graph, "ResourceUsageHook");
  args_.fetches = {step_};
  if (!writer_ && !o_.output_dir.empty()) writer_ = FileWriterCache::get(o_.output_dir);
}

void ResourceUsageHook::after_run(SessionRunContext& context, const SessionRunValues& values) {
  if (!timer_.should_trigger(values[0].item<int64_t>() + 1)) return;
  const int64_t step = read_step(context.session(), step_);
  if (!timer_.should_trigger(step)) return;
  const auto since = timer_.update(step);
  if (!since || since->secs <= 0) return;
  const double rate = static_cast<double>(since->steps) / since->secs;
  const MemoryUse memory = memory_use();
  constexpr double kMib = 1024.0 * 1024.0;
  std::string line = cat("step ", step, ": ", fixed1(rate), " steps/sec");
  if (o_.batch_size > 0)
    line += cat(", ", fixed1(rate * static_cast<double>(o_.batch_size)), " examples/sec");
  line += cat(", memory ", fixed1(static_cast<double>(memory.now) / kMib), " MiB (peak ",
              fixed1(static_cast<double>(memory.peak) / kMib), " MiB)");
  log_info(line);
  if (!writer_) return;
  auto write = [&](const char* tag, double v) {
    writer_->add_summary(runtime::io::scalar_summary(tag, static_cast<float>(v)), step);
  };
  write("usage/steps_per_sec", rate);
  if (o_.batch_size > 0) write("usage/examples_per_sec", rate * static_cast<double>(o_.batch_size));
  write("usage/memory_bytes", static_cast<double>(memory.now));
  write("usage/peak_memory_bytes", static_cast<double>(memory.peak));
}

}  // namespace sluice::dsl::train
