#pragma once
// cat(a, b, …): the parts as one string. Numbers print as std::to_chars does (shortest form that reads back),
// bool as true/false; a type of ours joins in by a free function `void append(std::string&, const T&)` found
// by argument-dependent lookup. Pure; any thread.

#include <charconv>
#include <string>
#include <string_view>
#include <type_traits>

namespace sluice {

namespace cat_detail {

inline void append_one(std::string& s, std::string_view v) { s.append(v); }
inline void append_one(std::string& s, const char* v) { s.append(v ? v : "(null)"); }
inline void append_one(std::string& s, const std::string& v) { s.append(v); }
inline void append_one(std::string& s, char v) { s.push_back(v); }
inline void append_one(std::string& s, bool v) { s.append(v ? "true" : "false"); }

template <class T>
requires(std::is_arithmetic_v<T>) void append_one(std::string& s, T v) {
  char buf[64];
  auto r = std::to_chars(buf, buf + sizeof buf, v);
  s.append(buf, r.ptr);
}

template <class T>
requires(!std::is_arithmetic_v<T> &&
         !std::is_convertible_v<const T&, std::string_view>) void append_one(std::string& s, const T& v) {
  append(s, v);  // found by argument-dependent lookup
}

}  // namespace cat_detail

template <class... Parts>
std::string cat(const Parts&... parts) {
  std::string s;
  (cat_detail::append_one(s, parts), ...);
  return s;
}

}  // namespace sluice
