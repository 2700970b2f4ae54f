#pragma once
// The body of the vector functions (vec.h), included by one .cpp per instruction set, which defines
// SLUICE_VEC_TABLE as the name of its table function. No standard templates and no shared inline functions:
// what is compiled here for AVX-512 must never be linked into code that runs elsewhere. Loops are written so
// that the compiler vectorises them (-O3, no errno, no traps); elements follow kernels/scalar.h. The only
// liberty is contraction of a product and a sum into one rounding where the level has FMA.

namespace sluice::kernels::cpu {
namespace {

using v16 __attribute__((vector_size(64), aligned(4))) = float;
using i16 __attribute__((vector_size(64), aligned(4))) = int32_t;

inline __attribute__((always_inline)) v16 load16(const float* p) { return *reinterpret_cast<const v16*>(p); }
inline __attribute__((always_inline)) void store16(float* p, v16 v) { *reinterpret_cast<v16*>(p) = v; }
inline __attribute__((always_inline)) v16 all16(float x) { return v16{} + x; }

inline __attribute__((always_inline)) float bits_to_float(int32_t i) { return __builtin_bit_cast(float, i); }
inline __attribute__((always_inline)) int32_t float_to_bits(float x) {
  return __builtin_bit_cast(int32_t, x);
}

// ---- functions of one element, branch-free ----

// e^x within 1 ULP or so: x = n·ln2 + r, a polynomial in r, scaled by 2^n in two steps so that subnormal
// results round once more but never flush.
inline __attribute__((always_inline)) float exp1(float x) {
  float c = x < -105.f ? -105.f : x;
  c = c > 90.f ? 90.f : c;
  const float t = c * 1.44269504f + 12582912.f;  // 1.5·2^23: the sum's low bits are the rounded integer
  const float n = t - 12582912.f;
  const float r = (c - n * 0.693145752f) - n * 1.42860677e-6f;
  float p = 0.000199183633f;
  p = p * r + 0.001394606195f;
  p = p * r + 0.00833326485f;
  p = p * r + 0.0416662693f;
  p = p * r + 0.16666667163f;
  p = p * r + 0.5f;
  const float e = (r * r) * p + r + 1.f;
  const int32_t k = static_cast<int32_t>(n);
  const int32_t k1 = k >> 1, k2 = k - k1;
  const float y = e * bits_to_float((k1 + 127) << 23) * bits_to_float((k2 + 127) << 23);
  return x != x ? x : y;
}

// ln x: x = m·2^e with m in [√½, √2), a polynomial in m − 1.
inline __attribute__((always_inline)) float log1(float x) {
  const bool tiny = x < 1.17549435e-38f;
  const float s = tiny ? x * 8388608.f : x;
  const int32_t b = float_to_bits(s);
  const uint32_t u = static_cast<uint32_t>(b);  // unsigned: −0's bits are the least int
  const int32_t e0 =
      static_cast<int32_t>(u - 0x3f3504f3u) >> 23;  // exponent after centring the mantissa on 1
  const float f = bits_to_float(static_cast<int32_t>(u - (static_cast<uint32_t>(e0) << 23))) - 1.f;
  const float e = static_cast<float>(e0) - (tiny ? 23.f : 0.f);
  float p = 0.06915415078f;
  p = p * f - 0.11789830774f;
  p = p * f + 0.11872967333f;
  p = p * f - 0.12384343892f;
  p = p * f + 0.14218658209f;
  p = p * f - 0.16669251025f;
  p = p * f + 0.20002226532f;
  p = p * f - 0.24999986589f;
  p = p * f + 0.33333310485f;
  const float f2 = f * f;
  float y = f * f2 * p + e * 1.42860677e-6f - 0.5f * f2;
  y = y + f + e * 0.693145752f;
  y = x > 3.40282347e38f ? x : y;
  y = x == 0.f ? -__builtin_inff() : y;
  y = x < 0.f ? __builtin_nanf("") : y;
  return x != x ? x : y;
}

inline __attribute__((always_inline)) float tanh1(float x) {
  const float a = __builtin_fabsf(x);
  const float z = x * x;
  float p = 0.00214753929f;
  p = p * z - 0.00818267651f;
  p = p * z + 0.02170296758f;
  p = p * z - 0.05394720286f;
  p = p * z + 0.1333321035f;
  p = p * z - 0.33333331347f;
  const float small = x * z * p + x;
  const float big = 1.f - 2.f / (exp1(2.f * a) + 1.f);
  const float y = __builtin_copysignf(a < 0.625f ? small : big, x);  // also −0
  return x != x ? x : y;
}

#define SLUICE_TILE(prefix, name, To, From, expr)                                                        \
  void prefix##_##name(void* o_, const void* a_, const void* b_, const void* c_, int64_t n, float imm) { \
    To* o = static_cast<To*>(o_);                                                                        \
    const From* a = static_cast<const From*>(a_);                                                        \
    const From* b = static_cast<const From*>(b_);                                                        \
    const From* c = static_cast<const From*>(c_);                                                        \
    (void)b, (void)c, (void)imm;                                                                         \
    _Pragma("GCC ivdep") for (int64_t i = 0; i < n; ++i) {                                               \
      const From x = a[i];                                                                               \
      o[i] = static_cast<To>(expr);                                                                      \
    }                                                                                                    \
  }
#define SLUICE_F32(name, expr) SLUICE_TILE(f32, name, float, float, expr)
#define SLUICE_I32(name, expr) SLUICE_TILE(i32, name, int32_t, int32_t, expr)

SLUICE_F32(Abs, __builtin_fabsf(x))
SLUICE_F32(Add, x + b[i])
SLUICE_F32(Ceil, __builtin_ceilf(x))
SLUICE_F32(Copy, x)
SLUICE_F32(Div, x / b[i])
SLUICE_F32(DivNoNan, b[i] == 0.f ? 0.f : x / b[i])
SLUICE_F32(EluGrad, b[i] < 0.f ? x * (b[i] + 1.f) : x)
SLUICE_F32(Exp, exp1(x))
SLUICE_F32(Floor, __builtin_floorf(x))
SLUICE_F32(LeakyRelu, x > 0.f ? x : imm * x)
SLUICE_F32(LeakyReluGrad, b[i] > 0.f ? x : imm * x)
SLUICE_F32(Log, log1(x))
SLUICE_F32(Maximum, (x > b[i]) | (x != x) ? x : b[i] != b[i] ? b[i] : b[i] > x ? b[i] : x)
SLUICE_F32(Minimum, (x < b[i]) | (x != x) ? x : b[i] != b[i] ? b[i] : b[i] < x ? b[i] : x)
SLUICE_F32(Mul, x* b[i])
SLUICE_F32(MulAdd, x* b[i] + c[i])
SLUICE_F32(MulNoNan, b[i] == 0.f ? 0.f : x * b[i])
SLUICE_F32(MulSub, x* b[i] - c[i])
SLUICE_F32(Neg, -x)
SLUICE_F32(NegMulAdd, c[i] - x * b[i])
SLUICE_F32(Reciprocal, 1.f / x)
SLUICE_F32(ReciprocalGrad, b[i] == 0.f ? 0.f : -b[i] * (x * x))
SLUICE_F32(Relu, (x > 0.f) | (x != x) ? x : 0.f)
SLUICE_F32(Relu6, x > 6.f ? 6.f : ((x > 0.f) | (x != x) ? x : 0.f))
SLUICE_F32(Relu6Grad, x*((b[i] > 0.f) & (b[i] < 6.f) ? 1.f : 0.f))
SLUICE_F32(ReluGrad, x*(b[i] > 0.f ? 1.f : 0.f))
SLUICE_F32(Rint, __builtin_nearbyintf(x))
SLUICE_F32(Rsqrt, 1.f / __builtin_sqrtf(x))
SLUICE_F32(RsqrtGrad, b[i] == 0.f ? 0.f : -0.5f * b[i] * (x * x * x))
SLUICE_F32(Sigmoid, 1.f / (1.f + exp1(-x)))
SLUICE_F32(SigmoidGrad, b[i] * x * (1.f - x))
SLUICE_F32(Sign, x > 0.f ? 1.f : x == 0.f ? 0.f : x != x ? x : -1.f)
SLUICE_F32(Softsign, x / (1.f + __builtin_fabsf(x)))
SLUICE_F32(SoftsignGrad, x / ((1.f + __builtin_fabsf(b[i])) * (1.f + __builtin_fabsf(b[i]))))
SLUICE_F32(Sqrt, __builtin_sqrtf(x))
SLUICE_F32(SqrtGrad, b[i] == 0.f ? 0.f : 0.5f * b[i] / x)
SLUICE_F32(Square, x* x)
SLUICE_F32(SquaredDifference, (x - b[i]) * (x - b[i]))
SLUICE_F32(Sub, x - b[i])
SLUICE_F32(Tanh, tanh1(x))
SLUICE_F32(TanhGrad, b[i] * (1.f - x * x))

// Integers wrap: the arithmetic is unsigned.
SLUICE_I32(Abs, x < 0 ? 0u - static_cast<uint32_t>(x) : static_cast<uint32_t>(x))
SLUICE_I32(Add, static_cast<uint32_t>(x) + static_cast<uint32_t>(b[i]))
SLUICE_I32(Copy, x)
SLUICE_I32(Maximum, x > b[i] ? x : b[i])
SLUICE_I32(Minimum, x < b[i] ? x : b[i])
SLUICE_I32(Mul, static_cast<uint32_t>(x) * static_cast<uint32_t>(b[i]))
SLUICE_I32(Neg, 0u - static_cast<uint32_t>(x))
SLUICE_I32(Square, static_cast<uint32_t>(x) * static_cast<uint32_t>(x))
SLUICE_I32(Sub, static_cast<uint32_t>(x) - static_cast<uint32_t>(b[i]))

#define SLUICE_COMPARE(name, op)                    \
  SLUICE_TILE(f32, name, uint8_t, float, x op b[i]) \
  SLUICE_TILE(i32, name, uint8_t, int32_t, x op b[i])
SLUICE_COMPARE(Equal, ==)
SLUICE_COMPARE(Greater, >)
SLUICE_COMPARE(GreaterEqual, >=)
SLUICE_COMPARE(Less, <)
SLUICE_COMPARE(LessEqual, <=)
SLUICE_COMPARE(NotEqual, !=)

SLUICE_TILE(bool, Copy, uint8_t, uint8_t, x)
SLUICE_TILE(bool, LogicalAnd, uint8_t, uint8_t, x& b[i])
SLUICE_TILE(bool, LogicalNot, uint8_t, uint8_t, x ^ 1)
SLUICE_TILE(bool, LogicalOr, uint8_t, uint8_t, x | b[i])

// Select(condition, then, else): the condition is bytes whatever the rest is.
#define SLUICE_SELECT(prefix, T)                                                                     \
  void prefix##_Select(void* o_, const void* a_, const void* b_, const void* c_, int64_t n, float) { \
    T* o = static_cast<T*>(o_);                                                                      \
    const uint8_t* a = static_cast<const uint8_t*>(a_);                                              \
    const T* b = static_cast<const T*>(b_);                                                          \
    const T* c = static_cast<const T*>(c_);                                                          \
    _Pragma("GCC ivdep") for (int64_t i = 0; i < n; ++i) {                                           \
      const T yes = b[i], no = c[i];                                                                 \
      o[i] = a[i] != 0 ? yes : no;                                                                   \
    }                                                                                                \
  }
