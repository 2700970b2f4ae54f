#pragma once
// What each elementwise op does to one element: one struct a function, written once for every code that runs
// it (the reference loop, CUDA, the recorder of loop regions). NaN, infinities and -0 go through as IEEE 754
// says and as TensorFlow's CPU kernels do; integers wrap. No state, any thread. The lists at the bottom name
// the functions by TensorFlow op and say for which element types they exist.

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#ifdef __CUDACC__
#define SLUICE_HD __host__ __device__
#else
#define SLUICE_HD
#endif

namespace sluice::kernels::scalar {

/// Two's complement arithmetic for signed integers (their overflow is undefined in C++), plain otherwise.
template <class T>
SLUICE_HD T wrap_add(T x, T y) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y));
  else
    return x + y;
}
template <class T>
SLUICE_HD T wrap_sub(T x, T y) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(x) - static_cast<uint64_t>(y));
  else
    return x - y;
}
template <class T>
SLUICE_HD T wrap_mul(T x, T y) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
  else
    return x * y;
}

/// False for integers.
template <class T>
SLUICE_HD constexpr bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return x != x;
  else
    return false;
}

// ---- one operand ----

struct Neg {
  template <class T>
  SLUICE_HD T operator()(T x) const {
    if constexpr (std::is_integral_v<T>)
      return wrap_sub(T(0), x);
    else
      return -x;
  }
};
struct Abs {
  template <class T>
  SLUICE_HD T operator()(T x) const {
    if constexpr (std::is_unsigned_v<T>)
      return x;
    else if constexpr (std::is_integral_v<T>)
      return x < 0 ? wrap_sub(T(0), x) : x;
    else
      return std::fabs(x);
  }
};
struct Sign {
  template <class T>
  SLUICE_HD T operator()(T x) const {
    return x > T(0) ? T(1) : x == T(0) ? T(0) : is_nan(x) ? x : wrap_sub(T(0), T(1));
  }
};
struct Square {
  template <class T>
  SLUICE_HD T operator()(T x) const {
    return wrap_mul(x, x);
  }
};
struct Sqrt {
  template <class T>
  SLUICE_HD T operator()(T x) const {
    return std::sqrt(x);
  }
};
struct Rsqrt {
  template <class T>
  SLUICE_HD T operator()(T x) const {
    return T(1) / std::sqrt(x);
  }
};
struct Reciprocal {
  template <class T>
  SLUICE_HD T operator()(T x) const {
    return T(1) / x;
  }
};
using Inv = Reciprocal;
struct Exp {
  template <class T>
  SLUICE_HD T operator()(T x) const {
    return std::exp(x);
  }
};
struct Expm1 {
  template <class T>
  SLUICE_HD T operator()(T x) const {
    return std::expm1(x);
  }
};
struct Log {
  template <class T>
  SLUICE_HD T operator()(T x) const {
    return std::log(x);
  }
};
struct Log1p {
  template <class T>
  SLUICE_HD T operator()(T x) const {
    return std::log1p(x);
  }
};
struct Sin {
  template <class T>
  SLUICE_HD T operator()(T x) const {
    return std::sin(x);
  }
};
struct Cos {
  template <class T>
  SLUICE_HD T operator()(T x) const {
    return std::cos(x);
  }
};
struct Tan {
  template <class T>
  SLUICE_HD T operator()(T x) const {
    return std::tan(x);
  }
};
struct Asin {
  template <class T>
  SLUICE_HD T operator()(T x) const {
    return std::asin(x);
  }
};
struct Acos {
  template <class T>
  SLUICE_HD T operator()(T x) const {
    return std::acos(x);
  }
};
struct Atan {
  template <class T>
  SLUICE_HD T operator()(T x) const {
    return std::atan(x);
  }
};
struct Sinh {
  template <class T>
  SLUICE_HD T operator()(T x) const {
    return std::sinh(x);
  }
};
struct Cosh {
  template <class T>
  SLUICE_HD T operator()(T x) const {
    return std::cosh(x);
  }
};
struct Asinh {
  template <class T>
  SLUICE_HD T operator()(T x) const {
    return std::asinh(x);
  }
};
struct Acosh {
  template <class T>
  SLUICE_HD T operator()(T x) const {
    return std::acosh(x);
  }
};
struct Atanh {
  template <class T>
  SLUICE_HD T operator()(T x) const {
    return std::atanh(x);
  }
};
struct Tanh {
  template <class T>
  SLUICE_HD T operator()(T x) const {
    return std::tanh(x);
  }
};
struct Sigmoid {
  template <class T>
  SLUICE_HD T operator()(T x) const {
    return T(1) / (T(1) + std::exp(-x));
  }
};
struct Erf {
  template <class T>
  SLUICE_HD T operator()(T x) const {
    return std::erf(x);
  }
};
struct Erfc {
  template <class T>
  SLUICE_HD T operator()(T x) const {
    return std::erfc(x);
  }
};
struct Lgamma {
  template <class T>
  SLUICE_HD T operator()(T x) const {
    return std::lgamma(x);
  }
};
struct Floor {
  template <class T>
  SLUICE_HD T operator()(T x) const {
    return std::floor(x);
  }
};
struct Ceil {
  template <class T>
  SLUICE_HD T operator()(T x) const {
    return std::ceil(x);
  }
};
/// To the nearest, halves to even.
struct Rint {
  template <class T>
  SLUICE_HD T operator()(T x) const {
    return std::nearbyint(x);
  }
};
struct Round {
  template <class T>
  SLUICE_HD T operator()(T x) const {
    if constexpr (std::is_integral_v<T>)
      return x;
    else
      return std::nearbyint(x);
  }
};
/// max(x, 0); NaN stays NaN, -0 becomes 0.
struct Relu {
  template <class T>
  SLUICE_HD T operator()(T x) const {
    return x > T(0) || is_nan(x) ? x : T(0);
  }
};
struct Relu6 {
  template <class T>
  SLUICE_HD T operator()(T x) const {
    return x > T(6) ? T(6) : x > T(0) || is_nan(x) ? x : T(0);
  }
};
struct Elu {
  template <class T>
  SLUICE_HD T operator()(T x) const {
    return x < T(0) ? std::expm1(x) : x;
  }
};
struct Selu {
  static constexpr double kScale = 1.0507009873554805;
  static constexpr double kScaleAlpha = 1.7580993408473768;
  template <class T>
  SLUICE_HD T operator()(T x) const {
    return x < T(0) ? static_cast<T>(kScaleAlpha) * std::expm1(x) : static_cast<T>(kScale) * x;
  }
};
/// log(1 + e^x), which is x for large x and e^x for very negative x to the last bit.
struct Softplus {
  template <class T>
  SLUICE_HD T operator()(T x) const {
    const T threshold = std::log(std::numeric_limits<T>::epsilon()) + T(2);
    if (x > -threshold) return x;
    const T e = std::exp(x);
    return x < threshold ? e : std::log1p(e);
  }
};
struct Softsign {
  template <class T>
  SLUICE_HD T operator()(T x) const {
    return x / (T(1) + std::fabs(x));
  }
};

