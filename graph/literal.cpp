#include "graph/literal.h"

#include "graph/dtype_visit.h"
#include "graph/support/quote.h"

namespace sluice::graph {

Literal::Literal(DType dtype, Dims dims, std::vector<std::byte> bytes)
    : dtype_(base_dtype(dtype)), dims_(std::move(dims)), elements_(num_elements(dims_)) {
  SLUICE_REQUIRE(bytes.size() == static_cast<size_t>(elements_) * dtype_size(dtype_), Code::kInvalidArgument,
                 "A ", dtype_, " constant of shape ", dims_string(dims_), " needs ",
                 static_cast<size_t>(elements_) * dtype_size(dtype_), " bytes, got ", bytes.size());
  bytes_ = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
}

Literal::Literal(Dims dims, std::vector<std::string> strings)
    : dtype_(DType::kString), dims_(std::move(dims)), elements_(num_elements(dims_)) {
  SLUICE_REQUIRE(strings.size() == static_cast<size_t>(elements_), Code::kInvalidArgument,
                 "A string constant of shape ", dims_string(dims_), " needs ", elements_, " strings, got ",
                 strings.size());
  strings_ = std::make_shared<const std::vector<std::string>>(std::move(strings));
}

Literal Literal::zeros(DType dtype, Dims dims) {
  const int64_t n = num_elements(dims);
  if (base_dtype(dtype) == DType::kString)
    return Literal(std::move(dims), std::vector<std::string>(static_cast<size_t>(n)));
  return Literal(dtype, std::move(dims), std::vector<std::byte>(static_cast<size_t>(n) * dtype_size(dtype)));
}

const std::vector<std::string>& Literal::as_strings() const {
  SLUICE_CHECK(dtype_ == DType::kString && strings_, "literal is ", dtype_, ", not string");
  return *strings_;
}

std::vector<int64_t> Literal::to_int64s() const {
  return visit_numeric(dtype_, "a literal", [&]<class T>(const T*) {
    std::vector<int64_t> r;
    r.reserve(static_cast<size_t>(elements_));
    for (T v : as<T>()) r.push_back(static_cast<int64_t>(v));
    return r;
  });
}

std::vector<double> Literal::to_doubles() const {
  return visit_numeric(dtype_, "a literal", [&]<class T>(const T*) {
    std::vector<double> r;
    r.reserve(static_cast<size_t>(elements_));
    for (T v : as<T>()) r.push_back(static_cast<double>(v));
    return r;
  });
}

Literal Literal::cast(DType to) const {
  if (base_dtype(to) == dtype_) return *this;
  return visit_numeric(dtype_, "a literal", [&]<class From>(const From*) {
    return visit_numeric(to, "a literal", [&]<class To>(const To*) {
      std::vector<std::byte> bytes(static_cast<size_t>(elements_) * sizeof(To));
      To* out = reinterpret_cast<To*>(bytes.data());
      for (From v : as<From>()) *out++ = static_cast<To>(v);
      return Literal(to, dims_, std::move(bytes));
    });
  });
}

Literal Literal::reshaped(Dims dims) const {
  SLUICE_REQUIRE(num_elements(dims) == elements_, Code::kInvalidArgument,
                 "Cannot reshape a constant of shape ", dims_string(dims_), " to ", dims_string(dims));
  Literal r = *this;
  r.dims_ = std::move(dims);
  return r;
}

bool Literal::operator==(const Literal& o) const {
  if (dtype_ != o.dtype_ || dims_ != o.dims_) return false;
  if (dtype_ == DType::kString) return *strings_ == *o.strings_;
  return bytes_ == o.bytes_ || (size_bytes() == o.size_bytes() &&
                                (size_bytes() == 0 || std::memcmp(data(), o.data(), size_bytes()) == 0));
}

std::string Literal::str(int max_elements) const {
  if (dtype_ == DType::kInvalid) return "<no value>";
  std::string s = cat(dtype_, dims_string(dims_), " {");
  const int64_t n = std::min<int64_t>(elements_, max_elements);
  for (int64_t i = 0; i < n; ++i) {
    if (i) s += ", ";
    if (dtype_ == DType::kString) {
      s += quoted((*strings_)[static_cast<size_t>(i)]);
    } else if (dtype_size(dtype_) == 0 || is_complex(dtype_) || dtype_ == DType::kHalf ||
               dtype_ == DType::kBfloat16) {
      s += "?";
    } else {
      visit_numeric(dtype_, "a literal", [&]<class T>(const T*) {
        if constexpr (sizeof(T) == 1 && !std::is_same_v<T, bool>)
          s += cat(static_cast<int>(as<T>()[static_cast<size_t>(i)]));
        else
          s += cat(as<T>()[static_cast<size_t>(i)]);
      });
    }
  }
  return s + (elements_ > n ? ", …}" : "}");
}

void append(std::string& s, const Literal& literal) { s += literal.str(); }

}  // namespace sluice::graph
