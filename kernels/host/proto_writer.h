#pragma once
// The few protobuf encodings that summaries need, written by hand so that kernels stay free of the library.
// A value type.

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace sluice::kernels {

class ProtoWriter {
 public:
  void varint_field(int field, uint64_t v) {
    varint(static_cast<uint64_t>(field) << 3);
    varint(v);
  }
  void bytes_field(int field, std::string_view bytes) {
    varint(static_cast<uint64_t>(field) << 3 | 2);
    varint(bytes.size());
    text_.append(bytes);
  }
  void float_field(int field, float v) {
    varint(static_cast<uint64_t>(field) << 3 | 5);
    raw(&v, sizeof v);
  }
  void double_field(int field, double v) {
    varint(static_cast<uint64_t>(field) << 3 | 1);
    raw(&v, sizeof v);
  }
  void packed_doubles(int field, std::span<const double> v) {
    varint(static_cast<uint64_t>(field) << 3 | 2);
    varint(v.size_bytes());
    raw(v.data(), v.size_bytes());
  }
  const std::string& str() const { return text_; }
  std::string take() { return std::move(text_); }

 private:
  void varint(uint64_t v) {
    for (; v >= 128; v >>= 7) text_ += static_cast<char>(v | 128);
    text_ += static_cast<char>(v);
  }
  void raw(const void* p, size_t n) { text_.append(static_cast<const char*>(p), n); }

  std::string text_;
};

}  // namespace sluice::kernels
