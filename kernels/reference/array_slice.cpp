// StridedSlice and its gradient, and the padding family.

#include <optional>

#include "graph/infer.h"
#include "kernels/reference/common.h"
#include "kernels/reference/register.h"

namespace sluice::kernels {
namespace {

struct Masks {
  int64_t begin, end, ellipsis, new_axis, shrink;
};

Masks masks_of(const KernelSpec& spec) {
  return {spec.attr_or<int64_t>("begin_mask", 0), spec.attr_or<int64_t>("end_mask", 0),
          spec.attr_or<int64_t>("ellipsis_mask", 0), spec.attr_or<int64_t>("new_axis_mask", 0),
          spec.attr_or<int64_t>("shrink_axis_mask", 0)};
}

graph::PartialInts ints(std::vector<int64_t> v) {
  graph::PartialInts p;
  for (int64_t x : v) p.values.emplace_back(x);
  return p;
}

graph::StridedSliceSpec resolve(const Dims& in, const Masks& m, std::vector<int64_t> begin,
                                std::vector<int64_t> end, std::vector<int64_t> strides) {
  return graph::resolve_strided_slice(graph::Shape(in), ints(std::move(begin)), ints(std::move(end)),
                                      ints(std::move(strides)), m.begin, m.end, m.ellipsis, m.new_axis,
                                      m.shrink);
}

std::vector<int64_t> input_ints(const KernelRun& r, int i) {
  std::vector<int64_t> v;
  for (int64_t k = 0; k < in_count(r, i); ++k) v.push_back(int_at(r, i, k));
  return v;
}

// The selected elements of the whole value; strides 0 = packed, 1 = whole. `at` is where the first one lies.
Walk<2> selection(const graph::StridedSliceSpec& s, const Dims& whole, int64_t& at) {
  const Index sw = strides_of(whole), sp = strides_of(s.processing_dims);
  Walk<2> w;
  at = 0;
  for (size_t d = 0; d < whole.size(); ++d) {
    at += s.begin[d] * sw[d];
    w.push(s.processing_dims[d], {sp[d], s.stride[d] * sw[d]});
  }
  return w;
}

/// Resolved while the plan is built when begin, end and strides are constants, at each run otherwise.
std::optional<graph::StridedSliceSpec> resolve_now(const KernelSpec& spec, const Dims& in, const Masks& m,
                                                   size_t first) {
  if (spec.constants.size() < first + 3) return std::nullopt;
  const auto &b = spec.constants[first], &e = spec.constants[first + 1], &s = spec.constants[first + 2];
  if (!b || !e || !s) return std::nullopt;
  return resolve(in, m, b->to_int64s(), e->to_int64s(), s->to_int64s());
}

BoundFn strided_slice(const KernelSpec& spec) {
  const Masks m = masks_of(spec);
  auto known = resolve_now(spec, spec.inputs.at(0).dims, m, 1);
  return [m, known = std::move(known)](KernelRun& r) {
    const Dims& in = r.in_dims(0);
    std::optional<graph::StridedSliceSpec> fresh;
    if (!known) fresh = resolve(in, m, input_ints(r, 1), input_ints(r, 2), input_ints(r, 3));
    const graph::StridedSliceSpec& s = known ? *known : *fresh;
    int64_t at = 0;
    const Walk<2> w = selection(s, in, at);
    for_moved(r.in_dtype(0), [&]<class T>() {
      T* to;
      if constexpr (std::is_same_v<T, std::string>) {
        r.out_array(0) =
            Array::strings(s.final_dims, std::vector<std::string>(static_cast<size_t>(w.elements())));
        to = r.out_array(0).string_values().data();
      } else {
        to = r.out_is_array(0) ? static_cast<T*>(result(r, 0, s.final_dims)) : r.out<T>(0);
      }
      if (w.elements() > 0) copy_walk(w, to, moved_in<T>(r, 0) + at);
    });
  };
}

// (shape, begin, end, strides, dy)
BoundFn strided_slice_grad(const KernelSpec& spec) {
  const Masks m = masks_of(spec);
  std::optional<graph::StridedSliceSpec> known;
  if (!spec.outputs.empty()) known = resolve_now(spec, spec.outputs[0].dims, m, 1);
  return [m, known = std::move(known)](KernelRun& r) {
    const Dims& out = r.out_dims(0);
    std::optional<graph::StridedSliceSpec> fresh;
    if (!known) fresh = resolve(out, m, input_ints(r, 1), input_ints(r, 2), input_ints(r, 3));
    int64_t at = 0;
    const Walk<2> w = selection(known ? *known : *fresh, out, at);
    for_moved(r.out_dtype(0), [&]<class T>() {
      T* to = moved_out<T>(r, 0);
      std::fill_n(to, out_count(r, 0), T{});
      if (w.elements() == 0) return;
      Walk<2> back = w;
      std::swap(back.strides[0], back.strides[1]);
      copy_walk(back, to + at, moved_in<T>(r, 4));
    });
  };
}

void pad(KernelRun& r) {
  const Dims &x = r.in_dims(0), &y = r.out_dims(0);
  const Index sx = strides_of(x), sy = strides_of(y);
  Walk<2> w;
  int64_t at = 0;
  for (size_t d = 0; d < x.size(); ++d) {
    const auto k = static_cast<int64_t>(d) * 2;
    const int64_t before = int_at(r, 1, k), after = int_at(r, 1, k + 1);
    SLUICE_REQUIRE(before >= 0 && after >= 0, Code::kInvalidArgument,
                   "Paddings must be non-negative: ", before, " ", after);
    at += before * sy[d];
    w.push(x[d], {sy[d], sx[d]});
  }
  for_moved(r.out_dtype(0), [&]<class T>() {
    T* to = moved_out<T>(r, 0);
    std::fill_n(to, out_count(r, 0), r.num_inputs() > 2 ? *moved_in<T>(r, 2) : T{});
    if (w.elements() > 0) copy_walk(w, to + at, moved_in<T>(r, 0));
  });
}

// Calls f(padded offset, inner offset) for every cell of the padded value and the cell it mirrors.
template <class F>
void mirror_cells(const KernelRun& r, const Dims& padded, const Dims& inner, int64_t offset, F f) {
  const Index si = strides_of(inner);
  Index i{};
  const int rank = static_cast<int>(padded.size());
  for (int64_t at = 0, n = graph::num_elements(padded); at < n; ++at) {
    int64_t from = 0;
    for (int d = 0; d < rank; ++d) {
      const auto sd = static_cast<size_t>(d);
      int64_t k = i[sd] - int_at(r, 1, 2 * d);
      if (k < 0)
        k = -k - 1 + offset;
      else if (k >= inner[sd])
        k = 2 * inner[sd] - 1 - k - offset;
      from += k * si[sd];
    }
    f(at, from);
    for (int d = rank - 1; d >= 0 && ++i[static_cast<size_t>(d)] == padded[static_cast<size_t>(d)]; --d)
      i[static_cast<size_t>(d)] = 0;
  }
}

int64_t mirror_offset(const KernelSpec& spec) { return spec.attr<std::string>("mode") == "REFLECT" ? 1 : 0; }

void check_mirror(const KernelRun& r, const Dims& inner, int64_t offset) {
  for (size_t d = 0; d < inner.size(); ++d)
    for (int64_t side = 0; side < 2; ++side) {
      const int64_t p = int_at(r, 1, 2 * static_cast<int64_t>(d) + side);
      SLUICE_REQUIRE(p >= 0 && p <= inner[d] - offset, Code::kInvalidArgument, "paddings must be ",
                     offset ? "less than" : "no greater than", " the dimension size: ", p, " of dimension ",
                     d, " = ", inner[d]);
    }
}

BoundFn mirror_pad(const KernelSpec& spec) {
  const int64_t offset = mirror_offset(spec);
  return [offset](KernelRun& r) {
    check_mirror(r, r.in_dims(0), offset);
    for_moved(r.out_dtype(0), [&]<class T>() {
      T* to = moved_out<T>(r, 0);
      const T* from = moved_in<T>(r, 0);
      mirror_cells(r, r.out_dims(0), r.in_dims(0), offset, [&](int64_t p, int64_t i) { to[p] = from[i]; });
    });
  };
}

BoundFn mirror_pad_grad(const KernelSpec& spec) {
  const int64_t offset = mirror_offset(spec);
  return [offset](KernelRun& r) {
    check_mirror(r, r.out_dims(0), offset);
    for_common(r.out_dtype(0), [&]<class T>() {
      T* to = r.out<T>(0);
      std::fill_n(to, out_count(r, 0), T(0));
      mirror_cells(r, r.in_dims(0), r.out_dims(0), offset,
                   [&](int64_t p, int64_t i) { to[i] += r.in<T>(0)[p]; });
    });
  };
}

}  // namespace

void register_array_slice(KernelRegistry& r) {
  add_bound(r, "StridedSlice", strided_slice);
  add_bound(r, "StridedSliceGrad", strided_slice_grad);
  add(r, "Pad", pad);
  add(r, "PadV2", pad);
  add_bound(r, "MirrorPad", mirror_pad);
  add_bound(r, "MirrorPadGrad", mirror_pad_grad);
}

}  // namespace sluice::kernels
