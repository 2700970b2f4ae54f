#pragma once
// Near names for messages: "did you mean 'relu6'?". Pure; any thread.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

/// Edits (insert, delete, change, swap of neighbours) between two strings, ignoring case.
int edit_distance(std::string_view a, std::string_view b);
/// Up to `limit` candidates that look like `name`, best first.
std::vector<std::string> near_names(std::string_view name, std::span<const std::string> candidates,
                                    int limit = 3);
/// " Did you mean 'a' or 'b'?" or "".
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

}  // namespace sluice
