#pragma once
// Matrix products with few rows, part of the vector functions' body (vec_body.h, which includes it; its
// rules hold here). Sums of floats are short: after kShort terms a lane goes into a double, so
// the error of a product does not grow with the number of its terms. Such products read each element of the
// large operand once, and wait for memory; the care costs no time.

namespace sluice::kernels::cpu {
namespace {

// Vectors of the level's own width (a wider type would live in memory), and as many accumulators, rows ×
// vectors, as its registers hold beside the operands.
#if defined(__AVX512F__)
constexpr int kLanes = 16, kFewRows = 4, kFewVectors = 4;
#elif defined(__AVX2__)
constexpr int kLanes = 8, kFewRows = 4, kFewVectors = 2;
#else
constexpr int kLanes = 4, kFewRows = 2, kFewVectors = 4;
#endif
using lanes __attribute__((vector_size(4 * kLanes), aligned(4))) = float;
inline __attribute__((always_inline)) lanes load_lanes(const float* p) {
  return *reinterpret_cast<const lanes*>(p);
}

constexpr int64_t kShort = 32;                  // terms a float lane adds up
constexpr int64_t kShortRow = kShort * kLanes;  // of a row read along its terms, all lanes wide

// acc[i · acc_stride + j] += Σ_p small[i · si + p · sp] · large[p · ld + j] over `terms` ≤ kShort terms, for
// Rows rows and kLanes · Vectors columns.
template <int Rows, int Vectors>
inline __attribute__((always_inline)) void few_across(double* acc, int64_t acc_stride, const float* small,
                                                      int64_t si, int64_t sp, const float* large, int64_t ld,
                                                      int64_t terms) {
  lanes s[Rows][Vectors] = {};
  for (int64_t p = 0; p < terms; ++p) {
    lanes x[Vectors];
    for (int v = 0; v < Vectors; ++v) x[v] = load_lanes(large + p * ld + kLanes * v);
    for (int i = 0; i < Rows; ++i) {
      const lanes a = lanes{} + small[i * si + p * sp];
      for (int v = 0; v < Vectors; ++v) s[i][v] += a * x[v];
    }
  }
  for (int i = 0; i < Rows; ++i)
    for (int v = 0; v < Vectors; ++v) {
      float lane[kLanes];
      *reinterpret_cast<lanes*>(lane) = s[i][v];
      double* to = acc + i * acc_stride + kLanes * v;
      for (int k = 0; k < kLanes; ++k) to[k] += static_cast<double>(lane[k]);
    }
}

template <int Vectors>
inline __attribute__((always_inline)) void few_across_rows(double* acc, int64_t acc_stride,
                                                           const float* small, int64_t si, int64_t sp,
                                                           int64_t rows, const float* large, int64_t ld,
                                                           int64_t terms) {
  int64_t i = 0;
  for (; i + kFewRows <= rows; i += kFewRows)
    few_across<kFewRows, Vectors>(acc + i * acc_stride, acc_stride, small + i * si, si, sp, large, ld, terms);
  if (i + 2 <= rows && kFewRows > 2) {
    few_across<2, Vectors>(acc + i * acc_stride, acc_stride, small + i * si, si, sp, large, ld, terms);
    i += 2;
  }
  if (i < rows)
    few_across<1, Vectors>(acc + i * acc_stride, acc_stride, small + i * si, si, sp, large, ld, terms);
}

// The sum of Rows × Columns dot products of n ≤ kShortRow contiguous terms.
template <int Rows, int Columns>
inline __attribute__((always_inline)) void few_along(double* acc, int64_t acc_stride, const float* small,
                                                     int64_t si, const float* large, int64_t ld, int64_t n) {
  lanes s[Rows][Columns] = {};
  int64_t p = 0;
  for (; p + kLanes <= n; p += kLanes) {
    lanes x[Columns];
    for (int j = 0; j < Columns; ++j) x[j] = load_lanes(large + j * ld + p);
    for (int i = 0; i < Rows; ++i) {
      const lanes a = load_lanes(small + i * si + p);
      for (int j = 0; j < Columns; ++j) s[i][j] += a * x[j];
    }
  }
  for (int i = 0; i < Rows; ++i)
    for (int j = 0; j < Columns; ++j) {
      float lane[kLanes];
      *reinterpret_cast<lanes*>(lane) = s[i][j];
      double part[4] = {};
      for (int k = 0; k < kLanes; ++k) part[k & 3] += static_cast<double>(lane[k]);
      double sum = (part[0] + part[2]) + (part[1] + part[3]);
      for (int64_t q = p; q < n; ++q)
        sum += static_cast<double>(small[i * si + q]) * static_cast<double>(large[j * ld + q]);
      acc[i * acc_stride + j] += sum;
    }
}

template <int Columns>
inline __attribute__((always_inline)) void few_along_rows(double* acc, int64_t acc_stride, const float* small,
                                                          int64_t si, int64_t rows, const float* large,
                                                          int64_t ld, int64_t n) {
  int64_t i = 0;
  for (; i + kFewRows <= rows; i += kFewRows)
    few_along<kFewRows, Columns>(acc + i * acc_stride, acc_stride, small + i * si, si, large, ld, n);
  if (i + 2 <= rows && kFewRows > 2) {
    few_along<2, Columns>(acc + i * acc_stride, acc_stride, small + i * si, si, large, ld, n);
    i += 2;
  }
  if (i < rows) few_along<1, Columns>(acc + i * acc_stride, acc_stride, small + i * si, si, large, ld, n);
}

void mat_mul_few(double* acc, const float* small, int64_t small_row, int64_t small_term, int64_t rows,
                 const float* large, int64_t large_term, int64_t large_col, int64_t terms, int64_t cols) {
  if (large_col == 1) {
    float edge[kShort * kLanes];  // columns past the last whole vector, with zeros behind them
    double edge_acc[kMatMulFewRows * kLanes];
    for (int64_t p = 0; p < terms; p += kShort) {
      const int64_t n = terms - p < kShort ? terms - p : kShort;
      const float* a = small + p * small_term;
      const float* b = large + p * large_term;
      int64_t j = 0;
      for (; j + kLanes * kFewVectors <= cols; j += kLanes * kFewVectors)
        few_across_rows<kFewVectors>(acc + j, cols, a, small_row, small_term, rows, b + j, large_term, n);
      for (; j + kLanes <= cols; j += kLanes)
        few_across_rows<1>(acc + j, cols, a, small_row, small_term, rows, b + j, large_term, n);
      if (j == cols) continue;
      for (int64_t q = 0; q < n; ++q)
        for (int64_t k = 0; k < kLanes; ++k)
          edge[q * kLanes + k] = j + k < cols ? b[q * large_term + j + k] : 0.f;
      for (int64_t i = 0; i < rows * kLanes; ++i) edge_acc[i] = 0;
      few_across_rows<1>(edge_acc, kLanes, a, small_row, small_term, rows, edge, kLanes, n);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t k = 0; j + k < cols; ++k) acc[i * cols + j + k] += edge_acc[i * kLanes + k];
    }
    return;
  }
  float turned[kMatMulFewRows * kShortRow];
  for (int64_t p = 0; p < terms; p += kShortRow) {
    const int64_t n = terms - p < kShortRow ? terms - p : kShortRow;
    const float* a = small + p;
    int64_t a_row = small_row;
    if (small_term != 1) {
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t q = 0; q < n; ++q)
          turned[i * kShortRow + q] = small[i * small_row + (p + q) * small_term];
      a = turned;
      a_row = kShortRow;
    }
    int64_t j = 0;
    for (; j + kFewVectors <= cols && kFewVectors > 1; j += kFewVectors)
      few_along_rows<kFewVectors>(acc + j, cols, a, a_row, rows, large + j * large_col + p, large_col, n);
    for (; j < cols; ++j)
      few_along_rows<1>(acc + j, cols, a, a_row, rows, large + j * large_col + p, large_col, n);
  }
}

}  // namespace
}  // namespace sluice::kernels::cpu
