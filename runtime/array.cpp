#include "runtime/array.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "graph/dtype_visit.h"

namespace sluice::runtime {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
std::atomic<int64_t> allocations{0};

}  // namespace

int64_t allocation_count() { return allocations.load(std::memory_order_relaxed); }

Buffer::Buffer(size_t bytes) : data_(nullptr), size_(bytes) {
  if (bytes == 0) return;
  // Large buffers sit on huge pages: a first touch in 4 KiB steps costs seconds a GiB on virtual machines.
  const size_t align = bytes >= kHugePage ? kHugePage : 64;
  const size_t rounded = (bytes + align - 1) / align * align;
  SLUICE_REQUIRE(rounded >= bytes, Code::kResourceExhausted, "Cannot allocate ", bytes, " bytes");
  data_ = std::aligned_alloc(align, rounded);
  SLUICE_REQUIRE(data_ != nullptr, Code::kResourceExhausted, "OOM when allocating a buffer of ", bytes,
                 " bytes");
  if (align == kHugePage) madvise(data_, rounded, MADV_HUGEPAGE);
  allocations.fetch_add(1, std::memory_order_relaxed);
}

Buffer::~Buffer() { std::free(data_); }

Array::Array(DType dtype, Dims dims)
    : dtype_(graph::base_dtype(dtype)), dims_(std::move(dims)), elements_(graph::num_elements(dims_)) {
  for (int64_t d : dims_)
    SLUICE_REQUIRE(d >= 0, Code::kInvalidArgument, "An array cannot have shape ", graph::dims_string(dims_));
  if (dtype_ == DType::kString) {
    strings_ = std::make_shared<std::vector<std::string>>(static_cast<size_t>(elements_));
    return;
  }
  int64_t bytes = 0;
  SLUICE_REQUIRE(!__builtin_mul_overflow(elements_, static_cast<int64_t>(graph::dtype_size(dtype_)), &bytes),
                 Code::kInvalidArgument, "An array of shape ", graph::dims_string(dims_), " is too large");
  buffer_ = std::make_shared<Buffer>(static_cast<size_t>(bytes));
}

Array Array::from_literal(const graph::Literal& literal) {
  if (literal.dtype() == DType::kString) return strings(literal.dims(), literal.as_strings());
  Array a(literal.dtype(), literal.dims());
  if (a.bytes()) std::memcpy(a.data(), literal.data(), a.bytes());
  return a;
}

graph::Literal Array::to_literal() const {
  if (dtype_ == DType::kString) return graph::Literal(dims_, *strings_);
  std::vector<std::byte> bytes(this->bytes());
  if (!bytes.empty()) std::memcpy(bytes.data(), data(), bytes.size());
  return graph::Literal(dtype_, dims_, std::move(bytes));
}

Array Array::strings(Dims dims, std::vector<std::string> values) {
  Array a;
  a.dtype_ = DType::kString;
  a.elements_ = graph::num_elements(dims);
  SLUICE_REQUIRE(static_cast<int64_t>(values.size()) == a.elements_, Code::kInvalidArgument, "Shape ",
                 graph::dims_string(dims), " needs ", a.elements_, " strings, got ", values.size());
  a.dims_ = std::move(dims);
  a.strings_ = std::make_shared<std::vector<std::string>>(std::move(values));
  return a;
}

Array Array::zeros(DType dtype, Dims dims) {
  Array a(dtype, std::move(dims));
  if (a.buffer_ && a.bytes()) std::memset(a.data(), 0, a.bytes());
  return a;
}

std::vector<std::string>& Array::string_values() {
  SLUICE_CHECK(strings_ != nullptr, "array is ", dtype_, ", not string");
  return *strings_;
}

const std::vector<std::string>& Array::string_values() const {
  SLUICE_CHECK(strings_ != nullptr, "array is ", dtype_, ", not string");
  return *strings_;
}

template <class T>
T Array::item() const {
  SLUICE_REQUIRE(elements_ == 1 && dtype_ != DType::kInvalid, Code::kInvalidArgument,
                 "item() needs one element, the array has shape ", graph::dims_string(dims_));
  return graph::visit_numeric(dtype_, "an array",
                              [&]<class S>(const S*) { return static_cast<T>(as<S>()[0]); });
}

template <>
std::string Array::item<std::string>() const {
  SLUICE_REQUIRE(elements_ == 1, Code::kInvalidArgument, "item() needs one element, the array has shape ",
                 graph::dims_string(dims_));
  return string_values()[0];
}

template float Array::item<float>() const;
template double Array::item<double>() const;
template int32_t Array::item<int32_t>() const;
template int64_t Array::item<int64_t>() const;
template uint8_t Array::item<uint8_t>() const;
template bool Array::item<bool>() const;

Array Array::clone() const {
  if (dtype_ == DType::kInvalid) return {};
  if (strings_) return strings(dims_, *strings_);
  Array a(dtype_, dims_);
  if (bytes()) std::memcpy(a.data(), data(), bytes());
  return a;
}

Array Array::reshaped(Dims dims) const {
  SLUICE_REQUIRE(graph::num_elements(dims) == elements_, Code::kInvalidArgument,
                 "Cannot reshape an array of shape ", graph::dims_string(dims_), " to ",
                 graph::dims_string(dims));
  Array a = *this;
  a.dims_ = std::move(dims);
  return a;
}

Array Array::cast(DType to) const {
  to = graph::base_dtype(to);
  if (to == dtype_) return *this;
  Array a(to, dims_);
  graph::visit_numeric(dtype_, "an array", [&]<class From>(const From*) {
    graph::visit_numeric(to, "an array", [&]<class To>(const To*) {
      auto out = a.as<To>();
      auto in = as<From>();
      for (size_t i = 0; i < in.size(); ++i) out[i] = static_cast<To>(in[i]);
    });
  });
  return a;
}

std::string Array::str(int max_elements) const {
  if (dtype_ == DType::kInvalid) return "<no value>";
  std::string s = cat(dtype_, graph::dims_string(dims_), " {");
  const int64_t n = std::min<int64_t>(elements_, max_elements);
  for (int64_t i = 0; i < n; ++i) {
    if (i) s += ", ";
    const auto k = static_cast<size_t>(i);
    if (strings_) {
      s += cat('"', (*strings_)[k], '"');
    } else if (graph::dtype_size(dtype_) == 0 || graph::is_complex(dtype_) || dtype_ == DType::kHalf ||
               dtype_ == DType::kBfloat16) {
      s += '?';
    } else {
      graph::visit_numeric(dtype_, "an array", [&]<class T>(const T*) {
        if constexpr (sizeof(T) == 1 && !std::is_same_v<T, bool>)
          s += cat(static_cast<int>(as<T>()[k]));
        else
          s += cat(as<T>()[k]);
      });
    }
  }
  if (elements_ > n) s += ", …";
  return s + "}";
}

}  // namespace sluice::runtime
