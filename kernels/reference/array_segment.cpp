// Sums, products and extremes of rows that share a segment id.

#include <limits>

#include "kernels/reference/common.h"
#include "kernels/reference/register.h"
#include "kernels/scalar.h"

namespace sluice::kernels {
namespace {

// start(): what a reduction begins with; empty(): what a segment without rows gives among ascending ids.
struct SegSum {
  template <class T>
  static T start() {
    return T(0);
  }
  template <class T>
  static T empty() {
    return T(0);
  }
  template <class T>
  static T join(T a, T b) {
    return scalar::wrap_add(a, b);
  }
};
struct SegProd {
  template <class T>
  static T start() {
    return T(1);
  }
  template <class T>
  static T empty() {
    return T(1);
  }
  template <class T>
  static T join(T a, T b) {
    return scalar::wrap_mul(a, b);
  }
};
struct SegMax {
  template <class T>
  static T start() {
    return std::numeric_limits<T>::lowest();
  }
  template <class T>
  static T empty() {
    return T(0);
  }
  template <class T>
  static T join(T a, T b) {
    return scalar::Maximum{}(a, b);
  }
};
struct SegMin {
  template <class T>
  static T start() {
    return std::numeric_limits<T>::max();
  }
  template <class T>
  static T empty() {
    return T(0);
  }
  template <class T>
  static T join(T a, T b) {
    return scalar::Minimum{}(a, b);
  }
};

// Negative ids are dropped.
template <class Op>
void unsorted(KernelRun& r) {
  const int64_t ids = in_count(r, 1), segments = scalar_int(r, 2);
  const int64_t inner = ids == 0 ? 0 : in_count(r, 0) / ids;
  for (int64_t k = 0; k < ids; ++k) {
    const int64_t id = int_at(r, 1, k);
    SLUICE_REQUIRE(id < segments, Code::kInvalidArgument, "segment_ids[", k, "] = ", id,
                   " is out of range [0, ", segments, ")");
  }
  for_common(r.out_dtype(0), [&]<class T>() {
    T* to = r.out<T>(0);
    if (r.out_is_array(0)) {
      Dims dims{segments};
      dims.insert(dims.end(), r.in_dims(0).begin() + static_cast<std::ptrdiff_t>(r.in_dims(1).size()),
                  r.in_dims(0).end());
      to = static_cast<T*>(result(r, 0, dims));
      std::fill_n(to, graph::num_elements(dims), Op::template start<T>());
    } else {
      std::fill_n(to, out_count(r, 0), Op::template start<T>());
    }
    const T* x = r.in<T>(0);
    for (int64_t k = 0; k < ids; ++k, x += inner) {
      const int64_t id = int_at(r, 1, k);
      if (id < 0) continue;
      T* row = to + id * inner;
      for (int64_t i = 0; i < inner; ++i) row[i] = Op::join(row[i], x[i]);
    }
  });
}

// Ids ascend.
template <class Op, bool kMean>
void sorted(KernelRun& r) {
  const int64_t ids = in_count(r, 1);
  const int64_t segments = ids == 0 ? 0 : int_at(r, 1, ids - 1) + 1;
  const int64_t inner = ids == 0 ? 0 : in_count(r, 0) / ids;
  for (int64_t k = 0; k < ids; ++k)
    SLUICE_REQUIRE(int_at(r, 1, k) >= (k ? int_at(r, 1, k - 1) : 0), Code::kInvalidArgument,
                   "segment ids are not increasing");
  for_common(r.out_dtype(0), [&]<class T>() {
    Dims dims = r.in_dims(0);
    dims.at(0) = segments;
    T* to = static_cast<T*>(result(r, 0, dims));
    std::fill_n(to, segments * inner, Op::template empty<T>());
    const T* x = r.in<T>(0);
    for (int64_t k = 0; k < ids;) {
      const int64_t id = int_at(r, 1, k);
      T* row = to + id * inner;
      std::fill_n(row, inner, Op::template start<T>());
      const int64_t first = k;
      for (; k < ids && int_at(r, 1, k) == id; ++k)
        for (int64_t i = 0; i < inner; ++i) row[i] = Op::join(row[i], x[k * inner + i]);
      if (kMean)
        for (int64_t i = 0; i < inner; ++i) row[i] = static_cast<T>(row[i] / static_cast<T>(k - first));
    }
  });
}

}  // namespace

void register_array_segment(KernelRegistry& r) {
  add(r, "UnsortedSegmentSum", unsorted<SegSum>);
  add(r, "UnsortedSegmentProd", unsorted<SegProd>);
  add(r, "UnsortedSegmentMax", unsorted<SegMax>);
  add(r, "UnsortedSegmentMin", unsorted<SegMin>);
  add(r, "SegmentSum", sorted<SegSum, false>);
  add(r, "SegmentMean", sorted<SegSum, true>);
  add(r, "SegmentProd", sorted<SegProd, false>);
  add(r, "SegmentMax", sorted<SegMax, false>);
  add(r, "SegmentMin", sorted<SegMin, false>);
}

}  // namespace sluice::kernels
