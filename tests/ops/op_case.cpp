#include "tests/ops/op_case.h"

#include <cmath>

namespace sluice::optest {

double Doubles::at(std::initializer_list<int64_t> index) const {
  int64_t flat = 0;
  size_t d = 0;
  for (int64_t i : index) flat = flat * dims.at(d++) + i;
  return v.at(static_cast<size_t>(flat));
}
double& Doubles::at(std::initializer_list<int64_t> index) {
  int64_t flat = 0;
  size_t d = 0;
  for (int64_t i : index) flat = flat * dims.at(d++) + i;
  return v.at(static_cast<size_t>(flat));
}

Doubles zeros(Dims dims) {
  const auto n = static_cast<size_t>(graph::num_elements(dims));
  return {std::move(dims), std::vector<double>(n)};
}

In given(Dims dims, std::vector<double> values, DType dtype) {
  return {std::move(dims), 0, 0, dtype, std::move(values)};
}

In ints(Dims dims, double low, double high, DType dtype) { return {std::move(dims), low, high, dtype}; }

std::vector<Array> make_inputs(const OpCase& c, DType real) {
  std::vector<Array> arrays;
  uint64_t state = 0x9E3779B97F4A7C15u;
  for (const In& in : c.inputs) {
    if (in.dtype == DType::kString) {
      arrays.push_back(Array::strings(in.dims, in.strings));
      continue;
    }
    const int64_t n = graph::num_elements(in.dims);
    std::vector<double> v = in.values;
    const bool whole = graph::is_integer(in.dtype) || in.dtype == DType::kBool;
    for (int64_t i = static_cast<int64_t>(v.size()); i < n; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const double unit = static_cast<double>(state >> 40) / static_cast<double>(1 << 24);
      // Values are floats whatever the type, so that float and double runs see the same numbers.
      v.push_back(whole ? std::floor(in.low + unit * (in.high - in.low + 1))
                        : static_cast<double>(static_cast<float>(in.low + unit * (in.high - in.low))));
    }
    const Array a = Array::from<double>(in.dims, v);
    arrays.push_back(a.cast(in.dtype == DType::kFloat ? real : in.dtype));
  }
  return arrays;
}

Doubles to_doubles(const Array& a) { return {a.dims(), a.to_literal().to_doubles()}; }

Formula unary(double (*f)(double)) {
  return [f](const std::vector<Doubles>& in) {
    Doubles y = in[0];
    for (double& v : y.v) v = f(v);
    return std::vector<Doubles>{y};
  };
}

Formula binary(double (*f)(double, double)) {
  return [f](const std::vector<Doubles>& in) {
    const graph::Shape shape = *graph::broadcast_shapes(graph::Shape(in[0].dims), graph::Shape(in[1].dims));
    Doubles z = zeros(shape.dims());
    for (int64_t i = 0; i < z.size(); ++i) {
      auto pick = [&](const Doubles& x) {
        int64_t rest = i, flat = 0, stride = 1;
        for (size_t d = z.dims.size(); d-- > 0;) {
          const int64_t k = rest % z.dims[d];
          rest /= z.dims[d];
          const size_t missing = z.dims.size() - x.dims.size();
          if (d < missing) continue;
          if (x.dims[d - missing] != 1) flat += k * stride;
          stride *= x.dims[d - missing];
        }
        return x[flat];
      };
      z[i] = f(pick(in[0]), pick(in[1]));
    }
    return std::vector<Doubles>{z};
  };
}

Formula elements(Dims dims, double (*f)(const std::vector<Doubles>&, const Dims&)) {
  return [dims, f](const std::vector<Doubles>& in) {
    Doubles y = zeros(dims);
    Dims index(dims.size());
    for (int64_t i = 0; i < y.size(); ++i) {
      int64_t rest = i;
      for (size_t d = dims.size(); d-- > 0;) {
        index[d] = rest % dims[d];
        rest /= dims[d];
      }
      y[i] = f(in, index);
    }
    return std::vector<Doubles>{y};
  };
}

std::vector<OpCase> all_cases() {
  std::vector<OpCase> all;
  for (auto list : {array_cases(), index_cases(), math_cases(), nn_cases()})
    for (OpCase& c : list) all.push_back(std::move(c));
  return all;
}

}  // namespace sluice::optest
