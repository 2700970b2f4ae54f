#pragma once
// The position of a pipeline as bytes: numbers, strings and elements in the order the iterators write them.
// The reader checks every length against what is left before it allocates; a state that does not fit is
// InvalidArgument. One thread each.

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

#include "runtime/data/dataset.h"

namespace sluice::runtime::data {

/// More elements than any pipeline gives.
inline constexpr int64_t kCountLimit = int64_t{1} << 60;

class StateWriter {
 public:
  void put(int64_t v);
  void put_u64(uint64_t v) { put(static_cast<int64_t>(v)); }
  void put_text(std::string_view text);
  void put_element(const Element& e);
  /// Code and text of an error that waits to be thrown; null: none.
  void put_error(const std::exception_ptr& error);
  void put_array(const Array& a);
  const std::string& bytes() const { return bytes_; }
  std::string release() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class StateReader {
 public:
  explicit StateReader(std::string_view bytes) : bytes_(bytes) {}
  int64_t get();
  uint64_t get_u64() { return static_cast<uint64_t>(get()); }
  /// A number in [low, high].
  int64_t get(int64_t low, int64_t high);
  std::string get_text();
  void get_element(Element& e);
  std::exception_ptr get_error();
  Array get_array();
  bool at_end() const { return bytes_.empty(); }
  [[noreturn]] static void fail(const char* what);

 private:
  std::string_view bytes(size_t n);
  std::string_view bytes_;
};

}  // namespace sluice::runtime::data