SLUICE_SELECT(f32, float)
SLUICE_SELECT(i32, int32_t)
SLUICE_SELECT(bool, uint8_t)

// What x86's conversion gives for numbers that fit no int32: the smallest one.
inline __attribute__((always_inline)) int32_t to_int(float x) {
  const bool fits = (x >= -2147483648.f) & (x < 2147483648.f);
  const int32_t i = static_cast<int32_t>(fits ? x : 0.f);
  return fits ? i : (-2147483647 - 1);
}
SLUICE_TILE(cast, f32_i32, int32_t, float, to_int(x))
SLUICE_TILE(cast, i32_f32, float, int32_t, x)
SLUICE_TILE(cast, bool_f32, float, uint8_t, x)
SLUICE_TILE(cast, bool_i32, int32_t, uint8_t, x)
SLUICE_TILE(cast, f32_bool, uint8_t, float, x != 0.f)
SLUICE_TILE(cast, i32_bool, uint8_t, int32_t, x != 0)

// ---- reductions ----

// NaN wins, as in Maximum and Minimum.
#define SLUICE_MAX(a, b) (((b) > (a)) | ((b) != (b)) ? (b) : (a))
#define SLUICE_MIN(a, b) (((b) < (a)) | ((b) != (b)) ? (b) : (a))
#define SLUICE_SUM(a, b) ((a) + (b))
#define SLUICE_PROD(a, b) ((a) * (b))

