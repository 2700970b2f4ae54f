// Running sums and products along one axis.

#include "kernels/reference/common.h"
#include "kernels/reference/register.h"
#include "kernels/scalar.h"

namespace sluice::kernels {
namespace {

template <class Op>
BoundFn scan(const KernelSpec& spec, double start) {
  const bool exclusive = spec.attr_or<bool>("exclusive", false),
             reverse = spec.attr_or<bool>("reverse", false);
  return [=](KernelRun& r) {
    const Dims& x = r.in_dims(0);
    if (in_count(r, 0) == 0) return;
    const auto axis = static_cast<size_t>(resolve_axis(scalar_int(r, 1), static_cast<int>(x.size())));
    int64_t outer = 1, inner = 1;
    for (size_t d = 0; d < x.size(); ++d) (d < axis ? outer : inner) *= d == axis ? 1 : x[d];
    const int64_t n = x[axis];
    for_common(r.out_dtype(0), [&]<class T>() {
      using Acc = std::conditional_t<std::is_same_v<T, float>, double, T>;
      for (int64_t o = 0; o < outer; ++o)
        for (int64_t i = 0; i < inner; ++i) {
          const T* from = r.in<T>(0) + o * n * inner + i;
          T* to = r.out<T>(0) + o * n * inner + i;
          Acc acc = static_cast<Acc>(start);
          for (int64_t k = 0; k < n; ++k) {
            const int64_t at = (reverse ? n - 1 - k : k) * inner;
            const Acc next = Op{}(acc, static_cast<Acc>(from[at]));
            to[at] = static_cast<T>(exclusive ? acc : next);
            acc = next;
          }
        }
    });
  };
}

}  // namespace

void register_scan(KernelRegistry& r) {
  add_bound(r, "Cumsum", [](const KernelSpec& s) { return scan<scalar::Add>(s, 0); });
  add_bound(r, "Cumprod", [](const KernelSpec& s) { return scan<scalar::Mul>(s, 1); });
}

}  // namespace sluice::kernels
