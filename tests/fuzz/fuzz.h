#pragma once
// What the entry points of this folder share. Each file fuzz_*.cpp defines LLVMFuzzerTestOneInput for one
// reader: it may throw nothing but what `swallow` takes, and must hold less than 64 MiB + 100 times the
// input. One thread.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "graph/support/check.h"
#include "graph/support/log.h"
#include "runtime/io/file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace sluice::fuzz {

inline std::string_view view(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Runs f; an Error is the right answer to damaged bytes, unless it says that the bug is ours.
template <class F>
void swallow(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    if (e.code() == Code::kInternal) throw;
  }
}

/// Ends the process when a rule of the reader does not hold.
void require(bool holds, const char* rule);

/// A path for a file of this process, in memory; `name` tells files of one input apart.
std::string scratch_path(const std::string& name);
/// Replaces the file without syncing it.
void write_scratch(const std::string& path, std::string_view bytes);

/// Warnings about damage would be most of what the fuzzing does.
inline void quiet() { set_log_level(LogLevel::kError); }

}  // namespace sluice::fuzz
