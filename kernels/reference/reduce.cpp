// Reductions over any axes, ArgMax and ArgMin. Every output element is summed by one thread in one fixed
// order: float in double, double in blocks, so that the result does not depend on the team's width.

#include <cmath>
#include <limits>

#include "kernels/reference/common.h"
#include "kernels/reference/register.h"
#include "kernels/scalar.h"

namespace sluice::kernels {
namespace {

template <class T>
struct SumAcc {
  using Wide = std::conditional_t<std::is_same_v<T, float>, double, T>;
  Wide total = 0;
  void add(T v) { total = scalar::wrap_add(total, static_cast<Wide>(v)); }
  T get(int64_t) const { return static_cast<T>(total); }
};
template <>
struct SumAcc<double> {
  BlockSum<double> sum;
  void add(double v) { sum.add(v); }
  double get(int64_t) const { return sum.sum(); }
};
template <class T>
struct MeanAcc {
  SumAcc<T> sum;
  void add(T v) { sum.add(v); }
  T get(int64_t n) const {
    if constexpr (std::is_same_v<T, float>) {
      return static_cast<T>(sum.total / static_cast<double>(n));
    } else if constexpr (std::is_integral_v<T>) {
      return n == 0 ? T(0) : scalar::Div{}(sum.get(n), static_cast<T>(n));
    } else {
      return sum.get(n) / static_cast<T>(n);
    }
  }
};
template <class T>
struct ProdAcc {
  T total = 1;
  void add(T v) { total = scalar::wrap_mul(total, v); }
  T get(int64_t) const { return total; }
};
template <class T>
struct MaxAcc {
  T total = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                 : std::numeric_limits<T>::lowest();
  void add(T v) { total = scalar::Maximum{}(total, v); }
  T get(int64_t) const { return total; }
};
template <class T>
struct MinAcc {
  T total = std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                                 : std::numeric_limits<T>::max();
  void add(T v) { total = scalar::Minimum{}(total, v); }
  T get(int64_t) const { return total; }
};
template <class T>
struct NormAcc {
  double total = 0;
  void add(T v) { total += static_cast<double>(v) * static_cast<double>(v); }
  T get(int64_t) const { return static_cast<T>(std::sqrt(total)); }
};
struct AllAcc {
  bool total = true;
  void add(bool v) { total = total && v; }
  bool get(int64_t) const { return total; }
};
struct AnyAcc {
  bool total = false;
  void add(bool v) { total = total || v; }
  bool get(int64_t) const { return total; }
};

// The input seen as outer kept dims × reduced dims × one run of `width` neighbouring outputs (1 when the
// innermost dimension is reduced).
struct Reduction {
  Walk<1> kept, reduced;
  int64_t width = 1;
};

Reduction plan_reduction(const KernelRun& r) {
  const Dims& x = r.in_dims(0);
  const int rank = static_cast<int>(x.size());
  std::array<bool, kMaxRank> flag{};
  check_rank(x.size());
  for (int64_t k = 0; k < in_count(r, 1); ++k)
    flag[static_cast<size_t>(resolve_axis(int_at(r, 1, k), rank, "reduction axis"))] = true;
  const Index s = strides_of(x);
  Reduction p;
  int last = rank - 1;
  for (; last >= 0 && !flag[static_cast<size_t>(last)]; --last) p.width *= x[static_cast<size_t>(last)];
  for (int d = 0; d <= last; ++d) {
    const auto sd = static_cast<size_t>(d);
    (flag[sd] ? p.reduced : p.kept).push(x[sd], {s[sd]});
  }
  p.kept.collapse();
  p.reduced.collapse();
  return p;
}

int64_t offset_of(const Walk<1>& w, int64_t flat) {
  int64_t at = 0;
  for (int d = w.rank - 1; d >= 0; --d) {
    const auto sd = static_cast<size_t>(d);
    at += flat % w.dims[sd] * w.strides[0][sd];
    flat /= w.dims[sd];
  }
  return at;
}

template <class Acc, class T>
void reduce(KernelRun& r) {
  constexpr int64_t kBlock = 64;
  const Reduction p = plan_reduction(r);
  const T* x = r.in<T>(0);
  T* y = r.out<T>(0);
  const int64_t outer = p.kept.elements(), count = p.reduced.elements();
  const int64_t blocks = (p.width + kBlock - 1) / kBlock;
  const int64_t stride = p.reduced.row_stride(0);
  const int64_t work = std::max<int64_t>(1, count * std::min(p.width, kBlock));
  r.queue().parallel_for(outer * blocks, std::max<int64_t>(1, 65536 / work), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t o = task / blocks, c = task % blocks * kBlock;
      const int64_t n = std::min(kBlock, p.width - c);
      const T* from = x + offset_of(p.kept, o) + c;
      Acc acc[kBlock];
      p.reduced.rows([&](const std::array<int64_t, 1>& at, int64_t len) {
        const T* row = from + at[0];
        if (n == 1) {
          Acc one = acc[0];
          for (int64_t k = 0; k < len; ++k) one.add(row[k * stride]);
          acc[0] = one;
        } else {
          for (int64_t k = 0; k < len; ++k)
            for (int64_t j = 0; j < n; ++j) acc[j].add(row[k * stride + j]);
        }
      });
      for (int64_t j = 0; j < n; ++j) y[o * p.width + c + j] = acc[j].get(count);
    }
  });
}

