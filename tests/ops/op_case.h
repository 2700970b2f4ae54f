#pragma once
// One row of the op-case table: an op with attributes and inputs, what it must give (a formula in double that
// knows nothing of the kernels), and how close. The rows drive every mode: shapes, reference, other kernels,
// gradients, TensorFlow's values, timing. cases_*.cpp list them; all_cases() joins the lists.

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/ops/direct_run.h"

namespace sluice::optest {

/// Values in double with their dims.
struct Doubles {
  Dims dims;
  std::vector<double> v;
  double& operator[](int64_t i) { return v[static_cast<size_t>(i)]; }
  double operator[](int64_t i) const { return v[static_cast<size_t>(i)]; }
  int64_t size() const { return static_cast<int64_t>(v.size()); }
  /// Element of a multi-index.
  double at(std::initializer_list<int64_t> index) const;
  double& at(std::initializer_list<int64_t> index);
};
Doubles zeros(Dims dims);

/// An input: values drawn from [low, high] by a fixed rule, or given.
struct In {
  Dims dims;
  double low = -2, high = 2;
  DType dtype = DType::kFloat;
  std::vector<double> values = {};        // used when not empty
  std::vector<std::string> strings = {};  // of a kString input
};
inline In f(Dims dims, double low = -2, double high = 2) { return {std::move(dims), low, high}; }
In given(Dims dims, std::vector<double> values, DType dtype = DType::kFloat);
inline In i32(std::vector<double> values) {
  Dims d{static_cast<int64_t>(values.size())};
  return given(std::move(d), std::move(values), DType::kInt32);
}
inline In i32_scalar(double v) { return given({}, {v}, DType::kInt32); }
In ints(Dims dims, double low, double high, DType dtype = DType::kInt32);

using Formula = std::function<std::vector<Doubles>(const std::vector<Doubles>&)>;

struct OpCase {
  std::string name;  // unique: "Conv2D_same_stride2"
  std::string op;
  std::vector<In> inputs;
  Formula expect;
  AttrMap attrs = {};
  double tolerance = 2e-6;     // relative to max(1, |expected|), for float
  double tolerance64 = 1e-12;  // for the float64 oracle
  /// Inputs whose gradient is compared with central differences; empty: none.
  std::vector<int> gradient = {};
  double gradient_tolerance = 2e-5;
  /// Compared with TensorFlow where it is present; false where TF has no such CPU kernel or other rules
  /// (why).
  bool in_tensorflow = true;
};

inline void PrintTo(const OpCase& c, std::ostream* out) { *out << c.op; }

/// The inputs' values for a case; floats as `real` (kFloat or kDouble). Equal for every type but for
/// rounding.
std::vector<Array> make_inputs(const OpCase& c, DType real);
Doubles to_doubles(const Array& a);

// Ready-made formulas.
Formula unary(double (*f)(double));
/// NumPy broadcasting of two operands.
Formula binary(double (*f)(double, double));
/// The formula gives one output of these dims, element by element: f(inputs, multi-index).
Formula elements(Dims dims, double (*f)(const std::vector<Doubles>&, const Dims&));

// The lists, one a file.
std::vector<OpCase> array_cases();
std::vector<OpCase> index_cases();
std::vector<OpCase> math_cases();
std::vector<OpCase> nn_cases();
std::vector<OpCase> all_cases();

}  // namespace sluice::optest
