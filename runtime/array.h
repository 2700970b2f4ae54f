#pragma once
// A value: element type, dims and a reference-counted host buffer (64-byte aligned), always in row-major
// order. What sessions take and give. Copying an Array shares the buffer; `clone` copies it. Distinct Arrays
// may be used by distinct threads; a buffer that several share must not be written. Example: `Array x =
// Array::from<float>({2, 2}, {1, 2, 3, 4});  float first = x.as<float>()[0];`

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/literal.h"
#include "runtime/layout.h"

namespace sluice::runtime {

/// Owned aligned bytes; huge allocations are counted by `allocation_count()` as small ones are.
class Buffer {
 public:
  explicit Buffer(size_t bytes);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  void* data() { return data_; }
  const void* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  void* data_;
  size_t size_;
};

/// Buffers made by this process so far; tests of the steady path compare it.
int64_t allocation_count();

class Array {
 public:
  Array() = default;
  /// Uninitialised elements (empty strings for kString).
  Array(DType dtype, Dims dims);
  static Array from_literal(const graph::Literal& literal);
  graph::Literal to_literal() const;
  template <class T>
  static Array from(Dims dims, std::span<const T> values) {
    Array a(graph::dtype_of<T>, std::move(dims));
    SLUICE_REQUIRE(static_cast<int64_t>(values.size()) == a.elements(), Code::kInvalidArgument, "Shape ",
                   graph::dims_string(a.dims()), " needs ", a.elements(), " values, got ", values.size());
    std::copy(values.begin(), values.end(), a.as<T>().begin());
    return a;
  }
  template <class T>
  static Array from(Dims dims, std::initializer_list<T> values) {
    return from<T>(std::move(dims), std::span<const T>(values.begin(), values.size()));
  }
  template <class T>
  static Array scalar(T value) {
    return from<T>({}, std::span<const T>(&value, 1));
  }
  static Array strings(Dims dims, std::vector<std::string> values);
  static Array zeros(DType dtype, Dims dims);

  explicit operator bool() const { return dtype_ != DType::kInvalid; }
  DType dtype() const { return dtype_; }
  const Dims& dims() const { return dims_; }
  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t elements() const { return elements_; }
  size_t bytes() const { return static_cast<size_t>(elements_) * graph::dtype_size(dtype_); }
  void* data() { return buffer_ ? buffer_->data() : nullptr; }
  const void* data() const { return buffer_ ? buffer_->data() : nullptr; }
  template <class T>
  std::span<T> as() {
    SLUICE_CHECK(dtype_ == graph::dtype_of<T>, "array is ", dtype_, ", not ", graph::dtype_of<T>);
    return {static_cast<T*>(data()), static_cast<size_t>(elements_)};
  }
  template <class T>
  std::span<const T> as() const {
    SLUICE_CHECK(dtype_ == graph::dtype_of<T>, "array is ", dtype_, ", not ", graph::dtype_of<T>);
    return {static_cast<const T*>(data()), static_cast<size_t>(elements_)};
  }
  std::vector<std::string>& string_values();
  const std::vector<std::string>& string_values() const;
  /// The single element as T (converted from any numeric type).
  template <class T>
  T item() const;

  Array clone() const;
  /// Same elements, other dims; shares the buffer.
  Array reshaped(Dims dims) const;
  /// Converted elements.
  Array cast(DType to) const;
  /// True when no other Array shares the buffer.
  bool unique() const { return buffer_.use_count() <= 1 && strings_.use_count() <= 1; }
  std::string str(int max_elements = 8) const;

 private:
  DType dtype_ = DType::kInvalid;
  Dims dims_;
  int64_t elements_ = 0;
  std::shared_ptr<Buffer> buffer_;  // shared: fetched and fed values travel without copies
  std::shared_ptr<std::vector<std::string>> strings_;
};

}  // namespace sluice::runtime
