// Cast, Select and SelectV2, AddN.

#include "kernels/reference/common.h"
#include "kernels/reference/register.h"
#include "kernels/scalar.h"

namespace sluice::kernels {
namespace {

template <class F>
void for_castable(DType t, F&& f) {
  if (graph::base_dtype(t) == DType::kBool) return f.template operator()<bool>();
  for_numeric(t, f);
}

void cast(KernelRun& r) {
  if (r.in_dtype(0) == r.out_dtype(0)) return copy_value(r, 0, 0);
  for_castable(r.in_dtype(0), [&]<class From>() {
    for_castable(r.out_dtype(0), [&]<class To>() {
      const From* x = r.in<From>(0);
      To* y = r.out_is_array(0) ? static_cast<To*>(result(r, 0, r.in_dims(0))) : r.out<To>(0);
      for (int64_t i = 0, n = in_count(r, 0); i < n; ++i) y[i] = scalar::cast<To, From>(x[i]);
    });
  });
}

// The condition is of the operands' shape, a scalar, or one value a row.
void select(KernelRun& r) {
  const int64_t n = out_count(r, 0), conditions = in_count(r, 0);
  const bool rows = r.in_dims(0).size() == 1 && r.in_dims(1).size() > 1;
  const int64_t per = r.in_dims(0).empty() ? std::max<int64_t>(n, 1)
                      : rows               ? (conditions ? n / conditions : 1)
                                           : 1;
  for_moved(r.out_dtype(0), [&]<class T>() {
    T* to = moved_out<T>(r, 0);
    const T *x = moved_in<T>(r, 1), *y = moved_in<T>(r, 2);
    const bool* c = r.in<bool>(0);
    for (int64_t i = 0; i < n; ++i) to[i] = c[i / per] ? x[i] : y[i];
  });
}

int64_t stride_under(const Dims& out, size_t d, const Dims& dims, const Index& s) {
  if (d + dims.size() < out.size()) return 0;
  const size_t k = d + dims.size() - out.size();
  return dims[k] == 1 && out[d] != 1 ? 0 : s[k];
}

void select_v2(KernelRun& r) {
  const Dims& out = r.out_dims(0);
  const Index so = strides_of(out), sc = strides_of(r.in_dims(0)), sx = strides_of(r.in_dims(1)),
              sy = strides_of(r.in_dims(2));
  Walk<4> w;
  for (size_t d = 0; d < out.size(); ++d)
    w.push(out[d], {so[d], stride_under(out, d, r.in_dims(0), sc), stride_under(out, d, r.in_dims(1), sx),
                    stride_under(out, d, r.in_dims(2), sy)});
  w.collapse();
  for_moved(r.out_dtype(0), [&]<class T>() {
    T* to = moved_out<T>(r, 0);
    const T *x = moved_in<T>(r, 1), *y = moved_in<T>(r, 2);
    const bool* c = r.in<bool>(0);
    const int64_t ct = w.row_stride(0), cc = w.row_stride(1), cx = w.row_stride(2), cy = w.row_stride(3);
    w.rows([&](const std::array<int64_t, 4>& at, int64_t n) {
      for (int64_t i = 0; i < n; ++i)
        to[at[0] + i * ct] = c[at[1] + i * cc] ? x[at[2] + i * cx] : y[at[3] + i * cy];
    });
  });
}

void add_n(KernelRun& r) {
  for_numeric(r.out_dtype(0), [&]<class T>() {
    T* y = r.out<T>(0);
    r.queue().parallel_for(out_count(r, 0), 16384, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        T sum = r.in<T>(0)[i];
        for (int k = 1; k < r.num_inputs(); ++k) sum = scalar::wrap_add(sum, r.in<T>(k)[i]);
        y[i] = sum;
      }
    });
  });
}

// (t, low, high): low wins where it exceeds high; the bounds are of t's shape or scalars.
void clip_by_value(KernelRun& r) {
  for_numeric(r.out_dtype(0), [&]<class T>() {
    const bool one_low = r.in_dims(1).empty(), one_high = r.in_dims(2).empty();
    for (int64_t i = 0, n = out_count(r, 0); i < n; ++i)
      r.out<T>(0)[i] = scalar::Maximum{}(scalar::Minimum{}(r.in<T>(0)[i], r.in<T>(2)[one_high ? 0 : i]),
                                         r.in<T>(1)[one_low ? 0 : i]);
  });
}

}  // namespace

void register_select_cast(KernelRegistry& r) {
  add(r, "Cast", cast);
  add(r, "Select", select, {{1, 0}, {2, 0}});
  add(r, "SelectV2", select_v2, {{1, 0}, {2, 0}});
  add(r, "ClipByValue", clip_by_value, {{0, 0}});
  add(r, "AddN", add_n, {{0, 0}});
  add(r, "AccumulateNV2", add_n, {{0, 0}});
}

}  // namespace sluice::kernels
