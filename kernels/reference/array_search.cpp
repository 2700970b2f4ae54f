// Ops that look for elements: TopK, InTopK, Where, Unique, ListDiff.

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <unordered_map>

#include "kernels/reference/common.h"
#include "kernels/reference/register.h"

namespace sluice::kernels {
namespace {

// NaN counts as larger than every number, so that it is seen.
template <class T>
bool before(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    if (x != x) return y == y;
    if (y != y) return false;
  }
  return x > y;
}

// The k largest of a row of n, largest first, ties by position. Small k: insertion into the results.
template <class T>
void top_k_row(const T* x, int64_t n, int64_t k, T* values, int32_t* indices) {
  if (k > 64) {
    std::vector<int32_t> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + k, order.end(), [x](int32_t a, int32_t b) {
      return before(x[a], x[b]) || (!before(x[b], x[a]) && a < b);
    });
    for (int64_t i = 0; i < k; ++i) {
      indices[i] = order[static_cast<size_t>(i)];
      values[i] = x[indices[i]];
    }
    return;
  }
  int64_t filled = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (filled == k && (k == 0 || !before(x[i], values[k - 1]))) continue;
    int64_t at = filled < k ? filled++ : k - 1;
    for (; at > 0 && before(x[i], values[at - 1]); --at) {
      values[at] = values[at - 1];
      indices[at] = indices[at - 1];
    }
    values[at] = x[i];
    indices[at] = static_cast<int32_t>(i);
  }
}

void top_k(KernelRun& r, int64_t k) {
  const Dims& x = r.in_dims(0);
  SLUICE_REQUIRE(!x.empty(), Code::kInvalidArgument, "input must be >= 1-D, got shape []");
  SLUICE_REQUIRE(k >= 0, Code::kInvalidArgument, "Need k >= 0, got ", k);
  const int64_t n = x.back(), rows = n == 0 ? 0 : in_count(r, 0) / n;
  SLUICE_REQUIRE(n >= k, Code::kInvalidArgument, "input must have at least k columns. Had ", n, ", needed ",
                 k);
  for_numeric(r.in_dtype(0), [&]<class T>() {
    for (int64_t i = 0; i < rows; ++i)
      top_k_row(r.in<T>(0) + i * n, n, k, r.out<T>(0) + i * k, r.out<int32_t>(1) + i * k);
  });
}

void top_k_v2(KernelRun& r) { top_k(r, scalar_int(r, 1)); }
BoundFn top_k_attr(const KernelSpec& spec) {
  const auto k = spec.attr<int64_t>("k");
  return [k](KernelRun& r) { top_k(r, k); };
}

// False where the target is no class or the row is not finite.
void in_top_k(KernelRun& r, int64_t k) {
  const int64_t rows = r.in_dims(0).at(0), classes = r.in_dims(0).at(1);
  for_float(r.in_dtype(0), [&]<class T>() {
    for (int64_t b = 0; b < rows; ++b) {
      const T* x = r.in<T>(0) + b * classes;
      const int64_t target = int_at(r, 1, b);
      bool valid = target >= 0 && target < classes && std::isfinite(x[target]);
      int64_t better = 0;
      for (int64_t c = 0; valid && c < classes; ++c) {
        valid = std::isfinite(x[c]);
        better += x[c] > x[target];
      }
      r.out<bool>(0)[b] = valid && better < k;
    }
  });
}
void in_top_k_v2(KernelRun& r) { in_top_k(r, scalar_int(r, 2)); }
BoundFn in_top_k_attr(const KernelSpec& spec) {
  const auto k = spec.attr<int64_t>("k");
  return [k](KernelRun& r) { in_top_k(r, k); };
}

template <class T>
void where_true(KernelRun& r) {
  const T* x = r.in<T>(0);
  const Dims& dims = r.in_dims(0);
  const Index s = strides_of(dims);
  const int64_t n = in_count(r, 0), rank = static_cast<int64_t>(dims.size());
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) count += x[i] != T(0);
  auto* to = static_cast<int64_t*>(result(r, 0, {count, rank}));
  for (int64_t i = 0; i < n; ++i) {
    if (x[i] == T(0)) continue;
    int64_t rest = i;
    for (size_t d = 0; d < dims.size(); ++d) {
      *to++ = rest / s[d];
      rest %= s[d];
    }
  }
}

void where(KernelRun& r) {
  if (r.in_dtype(0) == DType::kBool) return where_true<bool>(r);
  for_numeric(r.in_dtype(0), [&]<class T>() { where_true<T>(r); });
}

template <class T>
T* fresh(KernelRun& r, int i, int64_t n) {
  if constexpr (std::is_same_v<T, std::string>) {
    r.out_array(i) = Array::strings({n}, std::vector<std::string>(static_cast<size_t>(n)));
    return r.out_array(i).string_values().data();
  } else {
    return static_cast<T*>(result(r, i, {n}));
  }
}

template <class F>
void for_keys(DType t, F&& f) {
  if (graph::base_dtype(t) == DType::kString) return f.template operator()<std::string>();
  for_common(t, f);
}

