#pragma once
// Element types, with TensorFlow's DataType numbers. A *ref* type (the output of VariableV2) is its base +
// 100, as in TensorFlow's files; everything that computes looks at the base.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::graph {

enum class DType : int {
  kInvalid = 0,
  kFloat = 1,
  kDouble = 2,
  kInt32 = 3,
  kUint8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kString = 7,
  kComplex64 = 8,
  kInt64 = 9,
  kBool = 10,
  kQint8 = 11,
  kQuint8 = 12,
  kQint32 = 13,
  kBfloat16 = 14,
  kQint16 = 15,
  kQuint16 = 16,
  kUint16 = 17,
  kComplex128 = 18,
  kHalf = 19,
  kResource = 20,
  kVariant = 21,
  kUint32 = 22,
  kUint64 = 23,
};

constexpr DType base_dtype(DType t) {
  return static_cast<int>(t) > 100 ? static_cast<DType>(static_cast<int>(t) - 100) : t;
}
constexpr bool is_ref(DType t) { return static_cast<int>(t) > 100; }
constexpr DType make_ref(DType t) { return is_ref(t) ? t : static_cast<DType>(static_cast<int>(t) + 100); }

/// Bytes of one element; 0 for string, resource and variant.
size_t dtype_size(DType t);
bool is_floating(DType t);  // half, bfloat16, float, double
bool is_integer(DType t);   // signed and unsigned integers, not bool, not quantised
bool is_complex(DType t);
/// Gradients flow through these only (TF: float16/bfloat16/32/64, complex, resource, variant).
bool is_trainable(DType t);

/// "float", "int32", "float_ref": the names that op definitions use.
std::string_view dtype_name(DType t);
/// "DT_FLOAT": the enumerator's name in a .pbtxt.
std::string dtype_proto_name(DType t);
/// Reads either kind of name; nullopt if it is no type.
std::optional<DType> parse_dtype(std::string_view name);
/// True for numbers that name a type (ref or not).
bool is_valid_dtype(int number);
void append(std::string& s, DType t);

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kFloat;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kDouble;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::kInt32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::kInt64;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::kUint8;
};
template <>
struct DTypeOf<int8_t> {
  static constexpr DType value = DType::kInt8;
};
template <>
struct DTypeOf<uint16_t> {
  static constexpr DType value = DType::kUint16;
};
template <>
struct DTypeOf<int16_t> {
  static constexpr DType value = DType::kInt16;
};
template <>
struct DTypeOf<uint32_t> {
  static constexpr DType value = DType::kUint32;
};
template <>
struct DTypeOf<uint64_t> {
  static constexpr DType value = DType::kUint64;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::kBool;
};
template <>
struct DTypeOf<std::string> {
  static constexpr DType value = DType::kString;
};
template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

}  // namespace sluice::graph