struct IsNan {
  template <class T>
  SLUICE_HD bool operator()(T x) const {
    return x != x;
  }
};
struct IsInf {
  template <class T>
  SLUICE_HD bool operator()(T x) const {
    return std::fabs(x) > std::numeric_limits<T>::max();
  }
};
struct IsFinite {
  template <class T>
  SLUICE_HD bool operator()(T x) const {
    return std::fabs(x) <= std::numeric_limits<T>::max();
  }
};
struct LogicalNot {
  SLUICE_HD bool operator()(bool x) const { return !x; }
};

// ---- two operands ----

struct Add {
  template <class T>
  SLUICE_HD T operator()(T x, T y) const {
    return wrap_add(x, y);
  }
};
using AddV2 = Add;
struct Sub {
  template <class T>
  SLUICE_HD T operator()(T x, T y) const {
    return wrap_sub(x, y);
  }
};
struct Mul {
  template <class T>
  SLUICE_HD T operator()(T x, T y) const {
    return wrap_mul(x, y);
  }
};
/// NaN wins over any number.
struct Maximum {
  template <class T>
  SLUICE_HD T operator()(T x, T y) const {
    return is_nan(x) ? x : y > x || is_nan(y) ? y : x;
  }
};
struct Minimum {
  template <class T>
  SLUICE_HD T operator()(T x, T y) const {
    return is_nan(x) ? x : y < x || is_nan(y) ? y : x;
  }
};
struct SquaredDifference {
  template <class T>
  SLUICE_HD T operator()(T x, T y) const {
    const T d = wrap_sub(x, y);
    return wrap_mul(d, d);
  }
};
/// Towards zero for integers. The caller has refused a zero divisor of an integer.
struct Div {
  template <class T>
  SLUICE_HD T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T> && std::is_signed_v<T>)
      return y == T(-1) ? wrap_sub(T(0), x) : T(x / y);
    else
      return static_cast<T>(x / y);
  }
};
using TruncateDiv = Div;
struct RealDiv {
  template <class T>
  SLUICE_HD T operator()(T x, T y) const {
    return Div{}(x, y);
  }
};
struct FloorDiv {
  template <class T>
  SLUICE_HD T operator()(T x, T y) const {
    if constexpr (std::is_floating_point_v<T>) {
      return std::floor(x / y);
    } else if constexpr (std::is_signed_v<T>) {
      if (y == T(-1)) return wrap_sub(T(0), x);
      const T q = static_cast<T>(x / y);
      return static_cast<T>(x % y != 0 && (x < 0) != (y < 0) ? q - 1 : q);
    } else {
      return static_cast<T>(x / y);
    }
  }
};
/// The remainder with the divisor's sign.
struct FloorMod {
  template <class T>
  SLUICE_HD T operator()(T x, T y) const {
    if constexpr (std::is_floating_point_v<T>) {
      const T m = std::fmod(x, y);
      return m != T(0) && (m < T(0)) != (y < T(0)) ? m + y : m;
    } else if constexpr (std::is_signed_v<T>) {
      if (y == T(-1)) return T(0);
      const T m = static_cast<T>(x % y);
      return static_cast<T>(m != 0 && (m < 0) != (y < 0) ? m + y : m);
    } else {
      return static_cast<T>(x % y);
    }
  }
};
/// The remainder with the dividend's sign.
struct TruncateMod {
  template <class T>
  SLUICE_HD T operator()(T x, T y) const {
    if constexpr (std::is_floating_point_v<T>)
      return std::fmod(x, y);
    else if constexpr (std::is_signed_v<T>)
      return y == T(-1) ? T(0) : static_cast<T>(x % y);
    else
      return static_cast<T>(x % y);
  }
};
using Mod = TruncateMod;
/// Integers: by squaring, wrapping; the caller has refused negative exponents.
struct Pow {
  template <class T>
  SLUICE_HD T operator()(T x, T y) const {
    if constexpr (std::is_floating_point_v<T>) {
      return std::pow(x, y);
    } else {
      T result = 1;
      for (; y > 0; y = static_cast<T>(y >> 1)) {
        if (y & 1) result = wrap_mul(result, x);
        x = wrap_mul(x, x);
      }
      return result;
    }
  }
};
struct DivNoNan {
  template <class T>
  SLUICE_HD T operator()(T x, T y) const {
    return y == T(0) ? T(0) : x / y;
  }
};
struct MulNoNan {
  template <class T>
  SLUICE_HD T operator()(T x, T y) const {
    return y == T(0) ? T(0) : x * y;
  }
};
struct Xdivy {
  template <class T>
  SLUICE_HD T operator()(T x, T y) const {
    return x == T(0) ? T(0) : x / y;
  }
};
struct Xlogy {
  template <class T>
  SLUICE_HD T operator()(T x, T y) const {
    return x == T(0) ? T(0) : x * std::log(y);
  }
};
struct Atan2 {
  template <class T>
  SLUICE_HD T operator()(T y, T x) const {
    return std::atan2(y, x);
  }
};

