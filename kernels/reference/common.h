#pragma once
// What the reference kernels share: registration, dispatch on the element type, strided walks over
// N-dimensional values. Kernels are functions of a KernelRun; those with attributes are bound once, when the
// plan is built. Everything here allocates nothing while a kernel runs and may be called from any thread.

#include <array>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>

#include "runtime/kernel.h"

namespace sluice::kernels {

using graph::Dims;
using graph::dims_string;
using graph::DType;
using runtime::Array;
using runtime::KernelRegistry;
using runtime::KernelRun;
using runtime::KernelSpec;

/// A kernel with its attributes bound.
using BoundFn = std::function<void(KernelRun&)>;
/// Reads attributes; throws InvalidArgument or Unimplemented for those it can't obey.
using BindFn = BoundFn (*)(const KernelSpec&);
using Share = std::vector<std::pair<int, int>>;

/// Adds a reference kernel (priority 0) that needs no attributes.
void add(KernelRegistry& r, const char* op, runtime::KernelFn fn, Share share = {});
/// Adds a reference kernel whose attributes are bound when a plan is built.
void add_bound(KernelRegistry& r, const char* op, BindFn bind, Share share = {});

/// `fn` as a kernel.
std::unique_ptr<runtime::Kernel> bound_kernel(BoundFn fn);

[[noreturn]] void unsupported_dtype(DType t);

/// f.operator()<T>() with T float or double.
template <class F>
void for_float(DType t, F&& f) {
  switch (graph::base_dtype(t)) {
    case DType::kFloat:
      return f.template operator()<float>();
    case DType::kDouble:
      return f.template operator()<double>();
    default:
      unsupported_dtype(t);
  }
}

/// T float, double, int32 or int64.
template <class F>
void for_common(DType t, F&& f) {
  switch (graph::base_dtype(t)) {
    case DType::kInt32:
      return f.template operator()<int32_t>();
    case DType::kInt64:
      return f.template operator()<int64_t>();
    default:
      return for_float(t, f);
  }
}

/// T any number type but half, bfloat16 and complex.
template <class F>
void for_numeric(DType t, F&& f) {
  switch (graph::base_dtype(t)) {
    case DType::kInt8:
      return f.template operator()<int8_t>();
    case DType::kInt16:
      return f.template operator()<int16_t>();
    case DType::kUint8:
      return f.template operator()<uint8_t>();
    case DType::kUint16:
      return f.template operator()<uint16_t>();
    case DType::kUint32:
      return f.template operator()<uint32_t>();
    case DType::kUint64:
      return f.template operator()<uint64_t>();
    default:
      return for_common(t, f);
  }
}

/// T int32 or int64: index types.
template <class F>
void for_index(DType t, F&& f) {
  switch (graph::base_dtype(t)) {
    case DType::kInt32:
      return f.template operator()<int32_t>();
    case DType::kInt64:
      return f.template operator()<int64_t>();
    default:
      unsupported_dtype(t);
  }
}

struct Wide {  // complex128 and the like, moved as they are
  uint64_t words[2];
};

/// T an unsigned type of the dtype's size, or std::string: for ops that only move elements.
template <class F>
void for_moved(DType t, F&& f) {
  if (graph::base_dtype(t) == DType::kString) return f.template operator()<std::string>();
  switch (graph::dtype_size(t)) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    case 8:
      return f.template operator()<uint64_t>();
    case 16:
      return f.template operator()<Wide>();
    default:
      unsupported_dtype(t);
  }
}

/// Elements of an input as the moved type (strings come from their Array).
template <class T>
const T* moved_in(const KernelRun& r, int i) {
  if constexpr (std::is_same_v<T, std::string>)
    return r.in_array(i).string_values().data();
  else
    return r.in<T>(i);
}
/// Elements of an output as the moved type; a string output gets a fresh Array of the planned dims.
template <class T>
T* moved_out(const KernelRun& r, int i) {
  if constexpr (std::is_same_v<T, std::string>) {
    r.out_array(i) = Array::strings(r.out_dims(i),
                                    std::vector<std::string>(static_cast<size_t>(r.out_spec(i).elements())));
    return r.out_array(i).string_values().data();
  } else {
    return r.out<T>(i);
  }
}

/// Where to write an output whose dims the kernel has just found: a fresh Array if the plan left the size
/// open, the planned bytes otherwise (the sizes must then agree).
void* result(const KernelRun& r, int i, Dims dims);
/// The output is the input's bytes (strings share their buffer).
void copy_value(const KernelRun& r, int in, int out);