// Columns in blocks of 64 whose accumulators stay in registers while the rows go by.
#define SLUICE_COL_REDUCE(name, OP)                                                              \
  void name(float* acc, const float* x, int64_t rows, int64_t cols) {                            \
    int64_t c = 0;                                                                               \
    for (; c + 64 <= cols; c += 64) {                                                            \
      v16 s0 = load16(acc + c), s1 = load16(acc + c + 16), s2 = load16(acc + c + 32),            \
          s3 = load16(acc + c + 48);                                                             \
      const float* p = x + c;                                                                    \
      for (int64_t r = 0; r < rows; ++r, p += cols) {                                            \
        const v16 x0 = load16(p), x1 = load16(p + 16), x2 = load16(p + 32), x3 = load16(p + 48); \
        s0 = OP(s0, x0), s1 = OP(s1, x1), s2 = OP(s2, x2), s3 = OP(s3, x3);                      \
      }                                                                                          \
      store16(acc + c, s0), store16(acc + c + 16, s1), store16(acc + c + 32, s2);                \
      store16(acc + c + 48, s3);                                                                 \
    }                                                                                            \
    for (; c + 16 <= cols; c += 16) {                                                            \
      v16 s0 = load16(acc + c);                                                                  \
      const float* p = x + c;                                                                    \
      for (int64_t r = 0; r < rows; ++r, p += cols) {                                            \
        const v16 x0 = load16(p);                                                                \
        s0 = OP(s0, x0);                                                                         \
      }                                                                                          \
      store16(acc + c, s0);                                                                      \
    }                                                                                            \
    for (int64_t r = 0; r < rows; ++r)                                                           \
      for (int64_t k = c; k < cols; ++k) acc[k] = OP(acc[k], x[r * cols + k]);                   \
  }
