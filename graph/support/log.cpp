#include "graph/support/log.h"

#include <atomic>
#include <cstdlib>
#include <mutex>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace sluice {
namespace {

LogLevel level_from_environment() {
  const char* v = std::getenv("SLUICE_LOG");
  const std::string_view s = v ? v : "";
  if (s == "debug") return LogLevel::kDebug;
  if (s == "warning") return LogLevel::kWarning;
  if (s == "error") return LogLevel::kError;
  return LogLevel::kInfo;
}

struct LogState {
  std::atomic<int> level{static_cast<int>(level_from_environment())};
  std::mutex mutex;  // guards sink
  LogSink sink;
  std::shared_ptr<spdlog::logger> logger;

  LogState() {
    logger =
        std::make_shared<spdlog::logger>("sluice", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    logger->set_level(spdlog::level::trace);
    logger->set_pattern("%^%l%$: %v");
  }
};

LogState& state() {
  static LogState s;
  return s;
}

}  // namespace

LogSink set_log_sink(LogSink sink) {
  std::lock_guard lock(state().mutex);
  std::swap(state().sink, sink);
  return sink;
}

LogLevel log_level() { return static_cast<LogLevel>(state().level.load(std::memory_order_relaxed)); }
void set_log_level(LogLevel level) {
  state().level.store(static_cast<int>(level), std::memory_order_relaxed);
}

void log_line(LogLevel level, std::string_view text) {
  LogState& s = state();
  std::lock_guard lock(s.mutex);
  if (s.sink) return s.sink(level, text);
  static constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info,
                                                          spdlog::level::warn, spdlog::level::err};
  s.logger->log(kLevels[static_cast<int>(level)], spdlog::string_view_t(text.data(), text.size()));
}

}  // namespace sluice
