#pragma once
// A host constant stored in a node: dtype, dims, elements in row-major order. Immutable after it is made and
// cheap to copy (the bytes are shared), so any thread may read it. Strings are held as a vector; every other
// type as raw little-endian bytes. Example: `Literal axes = Literal::vector<int32_t>({0, 1});`

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/dtype.h"
#include "graph/shape.h"
#include "graph/support/check.h"

namespace sluice::graph {

class Literal {
 public:
  Literal() = default;
  /// Takes the bytes as they are; their number must be elements × size (InvalidArgument otherwise).
  Literal(DType dtype, Dims dims, std::vector<std::byte> bytes);
  Literal(Dims dims, std::vector<std::string> strings);
  /// All elements zero (or empty strings).
  static Literal zeros(DType dtype, Dims dims);

  template <class T>
  static Literal scalar(T value) {
    return from<T>({}, std::span<const T>(&value, 1));
  }
  static Literal scalar(std::string value) { return Literal(Dims{}, {std::move(value)}); }
  static Literal scalar(const char* value) { return scalar(std::string(value)); }
  template <class T>
  static Literal vector(std::span<const T> values) {
    return from<T>({static_cast<int64_t>(values.size())}, values);
  }
  template <class T>
  static Literal vector(std::initializer_list<T> values) {
    return vector<T>(std::span<const T>(values.begin(), values.size()));
  }
  static Literal strings(std::vector<std::string> values) {
    Dims d{static_cast<int64_t>(values.size())};
    return Literal(std::move(d), std::move(values));
  }
  template <class T>
  static Literal from(Dims dims, std::span<const T> values) {
    std::vector<std::byte> bytes(values.size_bytes());
    if (!values.empty()) std::memcpy(bytes.data(), values.data(), values.size_bytes());
    return Literal(dtype_of<T>, std::move(dims), std::move(bytes));
  }

  explicit operator bool() const { return dtype_ != DType::kInvalid; }
  DType dtype() const { return dtype_; }
  const Dims& dims() const { return dims_; }
  Shape shape() const { return Shape(dims_); }
  int64_t elements() const { return elements_; }

  const std::byte* data() const { return bytes_ ? bytes_->data() : nullptr; }
  size_t size_bytes() const { return bytes_ ? bytes_->size() : 0; }
  /// Elements as T; T must be the dtype's C++ type (checked).
  template <class T>
  std::span<const T> as() const {
    SLUICE_CHECK(dtype_ == dtype_of<T>, "literal is ", dtype_, ", not ", dtype_of<T>);
    return {reinterpret_cast<const T*>(data()), static_cast<size_t>(elements_)};
  }
  const std::vector<std::string>& as_strings() const;
  /// Integer, bool or floating elements converted to int64 / double; throws for strings.
  std::vector<int64_t> to_int64s() const;
  std::vector<double> to_doubles() const;
  /// The same elements as another dtype (integer, bool and floating types).
  Literal cast(DType to) const;
  /// The same elements under other dims (their number must not change).
  Literal reshaped(Dims dims) const;

  bool operator==(const Literal& other) const;
  /// First elements for people: "float[2,3] {1, 2, 3, …}".
  std::string str(int max_elements = 8) const;

 private:
  DType dtype_ = DType::kInvalid;
  Dims dims_;
  int64_t elements_ = 0;
  std::shared_ptr<const std::vector<std::byte>> bytes_;  // shared: literals are copied with their node
  std::shared_ptr<const std::vector<std::string>> strings_;
};

void append(std::string& s, const Literal& literal);

}  // namespace sluice::graph
