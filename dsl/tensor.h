#pragma once
// dsl::Tensor: the author's handle to one output of a node, with operators. A value; it holds no state and
// lives as long as its graph. Building is for one thread. Operators add nodes in the open scopes, under
// TensorFlow's names.
//
//   Graph g;
//   Tensor x = placeholder(g, DType::kFloat, {-1, 784}, "x");
//   Tensor y = relu(matmul(x, w) + b);
//
// Operand is what ops take: a tensor, a variable (read at that place in the order), or a number, which
// becomes a constant of the other operand's type. It also carries the author's line into operators.

#include <memory>
#include <string>
#include <vector>

#include "graph/grad.h"
#include "graph/graph.h"
#include "graph/scopes.h"

namespace sluice::dsl {

using graph::AttrMap;
using graph::Dims;
using graph::DType;
using graph::GradValue;
using graph::Graph;
using graph::IndexedSlices;
using graph::Literal;
using graph::Node;
using graph::Output;
using graph::Shape;

class Variable;

class Tensor {
 public:
  Tensor() = default;
  Tensor(Output o) : o_(o) {}
  Tensor(Node& n) : o_{&n, 0} {}
  explicit operator bool() const { return static_cast<bool>(o_); }
  operator Output() const { return o_; }
  const Output& output() const { return o_; }
  Node& node() const { return *o_.node; }
  Graph& graph() const { return o_.node->graph(); }
  DType dtype() const { return o_.dtype(); }
  const Shape& shape() const { return o_.shape(); }
  std::string name() const { return o_.name(); }
  /// The same handle; equal(a, b) compares values.
  bool operator==(const Tensor&) const = default;

 private:
  Output o_;
};

class Operand {
 public:
  Operand(const Tensor& t, Loc loc = Loc::current()) : tensor_(t), loc_(loc) {}
  Operand(Output o, Loc loc = Loc::current()) : tensor_(o), loc_(loc) {}
  Operand(const Variable& v, Loc loc = Loc::current());
  Operand(double v, Loc loc = Loc::current()) : number_(v), loc_(loc) {}
  Operand(float v, Loc loc = Loc::current()) : number_(v), loc_(loc) {}
  Operand(int v, Loc loc = Loc::current()) : number_(v), loc_(loc) {}
  Operand(int64_t v, Loc loc = Loc::current()) : number_(static_cast<double>(v)), loc_(loc) {}

  bool is_number() const { return !tensor_ && !variable_; }
  bool is_variable() const { return variable_ != nullptr; }
  double number() const { return number_; }
  Loc loc() const { return loc_; }
  /// kInvalid for a number.
  DType dtype() const;
  /// Unknown rank for a number is a scalar.
  Shape shape() const;
  /// Null for a number.
  Graph* graph() const;

  /// The tensor this stands for, made in the open scopes: a variable is read now ("ReadVariableOp"), a number
  /// becomes the constant `arg` of type `like`.
  Tensor tensor(Graph& g, const std::string& arg = "Const", DType like = DType::kFloat,
                Loc loc = Loc::current()) const;
  /// For operands that are not numbers.
  Tensor tensor() const;

 private:
  Tensor tensor_;
  std::shared_ptr<graph::VariableInfo> variable_;  // shared with the collections of the graph
  double number_ = 0;
  Loc loc_;
};

/// The graph of the first operand that has one; InvalidArgument when all are numbers or they differ.
Graph& graph_of(std::initializer_list<const Operand*> operands);
Graph& graph_of(const std::vector<Operand>& operands);

Tensor operator+(const Operand& x, const Operand& y);  // "add"
Tensor operator-(const Operand& x, const Operand& y);  // "sub"
Tensor operator*(const Operand& x, const Operand& y);  // "mul"
Tensor operator/(const Operand& x, const Operand& y);  // "truediv"
Tensor operator%(const Operand& x, const Operand& y);  // "mod"
Tensor operator<(const Operand& x, const Operand& y);
Tensor operator<=(const Operand& x, const Operand& y);
Tensor operator>(const Operand& x, const Operand& y);
Tensor operator>=(const Operand& x, const Operand& y);
Tensor operator-(const Operand& x);

}  // namespace sluice::dsl
