#include "graph/ops/shapes.h"

#include "graph/support/check.h"

namespace sluice::graph::ops {
namespace {

// Why two shapes can't be one, in TensorFlow's words; empty when they can.
std::string clash(const Shape& a, const Shape& b) {
  if (!a.known_rank() || !b.known_rank()) return {};
  if (a.rank() != b.rank()) return cat("Shapes must be equal rank, but are ", a.rank(), " and ", b.rank());
  for (int i = 0; i < a.rank(); ++i)
    if (a.known_dim(i) && b.known_dim(i) && a.dim(i) != b.dim(i))
      return cat("Dimension ", i, " in both shapes must be equal, but are ", a.dim(i), " and ", b.dim(i),
                 ". Shapes are ", a, " and ", b, ".");
  return {};
}

int64_t product(const Dims& dims, size_t from, size_t to) {
  int64_t n = 1;
  for (size_t i = from; i < to; ++i) n *= dims[i];
  return n;
}

}  // namespace

void require_scalar(InferContext& c, int i) { c.with_rank(i, 0); }

Shape head_of(const Shape& s, int rank) {
  return s.known_rank() ? s.slice(0, std::min(rank, s.rank())) : Shape::of_rank(rank);
}

Shape tail_of(const Shape& s, int from) {
  return s.known_rank() ? s.slice(std::min(from, s.rank()), s.rank()) : Shape();
}

int64_t add_dims(int64_t a, int64_t b) { return a < 0 || b < 0 ? kUnknownDim : a + b; }

int64_t subtract_dims(InferContext& c, int64_t a, int64_t b) {
  if (a < 0 || b < 0) return kUnknownDim;
  require(c, a >= b, "Negative dimension size caused by subtracting ", b, " from ", a);
  return a - b;
}

int64_t multiply_dims(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  return a < 0 || b < 0 ? kUnknownDim : a * b;
}

int64_t divide_dims(InferContext& c, int64_t value, int64_t divisor, std::string_view why) {
  if (value < 0) return kUnknownDim;
  require(c, divisor > 0 && value % divisor == 0, "Dimension size must be evenly divisible by ", divisor,
          " but is ", value, why);
  return value / divisor;
}

Shape merge_because(InferContext& c, const Shape& a, const Shape& b, const std::string& prefix) {
  const std::string why = clash(a, b);
  require(c, why.empty(), prefix, why);
  return a.merge(b);
}

void require_dim(InferContext& c, int64_t got, int64_t want) {
  require(c, got < 0 || want < 0 || got == want, "Dimension must be ", want, " but is ", got);
}

std::optional<PartialInts> ints(InferContext& c, int i) {
  if (auto p = c.partial(i)) return p;
  const auto v = c.value(i);
  if (!v || !(is_integer(v->dtype()) || v->dtype() == DType::kBool)) return std::nullopt;
  std::vector<std::optional<int64_t>> values;
  for (int64_t x : v->to_int64s()) values.emplace_back(x);
  return make_ints(v->dims(), std::move(values));
}

std::optional<int64_t> element(const std::optional<PartialInts>& value, size_t i) {
  if (!value || i >= value->values.size()) return std::nullopt;
  return value->values[i];
}

std::optional<int64_t> scalar_int(InferContext& c, int i) {
  const auto p = ints(c, i);
  if (!p || p->values.size() != 1) return std::nullopt;
  return p->values[0];
}

PartialInts make_ints(const Dims& dims, std::vector<std::optional<int64_t>> values) {
  PartialInts p;
  p.scalar = dims.empty();
  p.values = std::move(values);
  if (dims.size() > 1) p.higher = dims;
  return p;
}

PartialInts known_ints(const std::vector<int64_t>& values) {
  PartialInts p;
  p.values.assign(values.begin(), values.end());
  return p;
}

PartialInts known_int(int64_t value) {
  PartialInts p;
  p.scalar = true;
  p.values.emplace_back(value);
  return p;
}

PartialInts ints_of(const Shape& shape) {
  PartialInts p;
  for (int64_t d : shape.dims())
    p.values.push_back(d < 0 ? std::optional<int64_t>() : std::optional<int64_t>(d));
  return p;
}

std::optional<PartialInts> fold_input(FoldContext& c, int i) {
  if (auto p = c.input(i)) return p;
  if (c.node().input(i).dtype() == DType::kString) return std::nullopt;  // an empty one would look known
  const Shape& s = c.input_shape(i);
  const auto n = s.elements();
  if (!n || *n > kMaxFoldElements) return std::nullopt;
  return make_ints(s.dims(), std::vector<std::optional<int64_t>>(static_cast<size_t>(*n)));
}

std::optional<std::vector<int64_t>> fold_known(FoldContext& c, int i) {
  const auto p = c.input(i);
  if (!p || !p->fully_known()) return std::nullopt;
  return p->with_unknowns();
}

std::optional<int64_t> fold_scalar(FoldContext& c, int i) {
  const auto p = c.input(i);
  if (!p || p->values.size() != 1) return std::nullopt;
  return p->values[0];
}

bool folds_to_ints(const FoldContext& c, int output) {
  const DType t = base_dtype(c.node().output_type(output));
  return is_integer(t) || t == DType::kBool;
}

PartialInts with_dims(PartialInts value, const Dims& dims) {
  return make_ints(dims, std::move(value.values));
}

std::optional<PartialInts> gather_ints(const PartialInts& value, const Dims& dims,
                                       const std::function<void(const Dims&, Dims&)>& source) {
  const int64_t n = num_elements(dims);
  if (n > kMaxFoldElements) return std::nullopt;
  const Dims from = value.dims();
  std::vector<std::optional<int64_t>> out;
  out.reserve(static_cast<size_t>(n));
  Dims index(dims.size()), at(from.size());
  for (int64_t i = 0; i < n; ++i) {
    source(index, at);
    int64_t flat = 0;
    for (size_t d = 0; d < from.size(); ++d) {
      if (at[d] < 0 || at[d] >= from[d]) return std::nullopt;  // the run will say what is wrong
      flat = flat * from[d] + at[d];
    }
    out.push_back(value.values[static_cast<size_t>(flat)]);
    for (size_t d = dims.size(); d-- > 0;) {
      if (++index[d] < dims[d]) break;
      index[d] = 0;
    }
  }
  return make_ints(dims, std::move(out));
}

PartialInts concat_ints(const std::vector<PartialInts>& parts, int axis) {
  const auto a = static_cast<size_t>(axis);
  Dims dims = parts.front().dims();
  dims[a] = 0;
  for (const PartialInts& p : parts) dims[a] += p.dims()[a];
  const int64_t outer = product(dims, 0, a);
  std::vector<std::optional<int64_t>> out;
  for (int64_t o = 0; o < outer; ++o)
    for (const PartialInts& p : parts) {
      const Dims d = p.dims();
      const int64_t chunk = product(d, a, d.size());
      out.insert(out.end(), p.values.begin() + o * chunk, p.values.begin() + (o + 1) * chunk);
    }
  return make_ints(dims, std::move(out));
}

void fold_input0(FoldContext& c) {
  if (auto p = c.input(0)) c.set_output(0, std::move(*p));
}

}  // namespace sluice::graph::ops