struct Equal {
  template <class T>
  SLUICE_HD bool operator()(T x, T y) const {
    return x == y;
  }
};
struct NotEqual {
  template <class T>
  SLUICE_HD bool operator()(T x, T y) const {
    return x != y;
  }
};
struct Less {
  template <class T>
  SLUICE_HD bool operator()(T x, T y) const {
    return x < y;
  }
};
struct LessEqual {
  template <class T>
  SLUICE_HD bool operator()(T x, T y) const {
    return x <= y;
  }
};
struct Greater {
  template <class T>
  SLUICE_HD bool operator()(T x, T y) const {
    return x > y;
  }
};
struct GreaterEqual {
  template <class T>
  SLUICE_HD bool operator()(T x, T y) const {
    return x >= y;
  }
};
struct LogicalAnd {
  SLUICE_HD bool operator()(bool x, bool y) const { return x && y; }
};
struct LogicalOr {
  SLUICE_HD bool operator()(bool x, bool y) const { return x || y; }
};

// ---- gradients; operands in the order of the TensorFlow op ----

/// (gradients, features): a product with 0 or 1, so a NaN gradient shows even where the unit is off.
struct ReluGrad {
  template <class T>
  SLUICE_HD T operator()(T dy, T x) const {
    return dy * (x > T(0) ? T(1) : T(0));
  }
};
struct Relu6Grad {
  template <class T>
  SLUICE_HD T operator()(T dy, T x) const {
    return dy * (x > T(0) && x < T(6) ? T(1) : T(0));
  }
};
/// (gradients, outputs).
struct EluGrad {
  template <class T>
  SLUICE_HD T operator()(T dy, T y) const {
    return y < T(0) ? dy * (y + T(1)) : dy;
  }
};
struct SeluGrad {
  template <class T>
  SLUICE_HD T operator()(T dy, T y) const {
    return y < T(0) ? dy * (y + static_cast<T>(Selu::kScaleAlpha)) : dy * static_cast<T>(Selu::kScale);
  }
};
/// (gradients, features).
struct SoftplusGrad {
  template <class T>
  SLUICE_HD T operator()(T dy, T x) const {
    return dy / (std::exp(-x) + T(1));
  }
};
struct SoftsignGrad {
  template <class T>
  SLUICE_HD T operator()(T dy, T x) const {
    const T d = T(1) + std::fabs(x);
    return dy / (d * d);
  }
};
/// (y, dy). A zero dy gives zero whatever y is, where the plain formula would be 0·inf.
struct TanhGrad {
  template <class T>
  SLUICE_HD T operator()(T y, T dy) const {
    return dy * (T(1) - y * y);
  }
};
struct SigmoidGrad {
  template <class T>
  SLUICE_HD T operator()(T y, T dy) const {
    return dy * y * (T(1) - y);
  }
};
struct SqrtGrad {
  template <class T>
  SLUICE_HD T operator()(T y, T dy) const {
    return dy == T(0) ? T(0) : T(0.5) * dy / y;
  }
};
struct RsqrtGrad {
  template <class T>
  SLUICE_HD T operator()(T y, T dy) const {
    return dy == T(0) ? T(0) : T(-0.5) * dy * (y * y * y);
  }
};
struct ReciprocalGrad {
  template <class T>
  SLUICE_HD T operator()(T y, T dy) const {
    return dy == T(0) ? T(0) : -dy * (y * y);
  }
};
using InvGrad = ReciprocalGrad;

