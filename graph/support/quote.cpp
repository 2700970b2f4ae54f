#include "graph/support/quote.h"

namespace sluice {

std::string quoted(std::string_view text) {
  constexpr const char* kHex = "0123456789abcdef";
  std::string s = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    switch (c) {
      case '"':
      case '\\':
        s += '\\';
        s += c;
        break;
      case '\n':
        s += "\\n";
        break;
      case '\t':
        s += "\\t";
        break;
      case '\r':
        s += "\\r";
        break;
      default:
        if (byte >= 0x20 && byte != 0x7f) {
          s += c;
        } else {
          s += "\\x";
          s += kHex[byte >> 4];
          s += kHex[byte & 15];
        }
    }
  }
  return s + '"';
}

}  // namespace sluice