// Distinct values in order of first appearance; output 1: position of each input among them; output 2 (if
// there is one): how often each appears.
void unique(KernelRun& r) {
  for_keys(r.in_dtype(0), [&]<class T>() {
    const T* x = moved_in<T>(r, 0);
    const int64_t n = in_count(r, 0);
    std::unordered_map<T, int64_t> seen;
    std::vector<T> values;
    std::vector<int64_t> counts;
    for_index(r.out_dtype(1), [&]<class I>() {
      I* at = r.out_is_array(1) ? static_cast<I*>(result(r, 1, {n})) : r.out<I>(1);
      for (int64_t i = 0; i < n; ++i) {
        const auto [it, inserted] = seen.emplace(x[i], static_cast<int64_t>(values.size()));
        if (inserted) {
          values.push_back(x[i]);
          counts.push_back(0);
        }
        ++counts[static_cast<size_t>(it->second)];
        at[i] = static_cast<I>(it->second);
      }
      if (r.num_outputs() > 2) {
        I* c = static_cast<I*>(result(r, 2, {static_cast<int64_t>(counts.size())}));
        for (int64_t v : counts) *c++ = static_cast<I>(v);
      }
    });
    std::copy(values.begin(), values.end(), fresh<T>(r, 0, static_cast<int64_t>(values.size())));
  });
}

// Distinct slices along an axis, in the order of their first appearance, as Unique does for elements.
template <class T>
void unique_slices(KernelRun& r, size_t axis) {
  const Dims& dims = r.in_dims(0);
  const T* x = moved_in<T>(r, 0);
  int64_t outer = 1, inner = 1;
  for (size_t d = 0; d < axis; ++d) outer *= dims[d];
  for (size_t d = axis + 1; d < dims.size(); ++d) inner *= dims[d];
  const int64_t n = dims[axis];
  auto before = [&](int64_t a, int64_t b) {  // strict order of slices a and b
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) {
        const T &u = x[(o * n + a) * inner + i], &v = x[(o * n + b) * inner + i];
        if (u != v) return u < v;
      }
    return false;
  };
  std::map<int64_t, int64_t, decltype(before)> seen(before);  // a slice's first position: its number
  std::vector<int64_t> firsts, counts;
  for_index(r.out_dtype(1), [&]<class I>() {
    I* at = r.out_is_array(1) ? static_cast<I*>(result(r, 1, {n})) : r.out<I>(1);
    for (int64_t k = 0; k < n; ++k) {
      const auto [it, inserted] = seen.emplace(k, static_cast<int64_t>(firsts.size()));
      if (inserted) {
        firsts.push_back(k);
        counts.push_back(0);
      }
      ++counts[static_cast<size_t>(it->second)];
      at[k] = static_cast<I>(it->second);
    }
    if (r.num_outputs() > 2) {
      I* c = static_cast<I*>(result(r, 2, {static_cast<int64_t>(counts.size())}));
      for (int64_t v : counts) *c++ = static_cast<I>(v);
    }
  });
  Dims out = dims;
  out[axis] = static_cast<int64_t>(firsts.size());
  T* to;
  if constexpr (std::is_same_v<T, std::string>) {
    r.out_array(0) =
        Array::strings(out, std::vector<std::string>(static_cast<size_t>(graph::num_elements(out))));
    to = r.out_array(0).string_values().data();
  } else {
    to = static_cast<T*>(result(r, 0, out));
  }
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t k : firsts) to = std::copy_n(x + (o * n + k) * inner, inner, to);
}

void unique_v2(KernelRun& r) {
  SLUICE_REQUIRE(in_count(r, 1) <= 1, Code::kInvalidArgument,
                 "axis does not support input tensors larger than 1 elements");
  if (r.in_dims(0).size() == 1) return unique(r);
  SLUICE_REQUIRE(in_count(r, 1) == 1, Code::kInvalidArgument, "unique expects a 1D vector.");
  const int axis = resolve_axis(int_at(r, 1, 0), static_cast<int>(r.in_dims(0).size()));
  for_keys(r.in_dtype(0), [&]<class T>() { unique_slices<T>(r, static_cast<size_t>(axis)); });
}

// Values of x that are not in y, and where they stand in x.
void list_diff(KernelRun& r) {
  for_keys(r.in_dtype(0), [&]<class T>() {
    const T *x = moved_in<T>(r, 0), *y = moved_in<T>(r, 1);
    const int64_t n = in_count(r, 0);
    std::unordered_map<T, bool> drop;
    for (int64_t i = 0; i < in_count(r, 1); ++i) drop[y[i]] = true;
    std::vector<int64_t> keep;
    for (int64_t i = 0; i < n; ++i)
      if (!drop.contains(x[i])) keep.push_back(i);
    const auto count = static_cast<int64_t>(keep.size());
    T* to = fresh<T>(r, 0, count);
    for (int64_t i : keep) *to++ = x[i];
    for_index(r.out_dtype(1), [&]<class I>() {
      I* at = static_cast<I*>(result(r, 1, {count}));
      for (int64_t i : keep) *at++ = static_cast<I>(i);
    });
  });
}

}  // namespace

void register_array_search(KernelRegistry& r) {
  add_bound(r, "TopK", top_k_attr);
  add(r, "TopKV2", top_k_v2);
  add_bound(r, "InTopK", in_top_k_attr);
  add(r, "InTopKV2", in_top_k_v2);
  add(r, "Where", where);
  add(r, "Unique", unique);
  add(r, "UniqueWithCounts", unique);
  add(r, "UniqueV2", unique_v2);
  add(r, "UniqueWithCountsV2", unique_v2);
  add(r, "ListDiff", list_diff);
}

}  // namespace sluice::kernels
