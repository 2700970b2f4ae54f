// Broadcasting binary ops and comparisons: one N-dimensional driver, one small row loop per function and
// element type.

#include "kernels/reference/broadcast.h"
#include "kernels/reference/common.h"
#include "kernels/reference/register.h"
#include "kernels/scalar.h"

namespace sluice::kernels {
namespace {

using RowFn = void (*)(void* out, const void* x, int64_t sx, const void* y, int64_t sy, int64_t n);

template <class Op, class T, class R>
void row(void* out, const void* xv, int64_t sx, const void* yv, int64_t sy, int64_t n) {
  const T* x = static_cast<const T*>(xv);
  const T* y = static_cast<const T*>(yv);
  R* z = static_cast<R*>(out);
  const Op op;
  if (sx == 1 && sy == 1) {
    for (int64_t i = 0; i < n; ++i) z[i] = op(x[i], y[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) z[i] = op(x[i * sx], y[i * sy]);
  }
}

void broadcast_rows(KernelRun& r, RowFn fn) {
  const size_t in_size = graph::dtype_size(r.in_dtype(0)), out_size = graph::dtype_size(r.out_dtype(0));
  const auto* x = static_cast<const char*>(r.in_data(0));
  const auto* y = static_cast<const char*>(r.in_data(1));
  auto* z = static_cast<char*>(r.out_data(0));
  if (r.in_dims(0) == r.in_dims(1)) {
    r.queue().parallel_for(out_count(r, 0), 16384, [&](int64_t b, int64_t e) {
      const auto sb = static_cast<size_t>(b);
      fn(z + sb * out_size, x + sb * in_size, 1, y + sb * in_size, 1, e - b);
    });
    return;
  }
  Walk<3> w = broadcast_walk(r.out_dims(0), r.in_dims(0), r.in_dims(1));
  w.collapse();
  const int64_t sx = w.row_stride(1), sy = w.row_stride(2);
  w.rows([&](const std::array<int64_t, 3>& at, int64_t n) {
    fn(z + static_cast<size_t>(at[0]) * out_size, x + static_cast<size_t>(at[1]) * in_size, sx,
       y + static_cast<size_t>(at[2]) * in_size, sy, n);
  });
}

template <class Op>
void binary_float(KernelRun& r) {
  for_float(r.in_dtype(0), [&]<class T>() { broadcast_rows(r, row<Op, T, T>); });
}

template <class Op>
void binary_numeric(KernelRun& r) {
  for_numeric(r.in_dtype(0), [&]<class T>() { broadcast_rows(r, row<Op, T, T>); });
}

template <class Op>
void compare(KernelRun& r) {
  if (r.in_dtype(0) == DType::kBool) return broadcast_rows(r, row<Op, bool, bool>);
  if (r.in_dtype(0) == DType::kString) {
    const std::string* x = moved_in<std::string>(r, 0);
    const std::string* y = moved_in<std::string>(r, 1);
    Walk<3> w = broadcast_walk(r.out_dims(0), r.in_dims(0), r.in_dims(1));
    w.rows([&](const std::array<int64_t, 3>& at, int64_t n) {
      for (int64_t i = 0; i < n; ++i)
        r.out<bool>(0)[at[0] + i] =
            Op{}(x[at[1] + i * w.row_stride(1)].compare(y[at[2] + i * w.row_stride(2)]), 0);
    });
    return;
  }
  for_numeric(r.in_dtype(0), [&]<class T>() { broadcast_rows(r, row<Op, T, bool>); });
}

template <class T>
bool any_zero(const T* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    if (y[i] == T(0)) return true;
  return false;
}

/// Division family: integers refuse a zero divisor before anything is written.
template <class Op>
void divide(KernelRun& r) {
  if (graph::is_integer(r.in_dtype(0)))
    for_numeric(r.in_dtype(1), [&]<class T>() {
      SLUICE_REQUIRE(!any_zero(r.in<T>(1), in_count(r, 1)), Code::kInvalidArgument,
                     "Integer division by zero");
    });
  binary_numeric<Op>(r);
}

void power(KernelRun& r) {
  if (graph::is_integer(r.in_dtype(0)))
    for_numeric(r.in_dtype(1), [&]<class T>() {
      if constexpr (std::is_signed_v<T>)
        for (int64_t i = 0, n = in_count(r, 1); i < n; ++i)
          SLUICE_REQUIRE(r.in<T>(1)[i] >= T(0), Code::kInvalidArgument,
                         "Integers to negative integer powers are not allowed");
    });
  binary_numeric<scalar::Pow>(r);
}

template <class Op>
struct Chosen {
  static constexpr runtime::KernelFn fn = binary_numeric<Op>;
};
template <>
struct Chosen<scalar::Div> {
  static constexpr runtime::KernelFn fn = divide<scalar::Div>;
};
template <>
struct Chosen<scalar::RealDiv> {
  static constexpr runtime::KernelFn fn = divide<scalar::RealDiv>;
};
template <>
struct Chosen<scalar::FloorDiv> {
  static constexpr runtime::KernelFn fn = divide<scalar::FloorDiv>;
};
template <>
struct Chosen<scalar::FloorMod> {
  static constexpr runtime::KernelFn fn = divide<scalar::FloorMod>;
};
template <>
struct Chosen<scalar::TruncateMod> {
  static constexpr runtime::KernelFn fn = divide<scalar::TruncateMod>;
};
template <>
struct Chosen<scalar::Pow> {
  static constexpr runtime::KernelFn fn = power;
};

}  // namespace

Walk<3> broadcast_walk(const Dims& out, const Dims& x, const Dims& y) {
  const Index sz = strides_of(out), sx = strides_of(x), sy = strides_of(y);
  Walk<3> w;
  for (size_t d = 0; d < out.size(); ++d) {
    auto stride = [&](const Dims& dims, const Index& s) -> int64_t {
      if (d + dims.size() < out.size()) return 0;
      const size_t k = d + dims.size() - out.size();
      if (dims[k] == out[d]) return s[k];
      SLUICE_REQUIRE(dims[k] == 1, Code::kInvalidArgument, "Incompatible shapes: ", dims_string(x), " vs. ",
                     dims_string(y));
      return 0;
    };
    w.push(out[d], {sz[d], stride(x, sx), stride(y, sy)});
  }
  return w;
}

void register_elementwise_binary(KernelRegistry& r) {
#define SLUICE_X(Name) add(r, #Name, Chosen<scalar::Name>::fn, {{0, 0}, {1, 0}});
  SLUICE_BINARY_NUMERIC_OPS(SLUICE_X)
#undef SLUICE_X
#define SLUICE_X(Name) add(r, #Name, binary_float<scalar::Name>, {{0, 0}, {1, 0}});
  SLUICE_BINARY_FLOAT_OPS(SLUICE_X)
  SLUICE_GRAD_OPS(SLUICE_X)
#undef SLUICE_X
#define SLUICE_X(Name) add(r, #Name, compare<scalar::Name>);
  SLUICE_COMPARE_OPS(SLUICE_X)
#undef SLUICE_X
#define SLUICE_X(Name) \
  add(r, #Name, [](KernelRun& run) { broadcast_rows(run, row<scalar::Name, bool, bool>); }, {{0, 0}, {1, 0}});
  SLUICE_LOGICAL_OPS(SLUICE_X)
#undef SLUICE_X
}

}  // namespace sluice::kernels