/// Element k of an integer input (int32 or int64) as int64.
int64_t int_at(const KernelRun& r, int input, int64_t k);
inline int64_t scalar_int(const KernelRun& r, int input) { return int_at(r, input, 0); }
/// Element k of a float or double input.
double real_at(const KernelRun& r, int input, int64_t k);
/// Elements of an input.
inline int64_t in_count(const KernelRun& r, int i) { return r.in_spec(i).elements(); }
inline int64_t out_count(const KernelRun& r, int i) { return r.out_spec(i).elements(); }
/// axis in [-rank, rank) as [0, rank); InvalidArgument otherwise.
int resolve_axis(int64_t axis, int rank, const char* what = "axis");

inline constexpr int kMaxRank = 16;
using Index = std::array<int64_t, kMaxRank>;

/// Row-major strides.
Index strides_of(std::span<const int64_t> dims);
/// InvalidArgument when a value has more dimensions than the kernels walk.
void check_rank(size_t rank);

/// A box of elements walked in row-major order with one stride per operand and dimension.
template <int N>
struct Walk {
  int rank = 0;
  Index dims{};
  std::array<Index, N> strides{};

  void push(int64_t dim, std::initializer_list<int64_t> s) {
    check_rank(static_cast<size_t>(rank) + 1);
    dims[static_cast<size_t>(rank)] = dim;
    int k = 0;
    for (int64_t v : s) strides[static_cast<size_t>(k++)][static_cast<size_t>(rank)] = v;
    ++rank;
  }

  int64_t elements() const {
    int64_t n = 1;
    for (int d = 0; d < rank; ++d) n *= dims[static_cast<size_t>(d)];
    return n;
  }

  /// Drops unit dimensions and joins neighbours that every operand walks as one.
  void collapse() {
    int n = 0;
    for (int d = 0; d < rank; ++d) {
      const auto sd = static_cast<size_t>(d);
      if (dims[sd] == 1) continue;
      bool join = n > 0;
      for (int k = 0; join && k < N; ++k) {
        const Index& s = strides[static_cast<size_t>(k)];
        join = s[static_cast<size_t>(n - 1)] == s[sd] * dims[sd];
      }
      const auto to = static_cast<size_t>(join ? n - 1 : n);
      dims[to] = join ? dims[to] * dims[sd] : dims[sd];
      for (int k = 0; k < N; ++k) strides[static_cast<size_t>(k)][to] = strides[static_cast<size_t>(k)][sd];
      if (!join) ++n;
    }
    rank = n;
  }

  /// f(offsets, n): rows of n elements of the innermost dimension, whose strides are `row_stride(k)`.
  template <class F>
  void rows(F&& f) const {
    if (elements() == 0) return;
    std::array<int64_t, N> at{};
    if (rank == 0) return f(at, int64_t{1});
    const auto last = static_cast<size_t>(rank - 1);
    Index i{};
    for (;;) {
      f(at, dims[last]);
      int d = rank - 2;
      for (; d >= 0; --d) {
        const auto sd = static_cast<size_t>(d);
        for (size_t k = 0; k < N; ++k) at[k] += strides[k][sd];
        if (++i[sd] < dims[sd]) break;
        for (size_t k = 0; k < N; ++k) at[k] -= strides[k][sd] * dims[sd];
        i[sd] = 0;
      }
      if (d < 0) return;
    }
  }
  int64_t row_stride(int k) const {
    return rank == 0 ? 0 : strides[static_cast<size_t>(k)][static_cast<size_t>(rank - 1)];
  }
};

/// dst[strides 0] = src[strides 1] over the walk.
template <class T>
void copy_walk(Walk<2> w, T* dst, const T* src) {
  w.collapse();
  const int64_t ds = w.row_stride(0), ss = w.row_stride(1);
  w.rows([&](const std::array<int64_t, 2>& at, int64_t n) {
    T* d = dst + at[0];
    const T* s = src + at[1];
    if (ds == 1 && ss == 1) {
      std::copy(s, s + n, d);
    } else {
      for (int64_t k = 0; k < n; ++k) d[k * ds] = s[k * ss];
    }
  });
}

/// Sums in blocks: the error grows with count/256 and the result never depends on who sums.
/// float sums in double, double in blocks, integers wrap.
template <class T>
struct BlockSum {
  using Acc = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;
  Acc total = 0, block = 0;
  int64_t count = 0;
  void add(T v) {
    block += static_cast<Acc>(v);
    if ((++count & 255) == 0) {
      total += block;
      block = 0;
    }
  }
  Acc sum() const { return total + block; }
};

}  // namespace sluice::kernels
