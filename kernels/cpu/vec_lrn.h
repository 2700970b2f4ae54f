#pragma once
// The gradient of local response normalisation, part of the vector functions' body (vec_body.h, which
// includes it; its rules hold here).

namespace sluice::kernels::cpu {
namespace {

constexpr int64_t kLrnChunk = 512;  // channels at a time: what they need stays in L1

// n^−beta of positive numbers, into p. The two powers that networks use are roots.
void negative_power(float* p, const float* n, int64_t count, float beta) {
  if (beta == 0.75f)
    for (int64_t i = 0; i < count; ++i)
      p[i] = 1.f / (__builtin_sqrtf(n[i]) * __builtin_sqrtf(__builtin_sqrtf(n[i])));
  else if (beta == 0.5f)
    for (int64_t i = 0; i < count; ++i) p[i] = 1.f / __builtin_sqrtf(n[i]);
  else
    for (int64_t i = 0; i < count; ++i) p[i] = exp1(-beta * log1(n[i]));
}

// dx[k] = dy[k] · n[k]^−β − 2αβ x[k] Σ_j dy[j] y[j] / n[j] over the window around k, where n[j] = bias + α Σ
// x² over the window around j; windows end at the first and the last channel.
void lrn_grad(float* dx, const float* dy, const float* x, const float* y, int64_t c, int64_t radius,
              float alpha, float beta, float bias) {
  float norm[kLrnChunk + 2 * kLrnMaxRadius], ratio[kLrnChunk + 2 * kLrnMaxRadius], power[kLrnChunk];
  for (int64_t first = 0; first < c; first += kLrnChunk) {
    const int64_t last = first + kLrnChunk < c ? first + kLrnChunk : c;
    const int64_t lo = first > radius ? first - radius : 0, hi = last + radius < c ? last + radius : c;
    for (int64_t j = lo; j < hi; ++j) norm[j - lo] = 0;
    for (int64_t d = -radius; d <= radius; ++d) {
      const int64_t a = lo > -d ? lo : -d, b = hi < c - d ? hi : c - d;
      for (int64_t j = a; j < b; ++j) norm[j - lo] += x[j + d] * x[j + d];
    }
    for (int64_t j = lo; j < hi; ++j) {
      norm[j - lo] = bias + alpha * norm[j - lo];
      ratio[j - lo] = dy[j] * y[j] / norm[j - lo];
    }
    negative_power(power, norm + (first - lo), last - first, beta);
    float* sum = norm;  // its last use is over
    for (int64_t k = 0; k < last - first; ++k) sum[k] = 0;
    for (int64_t d = -radius; d <= radius; ++d) {
      const int64_t a = first > lo - d ? first : lo - d, b = last < hi - d ? last : hi - d;
      for (int64_t k = a; k < b; ++k) sum[k - first] += ratio[k + d - lo];
    }
    const float factor = 2.f * alpha * beta;
#pragma GCC ivdep
    for (int64_t k = first; k < last; ++k) dx[k] = dy[k] * power[k - first] - factor * x[k] * sum[k - first];
  }
}

}  // namespace
}  // namespace sluice::kernels::cpu
