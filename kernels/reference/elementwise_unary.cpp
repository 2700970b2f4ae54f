// One loop for every unary function of kernels/scalar.h, by element type.

#include "kernels/reference/common.h"
#include "kernels/reference/register.h"
#include "kernels/scalar.h"

namespace sluice::kernels {
namespace {

constexpr int64_t kGrain = 16384;

template <class Op, class T, class R>
void map(KernelRun& r) {
  const T* x = r.in<T>(0);
  R* y = r.out<R>(0);
  r.queue().parallel_for(out_count(r, 0), kGrain, [&](int64_t b, int64_t e) {
    const Op op;
    for (int64_t i = b; i < e; ++i) y[i] = op(x[i]);
  });
}

template <class Op>
void unary_float(KernelRun& r) {
  for_float(r.in_dtype(0), [&]<class T>() { map<Op, T, T>(r); });
}

template <class Op>
void unary_numeric(KernelRun& r) {
  for_numeric(r.in_dtype(0), [&]<class T>() { map<Op, T, T>(r); });
}

template <class Op>
void unary_test(KernelRun& r) {
  for_float(r.in_dtype(0), [&]<class T>() { map<Op, T, bool>(r); });
}

BoundFn leaky_relu(const KernelSpec& spec) {
  const float alpha = spec.attr_or<float>("alpha", 0.2f);
  return [alpha](KernelRun& r) {
    for_float(r.in_dtype(0), [&]<class T>() {
      const T a = static_cast<T>(alpha);
      for (int64_t i = 0, n = out_count(r, 0); i < n; ++i)
        r.out<T>(0)[i] = scalar::LeakyRelu{}(r.in<T>(0)[i], a);
    });
  };
}

BoundFn leaky_relu_grad(const KernelSpec& spec) {
  const float alpha = spec.attr_or<float>("alpha", 0.2f);
  return [alpha](KernelRun& r) {
    for_float(r.in_dtype(0), [&]<class T>() {
      const T a = static_cast<T>(alpha);
      for (int64_t i = 0, n = out_count(r, 0); i < n; ++i)
        r.out<T>(0)[i] = scalar::LeakyReluGrad{}(r.in<T>(0)[i], r.in<T>(1)[i], a);
    });
  };
}

}  // namespace

void register_elementwise_unary(KernelRegistry& r) {
#define SLUICE_X(Name) add(r, #Name, unary_float<scalar::Name>, {{0, 0}});
  SLUICE_UNARY_FLOAT_OPS(SLUICE_X)
#undef SLUICE_X
#define SLUICE_X(Name) add(r, #Name, unary_numeric<scalar::Name>, {{0, 0}});
  SLUICE_UNARY_NUMERIC_OPS(SLUICE_X)
#undef SLUICE_X
#define SLUICE_X(Name) add(r, #Name, unary_test<scalar::Name>);
  SLUICE_UNARY_TEST_OPS(SLUICE_X)
#undef SLUICE_X
  add(r, "LogicalNot", map<scalar::LogicalNot, bool, bool>, {{0, 0}});
  add_bound(r, "LeakyRelu", leaky_relu, {{0, 0}});
  add_bound(r, "LeakyReluGrad", leaky_relu_grad, {{0, 0}, {1, 0}});
}

}  // namespace sluice::kernels
