#pragma once
// Log lines for people, on stderr only: libraries print nothing on stdout. The level comes from SLUICE_LOG
// (debug, info, warning, error; default info) and may be changed at run time. Any thread; a line is written
// whole. Tests and embedders may take the lines with set_log_sink.

#include <functional>
#include <string>
#include <string_view>

#include "graph/support/cat.h"

namespace sluice {

enum class LogLevel : int { kDebug = 0, kInfo = 1, kWarning = 2, kError = 3 };

using LogSink = std::function<void(LogLevel, std::string_view)>;

/// Replaces the sink and returns the former one; an empty function restores stderr.
LogSink set_log_sink(LogSink sink);
LogLevel log_level();
void set_log_level(LogLevel level);
void log_line(LogLevel level, std::string_view text);

template <class... P>
void log_at(LogLevel level, const P&... parts) {
  if (level >= log_level()) log_line(level, cat(parts...));
}
template <class... P>
void log_debug(const P&... parts) {
  log_at(LogLevel::kDebug, parts...);
}
template <class... P>
void log_info(const P&... parts) {
  log_at(LogLevel::kInfo, parts...);
}
template <class... P>
void log_warning(const P&... parts) {
  log_at(LogLevel::kWarning, parts...);
}
template <class... P>
void log_error(const P&... parts) {
  log_at(LogLevel::kError, parts...);
}

}  // namespace sluice
