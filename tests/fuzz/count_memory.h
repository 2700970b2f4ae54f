#pragma once
// What the process holds by operator new, and the aligned buffers of Arrays. Any thread.

#include <cstddef>

namespace sluice::fuzz {

/// From here on the peak is counted anew.
void start_counting();
/// The most that was held at once beyond what was held then, plus every aligned buffer made since.
size_t peak_bytes();

}  // namespace sluice::fuzz
