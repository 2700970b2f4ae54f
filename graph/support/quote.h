#pragma once
// Text put between quotes so that it stays on one line and reads back as what it was.

#include <string>
#include <string_view>

namespace sluice {

/// "text" with quotes, backslashes and control characters escaped as in C (\n, \t, \x01). Bytes above 0x7e
/// stand as they are: names may be UTF-8. Any thread.
std::string quoted(std::string_view text);

}  // namespace sluice
