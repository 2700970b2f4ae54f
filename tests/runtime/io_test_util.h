#pragma once
// Bytes written as hexadecimal.

#include <gtest/gtest.h>

#include <string>

#include "graph/support/check.h"
#include "tests/support/temp_folder.h"

namespace sluice::runtime::io {

using testing_support::TempFolder;

/// Spaces are for the reader.
inline std::string from_hex(std::string_view hex) {
  std::string out;
  int high = -1;
  for (char c : hex) {
    if (c == ' ' || c == '\n') continue;
    const int v = c <= '9' ? c - '0' : c - 'a' + 10;
    if (high < 0) {
      high = v;
    } else {
      out.push_back(static_cast<char>(high * 16 + v));
      high = -1;
    }
  }
  return out;
}

inline std::string to_hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (unsigned char c : bytes) out += kDigits[c >> 4], out += kDigits[c & 15];
  return out;
}

/// Runs f; the code of the Error it throws, with its text; kOk when it throws none.
template <class F>
Code error_of(F&& f, std::string* text = nullptr) {
  try {
    f();
  } catch (const Error& e) {
    if (text) *text = e.message();
    return e.code();
  }
  return Code::kOk;
}

}  // namespace sluice::runtime::io