SLUICE_COL_REDUCE(col_sum, SLUICE_SUM)
SLUICE_COL_REDUCE(col_prod, SLUICE_PROD)

// Mixed masks of vectors: | on comparison results works lane by lane.
SLUICE_COL_REDUCE(col_max, SLUICE_MAX)
SLUICE_COL_REDUCE(col_min, SLUICE_MIN)

#define SLUICE_FLAT_REDUCE(name, OP, identity)                                 \
  float name(const float* x, int64_t n) {                                      \
    v16 s = all16(identity), t = s;                                            \
    int64_t i = 0;                                                             \
    for (; i + 32 <= n; i += 32) {                                             \
      const v16 u = load16(x + i), v = load16(x + i + 16);                     \
      s = OP(s, u), t = OP(t, v);                                              \
    }                                                                          \
    s = OP(s, t);                                                              \
    float lane[16];                                                            \
    store16(lane, s);                                                          \
    for (int k = 0; i < n; ++i, k = (k + 1) & 15) lane[k] = OP(lane[k], x[i]); \
    for (int w = 8; w > 0; w /= 2)                                             \
      for (int k = 0; k < w; ++k) lane[k] = OP(lane[k], lane[k + w]);          \
    return lane[0];                                                            \
  }
SLUICE_FLAT_REDUCE(flat_sum, SLUICE_SUM, 0.f)
SLUICE_FLAT_REDUCE(flat_prod, SLUICE_PROD, 1.f)
SLUICE_FLAT_REDUCE(flat_max, SLUICE_MAX, -__builtin_inff())
SLUICE_FLAT_REDUCE(flat_min, SLUICE_MIN, __builtin_inff())

