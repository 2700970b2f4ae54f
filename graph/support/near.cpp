#include "graph/support/near.h"

#include <algorithm>
#include <cctype>

#include "graph/support/cat.h"

namespace sluice {

int edit_distance(std::string_view a, std::string_view b) {
  auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  const size_t w = b.size() + 1;
  std::vector<int> before(w), last(w), now(w);
  for (size_t j = 0; j < w; ++j) last[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    now[0] = static_cast<int>(i);
    for (size_t j = 1; j < w; ++j) {
      const int change = last[j - 1] + (lower(a[i - 1]) != lower(b[j - 1]));
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, change});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]))
        now[j] = std::min(now[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, now);
  }
  return last[w - 1];
}

std::vector<std::string> near_names(std::string_view name, std::span<const std::string> candidates,
                                    int limit) {
  std::vector<std::pair<int, std::string_view>> scored;
  const int bound = std::max<int>(2, static_cast<int>(name.size()) / 3);
  for (const std::string& c : candidates) {
    const size_t longer = std::max(c.size(), name.size()), shorter = std::min(c.size(), name.size());
    if (longer - shorter > static_cast<size_t>(bound)) continue;
    const int d = edit_distance(name, c);
    if (d <= bound) scored.emplace_back(d, c);
  }
  std::stable_sort(scored.begin(), scored.end(),
                   [](const auto& x, const auto& y) { return x.first < y.first; });
  std::vector<std::string> out;
  for (const auto& [d, c] : scored) {
    if (static_cast<int>(out.size()) == limit) break;
    out.emplace_back(c);
  }
  return out;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> candidates) {
  const auto near = near_names(name, candidates);
  if (near.empty()) return {};
  std::string s = " Did you mean ";
  for (size_t i = 0; i < near.size(); ++i)
    s += cat(i ? (i + 1 == near.size() ? " or " : ", ") : "", "'", near[i], "'");
  return s + "?";
}

}  // namespace sluice