// ---- with an attribute ----

struct LeakyRelu {
  template <class T>
  SLUICE_HD T operator()(T x, T alpha) const {
    return x > T(0) ? x : alpha * x;
  }
};
struct LeakyReluGrad {
  template <class T>
  SLUICE_HD T operator()(T dy, T x, T alpha) const {
    return x > T(0) ? dy : alpha * dy;
  }
};

/// What x86 does with floating numbers that fit no integer: the smallest int32 (int64 for wide types), then
/// the low bits; never undefined.
template <class To, class From>
SLUICE_HD To cast(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if constexpr (sizeof(To) < 4 || std::is_same_v<To, int32_t>) {
      const bool fits = x > From(-2147483904.0) && x < From(2147483648.0) && double(x) > -2147483649.0;
      return static_cast<To>(fits ? static_cast<int32_t>(x) : std::numeric_limits<int32_t>::min());
    } else {
      if constexpr (std::is_same_v<To, uint64_t>)
        if (x >= From(9223372036854775808.0) && x < From(18446744073709551616.0)) return static_cast<To>(x);
      const bool fits = x >= From(-9223372036854775808.0) && x < From(9223372036854775808.0);
      return static_cast<To>(fits ? static_cast<int64_t>(x) : std::numeric_limits<int64_t>::min());
    }
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace sluice::kernels::scalar

// X(op) for every op of a kind; the struct and the TensorFlow op have the same name.

/// T → T for float, double.
// clang-format off
#define SLUICE_UNARY_FLOAT_OPS(X) \
  X(Acos) X(Acosh) X(Asin) X(Asinh) X(Atan) X(Atanh) X(Ceil) X(Cos) X(Cosh) X(Elu) X(Erf) X(Erfc) \
  X(Exp) X(Expm1) X(Floor) X(Inv) X(Lgamma) X(Log) X(Log1p) X(Reciprocal) X(Rint) X(Rsqrt) X(Selu) \
  X(Sigmoid) X(Sin) X(Sinh) X(Softplus) X(Softsign) X(Sqrt) X(Tan) X(Tanh)
// clang-format on
/// T → T for float, double and the integers.
#define SLUICE_UNARY_NUMERIC_OPS(X) X(Abs) X(Neg) X(Relu) X(Relu6) X(Round) X(Sign) X(Square)
/// float, double → bool.
#define SLUICE_UNARY_TEST_OPS(X) X(IsFinite) X(IsInf) X(IsNan)
/// T, T → T, broadcasting, for float, double and the integers.
// clang-format off
#define SLUICE_BINARY_NUMERIC_OPS(X) \
  X(Add) X(AddV2) X(Div) X(FloorDiv) X(FloorMod) X(Maximum) X(Minimum) X(Mod) X(Mul) X(Pow) \
  X(RealDiv) X(SquaredDifference) X(Sub) X(TruncateDiv) X(TruncateMod)
// clang-format on
/// T, T → T, broadcasting, for float, double.
#define SLUICE_BINARY_FLOAT_OPS(X) X(Atan2) X(DivNoNan) X(MulNoNan) X(Xdivy) X(Xlogy)
/// T, T → bool, broadcasting, for every number type and bool.
#define SLUICE_COMPARE_OPS(X) X(Equal) X(Greater) X(GreaterEqual) X(Less) X(LessEqual) X(NotEqual)
/// bool, bool → bool, broadcasting.
#define SLUICE_LOGICAL_OPS(X) X(LogicalAnd) X(LogicalOr)
/// T, T → T of equal shapes, for float, double.
// clang-format off
#define SLUICE_GRAD_OPS(X) \
  X(EluGrad) X(InvGrad) X(ReciprocalGrad) X(Relu6Grad) X(ReluGrad) X(RsqrtGrad) X(SeluGrad) \
  X(SigmoidGrad) X(SoftplusGrad) X(SoftsignGrad) X(SqrtGrad) X(TanhGrad)
// clang-format on