void col_moments(float* s, float* q, const float* x, int64_t rows, int64_t cols) {
  int64_t c = 0;
  for (; c + 32 <= cols; c += 32) {
    const v16 k0 = load16(x + c), k1 = load16(x + c + 16);
    v16 s0{}, s1{}, q0{}, q1{};
    const float* p = x + c;
    for (int64_t r = 0; r < rows; ++r, p += cols) {
      const v16 d0 = load16(p) - k0, d1 = load16(p + 16) - k1;
      s0 += d0, s1 += d1;
      q0 += d0 * d0, q1 += d1 * d1;
    }
    store16(s + c, s0), store16(s + c + 16, s1), store16(q + c, q0), store16(q + c + 16, q1);
  }
  for (; c < cols; ++c) {
    float a = 0, b = 0;
    for (int64_t r = 0; r < rows; ++r) {
      const float d = x[r * cols + c] - x[c];
      a += d;
      b += d * d;
    }
    s[c] = a;
    q[c] = b;
  }
}

void col_grad_sums(float* s, float* q, const float* dy, const float* x, const float* mean, int64_t rows,
                   int64_t cols) {
  int64_t c = 0;
  for (; c + 32 <= cols; c += 32) {
    const v16 k0 = load16(mean + c), k1 = load16(mean + c + 16);
    v16 s0 = load16(s + c), s1 = load16(s + c + 16), q0 = load16(q + c), q1 = load16(q + c + 16);
    for (int64_t r = 0; r < rows; ++r) {
      const float* px = x + r * cols + c;
      const float* pd = dy + r * cols + c;
      const v16 d0 = load16(pd), d1 = load16(pd + 16);
      s0 += d0, s1 += d1;
      q0 += d0 * (load16(px) - k0), q1 += d1 * (load16(px + 16) - k1);
    }
    store16(s + c, s0), store16(s + c + 16, s1), store16(q + c, q0), store16(q + c + 16, q1);
  }
  for (; c < cols; ++c)
    for (int64_t r = 0; r < rows; ++r) {
      const float d = dy[r * cols + c];
      s[c] += d;
      q[c] += d * (x[r * cols + c] - mean[c]);
    }
}

// ---- windows ----

// Larger, or the first NaN.
#define SLUICE_BETTER(v, best) (((v) > (best)) | (((v) != (v)) & ((best) == (best))))

void max_taps(float* y, const float* const* taps, int num_taps, int64_t c) {
  int64_t i = 0;
  for (; i + 16 <= c; i += 16) {
    v16 best = load16(taps[0] + i);
    for (int t = 1; t < num_taps; ++t) {
      const v16 v = load16(taps[t] + i);
      best = SLUICE_BETTER(v, best) ? v : best;
    }
    store16(y + i, best);
  }
  for (; i < c; ++i) {
    float best = taps[0][i];
    for (int t = 1; t < num_taps; ++t) best = SLUICE_BETTER(taps[t][i], best) ? taps[t][i] : best;
    y[i] = best;
  }
}

