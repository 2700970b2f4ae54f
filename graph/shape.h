#pragma once
// Shapes as the graph knows them: rank may be unknown, and so may each dimension (-1). A value type; any
// thread. `Dims` is a fully known shape. Errors carry TensorFlow's wording (graph-and-training §1.9).

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace sluice::graph {

/// A fully known shape: every entry ≥ 0. The empty vector is a scalar.
using Dims = std::vector<int64_t>;

inline constexpr int64_t kUnknownDim = -1;

/// Product of the dims (1 for a scalar). Throws InvalidArgument on overflow of int64.
int64_t num_elements(const Dims& dims);
/// "[2,3]", "[]".
std::string dims_string(const Dims& dims);

class Shape {
 public:
  /// Unknown rank.
  Shape() = default;
  /// Known rank; -1 is an unknown dimension. Any other negative number is an InvalidArgument.
  Shape(std::initializer_list<int64_t> dims) : Shape(Dims(dims)) {}
  explicit Shape(Dims dims);
  static Shape scalar() { return Shape(Dims{}); }
  /// Rank known, every dimension unknown.
  static Shape of_rank(int rank) { return Shape(Dims(static_cast<size_t>(rank), kUnknownDim)); }

  bool known_rank() const { return known_; }
  int rank() const { return known_ ? static_cast<int>(dims_.size()) : -1; }
  /// -1 when the dimension or the rank is unknown. Negative i counts from the end (rank must be known then).
  int64_t dim(int i) const;
  bool known_dim(int i) const { return dim(i) >= 0; }
  bool fully_known() const;
  /// Entries, -1 for unknown; rank must be known.
  const Dims& dims() const { return dims_; }
  /// Elements when fully known.
  std::optional<int64_t> elements() const;

  void set_dim(int i, int64_t value);
  /// Intersection; throws InvalidArgument "Shapes A and B are not compatible".
  Shape merge(const Shape& other) const;
  bool compatible(const Shape& other) const;
  Shape concat(const Shape& tail) const;
  /// Dimensions [from, to); rank must be known; negative indices count from the end.
  Shape slice(int from, int to) const;

  /// Same knowledge (unknown equals unknown), not "provably equal".
  bool operator==(const Shape& other) const = default;

  /// "[2,?]", "[]", "<unknown>".
  std::string str() const;

 private:
  bool known_ = false;
  Dims dims_;
};

void append(std::string& s, const Shape& shape);

/// NumPy broadcasting of two shapes with unknowns (§1.9); nullopt when they can't be.
std::optional<Shape> broadcast_shapes(const Shape& a, const Shape& b);

}  // namespace sluice::graph
