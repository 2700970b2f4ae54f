// Ops that copy elements elsewhere: slices, joins, transposes, tiles, reversals. All are strided copies.

#include "kernels/reference/common.h"
#include "kernels/reference/register.h"

namespace sluice::kernels {
namespace {

void transpose(KernelRun& r) {
  const Dims& x = r.in_dims(0);
  const Index sx = strides_of(x), sy = strides_of(r.out_dims(0));
  Walk<2> w;
  for (size_t d = 0; d < x.size(); ++d) {
    const int p = resolve_axis(int_at(r, 1, static_cast<int64_t>(d)), static_cast<int>(x.size()), "perm");
    w.push(x[static_cast<size_t>(p)], {sy[d], sx[static_cast<size_t>(p)]});
  }
  for_moved(r.out_dtype(0), [&]<class T>() { copy_walk(w, moved_out<T>(r, 0), moved_in<T>(r, 0)); });
}

// Real numbers are their own conjugates.
void conjugate_transpose(KernelRun& r) {
  if (graph::is_complex(r.in_dtype(0))) unsupported_dtype(r.in_dtype(0));
  transpose(r);
}

void slice(KernelRun& r) {
  const Dims& x = r.in_dims(0);
  const bool open = r.out_is_array(0) && graph::base_dtype(r.out_dtype(0)) != DType::kString;
  Dims out(x.size());
  int64_t at = 0;
  const Index sx = strides_of(x);
  for (size_t d = 0; d < x.size(); ++d) {
    const int64_t begin = int_at(r, 1, static_cast<int64_t>(d));
    int64_t size = int_at(r, 2, static_cast<int64_t>(d));
    SLUICE_REQUIRE(begin >= 0 && begin <= x[d], Code::kInvalidArgument, "Expected begin[", d, "] in [0, ",
                   x[d], "], but got ", begin);
    if (size == -1) size = x[d] - begin;
    SLUICE_REQUIRE(size >= 0 && begin + size <= x[d], Code::kInvalidArgument, "Expected size[", d,
                   "] in [0, ", x[d] - begin, "], but got ", size);
    out[d] = size;
    at += begin * sx[d];
  }
  const Index sy = strides_of(out);
  Walk<2> w;
  for (size_t d = 0; d < x.size(); ++d) w.push(out[d], {sy[d], sx[d]});
  if (w.elements() == 0 && !open) {
    if (graph::base_dtype(r.out_dtype(0)) == DType::kString) moved_out<std::string>(r, 0);
    return;
  }
  for_moved(r.out_dtype(0), [&]<class T>() {
    T* to = open ? static_cast<T*>(result(r, 0, out)) : moved_out<T>(r, 0);
    copy_walk(w, to, moved_in<T>(r, 0) + at);
  });
}

struct Joined {  // how pieces along one axis lie in a whole: outer × (axis · inner)
  int64_t outer = 1, inner = 1;
};
Joined joined(const Dims& dims, int axis) {
  Joined j;
  for (size_t d = 0; d < dims.size(); ++d)
    (static_cast<int>(d) < axis ? j.outer : j.inner) *= static_cast<int>(d) == axis ? 1 : dims[d];
  return j;
}

// Copies `width` elements a row between a piece and its place in rows of `whole_width`.
template <class T>
void copy_rows(T* to, int64_t to_width, const T* from, int64_t from_width, int64_t width, int64_t outer) {
  for (int64_t o = 0; o < outer && width > 0; ++o)
    std::copy(from + o * from_width, from + o * from_width + width, to + o * to_width);
}

void concat(KernelRun& r, int first, int axis_input) {
  const Dims& out = r.out_dims(0);
  const int n = r.num_inputs() - 1;
  const int axis =
      resolve_axis(scalar_int(r, axis_input), static_cast<int>(out.size()), "concatenating axis");
  const Joined j = joined(out, axis);
  for_moved(r.out_dtype(0), [&]<class T>() {
    T* to = moved_out<T>(r, 0);
    const int64_t row = out[static_cast<size_t>(axis)] * j.inner;
    for (int i = first; i < first + n; ++i) {
      if (in_count(r, i) == 0) continue;
      const int64_t width = r.in_dims(i)[static_cast<size_t>(axis)] * j.inner;
      copy_rows(to, row, moved_in<T>(r, i), width, width, j.outer);
      to += width;
    }
  });
}

void split_along(KernelRun& r, int value, int axis) {
  const Dims& in = r.in_dims(value);
  const Joined j = joined(in, axis);
  const int64_t row = in[static_cast<size_t>(axis)] * j.inner;
  for_moved(r.in_dtype(value), [&]<class T>() {
    const T* from = moved_in<T>(r, value);
    for (int i = 0; i < r.num_outputs(); ++i) {
      const int64_t width = r.out_dims(i)[static_cast<size_t>(axis)] * j.inner;
      T* to = moved_out<T>(r, i);
      copy_rows(to, width, from, row, width, j.outer);
      from += width;
    }
  });
}

void split(KernelRun& r) {
  split_along(r, 1, resolve_axis(scalar_int(r, 0), static_cast<int>(r.in_dims(1).size()), "split_dim"));
}
void split_v(KernelRun& r) {
  split_along(r, 0, resolve_axis(scalar_int(r, 2), static_cast<int>(r.in_dims(0).size()), "split_dim"));
}

BoundFn pack(const KernelSpec& spec) {
  const int64_t attr_axis = spec.attr_or<int64_t>("axis", 0);
  return [attr_axis](KernelRun& r) {
    const Dims& out = r.out_dims(0);
    const int axis = resolve_axis(attr_axis, static_cast<int>(out.size()));
    const Joined j = joined(out, axis);
    for_moved(r.out_dtype(0), [&]<class T>() {
      T* to = moved_out<T>(r, 0);
      for (int i = 0; i < r.num_inputs(); ++i, to += j.inner)
        copy_rows(to, j.inner * r.num_inputs(), moved_in<T>(r, i), j.inner, j.inner, j.outer);
    });
  };
}

BoundFn unpack(const KernelSpec& spec) {
  const int64_t attr_axis = spec.attr_or<int64_t>("axis", 0);
  return [attr_axis](KernelRun& r) {
    const Dims& in = r.in_dims(0);
    const int axis = resolve_axis(attr_axis, static_cast<int>(in.size()));
    const Joined j = joined(in, axis);
    for_moved(r.in_dtype(0), [&]<class T>() {
      const T* from = moved_in<T>(r, 0);
      for (int i = 0; i < r.num_outputs(); ++i, from += j.inner)
        copy_rows(moved_out<T>(r, i), j.inner, from, j.inner * r.num_outputs(), j.inner, j.outer);
    });
  };
}

void tile(KernelRun& r) {
  const Dims& x = r.in_dims(0);
  const Index sx = strides_of(x), sy = strides_of(r.out_dims(0));
  Walk<2> w;
  for (size_t d = 0; d < x.size(); ++d) {
    const int64_t times = int_at(r, 1, static_cast<int64_t>(d));
    SLUICE_REQUIRE(times >= 0, Code::kInvalidArgument, "Expected multiples[", d, "] >= 0, but got ", times);
    if (times != 1) w.push(times, {sy[d] * x[d], 0});
    if (x[d] != 1) w.push(x[d], {sy[d], sx[d]});
  }
  for_moved(r.out_dtype(0), [&]<class T>() { copy_walk(w, moved_out<T>(r, 0), moved_in<T>(r, 0)); });
}

template <class IsReversed>
void reverse_where(KernelRun& r, IsReversed reversed) {
  const Dims& x = r.in_dims(0);
  const Index s = strides_of(x);
  Walk<2> w;
  int64_t at = 0;
  for (size_t d = 0; d < x.size(); ++d) {
    const bool back = reversed(static_cast<int>(d));
    if (back) at += (x[d] - 1) * s[d];
    w.push(x[d], {s[d], back ? -s[d] : s[d]});
  }
  for_moved(r.out_dtype(0), [&]<class T>() {
    T* to = moved_out<T>(r, 0);
    if (w.elements() > 0) copy_walk(w, to, moved_in<T>(r, 0) + at);
  });
}

void reverse_v2(KernelRun& r) {
  reverse_where(r, [&](int d) {
    for (int64_t k = 0; k < in_count(r, 1); ++k)
      if (resolve_axis(int_at(r, 1, k), static_cast<int>(r.in_dims(0).size())) == d) return true;
    return false;
  });
}
void reverse_bools(KernelRun& r) {
  reverse_where(r, [&](int d) { return r.in<bool>(1)[d]; });
}

BoundFn reverse_sequence(const KernelSpec& spec) {
  const auto seq = static_cast<int>(spec.attr<int64_t>("seq_dim"));
  const auto batch = static_cast<int>(spec.attr_or<int64_t>("batch_dim", 0));
  return [seq, batch](KernelRun& r) {
    const Dims& x = r.in_dims(0);
    const int rank = static_cast<int>(x.size());
    const auto sd = static_cast<size_t>(resolve_axis(seq, rank, "seq_dim"));
    const auto bd = static_cast<size_t>(resolve_axis(batch, rank, "batch_dim"));
    const Index s = strides_of(x);
    for_moved(r.out_dtype(0), [&]<class T>() {
      T* to = moved_out<T>(r, 0);
      const T* from = moved_in<T>(r, 0);
      for (int64_t b = 0; b < x[bd]; ++b) {
        const int64_t len = int_at(r, 1, b);
        SLUICE_REQUIRE(len >= 0 && len <= x[sd], Code::kInvalidArgument, "seq_lens(", b, ") > input.dims(",
                       seq, ")");
        for (int64_t t = 0; t < x[sd]; ++t) {
          Walk<2> w;
          for (size_t d = 0; d < x.size(); ++d)
            if (d != sd && d != bd) w.push(x[d], {s[d], s[d]});
          const int64_t source = t < len ? len - 1 - t : t;
          copy_walk(w, to + b * s[bd] + t * s[sd], from + b * s[bd] + source * s[sd]);
        }
      }
    });
  };
}

// NHWC: a block × block square of pixels ↔ channels (row, column, channel).
BoundFn space_depth(const KernelSpec& spec, bool to_depth) {
  const int64_t block = spec.attr<int64_t>("block_size");
  const auto format = spec.attr_or<std::string>("data_format", "NHWC");
  SLUICE_REQUIRE(format == "NHWC", Code::kUnimplemented, "Only NHWC data_format supported on CPU. Got ",
                 format);
  return [block, to_depth](KernelRun& r) {
    const Dims& deep = to_depth ? r.out_dims(0) : r.in_dims(0);
    const Dims& wide = to_depth ? r.in_dims(0) : r.out_dims(0);
    const Index sd = strides_of(deep), sw = strides_of(wide);
    Walk<2> w;
    auto push = [&](int64_t n, int64_t deep_stride, int64_t wide_stride) {
      w.push(n, {to_depth ? deep_stride : wide_stride, to_depth ? wide_stride : deep_stride});
    };
    push(wide[0], sd[0], sw[0]);
    push(deep[1], sd[1], sw[1] * block);
    push(block, block * wide[3], sw[1]);
    push(deep[2], sd[2], sw[2] * block);
    push(block, wide[3], sw[2]);
    push(wide[3], 1, 1);
    for_moved(r.out_dtype(0), [&]<class T>() { copy_walk(w, moved_out<T>(r, 0), moved_in<T>(r, 0)); });
  };
}

}  // namespace

void register_array_move(KernelRegistry& r) {
  add(r, "Transpose", transpose);
  add(r, "ConjugateTranspose", conjugate_transpose);
  add(r, "Slice", slice);
  add(r, "Concat", [](KernelRun& k) { concat(k, 1, 0); });
  add(r, "ConcatV2", [](KernelRun& k) { concat(k, 0, k.num_inputs() - 1); });
  add(r, "Split", split);
  add(r, "SplitV", split_v);
  add_bound(r, "Pack", pack);
  add_bound(r, "Unpack", unpack);
  add(r, "Tile", tile);
  add(r, "Reverse", reverse_bools);
  add(r, "ReverseV2", reverse_v2);
  add_bound(r, "ReverseSequence", reverse_sequence);
  add_bound(r, "SpaceToDepth", [](const KernelSpec& s) { return space_depth(s, true); });
  add_bound(r, "DepthToSpace", [](const KernelSpec& s) { return space_depth(s, false); });
}

}  // namespace sluice::kernels
