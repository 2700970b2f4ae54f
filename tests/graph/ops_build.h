#pragma once
// Building nodes of the standard ops in a line, for tests.

#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace sluice::graph {

struct OpsGraph {
  Graph g;

  /// A placeholder; no shape means unknown rank.
  Output in(std::optional<Dims> dims, const char* name = "x", DType type = DType::kFloat) {
    const Shape shape = dims ? Shape(*dims) : Shape();
    return g.add({.op = "Placeholder", .name = name, .attrs = {{"dtype", type}, {"shape", shape}}}).output();
  }
  Output ints_in(std::optional<Dims> dims, const char* name = "i") {
    return in(std::move(dims), name, DType::kInt32);
  }
  Output constant(Literal value, const std::string& name = "c") {
    const DType t = value.dtype();
    const std::string exact = name.find('/') == std::string::npos ? name : name + "/";
    return g.add({.op = "Const", .name = exact, .attrs = {{"value", std::move(value)}, {"dtype", t}}})
        .output();
  }
  Output vec(std::vector<int32_t> values, const std::string& name = "c") {
    return constant(Literal::vector<int32_t>(std::span<const int32_t>(values)), name);
  }
  Output scalar(int32_t value, const std::string& name = "c") {
    return constant(Literal::scalar(value), name);
  }
  Output matrix(Dims dims, std::vector<int32_t> values, const std::string& name = "c") {
    return constant(Literal::from<int32_t>(std::move(dims), std::span<const int32_t>(values)), name);
  }
  Node& add(const char* op, std::vector<Output> inputs, AttrMap attrs = {}) {
    return g.add({.op = op, .inputs = std::move(inputs), .attrs = std::move(attrs)});
  }
  Output op(const char* name, std::vector<Output> inputs, AttrMap attrs = {}) {
    return add(name, std::move(inputs), std::move(attrs)).output();
  }
  Shape shape(const char* name, std::vector<Output> inputs, AttrMap attrs = {}) {
    return op(name, std::move(inputs), std::move(attrs)).shape();
  }
  /// The message of the Error that adding this node throws, "" if none.
  std::string error(const char* name, std::vector<Output> inputs, AttrMap attrs = {}) {
    try {
      add(name, std::move(inputs), std::move(attrs));
    } catch (const Error& e) {
      return e.message();
    }
    return "";
  }
};

}  // namespace sluice::graph
