#include "dsl/ops/array.h"

#include <cmath>

#include "dsl/call.h"
#include "dsl/require.h"
#include "passes/emit.h"

namespace sluice::dsl {

namespace {

std::vector<Tensor> outputs(Node& n) {
  std::vector<Tensor> out;
  for (int i = 0; i < n.num_outputs(); ++i) out.push_back(n.output(i));
  return out;
}

DType common_dtype(const std::vector<Operand>& values) {
  for (const Operand& v : values) {
    if (!v.is_number()) return v.dtype();
  }
  return DType::kFloat;
}

std::vector<Output> inputs(const Call& c, const std::vector<Operand>& values, const std::string& arg) {
  std::vector<Output> in;
  DType like = common_dtype(values);
  for (size_t i = 0; i < values.size(); ++i) in.push_back(c.in(values[i], cat(arg, "_", i).c_str(), like));
  return in;
}

Tensor filled(Graph& g, const Dims& dims, DType dtype, double value, const std::string& name,
              const char* fallback, Loc loc) {
  int64_t count = graph::num_elements(dims);
  if (count < 1000) {
    std::vector<double> v(static_cast<size_t>(count), value);
    return constant(g, Literal::from<double>(dims, std::span<const double>(v)).cast(dtype),
                    name.empty() ? fallback : name, loc);
  }
  Call c(g, name, fallback, loc);
  Output shape = c.i32s(dims, "shape_as_tensor");
  return c.make("Fill", {shape, c.scalar(dtype, value)});
}

}  // namespace

Tensor constant(Graph& g, Literal value, const std::string& name, Loc loc) {
  DType dtype = value.dtype();
  return g
      .add(
          {.op = "Const", .name = name, .attrs = {{"dtype", dtype}, {"value", std::move(value)}}, .loc = loc})
      .output();
}
Tensor constant(Graph& g, double value, DType dtype, const std::string& name, Loc loc) {
  return constant(g, Literal::scalar<double>(value).cast(dtype), name, loc);
}
Tensor constant(Graph& g, int value, DType dtype, const std::string& name, Loc loc) {
  return constant(g, Literal::scalar<int32_t>(value).cast(dtype), name, loc);
}
Tensor constant(Graph& g, const char* value, const std::string& name, Loc loc) {
  return constant(g, Literal::scalar(value), name, loc);
}

Tensor placeholder(Graph& g, DType dtype, Shape shape, const std::string& name, Loc loc) {
  return g
      .add({.op = "Placeholder",
            .name = name,
            .attrs = {{"dtype", dtype}, {"shape", std::move(shape)}},
            .loc = loc})
      .output();
}

Tensor placeholder_with_default(const Operand& input, Shape shape, const std::string& name, Loc loc) {
  Call c(graph_of({&input}), name, "PlaceholderWithDefault", loc);
  Output in = c.in(input, "input");
  return c.make("PlaceholderWithDefault", {in}, {{"dtype", in.dtype()}, {"shape", std::move(shape)}});
}

Tensor identity(const Operand& input, const std::string& name, Loc loc) {
  Call c(graph_of({&input}), name, "Identity", loc);
  return c.make("Identity", {c.in(input, "input")});
}

std::vector<Tensor> identity_n(const std::vector<Operand>& values, const std::string& name, Loc loc) {
  Call c(graph_of(values), name, "IdentityN", loc);
  return outputs(c.make("IdentityN", inputs(c, values, "input")));
}

Tensor stop_gradient(const Operand& input, const std::string& name, Loc loc) {
  Call c(graph_of({&input}), name, "StopGradient", loc);
  return c.make("StopGradient", {c.in(input, "input")});
}

Tensor shape(const Operand& input, const std::string& name, Loc loc) {
  Call c(graph_of({&input}), name, "Shape", loc);
  if (input.shape().fully_known()) {
    const Dims dims = input.shape().dims();
    std::vector<int32_t> v(dims.begin(), dims.end());
    return c.make(
        "Const", {},
        {{"dtype", DType::kInt32}, {"value", Literal::vector<int32_t>(std::span<const int32_t>(v))}});
  }
  return c.make("Shape", {c.in(input, "input")});
}

std::vector<Tensor> shape_n(const std::vector<Operand>& values, const std::string& name, Loc loc) {
  Call c(graph_of(values), name, "ShapeN", loc);
  return outputs(c.make("ShapeN", inputs(c, values, "input")));
}

Tensor rank(const Operand& input, const std::string& name, Loc loc) {
  Call c(graph_of({&input}), name, "Rank", loc);
  return c.make("Rank", {c.in(input, "input")});
}

Tensor size(const Operand& input, const std::string& name, Loc loc) {
  Call c(graph_of({&input}), name, "Size", loc);
  return c.make("Size", {c.in(input, "input")});
}

Tensor reshape(const Operand& tensor, const std::vector<int64_t>& shape, const std::string& name, Loc loc) {
  Call c(graph_of({&tensor}), name, "Reshape", loc);
  Output in = c.in(tensor, "tensor");
  return c.make("Reshape", {in, c.i32s(shape, "shape")});
}

Tensor reshape(const Operand& tensor, const Tensor& shape, const std::string& name, Loc loc) {
  Call c(graph_of({&tensor}), name, "Reshape", loc);
  return c.make("Reshape", {c.in(tensor, "tensor"), shape});
}

Tensor expand_dims(const Operand& input, int axis, const std::string& name, Loc loc) {
  Call c(graph_of({&input}), name, "ExpandDims", loc);
  Output in = c.in(input, "input");
  return c.make("ExpandDims", {in, c.i32(axis, "dim")});
}

Tensor squeeze(const Operand& input, const std::vector<int64_t>& axis, const std::string& name, Loc loc) {
  Call c(graph_of({&input}), name, "Squeeze", loc);
  return c.make("Squeeze", {c.in(input, "input")}, {{"squeeze_dims", axis}});
}

Tensor concat(const std::vector<Operand>& values, int axis, const std::string& name, Loc loc) {
  SLUICE_REQUIRE_AT(loc, !values.empty(), Code::kInvalidArgument, "concat needs at least one value");
  Graph& g = graph_of(values);
  if (values.size() == 1) return identity(values[0], name.empty() ? "concat" : name, loc);
  Call c(g, name, "concat", loc);
  std::vector<Output> in = inputs(c, values, "values");
  in.push_back(c.i32(axis, "axis"));
  return c.make("ConcatV2", std::move(in));
}

std::vector<Tensor> split(const Operand& value, int num_splits, int axis, const std::string& name, Loc loc) {
  Call c(graph_of({&value}), name, "split", loc);
  Output dim = c.i32(axis, "split_dim");
  return outputs(c.make("Split", {dim, c.in(value, "value")}, {{"num_split", num_splits}}));
}

std::vector<Tensor> split(const Operand& value, const std::vector<int64_t>& sizes, int axis,
                          const std::string& name, Loc loc) {
  Graph& g = graph_of({&value});
  std::vector<int32_t> v(sizes.begin(), sizes.end());
  Tensor list = constant(g, v, {}, {}, loc);
  Call c(g, name, "split", loc);
  Output in = c.in(value, "value");
  return outputs(c.make("SplitV", {in, list, c.i32(axis, "split_dim")},
                        {{"num_split", static_cast<int64_t>(sizes.size())}}));
}

Tensor slice(const Operand& input, const std::vector<int64_t>& begin, const std::vector<int64_t>& size,
             const std::string& name, Loc loc) {
  Call c(graph_of({&input}), name, "Slice", loc);
  Output in = c.in(input, "input");
  Output b = c.i32s(begin, "begin");
  return c.make("Slice", {in, b, c.i32s(size, "size")});
}

Tensor strided_slice(const Operand& input, const std::vector<int64_t>& begin, const std::vector<int64_t>& end,
                     const std::vector<int64_t>& strides, const StridedSliceMasks& masks,
                     const std::string& name, Loc loc) {
  Call c(graph_of({&input}), name, "strided_slice", loc);
  Output in = c.in(input, "input");
  Output b = c.i32s(begin, "stack"), e = c.i32s(end, "stack_1");
  Output s = c.i32s(strides.empty() ? std::vector<int64_t>(begin.size(), 1) : strides, "stack_2");
  return c.make("StridedSlice", {in, b, e, s},
                {{"begin_mask", masks.begin},
                 {"end_mask", masks.end},
                 {"ellipsis_mask", masks.ellipsis},
                 {"new_axis_mask", masks.new_axis},
                 {"shrink_axis_mask", masks.shrink_axis}});
}

Tensor at(const Operand& x, int64_t i, const std::string& name, Loc loc) {
  StridedSliceMasks masks;
  masks.shrink_axis = 1;
  return strided_slice(x, {i}, {i + 1}, {1}, masks, name, loc);
}

Tensor pad(const Operand& tensor, const std::vector<std::pair<int64_t, int64_t>>& paddings,
           const std::string& name, Loc loc) {
  Call c(graph_of({&tensor}), name, "Pad", loc);
  Output in = c.in(tensor, "tensor");
  std::vector<int32_t> v;
  for (auto [before, after] : paddings) {
    v.push_back(static_cast<int32_t>(before));
    v.push_back(static_cast<int32_t>(after));
  }
  Dims dims{static_cast<int64_t>(paddings.size()), 2};
  return c.make("Pad",
                {in, c.constant(Literal::from<int32_t>(dims, std::span<const int32_t>(v)), "paddings")});
}

Tensor transpose(const Operand& a, const std::vector<int64_t>& perm, const std::string& name, Loc loc) {
  Call c(graph_of({&a}), name, "transpose", loc);
  Output in = c.in(a, "a");
  std::vector<int64_t> p = perm;
  if (p.empty()) {
    SLUICE_REQUIRE_AT(loc, in.shape().known_rank(), Code::kInvalidArgument, "transpose of '", in.name(),
                      "' needs a permutation, since its rank is unknown");
    for (int i = in.shape().rank() - 1; i >= 0; --i) p.push_back(i);
  }
  return c.make("Transpose", {in, c.i32s(p, "perm")});
}

Tensor tile(const Operand& input, const std::vector<int64_t>& multiples, const std::string& name, Loc loc) {
  Call c(graph_of({&input}), name, "Tile", loc);
  Output in = c.in(input, "input");
  return c.make("Tile", {in, c.i32s(multiples, "multiples")});
}

Tensor invert_permutation(const Operand& x, const std::string& name, Loc loc) {
  Call c(graph_of({&x}), name, "InvertPermutation", loc);
  return c.make("InvertPermutation", {c.in(x, "x", DType::kInt32)});
}

Tensor fill(const Tensor& dims, const Operand& value, const std::string& name, Loc loc) {
  Call c(dims.graph(), name, "Fill", loc);
  return c.make("Fill", {dims, c.in(value, "value")});
}

Tensor zeros(Graph& g, const Dims& shape, DType dtype, const std::string& name, Loc loc) {
  if (dtype == DType::kString)
    return constant(g, Literal::zeros(dtype, shape), name.empty() ? "zeros" : name, loc);
  return filled(g, shape, dtype, 0.0, name, "zeros", loc);
}
Tensor ones(Graph& g, const Dims& shape, DType dtype, const std::string& name, Loc loc) {
  return filled(g, shape, dtype, 1.0, name, "ones", loc);
}

Tensor zeros_like(const Operand& x, const std::string& name, Loc loc) {
  Graph& g = graph_of({&x});
  if (x.shape().fully_known() && graph::num_elements(x.shape().dims()) < 1000) {
    return zeros(g, x.shape().dims(), x.dtype(), name.empty() ? "zeros_like" : name, loc);
  }
  Call c(g, name, "zeros_like", loc);
  return c.make("ZerosLike", {c.in(x, "x")});
}

Tensor ones_like(const Operand& x, const std::string& name, Loc loc) {
  Output t = x.tensor();
  return passes::Emit{t.graph(), loc}.ones_like(t, name.empty() ? "ones_like" : name);
}

Tensor stack(const std::vector<Operand>& values, int axis, const std::string& name, Loc loc) {
  SLUICE_REQUIRE_AT(loc, !values.empty(), Code::kInvalidArgument, "stack needs at least one value");
  Call c(graph_of(values), name, "stack", loc);
  return c.make("Pack", inputs(c, values, "values"), {{"axis", axis}});
}

std::vector<Tensor> unstack(const Operand& value, int num, int axis, const std::string& name, Loc loc) {
  Call c(graph_of({&value}), name, "unstack", loc);
  Output in = c.in(value, "value");
  if (num == 0) {
    int64_t n = in.shape().known_rank() ? in.shape().dim(axis) : graph::kUnknownDim;
    SLUICE_REQUIRE_AT(loc, n >= 0, Code::kInvalidArgument, "Cannot infer argument `num` from shape ",
                      in.shape());
    num = static_cast<int>(n);
  }
  return outputs(c.make("Unpack", {in}, {{"num", num}, {"axis", axis}}));
}

Tensor cast(const Operand& x, DType dtype, const std::string& name, Loc loc) {
  if (!x.is_number() && !x.is_variable() && x.dtype() == dtype) return x.tensor();
  Call c(graph_of({&x}), name, "Cast", loc);
  Output in = c.in(x, "x");
  if (in.dtype() == dtype) return in;
  return c.make("Cast", {in}, {{"DstT", dtype}});
}

Tensor one_hot(const Operand& indices, int depth, const OneHotOptions& o, Loc loc) {
  Call c(graph_of({&indices}), o.name, "one_hot", loc);
  Output in = c.in(indices, "indices", DType::kInt32);
  Output on = c.scalar(o.dtype, o.on_value, "on_value"), off = c.scalar(o.dtype, o.off_value, "off_value");
  return c.make("OneHot", {in, c.i32(depth, "depth"), on, off}, {{"axis", o.axis}});
}

Tensor gather(const Operand& params, const Operand& indices, int axis, const std::string& name, Loc loc) {
  Call c(graph_of({&params, &indices}), name, "GatherV2", loc);
  Output p = c.in(params, "params"), i = c.in(indices, "indices", DType::kInt32);
  return c.make("GatherV2", {p, i, c.i32(axis, "axis")});
}

Tensor unsorted_segment_sum(const Operand& data, const Operand& segment_ids, int64_t num_segments,
                            const std::string& name, Loc loc) {
  Call c(graph_of({&data, &segment_ids}), name, "UnsortedSegmentSum", loc);
  Output d = c.in(data, "data"), i = c.in(segment_ids, "segment_ids", DType::kInt32);
  return c.make("UnsortedSegmentSum", {d, i, c.i32(num_segments, "num_segments")});
}

Tensor dynamic_stitch(const std::vector<Operand>& indices, const std::vector<Operand>& data,
                      const std::string& name, Loc loc) {
  SLUICE_REQUIRE_AT(loc, !data.empty() && indices.size() == data.size(), Code::kInvalidArgument,
                    "dynamic_stitch needs as many indices as data, got ", indices.size(), " and ",
                    data.size());
  Call c(graph_of(data), name, "DynamicStitch", loc);
  std::vector<Output> in = inputs(c, indices, "indices");
  for (const Output& d : inputs(c, data, "data")) in.push_back(d);
  return c.make("DynamicStitch", std::move(in));
}

Tensor range(Graph& g, double start, double limit, double delta, const std::string& name, Loc loc) {
  Call c(g, name, "range", loc);
  bool whole = std::trunc(start) == start && std::trunc(limit) == limit && std::trunc(delta) == delta;
  DType t = whole ? DType::kInt32 : DType::kFloat;
  Output s = c.scalar(t, start, "start"), l = c.scalar(t, limit, "limit");
  return c.make("Range", {s, l, c.scalar(t, delta, "delta")});
}

Tensor where(const Operand& condition, const Operand& x, const Operand& y, const std::string& name, Loc loc) {
  Call c(graph_of({&condition, &x, &y}), name, "Select", loc);
  Output k = c.in(condition, "condition", DType::kBool);
  Output a = c.in(x, "t", y.dtype());
  return c.make("Select", {k, a, c.in(y, "e", x.dtype())});
}

}  // namespace sluice::dsl
