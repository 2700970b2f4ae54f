#pragma once
// The sets of types that TensorFlow's op definitions allow, as attr spec strings for OpDef::attrs. Constants;
// any thread. Example: `.attrs = {kFloatTypes, "alpha: float = 0.2"}`.

namespace sluice::graph::ops {

inline constexpr const char* kFloatTypes = "T: {half, bfloat16, float, double}";
inline constexpr const char* kFloatComplexTypes = "T: {bfloat16, half, float, double, complex64, complex128}";
inline constexpr const char* kSignedTypes =
    "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}";
inline constexpr const char* kRealTypes =
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}";
inline constexpr const char* kArithmeticTypes =
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, "
    "complex64, complex128}";
inline constexpr const char* kNumberTypes =
    "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
    "qint16, quint16, uint16, complex128, half, uint32, uint64}";
inline constexpr const char* kOrderedTypes =
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, qint8, "
    "quint8, qint32, qint16, quint16}";

inline constexpr const char* kDataFormat = "data_format: {'NHWC', 'NCHW'} = 'NHWC'";
inline constexpr const char* kPadding = "padding: {'SAME', 'VALID'}";
inline constexpr const char* kPaddingExplicit = "padding: {'SAME', 'VALID', 'EXPLICIT'}";
inline constexpr const char* kExplicitPaddings = "explicit_paddings: list(int) = []";
inline constexpr const char* kDilations = "dilations: list(int) = [1, 1, 1, 1]";

}  // namespace sluice::graph::ops
