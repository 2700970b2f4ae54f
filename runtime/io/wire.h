#pragma once
// The wire form of protocol buffers for the few messages that are read and written without generated code:
// summaries, events, examples of a step. A WireWriter appends fields to a string; a WireReader walks the
// fields of a message and hands out views into it, so nothing is ever allocated by what a length claims.
// Values; one thread each.
//
//   WireReader in(bytes);
//   for (WireField f; in.next(&f);)
//     if (f.is_bytes(1)) tag = f.bytes;
//   if (!in.sound()) …

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "runtime/io/varint.h"

namespace sluice::runtime::io {

enum class WireType : int { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct WireField {
  int number = 0;
  WireType type = WireType::kVarint;
  uint64_t value = 0;      // of kVarint, kFixed64, kFixed32
  std::string_view bytes;  // of kBytes
  std::string_view raw;    // the whole field, key included

  bool is(int n, WireType t) const { return number == n && type == t; }
  bool is_bytes(int n) const { return is(n, WireType::kBytes); }
  bool is_varint(int n) const { return is(n, WireType::kVarint); }
  double as_double() const {
    double d;
    std::memcpy(&d, &value, sizeof d);
    return d;
  }
  float as_float() const {
    const auto bits = static_cast<uint32_t>(value);
    float f;
    std::memcpy(&f, &bits, sizeof f);
    return f;
  }
};

class WireReader {
 public:
  explicit WireReader(std::string_view message) : rest_(message) {}

  /// False at the end, and at a field that is cut off or of an unknown type (then sound() is false).
  bool next(WireField* f) {
    if (rest_.empty() || !sound_) return false;
    const std::string_view start = rest_;
    uint64_t key;
    sound_ =
        get_varint(&rest_, &key) && key >> 3 != 0 && key >> 3 < (uint64_t{1} << 29) && read_value(key, f);
    if (!sound_) return false;
    f->number = static_cast<int>(key >> 3);
    f->raw = start.substr(0, start.size() - rest_.size());
    return true;
  }
  bool sound() const { return sound_; }

 private:
  bool read_value(uint64_t key, WireField* f) {
    f->type = static_cast<WireType>(key & 7);
    f->value = 0;
    f->bytes = {};
    switch (key & 7) {
      case 0:
        return get_varint(&rest_, &f->value);
      case 1:
        return fixed(8, f);
      case 2: {
        uint64_t n;
        if (!get_varint(&rest_, &n) || n > rest_.size()) return false;
        f->bytes = rest_.substr(0, n);
        rest_.remove_prefix(n);
        return true;
      }
      case 5:
        return fixed(4, f);
      default:
        return false;
    }
  }
  bool fixed(size_t bytes, WireField* f) {
    if (rest_.size() < bytes) return false;
    std::memcpy(&f->value, rest_.data(), bytes);
    rest_.remove_prefix(bytes);
    return true;
  }

  std::string_view rest_;
  bool sound_ = true;
};

class WireWriter {
 public:
  void varint_field(int field, uint64_t v) {
    put_varint(&text_, static_cast<uint64_t>(field) << 3);
    put_varint(&text_, v);
  }
  void bytes_field(int field, std::string_view bytes) {
    put_varint(&text_, static_cast<uint64_t>(field) << 3 | 2);
    put_varint(&text_, bytes.size());
    text_.append(bytes);
  }
  /// As proto3 writes a string: nothing when it is empty.
  void text_field(int field, std::string_view text) {
    if (!text.empty()) bytes_field(field, text);
  }
  void float_field(int field, float v) {
    put_varint(&text_, static_cast<uint64_t>(field) << 3 | 5);
    raw(&v, sizeof v);
  }
  void double_field(int field, double v) {
    put_varint(&text_, static_cast<uint64_t>(field) << 3 | 1);
    raw(&v, sizeof v);
  }
  void packed_doubles(int field, std::span<const double> v) {
    put_varint(&text_, static_cast<uint64_t>(field) << 3 | 2);
    put_varint(&text_, v.size_bytes());
    raw(v.data(), v.size_bytes());
  }
  /// Fields that are written already.
  void append(std::string_view fields) { text_.append(fields); }
  const std::string& str() const { return text_; }
  std::string take() { return std::move(text_); }

 private:
  void raw(const void* p, size_t n) { text_.append(static_cast<const char*>(p), n); }

  std::string text_;
};

}  // namespace sluice::runtime::io
