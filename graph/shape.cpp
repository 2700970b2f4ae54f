#include "graph/shape.h"

#include <algorithm>

#include "graph/support/check.h"

namespace sluice::graph {

int64_t num_elements(const Dims& dims) {
  int64_t n = 1;
  for (int64_t d : dims) {
    SLUICE_REQUIRE(!__builtin_mul_overflow(n, d, &n), Code::kInvalidArgument, "Shape ", dims_string(dims),
                   " has more elements than an int64 can count");
  }
  return n;
}

std::string dims_string(const Dims& dims) {
  std::string s = "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i) s += ',';
    s += dims[i] < 0 ? "?" : std::to_string(dims[i]);
  }
  return s + "]";
}

Shape::Shape(Dims dims) : known_(true), dims_(std::move(dims)) {
  for (int64_t d : dims_)
    SLUICE_REQUIRE(d >= kUnknownDim, Code::kInvalidArgument, "Dimension ", d,
                   " must be >= 0 (or -1 for unknown)");
}

int64_t Shape::dim(int i) const {
  if (!known_) return kUnknownDim;
  if (i < 0) i += rank();
  SLUICE_CHECK(i >= 0 && i < rank(), "dimension ", i, " of ", str());
  return dims_[static_cast<size_t>(i)];
}

bool Shape::fully_known() const {
  return known_ && std::all_of(dims_.begin(), dims_.end(), [](int64_t d) { return d >= 0; });
}

std::optional<int64_t> Shape::elements() const {
  if (!fully_known()) return std::nullopt;
  return num_elements(dims_);
}

void Shape::set_dim(int i, int64_t value) {
  SLUICE_CHECK(known_, "set_dim on unknown rank");
  if (i < 0) i += rank();
  SLUICE_CHECK(i >= 0 && i < rank(), "dimension ", i, " of ", str());
  dims_[static_cast<size_t>(i)] = value;
}

Shape Shape::merge(const Shape& other) const {
  if (!known_) return other;
  if (!other.known_) return *this;
  SLUICE_REQUIRE(compatible(other), Code::kInvalidArgument, "Shapes ", str(), " and ", other.str(),
                 " are not compatible");
  Shape r = *this;
  for (size_t i = 0; i < dims_.size(); ++i)
    if (r.dims_[i] < 0) r.dims_[i] = other.dims_[i];
  return r;
}

bool Shape::compatible(const Shape& other) const {
  if (!known_ || !other.known_) return true;
  if (dims_.size() != other.dims_.size()) return false;
  for (size_t i = 0; i < dims_.size(); ++i)
    if (dims_[i] >= 0 && other.dims_[i] >= 0 && dims_[i] != other.dims_[i]) return false;
  return true;
}

Shape Shape::concat(const Shape& tail) const {
  if (!known_ || !tail.known_) return {};
  Dims d = dims_;
  d.insert(d.end(), tail.dims_.begin(), tail.dims_.end());
  return Shape(std::move(d));
}

Shape Shape::slice(int from, int to) const {
  SLUICE_CHECK(known_, "slice of unknown rank");
  if (from < 0) from += rank();
  if (to < 0) to += rank();
  SLUICE_CHECK(0 <= from && from <= to && to <= rank(), "slice ", from, ":", to, " of ", str());
  return Shape(Dims(dims_.begin() + from, dims_.begin() + to));
}

std::string Shape::str() const { return known_ ? dims_string(dims_) : "<unknown>"; }

void append(std::string& s, const Shape& shape) { s += shape.str(); }

std::optional<Shape> broadcast_shapes(const Shape& a, const Shape& b) {
  if (!a.known_rank() || !b.known_rank()) return Shape();
  const int rank = std::max(a.rank(), b.rank());
  Dims out(static_cast<size_t>(rank));
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank()), ib = i - (rank - b.rank());
    const int64_t da = ia < 0 ? 1 : a.dims()[static_cast<size_t>(ia)];
    const int64_t db = ib < 0 ? 1 : b.dims()[static_cast<size_t>(ib)];
    int64_t d;
    if (da == db)
      d = da;
    else if (da == 1)
      d = db;
    else if (db == 1)
      d = da;
    else if (da < 0)
      d = db;  // an unknown dimension against one above 1 can only be that
    else if (db < 0)
      d = da;
    else
      return std::nullopt;
    out[static_cast<size_t>(i)] = d;
  }
  return Shape(std::move(out));
}

}  // namespace sluice::graph
