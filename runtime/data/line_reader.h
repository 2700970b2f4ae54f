#pragma once
// A text file line by line, with a buffer of its own. One thread. Errors name the file.

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "runtime/io/file.h"

namespace sluice::runtime::data {

class LineReader {
 public:
  LineReader(const std::string& path, uint64_t offset, int64_t line)
      : file_(path), buffer_at_(offset), line_(line) {}

  /// The next line without its end ("\n" or "\r\n"; the last one may lack it); false at the end of the file.
  bool next(std::string* out) {
    out->clear();
    if (offset() >= file_.size()) return false;
    for (;;) {
      if (at_ == buffer_.size()) fill();
      if (at_ == buffer_.size()) break;
      const char* from = buffer_.data() + at_;
      const size_t rest = buffer_.size() - at_;
      if (const void* end = std::memchr(from, '\n', rest)) {
        const auto n = static_cast<size_t>(static_cast<const char*>(end) - from);
        out->append(from, n);
        at_ += n + 1;
        break;
      }
      out->append(from, rest);
      at_ += rest;
    }
    if (!out->empty() && out->back() == '\r') out->pop_back();
    ++line_;
    return true;
  }
  /// Of the next line.
  uint64_t offset() const { return buffer_at_ + at_; }
  int64_t line() const { return line_; }

 private:
  void fill() {
    buffer_at_ += buffer_.size();
    at_ = 0;
    const uint64_t left = file_.size() > buffer_at_ ? file_.size() - buffer_at_ : 0;
    buffer_.resize(static_cast<size_t>(std::min<uint64_t>(left, uint64_t{1} << 18)));
    if (!buffer_.empty()) file_.read(buffer_at_, buffer_.data(), buffer_.size());
  }

  io::RandomFile file_;
  std::string buffer_;
  size_t at_ = 0;
  uint64_t buffer_at_;
  int64_t line_;
};

}  // namespace sluice::runtime::data
