// Softmax, LogSoftmax and both cross-entropies, over the last axis. The row maximum is subtracted, sums are
// in double. A class of label 0 contributes nothing even where its logit is -inf.

#include <cmath>

#include "kernels/reference/common.h"
#include "kernels/reference/register.h"
#include "kernels/scalar.h"

namespace sluice::kernels {
namespace {

// log Σ exp(x - max) of a strided row, and its maximum (NaN if there is one).
template <class T>
double log_sum(const T* x, int64_t n, int64_t stride, double& max) {
  max = -std::numeric_limits<double>::infinity();
  for (int64_t c = 0; c < n; ++c) max = scalar::Maximum{}(max, static_cast<double>(x[c * stride]));
  double sum = 0;
  for (int64_t c = 0; c < n; ++c) sum += std::exp(static_cast<double>(x[c * stride]) - max);
  return std::log(sum);
}

template <bool kLog>
void softmax(KernelRun& r) {
  SLUICE_REQUIRE(!r.in_dims(0).empty(), Code::kInvalidArgument,
                 "logits must have at least 1 dimension, got shape []");
  const int64_t n = r.in_dims(0).back(), rows = n == 0 ? 0 : in_count(r, 0) / n;
  for_float(r.in_dtype(0), [&]<class T>() {
    r.queue().parallel_for(rows, std::max<int64_t>(1, 4096 / std::max<int64_t>(1, n)),
                           [&](int64_t b, int64_t e) {
                             for (int64_t i = b; i < e; ++i) {
                               const T* x = r.in<T>(0) + i * n;
                               T* y = r.out<T>(0) + i * n;
                               double max;
                               const double sum = log_sum(x, n, 1, max);
                               const double inverse = 1.0 / std::exp(sum);
                               for (int64_t c = 0; c < n; ++c) {
                                 const double v = static_cast<double>(x[c]) - max;
                                 y[c] = static_cast<T>(kLog ? v - sum : std::exp(v) * inverse);
                               }
                             }
                           });
  });
}

// (features, labels) → (loss, softmax - labels). Either operand may be broadcast.
void dense_xent(KernelRun& r) {
  const Dims &x = r.in_dims(0), &l = r.in_dims(1), &g = r.out_dims(1);
  SLUICE_REQUIRE(x.size() == 2 && l.size() == 2 && g.size() == 2, Code::kInvalidArgument,
                 "logits and labels must be either 2-dimensional, or broadcasted to be 2-dimensional: ",
                 dims_string(x), " and ", dims_string(l));
  auto stride = [&](const Dims& d, size_t k) -> int64_t { return d[k] == 1 ? 0 : k == 0 ? d[1] : 1; };
  for_float(r.in_dtype(0), [&]<class T>() {
    for (int64_t b = 0; b < g[0]; ++b) {
      const T* px = r.in<T>(0) + b * stride(x, 0);
      const T* pl = r.in<T>(1) + b * stride(l, 0);
      T* pg = r.out<T>(1) + b * g[1];
      const int64_t sx = stride(x, 1), sl = stride(l, 1);
      double max, loss = 0;
      const double sum = log_sum(px, g[1], sx, max);
      for (int64_t c = 0; c < g[1]; ++c) {
        const double v = static_cast<double>(px[c * sx]) - max - sum, label = static_cast<double>(pl[c * sl]);
        // A row whose sum is not a number stays one, whatever its labels.
        if (label != 0 || scalar::is_nan(v)) loss -= label * v;
        pg[c] = static_cast<T>(std::exp(v) - label);
      }
      r.out<T>(0)[b] = static_cast<T>(loss);
    }
  });
}

void sparse_xent(KernelRun& r) {
  const Dims& x = r.in_dims(0);
  SLUICE_REQUIRE(x.size() == 2, Code::kInvalidArgument, "logits must be 2-D, but got shape ", dims_string(x));
  SLUICE_REQUIRE(r.in_dims(1).size() == 1 && r.in_dims(1)[0] == x[0], Code::kInvalidArgument,
                 "logits and labels must have the same first dimension, got logits shape ", dims_string(x),
                 " and labels shape ", dims_string(r.in_dims(1)));
  const int64_t rows = x[0], n = x[1];
  for (int64_t b = 0; b < rows; ++b) {
    const int64_t label = int_at(r, 1, b);
    if (label >= 0 && label < n) continue;
    std::string all;
    for (int64_t k = 0; k < std::min<int64_t>(rows, 100); ++k) all += cat(k ? " " : "", int_at(r, 1, k));
    throw_error(Code::kInvalidArgument,
                cat("Received a label value of ", label, " which is outside the valid range of [0, ", n,
                    ").  Label values: ", all));
  }
  for_float(r.in_dtype(0), [&]<class T>() {
    for (int64_t b = 0; b < rows; ++b) {
      const T* px = r.in<T>(0) + b * n;
      T* pg = r.out<T>(1) + b * n;
      const int64_t label = int_at(r, 1, b);
      double max;
      const double sum = log_sum(px, n, 1, max);
      for (int64_t c = 0; c < n; ++c)
        pg[c] = static_cast<T>(std::exp(static_cast<double>(px[c]) - max - sum) - (c == label ? 1.0 : 0.0));
      r.out<T>(0)[b] = static_cast<T>(sum - (static_cast<double>(px[label]) - max));
    }
  });
}

void l2_loss(KernelRun& r) {
  for_float(r.in_dtype(0), [&]<class T>() {
    BlockSum<double> sum;
    for (int64_t i = 0, n = in_count(r, 0); i < n; ++i) {
      const double v = static_cast<double>(r.in<T>(0)[i]);
      sum.add(v * v);
    }
    r.out<T>(0)[0] = static_cast<T>(sum.sum() / 2);
  });
}

}  // namespace

void register_softmax(KernelRegistry& r) {
  add(r, "Softmax", softmax<false>, {{0, 0}});
  add(r, "LogSoftmax", softmax<true>, {{0, 0}});
  add(r, "SoftmaxCrossEntropyWithLogits", dense_xent);
  add(r, "SparseSoftmaxCrossEntropyWithLogits", sparse_xent);
  add(r, "L2Loss", l2_loss);
}

}  // namespace sluice::kernels
