#include "graph/infer.h"

#include <algorithm>

#include "graph/fold.h"
#include "graph/support/check.h"

namespace sluice::graph {

bool PartialInts::fully_known() const {
  return std::all_of(values.begin(), values.end(), [](const auto& v) { return v.has_value(); });
}

std::vector<int64_t> PartialInts::with_unknowns() const {
  std::vector<int64_t> out;
  out.reserve(values.size());
  for (const auto& v : values) out.push_back(v.value_or(kUnknownDim));
  return out;
}

InferContext::InferContext(const Node& node, std::vector<Shape> inputs, ValueFn value, PartialFn partial,
                           HandleShapeFn handle)
    : node_(node),
      inputs_(std::move(inputs)),
      outputs_(static_cast<size_t>(node.num_outputs())),
      value_(std::move(value)),
      partial_(std::move(partial)),
      handle_(std::move(handle)) {}

std::optional<Literal> InferContext::value(int i) {
  auto v = value_ ? value_(i) : std::nullopt;
  if (!v && std::find(asked_.begin(), asked_.end(), i) == asked_.end()) asked_.push_back(i);
  return v;
}

std::optional<PartialInts> InferContext::partial(int i) {
  auto v = partial_ ? partial_(i) : std::nullopt;
  if ((!v || !v->fully_known()) && std::find(asked_.begin(), asked_.end(), i) == asked_.end())
    asked_.push_back(i);
  return v;
}

Shape InferContext::shape_value(int i) {
  if (auto p = partial(i)) {
    Dims dims = p->with_unknowns();
    if (p->scalar) {
      // A scalar -1 stands for "shape unknown" where TensorFlow allows it; any other scalar is no shape.
      if (dims[0] == -1) return Shape();
      fail(cat("Input ", i, " must be a vector of dimensions, not a scalar"));
    }
    for (int64_t& d : dims)
      if (d < 0) d = kUnknownDim;
    return Shape(std::move(dims));
  }
  const Shape& s = input(i);
  if (s.known_rank() && s.rank() == 1 && s.known_dim(0)) return Shape::of_rank(static_cast<int>(s.dim(0)));
  return Shape();
}

Shape InferContext::with_rank(int i, int rank) const {
  const Shape& s = input(i);
  if (!s.known_rank()) return Shape::of_rank(rank);
  if (s.rank() != rank) fail(cat("Shape must be rank ", rank, " but is rank ", s.rank()));
  return s;
}

Shape InferContext::with_rank_at_least(int i, int rank) const {
  const Shape& s = input(i);
  if (s.known_rank() && s.rank() < rank)
    fail(cat("Shape must be at least rank ", rank, " but is rank ", s.rank()));
  return s;
}

int64_t InferContext::merge_dim(int64_t a, int64_t b) const {
  if (a < 0) return b;
  if (b < 0 || a == b) return a;
  fail(cat("Dimensions must be equal, but are ", a, " and ", b));
}

Shape InferContext::merge(const Shape& a, const Shape& b) const {
  if (!a.known_rank()) return b;
  if (!b.known_rank()) return a;
  if (a.rank() != b.rank()) fail(cat("Shapes must be equal rank, but are ", a.rank(), " and ", b.rank()));
  Shape r = a;
  for (int i = 0; i < a.rank(); ++i) {
    const int64_t x = a.dim(i), y = b.dim(i);
    if (x >= 0 && y >= 0 && x != y)
      fail(cat("Dimension ", i, " in both shapes must be equal, but are ", x, " and ", y, ". Shapes are ", a,
               " and ", b, "."));
    r.set_dim(i, x < 0 ? y : x);
  }
  return r;
}

int InferContext::axis(int64_t axis, int rank) const {
  if (axis < -rank || axis >= rank)
    fail(cat("Invalid reduction dimension ", axis, " for input with ", rank, " dimensions"));
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

void InferContext::fail(const std::string& why) const {
  std::string s = cat(why, " for '", node_.name(), "' (op: '", node_.op(), "') with input shapes: ");
  for (int i = 0; i < num_inputs(); ++i) s += cat(i ? ", " : "", input(i));
  // A handle's own shape says nothing; its variable does.
  if (node_.has(kReadsVariable) || node_.has(kWritesVariable)) {
    const Node* variable = num_inputs() > 0 ? variable_behind(node_.input(0)) : nullptr;
    if (variable)
      s += cat("; the variable is '", variable->name(), "' ", graph::handle_shape(node_.input(0)));
  }
  throw Error(Code::kInvalidArgument, s + ".", node_.name(), node_.loc());
}

}  // namespace sluice::graph