template <template <class> class Acc>
void reduce_numeric(KernelRun& r) {
  for_numeric(r.in_dtype(0), [&]<class T>() { reduce<Acc<T>, T>(r); });
}

template <template <class> class Acc>
void reduce_float(KernelRun& r) {
  for_float(r.in_dtype(0), [&]<class T>() { reduce<Acc<T>, T>(r); });
}

// First position of the extreme; NaN is never chosen unless nothing else is there.
template <bool kMax>
void arg_extreme(KernelRun& r) {
  const Dims& x = r.in_dims(0);
  const auto axis = static_cast<size_t>(
      resolve_axis(in_count(r, 1) ? scalar_int(r, 1) : 0, static_cast<int>(x.size()), "dimension"));
  int64_t outer = 1, inner = 1;
  for (size_t d = 0; d < x.size(); ++d) (d < axis ? outer : inner) *= d == axis ? 1 : x[d];
  const int64_t n = x[axis];
  SLUICE_REQUIRE(n > 0, Code::kInvalidArgument, "Reduction axis ", axis, " is empty in shape ",
                 dims_string(x));
  for_numeric(r.in_dtype(0), [&]<class T>() {
    for_index(r.out_dtype(0), [&]<class I>() {
      for (int64_t o = 0; o < outer; ++o)
        for (int64_t i = 0; i < inner; ++i) {
          const T* from = r.in<T>(0) + o * n * inner + i;
          int64_t best = 0;
          for (int64_t k = 1; k < n; ++k) {
            const T v = from[k * inner], b = from[best * inner];
            if ((kMax ? v > b : v < b) || (scalar::is_nan(b) && !scalar::is_nan(v))) best = k;
          }
          r.out<I>(0)[o * inner + i] = static_cast<I>(best);
        }
    });
  });
}

}  // namespace

void register_reduce(KernelRegistry& r) {
  add(r, "Sum", reduce_numeric<SumAcc>);
  add(r, "Mean", reduce_numeric<MeanAcc>);
  add(r, "Prod", reduce_numeric<ProdAcc>);
  add(r, "Max", reduce_numeric<MaxAcc>);
  add(r, "Min", reduce_numeric<MinAcc>);
  add(r, "EuclideanNorm", reduce_float<NormAcc>);
  add(r, "All", reduce<AllAcc, bool>);
  add(r, "Any", reduce<AnyAcc, bool>);
  add(r, "ArgMax", arg_extreme<true>);
  add(r, "ArgMin", arg_extreme<false>);
}

}  // namespace sluice::kernels