void max_taps_grad(float* const* dx, const float* const* taps, int num_taps, const float* dy, int64_t c) {
  int64_t i = 0;
  for (; i + 16 <= c; i += 16) {
    v16 best = load16(taps[0] + i);
    i16 where{};
    for (int t = 1; t < num_taps; ++t) {
      const v16 v = load16(taps[t] + i);
      const i16 better = SLUICE_BETTER(v, best);
      best = better ? v : best;
      where = better ? (i16{} + t) : where;
    }
    const v16 d = load16(dy + i);
    for (int t = 0; t < num_taps; ++t) {
      const i16 here = where == t;
      const v16 old = load16(dx[t] + i);
      store16(dx[t] + i, here ? old + d : old);
    }
  }
  for (; i < c; ++i) {
    int where = 0;
    for (int t = 1; t < num_taps; ++t)
      if (SLUICE_BETTER(taps[t][i], taps[where][i])) where = t;
    dx[where][i] += dy[i];
  }
}

void mean_taps(float* y, const float* const* taps, int num_taps, float divisor, int64_t c) {
  int64_t i = 0;
  for (; i + 16 <= c; i += 16) {
    v16 s = load16(taps[0] + i);
    for (int t = 1; t < num_taps; ++t) s += load16(taps[t] + i);
    store16(y + i, s / all16(divisor));
  }
  for (; i < c; ++i) {
    float s = taps[0][i];
    for (int t = 1; t < num_taps; ++t) s += taps[t][i];
    y[i] = s / divisor;
  }
}

void mean_taps_grad(float* const* dx, int num_taps, const float* dy, float divisor, int64_t c) {
  int64_t i = 0;
  for (; i + 16 <= c; i += 16) {
    const v16 d = load16(dy + i) / all16(divisor);
    for (int t = 0; t < num_taps; ++t) store16(dx[t] + i, load16(dx[t] + i) + d);
  }
  for (; i < c; ++i)
    for (int t = 0; t < num_taps; ++t) dx[t][i] += dy[i] / divisor;
}

void dot_taps(float* y, const float* const* taps, const float* const* weights, int num_taps, int64_t c) {
  int64_t i = 0;
  for (; i + 16 <= c; i += 16) {
    v16 s = load16(y + i);
    for (int t = 0; t < num_taps; ++t) s += load16(taps[t] + i) * load16(weights[t] + i);
    store16(y + i, s);
  }
  for (; i < c; ++i) {
    float s = y[i];
    for (int t = 0; t < num_taps; ++t) s += taps[t][i] * weights[t][i];
    y[i] = s;
  }
}

void dot_rows(float* dw, const float* x, int64_t x_stride, const float* dy, int64_t dy_stride, int64_t rows,
              int64_t c) {
  int64_t i = 0;
  for (; i + 16 <= c; i += 16) {
    v16 s = load16(dw + i);
    for (int64_t r = 0; r < rows; ++r) s += load16(x + r * x_stride + i) * load16(dy + r * dy_stride + i);
    store16(dw + i, s);
  }
  for (; i < c; ++i) {
    float s = dw[i];
    for (int64_t r = 0; r < rows; ++r) s += x[r * x_stride + i] * dy[r * dy_stride + i];
    dw[i] = s;
  }
}

}  // namespace
}  // namespace sluice::kernels::cpu

#include "kernels/cpu/vec_lrn.h"
#include "kernels/cpu/vec_matmul.h"

