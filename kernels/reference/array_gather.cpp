// Ops that read or write rows by index: Gather, GatherNd, ScatterNd, OneHot, DynamicStitch and -Partition.

#include <algorithm>
#include <cstring>

#include "kernels/reference/common.h"
#include "kernels/reference/gather.h"
#include "kernels/reference/register.h"
#include "kernels/reference/variable_edit.h"

namespace sluice::kernels {

void index_error(const Dims& dims, int64_t at, int64_t value, int64_t limit) {
  std::string where = "indices";
  if (!dims.empty()) {
    const Index s = strides_of(dims);
    where += '[';
    for (size_t d = 0; d < dims.size(); ++d) {
      where += cat(d ? "," : "", at / s[d]);
      at %= s[d];
    }
    where += ']';
  }
  throw_error(Code::kInvalidArgument, cat(where, " = ", value, " is not in [0, ", limit, ")"));
}

void check_indices(const KernelRun& r, int input, int64_t limit) {
  for (int64_t k = 0, n = in_count(r, input); k < n; ++k) {
    const int64_t v = int_at(r, input, k);
    if (v < 0 || v >= limit) [[unlikely]]
      index_error(r.in_dims(input), k, v, limit);
  }
}

namespace {

// params [batch, outer, limit, inner], `per_batch` indices a batch.
void gather(const KernelRun& r, const Dims& params_dims, int axis, int batch_dims, const void* params_bytes) {
  int64_t batch = 1, outer = 1, inner = 1, per_batch = 1;
  for (int d = 0; d < static_cast<int>(params_dims.size()); ++d) {
    const int64_t n = params_dims[static_cast<size_t>(d)];
    if (d < batch_dims)
      batch *= n;
    else if (d < axis)
      outer *= n;
    else if (d > axis)
      inner *= n;
  }
  const Dims& index_dims = r.in_dims(1);
  for (size_t d = static_cast<size_t>(batch_dims); d < index_dims.size(); ++d) per_batch *= index_dims[d];
  const int64_t limit = params_dims[static_cast<size_t>(axis)];
  check_indices(r, 1, limit);
  for_moved(r.out_dtype(0), [&]<class T>() {
    T* to = moved_out<T>(r, 0);
    const T* from = static_cast<const T*>(params_bytes);
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t o = 0; o < outer; ++o)
        for (int64_t k = 0; k < per_batch; ++k) {
          const T* row = from + ((b * outer + o) * limit + int_at(r, 1, b * per_batch + k)) * inner;
          to = std::copy(row, row + inner, to);
        }
  });
}

const void* input_bytes(const KernelRun& r, int i) {
  return graph::base_dtype(r.in_dtype(i)) == DType::kString
             ? static_cast<const void*>(r.in_array(i).string_values().data())
             : r.in_data(i);
}

void gather_rows(KernelRun& r) { gather(r, r.in_dims(0), 0, 0, input_bytes(r, 0)); }

BoundFn gather_v2(const KernelSpec& spec) {
  const auto batch_attr = static_cast<int>(spec.attr_or<int64_t>("batch_dims", 0));
  return [batch_attr](KernelRun& r) {
    const int axis = resolve_axis(scalar_int(r, 2), static_cast<int>(r.in_dims(0).size()));
    const int batch = batch_attr < 0 ? batch_attr + static_cast<int>(r.in_dims(1).size()) : batch_attr;
    SLUICE_REQUIRE(batch >= 0 && batch <= axis, Code::kInvalidArgument, "batch_dims (", batch,
                   ") must be less than or equal to axis (", axis, ").");
    gather(r, r.in_dims(0), axis, batch, input_bytes(r, 0));
  };
}

// What a gather reads of a variable: its own bytes where it holds the output's type in row-major order, so
// that only the rows asked for are touched; else a copy.
struct VariableRows {
  VariableRows(const KernelRun& r, int input, DType want) : held(r.variable(input).read()) {
    SLUICE_REQUIRE(held != nullptr, Code::kFailedPrecondition, "Attempting to use uninitialized value ",
                   r.variable(input).name());
    if (held->spec.dtype == graph::base_dtype(want) && held->spec.layout.plain() && !held->strings) {
      data = held->buffer.data();
      return;
    }
    copy = r.variable(input).value();
    if (copy.dtype() != graph::base_dtype(want)) copy = copy.cast(graph::base_dtype(want));
    data =
        copy.dtype() == DType::kString ? static_cast<const void*>(copy.string_values().data()) : copy.data();
  }
  const Dims& dims() const { return held->spec.dims; }
  std::shared_ptr<const runtime::VariableBuffer> held;
  Array copy;
  const void* data = nullptr;
};

BoundFn resource_gather(const KernelSpec& spec) {
  const auto batch_attr = static_cast<int>(spec.attr_or<int64_t>("batch_dims", 0));
  return [batch_attr](KernelRun& r) {
    const VariableRows rows(r, 0, r.out_dtype(0));
    const int batch = batch_attr < 0 ? batch_attr + static_cast<int>(r.in_dims(1).size()) : batch_attr;
    gather(r, rows.dims(), batch, batch, rows.data);
  };
}

// Offset in elements of the slice that row k of `indices` names, or -1.
int64_t nd_offset(const KernelRun& r, int indices, int64_t k, int64_t depth, const Dims& dims,
                  const Index& strides) {
  int64_t at = 0;
  for (int64_t d = 0; d < depth; ++d) {
    const int64_t v = int_at(r, indices, k * depth + d);
    if (v < 0 || v >= dims[static_cast<size_t>(d)]) return -1;
    at += v * strides[static_cast<size_t>(d)];
  }
  return at;
}

[[noreturn]] void nd_error(const KernelRun& r, int indices, int64_t k, int64_t depth, const char* what,
                           const Dims& dims) {
  std::string v;
  for (int64_t d = 0; d < depth; ++d) v += cat(d ? ", " : "", int_at(r, indices, k * depth + d));
  throw_error(Code::kInvalidArgument,
              cat("indices[", k, "] = [", v, "] does not index into ", what, " ", dims_string(dims)));
}

struct NdRows {
  int64_t depth, rows, inner;
};
NdRows nd_rows(const KernelRun& r, int indices, const Dims& dims) {
  const Dims& id = r.in_dims(indices);
  SLUICE_REQUIRE(!id.empty(), Code::kInvalidArgument, "indices must be at least a vector");
  NdRows n{id.back(), 1, 1};
  for (size_t d = 0; d + 1 < id.size(); ++d) n.rows *= id[d];
  SLUICE_REQUIRE(n.depth <= static_cast<int64_t>(dims.size()), Code::kInvalidArgument,
                 "index innermost dimension length must be <= params rank; saw: ", n.depth, " vs. ",
                 dims.size());
  for (size_t d = static_cast<size_t>(n.depth); d < dims.size(); ++d) n.inner *= dims[d];
  return n;
}

void gather_nd_from(KernelRun& r, const Dims& dims, const void* params) {
  const NdRows n = nd_rows(r, 1, dims);
  const Index s = strides_of(dims);
  for_moved(r.out_dtype(0), [&]<class T>() {
    T* to = moved_out<T>(r, 0);
    const T* from = static_cast<const T*>(params);
    for (int64_t k = 0; k < n.rows; ++k) {
      const int64_t at = nd_offset(r, 1, k, n.depth, dims, s);
      if (at < 0) nd_error(r, 1, k, n.depth, "param shape", dims);
      to = std::copy(from + at, from + at + n.inner, to);
    }
  });
}

void gather_nd(KernelRun& r) { gather_nd_from(r, r.in_dims(0), input_bytes(r, 0)); }

void resource_gather_nd(KernelRun& r) {
  const VariableRows rows(r, 0, r.out_dtype(0));
  gather_nd_from(r, rows.dims(), rows.data);
}

enum class Scatter { kUpdate, kAdd, kSub, kMin, kMax };

template <class T>
void scatter_nd_into(const KernelRun& r, T* to, const Dims& dims, int indices, int updates, Scatter how) {
  const NdRows n = nd_rows(r, indices, dims);
  const Index s = strides_of(dims);
  for (int64_t k = 0; k < n.rows; ++k)
    if (nd_offset(r, indices, k, n.depth, dims, s) < 0) nd_error(r, indices, k, n.depth, "shape", dims);
  const T* from = r.in<T>(updates);
  for (int64_t k = 0; k < n.rows; ++k) {
    T* row = to + nd_offset(r, indices, k, n.depth, dims, s);
    for (int64_t i = 0; i < n.inner; ++i, ++from) {
      switch (how) {
        case Scatter::kUpdate:
          row[i] = *from;
          break;
        case Scatter::kAdd:
          row[i] = static_cast<T>(row[i] + *from);
          break;
        case Scatter::kSub:
          row[i] = static_cast<T>(row[i] - *from);
          break;
        case Scatter::kMin:
          row[i] = std::min(row[i], *from);
          break;
        case Scatter::kMax:
          row[i] = std::max(row[i], *from);
      }
    }
  }
}

void scatter_nd(KernelRun& r) {
  for_common(r.out_dtype(0), [&]<class T>() {
    Dims dims;
    for (int64_t k = 0; k < in_count(r, 2); ++k) dims.push_back(int_at(r, 2, k));
    const int64_t n = graph::num_elements(dims);
    T* to = static_cast<T*>(result(r, 0, dims));
    std::fill_n(to, n, T(0));
    scatter_nd_into(r, to, dims, 0, 1, Scatter::kAdd);
  });
}

template <Scatter kHow>
void tensor_scatter(KernelRun& r) {
  for_common(r.out_dtype(0), [&]<class T>() {
    copy_value(r, 0, 0);
    scatter_nd_into(r, r.out<T>(0), r.out_dims(0), 1, 2, kHow);
  });
}

// (variable, indices, updates)
template <Scatter kHow>
void variable_scatter(KernelRun& r) {
  VariableEdit v(r.variable(0));
  for_common(v.dtype(), [&]<class T>() { scatter_nd_into(r, v.data<T>(), v.dims(), 1, 2, kHow); });
  v.commit();
}

// (indices, depth, on, off)
BoundFn one_hot(const KernelSpec& spec) {
  const int64_t axis_attr = spec.attr_or<int64_t>("axis", -1);
  return [axis_attr](KernelRun& r) {
    const Dims& out = r.out_dims(0);
    const auto axis = static_cast<size_t>(resolve_axis(axis_attr, static_cast<int>(out.size())));
    int64_t inner = 1;
    for (size_t d = axis + 1; d < out.size(); ++d) inner *= out[d];
    const int64_t depth = out[axis], count = in_count(r, 0);
    for_moved(r.out_dtype(0), [&]<class T>() {
      const T on = *moved_in<T>(r, 2), off = *moved_in<T>(r, 3);
      T* to = moved_out<T>(r, 0);
      std::fill_n(to, out_count(r, 0), off);
      for (int64_t k = 0; k < count; ++k) {
        const int64_t v = int_at(r, 0, k);
        if (v >= 0 && v < depth) to[(k / inner * depth + v) * inner + k % inner] = on;
      }
    });
  };
}

// N index tensors, then N data tensors; the last writer of a row wins, rows nobody writes are zero.
void dynamic_stitch(KernelRun& r) {
  const int n = r.num_inputs() / 2;
  int64_t rows = 0;
  for (int i = 0; i < n; ++i)
    for (int64_t k = 0; k < in_count(r, i); ++k) rows = std::max(rows, int_at(r, i, k) + 1);
  Dims dims{rows};
  const Dims& first = r.in_dims(n);
  dims.insert(dims.end(), first.begin() + static_cast<std::ptrdiff_t>(r.in_dims(0).size()), first.end());
  int64_t inner = 1;
  for (size_t d = 1; d < dims.size(); ++d) inner *= dims[d];
  for_moved(r.out_dtype(0), [&]<class T>() {
    T* to;
    if constexpr (std::is_same_v<T, std::string>) {
      r.out_array(0) = Array::strings(dims, std::vector<std::string>(static_cast<size_t>(rows * inner)));
      to = r.out_array(0).string_values().data();
    } else {
      to = static_cast<T*>(result(r, 0, dims));
    }
    std::fill_n(to, rows * inner, T{});
    for (int i = 0; i < n; ++i) {
      const T* from = moved_in<T>(r, n + i);
      for (int64_t k = 0; k < in_count(r, i); ++k, from += inner) {
        const int64_t row = int_at(r, i, k);
        if (row < 0) index_error(r.in_dims(i), k, row, rows);
        std::copy(from, from + inner, to + row * inner);
      }
    }
  });
}

void dynamic_partition(KernelRun& r) {
  const int parts = r.num_outputs();
  const int64_t n = in_count(r, 1);
  const int64_t inner = n == 0 ? 0 : in_count(r, 0) / n;
  check_indices(r, 1, parts);
  std::vector<int64_t> counts(static_cast<size_t>(parts));
  for (int64_t k = 0; k < n; ++k) ++counts[static_cast<size_t>(int_at(r, 1, k))];
  for_moved(r.in_dtype(0), [&]<class T>() {
    std::vector<T*> to;
    for (int p = 0; p < parts; ++p) {
      Dims dims{counts[static_cast<size_t>(p)]};
      dims.insert(dims.end(), r.in_dims(0).begin() + static_cast<std::ptrdiff_t>(r.in_dims(1).size()),
                  r.in_dims(0).end());
      if constexpr (std::is_same_v<T, std::string>) {
        const auto count = static_cast<size_t>(graph::num_elements(dims));
        r.out_array(p) = Array::strings(std::move(dims), std::vector<std::string>(count));
        to.push_back(r.out_array(p).string_values().data());
      } else {
        to.push_back(static_cast<T*>(result(r, p, std::move(dims))));
      }
    }
    const T* from = moved_in<T>(r, 0);
    for (int64_t k = 0; k < n; ++k, from += inner) {
      T*& t = to[static_cast<size_t>(int_at(r, 1, k))];
      t = std::copy(from, from + inner, t);
    }
  });
}

}  // namespace

