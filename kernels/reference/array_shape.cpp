// Ops that look at shapes or only rename bytes: Identity, Reshape, Shape, Fill, Range, BroadcastGradientArgs.

#include <cmath>
#include <cstring>

#include "kernels/reference/broadcast.h"
#include "kernels/reference/common.h"
#include "kernels/reference/register.h"

namespace sluice::kernels {
namespace {

void nothing(KernelRun&) {}

void identity(KernelRun& r) {
  for (int i = 0; i < r.num_outputs(); ++i) copy_value(r, i, i);
}

// Real numbers are their own conjugates.
void conjugate(KernelRun& r) {
  if (graph::is_complex(r.in_dtype(0))) unsupported_dtype(r.in_dtype(0));
  identity(r);
}

BoundFn constant(const KernelSpec& spec) {
  // The literal's bytes are shared, not copied, so the kernel may keep it.
  auto value = spec.attr<graph::Literal>("value");
  return [value](KernelRun& r) {
    const DType to = graph::base_dtype(r.out_dtype(0));
    if (to == DType::kString || r.out_is_array(0)) {
      r.out_array(0) = Array::from_literal(value.dtype() == to ? value : value.cast(to));
    } else if (value.dtype() == to) {
      if (value.size_bytes() > 0) std::memcpy(r.out_data(0), value.data(), value.size_bytes());
    } else {
      const graph::Literal converted = value.cast(to);
      if (converted.size_bytes() > 0) std::memcpy(r.out_data(0), converted.data(), converted.size_bytes());
    }
  };
}

BoundFn placeholder(const KernelSpec& spec) {
  std::string text = "You must feed a value for placeholder tensor";
  if (spec.node) text += cat(" '", spec.node->name(), "'");
  if (!spec.outputs.empty()) text += cat(" with dtype ", spec.outputs[0].dtype);
  if (spec.node && spec.node->output_shape(0).fully_known())
    text += cat(" and shape ", spec.node->output_shape(0));
  return [text](KernelRun&) { throw_error(Code::kInvalidArgument, text); };
}

// Dims of the result: the planned ones, or what input 1 says now where the plan left them open.
Dims reshaped_dims(const KernelRun& r) {
  if (out_count(r, 0) == in_count(r, 0)) return r.out_dims(0);
  Dims dims;
  int64_t known = 1, open = -1;
  for (int64_t k = 0; r.out_is_array(0) && r.num_inputs() > 1 && k < in_count(r, 1); ++k) {
    dims.push_back(int_at(r, 1, k));
    if (dims.back() == -1)
      open = k;
    else
      known *= dims.back();
  }
  if (open >= 0 && known > 0) {
    dims[static_cast<size_t>(open)] = in_count(r, 0) / known;
    known *= dims[static_cast<size_t>(open)];
  }
  SLUICE_REQUIRE(r.out_is_array(0) && known == in_count(r, 0), Code::kInvalidArgument,
                 "Input to reshape is a tensor with ", in_count(r, 0),
                 " values, but the requested shape has ", r.out_is_array(0) ? known : out_count(r, 0));
  return dims;
}

void reshape(KernelRun& r) {
  if (!r.out_is_array(0)) {
    SLUICE_REQUIRE(out_count(r, 0) == in_count(r, 0), Code::kInvalidArgument,
                   "Input to reshape is a tensor with ", in_count(r, 0),
                   " values, but the requested shape has ", out_count(r, 0));
    return copy_value(r, 0, 0);
  }
  const Dims dims = reshaped_dims(r);
  copy_value(r, 0, 0);
  r.out_array(0) = r.out_array(0).reshaped(dims);
}

void put_ints(KernelRun& r, int output, std::span<const int64_t> values) {
  for_index(r.out_dtype(output), [&]<class T>() {
    T* to = r.out_is_array(output) ? static_cast<T*>(result(r, output, {static_cast<int64_t>(values.size())}))
                                   : r.out<T>(output);
    for (int64_t v : values) *to++ = static_cast<T>(v);
  });
}

void shape(KernelRun& r) {
  for (int i = 0; i < r.num_outputs(); ++i) put_ints(r, i, r.in_dims(i));
}

void put_scalar(KernelRun& r, int64_t v) {
  for_index(r.out_dtype(0), [&]<class T>() { *r.out<T>(0) = static_cast<T>(v); });
}
void rank(KernelRun& r) { put_scalar(r, static_cast<int64_t>(r.in_dims(0).size())); }
void size(KernelRun& r) { put_scalar(r, in_count(r, 0)); }

void zeros_like(KernelRun& r) {
  if (graph::base_dtype(r.out_dtype(0)) == DType::kString) {
    moved_out<std::string>(r, 0);
    return;
  }
  void* to = r.out_is_array(0) ? result(r, 0, r.in_dims(0)) : r.out_data(0);
  if (const size_t bytes = r.in_spec(0).bytes()) std::memset(to, 0, bytes);
}

void ones_like(KernelRun& r) {
  if (r.out_dtype(0) == DType::kBool) {
    std::fill_n(r.out<bool>(0), out_count(r, 0), true);
    return;
  }
  for_numeric(r.out_dtype(0), [&]<class T>() { std::fill_n(r.out<T>(0), out_count(r, 0), T(1)); });
}

void fill(KernelRun& r) {
  for_moved(r.out_dtype(0), [&]<class T>() {
    Dims dims;
    int64_t n = out_count(r, 0);
    if (r.out_is_array(0)) {
      n = 1;
      for (int64_t k = 0; k < in_count(r, 0); ++k) dims.push_back(int_at(r, 0, k));
      for (int64_t d : dims) {
        SLUICE_REQUIRE(d >= 0, Code::kInvalidArgument, "Dimension ", d, " must be >= 0");
        n *= d;
      }
      result(r, 0, std::move(dims));
    }
    const T value = *moved_in<T>(r, 1);
    T* to;
    if constexpr (std::is_same_v<T, std::string>)
      to = r.out_array(0).string_values().data();
    else
      to = static_cast<T*>(r.out_is_array(0) ? r.out_array(0).data() : r.out_data(0));
    std::fill_n(to, n, value);
  });
}

void range(KernelRun& r) {
  for_numeric(r.out_dtype(0), [&]<class T>() {
    const T start = *r.in<T>(0), limit = *r.in<T>(1), delta = *r.in<T>(2);
    SLUICE_REQUIRE(delta != T(0), Code::kInvalidArgument, "Requires delta != 0: ", delta);
    const double steps =
        (static_cast<double>(limit) - static_cast<double>(start)) / static_cast<double>(delta);
    const auto n = static_cast<int64_t>(std::ceil(std::max(0.0, steps)));
    T* to = static_cast<T*>(result(r, 0, {n}));
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(start + static_cast<T>(i) * delta);
  });
}

void lin_space(KernelRun& r) {
  for_float(r.out_dtype(0), [&]<class T>() {
    const T start = *r.in<T>(0), stop = *r.in<T>(1);
    const int64_t n = scalar_int(r, 2);
    SLUICE_REQUIRE(n > 0, Code::kInvalidArgument, "Requires num > 0: ", n);
    T* to = static_cast<T*>(result(r, 0, {n}));
    const T step = n > 1 ? (stop - start) / static_cast<T>(n - 1) : T(0);
    for (int64_t i = 0; i < n; ++i) to[i] = start + step * static_cast<T>(i);
    if (n > 1) to[n - 1] = stop;
  });
}

// Axes to sum over in each operand's gradient. Equal shapes need none, even where a dimension is 1; otherwise
// an axis that is 1 on both sides is listed for both, as TensorFlow does.
void broadcast_gradient_args(KernelRun& r) {
  const int64_t nx = in_count(r, 0), ny = in_count(r, 1), n = std::max(nx, ny);
  check_rank(static_cast<size_t>(n));
  Index gx{}, gy{};
  size_t cx = 0, cy = 0;
  bool equal = nx == ny;
  for (int64_t d = 0; equal && d < n; ++d) equal = int_at(r, 0, d) == int_at(r, 1, d);
  for (int64_t d = 0; !equal && d < n; ++d) {
    const int64_t x = d < n - nx ? 1 : int_at(r, 0, d - (n - nx));
    const int64_t y = d < n - ny ? 1 : int_at(r, 1, d - (n - ny));
    SLUICE_REQUIRE(x == y || x == 1 || y == 1, Code::kInvalidArgument,
                   "Incompatible shapes for broadcasting: dimension ", d, " is ", x, " and ", y);
    if (x == 1) gx[cx++] = d;
    if (y == 1) gy[cy++] = d;
  }
  for (int i = 0; i < 2; ++i) {
    const Index& g = i == 0 ? gx : gy;
    const auto count = static_cast<int64_t>(i == 0 ? cx : cy);
    for_index(r.out_dtype(i), [&]<class T>() {
      T* to = static_cast<T*>(result(r, i, {count}));
      for (int64_t k = 0; k < count; ++k) to[k] = static_cast<T>(g[static_cast<size_t>(k)]);
    });
  }
}

void broadcast_args(KernelRun& r) {
  const int64_t nx = in_count(r, 0), ny = in_count(r, 1), n = std::max(nx, ny);
  for_index(r.out_dtype(0), [&]<class T>() {
    T* to = static_cast<T*>(result(r, 0, {n}));
    for (int64_t d = 0; d < n; ++d) {
      const int64_t x = d < n - nx ? 1 : int_at(r, 0, d - (n - nx));
      const int64_t y = d < n - ny ? 1 : int_at(r, 1, d - (n - ny));
      SLUICE_REQUIRE(x == y || x == 1 || y == 1, Code::kInvalidArgument,
                     "Incompatible shapes for broadcasting: dimension ", d, " is ", x, " and ", y);
      to[d] = static_cast<T>(x == 1 ? y : x);
    }
  });
}

void broadcast_to(KernelRun& r) {
  const Walk<3> b = broadcast_walk(r.out_dims(0), r.in_dims(0), {});
  Walk<2> w;
  for (int d = 0; d < b.rank; ++d) {
    const auto sd = static_cast<size_t>(d);
    w.push(b.dims[sd], {b.strides[0][sd], b.strides[1][sd]});
  }
  for_moved(r.out_dtype(0), [&]<class T>() { copy_walk(w, moved_out<T>(r, 0), moved_in<T>(r, 0)); });
}

// (axis, shape 0 … shape N-1) → where each piece begins in the joined value.
void concat_offset(KernelRun& r) {
  const int64_t rank = in_count(r, 1);
  const int axis = resolve_axis(scalar_int(r, 0), static_cast<int>(rank), "concat dim");
  int64_t at = 0;
  for (int i = 0; i < r.num_outputs(); ++i) {
    for (int64_t d = 0; d < rank; ++d)
      SLUICE_REQUIRE(d == axis || int_at(r, i + 1, d) == int_at(r, 1, d), Code::kInvalidArgument,
                     "All dimensions except ", axis, " must match. Input ", i, " has dimension ", d, " = ",
                     int_at(r, i + 1, d), " and doesn't match input 0 with ", int_at(r, 1, d));
    for_index(r.out_dtype(i), [&]<class T>() {
      for (int64_t d = 0; d < rank; ++d) r.out<T>(i)[d] = static_cast<T>(d == axis ? at : 0);
    });
    at += int_at(r, i + 1, axis);
  }
}

void invert_permutation(KernelRun& r) {
  const int64_t n = in_count(r, 0);
  for_index(r.in_dtype(0), [&]<class T>() {
    const T* x = r.in<T>(0);
    T* y = r.out<T>(0);
    std::fill_n(y, n, T(-1));
    for (int64_t i = 0; i < n; ++i) {
      SLUICE_REQUIRE(x[i] >= 0 && x[i] < n, Code::kInvalidArgument, x[i], " is not between 0 and ", n);
      SLUICE_REQUIRE(y[x[i]] == T(-1), Code::kInvalidArgument, x[i], " is duplicated in the input.");
      y[x[i]] = static_cast<T>(i);
    }
  });
}

}  // namespace

void register_array_shape(KernelRegistry& r) {
  add(r, "NoOp", nothing);
  add(r, "ControlTrigger", nothing);
  add_bound(r, "Const", constant);
  for (const char* op : {"Placeholder", "PlaceholderV2"}) add_bound(r, op, placeholder);
  for (const char* op : {"Bitcast", "CheckpointIdentity", "EnsureShape", "Identity", "PlaceholderWithDefault",
                         "PreventGradient", "RefIdentity", "Snapshot", "StopGradient"})
    add(r, op, identity, {{0, 0}});
  add(r, "Conj", conjugate, {{0, 0}});
  add(r, "IdentityN", identity);
  for (const char* op : {"ExpandDims", "Reshape", "Squeeze"}) add(r, op, reshape, {{0, 0}});
  add(r, "Shape", shape);
  add(r, "ShapeN", shape);
  add(r, "Rank", rank);
  add(r, "Size", size);
  add(r, "ZerosLike", zeros_like, {{0, 0}});
  add(r, "OnesLike", ones_like, {{0, 0}});
  add(r, "Fill", fill);
  add(r, "Range", range);
  add(r, "LinSpace", lin_space);
  add(r, "BroadcastGradientArgs", broadcast_gradient_args);
  add(r, "BroadcastArgs", broadcast_args);
  add(r, "BroadcastTo", broadcast_to);
  add(r, "ConcatOffset", concat_offset);
  add(r, "InvertPermutation", invert_permutation);
}

}  // namespace sluice::kernels