namespace sluice::kernels::cpu {
namespace {

// ---- rows ----

void softmax(float* y, const float* x, int64_t n) {
  const float top = flat_max(x, n);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = exp1(x[i] - top);
  const float total = flat_sum(y, n);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = y[i] / total;
}

void log_softmax(float* y, const float* x, int64_t n) {
  const float top = flat_max(x, n);
  float part[256];
  float total = 0;
  for (int64_t i = 0; i < n; i += 256) {
    const int64_t m = n - i < 256 ? n - i : 256;
#pragma GCC ivdep
    for (int64_t k = 0; k < m; ++k) part[k] = exp1(x[i + k] - top);
    total += flat_sum(part, m);
  }
  const float shift = log1(total);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - top) - shift;
}

void transpose(float* dst, int64_t dst_stride, const float* src, int64_t src_stride, int64_t rows,
               int64_t cols) {
  int64_t r = 0;
  // Four by four in registers; what is left goes one by one.
  using v4 __attribute__((vector_size(16), aligned(4))) = float;
  for (; r + 4 <= rows; r += 4) {
    int64_t c = 0;
    for (; c + 4 <= cols; c += 4) {
      const float* s = src + r * src_stride + c;
      const v4 a = *reinterpret_cast<const v4*>(s), b = *reinterpret_cast<const v4*>(s + src_stride);
      const v4 e = *reinterpret_cast<const v4*>(s + 2 * src_stride);
      const v4 f = *reinterpret_cast<const v4*>(s + 3 * src_stride);
      const v4 ab0 = __builtin_shufflevector(a, b, 0, 4, 1, 5),
               ab1 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
      const v4 ef0 = __builtin_shufflevector(e, f, 0, 4, 1, 5),
               ef1 = __builtin_shufflevector(e, f, 2, 6, 3, 7);
      float* d = dst + c * dst_stride + r;
      *reinterpret_cast<v4*>(d) = __builtin_shufflevector(ab0, ef0, 0, 1, 4, 5);
      *reinterpret_cast<v4*>(d + dst_stride) = __builtin_shufflevector(ab0, ef0, 2, 3, 6, 7);
      *reinterpret_cast<v4*>(d + 2 * dst_stride) = __builtin_shufflevector(ab1, ef1, 0, 1, 4, 5);
      *reinterpret_cast<v4*>(d + 3 * dst_stride) = __builtin_shufflevector(ab1, ef1, 2, 3, 6, 7);
    }
    for (; c < cols; ++c)
      for (int k = 0; k < 4; ++k) dst[c * dst_stride + r + k] = src[(r + k) * src_stride + c];
  }
  for (; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) dst[c * dst_stride + r] = src[r * src_stride + c];
}

}  // namespace

const VecFns& SLUICE_VEC_TABLE() {
  static const VecFns table = {
#define SLUICE_MEMBER(name) f32_##name,
      SLUICE_VEC_F32_OPS(SLUICE_MEMBER)
#undef SLUICE_MEMBER
#define SLUICE_MEMBER(name) i32_##name,
          SLUICE_VEC_I32_OPS(SLUICE_MEMBER)
#undef SLUICE_MEMBER
#define SLUICE_MEMBER(name) f32_##name, i32_##name,
              SLUICE_VEC_COMPARE_OPS(SLUICE_MEMBER)
#undef SLUICE_MEMBER
#define SLUICE_MEMBER(name) bool_##name,
                  SLUICE_VEC_BOOL_OPS(SLUICE_MEMBER)
#undef SLUICE_MEMBER
                      cast_f32_i32,
      cast_i32_f32,
      cast_bool_f32,
      cast_bool_i32,
      cast_f32_bool,
      cast_i32_bool,
      col_sum,
      col_max,
      col_min,
      col_prod,
      flat_sum,
      flat_max,
      flat_min,
      flat_prod,
      col_moments,
      col_grad_sums,
      max_taps,
      max_taps_grad,
      mean_taps,
      mean_taps_grad,
      mat_mul_few,
      lrn_grad,
      softmax,
      log_softmax,
      transpose,
      dot_taps,
      dot_rows};
  return table;
}

}  // namespace sluice::kernels::cpu