void register_array_gather(KernelRegistry& r) {
  add(r, "Gather", gather_rows);
  add_bound(r, "GatherV2", gather_v2);
  add_bound(r, "ResourceGather", resource_gather);
  add(r, "GatherNd", gather_nd);
  add(r, "ResourceGatherNd", resource_gather_nd);
  add(r, "ScatterNd", scatter_nd);
  add(r, "TensorScatterAdd", tensor_scatter<Scatter::kAdd>, {{0, 0}});
  add(r, "TensorScatterSub", tensor_scatter<Scatter::kSub>, {{0, 0}});
  add(r, "TensorScatterUpdate", tensor_scatter<Scatter::kUpdate>, {{0, 0}});
  add(r, "TensorScatterMin", tensor_scatter<Scatter::kMin>, {{0, 0}});
  add(r, "TensorScatterMax", tensor_scatter<Scatter::kMax>, {{0, 0}});
  add(r, "ScatterNdNonAliasingAdd", tensor_scatter<Scatter::kAdd>, {{0, 0}});
  for (const char* op : {"ScatterNdAdd", "ResourceScatterNdAdd"}) add(r, op, variable_scatter<Scatter::kAdd>);
  for (const char* op : {"ScatterNdSub", "ResourceScatterNdSub"}) add(r, op, variable_scatter<Scatter::kSub>);
  for (const char* op : {"ScatterNdMin", "ResourceScatterNdMin"}) add(r, op, variable_scatter<Scatter::kMin>);
  for (const char* op : {"ScatterNdMax", "ResourceScatterNdMax"}) add(r, op, variable_scatter<Scatter::kMax>);
  for (const char* op : {"ScatterNdUpdate", "ResourceScatterNdUpdate"})
    add(r, op, variable_scatter<Scatter::kUpdate>);
  add_bound(r, "OneHot", one_hot);
  add(r, "DynamicStitch", dynamic_stitch);
  add(r, "ParallelDynamicStitch", dynamic_stitch);
  add(r, "DynamicPartition", dynamic_partition);
}

}  // namespace sluice::kernels
