#pragma once
// The vector functions under our CPU kernels, compiled once per instruction set (x86-64-v2, AVX2+FMA,
// AVX-512) from one body (vec_body.h) and chosen at run time through a table of pointers. They are stateless
// and know nothing of threads: callers cut the work. Element semantics are those of kernels/scalar.h; sums
// are made in sixteen fixed lanes, so a level gives the same bits however the caller's threads are arranged.

#include <cstdint>

namespace sluice::runtime {
enum class Isa;  // runtime/cpu_features.h; not included: files compiled for one level see no shared inline
                 // code
}

namespace sluice::kernels::cpu {

/// Most rows of the small operand of mat_mul_few.
inline constexpr int64_t kMatMulFewRows = 16;
/// Most channels on either side that lrn_grad takes.
inline constexpr int64_t kLrnMaxRadius = 64;

/// o[i] = op(a[i], b[i], c[i]) for n elements; o may be a, b or c. Unused operands are null; `imm` is an op's
/// attribute. Element types are part of the function's name; bool is one byte, 0 or 1.
using TileFn = void (*)(void* o, const void* a, const void* b, const void* c, int64_t n, float imm);

// X(name): members of VecFns. The name is TensorFlow's op where there is one.
// clang-format off
#define SLUICE_VEC_F32_OPS(X) \
  X(Abs) X(Add) X(Ceil) X(Copy) X(Div) X(DivNoNan) X(EluGrad) X(Exp) X(Floor) X(LeakyRelu) \
  X(LeakyReluGrad) X(Log) X(Maximum) X(Minimum) X(Mul) X(MulAdd) X(MulNoNan) X(MulSub) X(Neg) \
  X(NegMulAdd) X(Reciprocal) X(ReciprocalGrad) X(Relu) X(Relu6) X(Relu6Grad) X(ReluGrad) X(Rint) \
  X(Rsqrt) X(RsqrtGrad) X(Select) X(Sigmoid) X(SigmoidGrad) X(Sign) X(Softsign) X(SoftsignGrad) \
  X(Sqrt) X(SqrtGrad) X(Square) X(SquaredDifference) X(Sub) X(Tanh) X(TanhGrad)
// clang-format on
// clang-format off
#define SLUICE_VEC_I32_OPS(X) \
  X(Abs) X(Add) X(Copy) X(Maximum) X(Minimum) X(Mul) X(Neg) X(Select) X(Square) X(Sub)
// clang-format on
// Comparisons of f32 or i32 that give bool.
#define SLUICE_VEC_COMPARE_OPS(X) X(Equal) X(Greater) X(GreaterEqual) X(Less) X(LessEqual) X(NotEqual)
#define SLUICE_VEC_BOOL_OPS(X) X(Copy) X(LogicalAnd) X(LogicalNot) X(LogicalOr) X(Select)

struct VecFns {
#define SLUICE_MEMBER(name) TileFn f32_##name;
  SLUICE_VEC_F32_OPS(SLUICE_MEMBER)
#undef SLUICE_MEMBER
#define SLUICE_MEMBER(name) TileFn i32_##name;
  SLUICE_VEC_I32_OPS(SLUICE_MEMBER)
#undef SLUICE_MEMBER
#define SLUICE_MEMBER(name) TileFn f32_##name, i32_##name;
  SLUICE_VEC_COMPARE_OPS(SLUICE_MEMBER)
#undef SLUICE_MEMBER
#define SLUICE_MEMBER(name) TileFn bool_##name;
  SLUICE_VEC_BOOL_OPS(SLUICE_MEMBER)
#undef SLUICE_MEMBER
  TileFn cast_f32_i32, cast_i32_f32, cast_bool_f32, cast_bool_i32, cast_f32_bool, cast_i32_bool;

  // acc[c] op= x[r, c] over rows; row-major rows × cols.
  void (*col_sum)(float* acc, const float* x, int64_t rows, int64_t cols);
  void (*col_max)(float* acc, const float* x, int64_t rows, int64_t cols);
  void (*col_min)(float* acc, const float* x, int64_t rows, int64_t cols);
  void (*col_prod)(float* acc, const float* x, int64_t rows, int64_t cols);
  // The reduction of n contiguous elements.
  float (*sum)(const float* x, int64_t n);
  float (*max)(const float* x, int64_t n);
  float (*min)(const float* x, int64_t n);
  float (*prod)(const float* x, int64_t n);

  // Shifted first and second moments of columns: s[c] = Σ(x−k), q[c] = Σ(x−k)² with k[c] = x[0, c].
  void (*col_moments)(float* s, float* q, const float* x, int64_t rows, int64_t cols);
  // s[c] += Σ dy, q[c] += Σ dy·(x − mean[c]).
  void (*col_grad_sums)(float* s, float* q, const float* dy, const float* x, const float* mean, int64_t rows,
                        int64_t cols);

  // y[c] = the first maximum over taps, the first NaN where there is one; dx of the tap that gave it += dy.
  void (*max_taps)(float* y, const float* const* taps, int num_taps, int64_t c);
  void (*max_taps_grad)(float* const* dx, const float* const* taps, int num_taps, const float* dy, int64_t c);
  // y[c] = Σ taps / divisor; every dx[c] += dy[c] / divisor.
  void (*mean_taps)(float* y, const float* const* taps, int num_taps, float divisor, int64_t c);
  void (*mean_taps_grad)(float* const* dx, int num_taps, const float* dy, float divisor, int64_t c);

  // acc[i · cols + j] += Σ_p small[i · small_row + p · small_term] · large[p · large_term + j · large_col]
  // for rows ≤ kMatMulFewRows; large_term or large_col is 1. Few terms meet in a float before they go to acc.
  void (*mat_mul_few)(double* acc, const float* small, int64_t small_row, int64_t small_term, int64_t rows,
                      const float* large, int64_t large_term, int64_t large_col, int64_t terms, int64_t cols);

  // One pixel's gradient of local response normalisation, radius ≤ kLrnMaxRadius; nothing may overlap dx.
  void (*lrn_grad)(float* dx, const float* dy, const float* x, const float* y, int64_t c, int64_t radius,
                   float alpha, float beta, float bias);

  // A row's softmax, or its logarithm.
  void (*softmax)(float* y, const float* x, int64_t n);
  void (*log_softmax)(float* y, const float* x, int64_t n);

  // dst[c · dst_stride + r] = src[r · src_stride + c].
  void (*transpose)(float* dst, int64_t dst_stride, const float* src, int64_t src_stride, int64_t rows,
                    int64_t cols);

  // Depthwise pieces: y[c] += Σ taps[t][c] · w[t][c];  dw[c] += Σ_i x[i·x_stride + c] · dy[i·dy_stride + c].
  void (*dot_taps)(float* y, const float* const* taps, const float* const* weights, int num_taps, int64_t c);
  void (*dot_rows)(float* dw, const float* x, int64_t x_stride, const float* dy, int64_t dy_stride,
                   int64_t rows, int64_t c);
};

/// Null where the build lacks it; never for kSse42.
const VecFns& vec_fns(runtime::Isa isa);

// One per translation unit compiled for that level.
const VecFns& vec_fns_sse42();
const VecFns& vec_fns_avx2();
const VecFns& vec_fns_avx512();

}  // namespace sluice::kernels::cpu
