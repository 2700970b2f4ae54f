#include "dsl/check_gradient.h"

#include <algorithm>
#include <cmath>

#include "dsl/ops/array.h"
#include "passes/gradients.h"

namespace sluice::dsl {

using runtime::Array;
using runtime::Feed;
using runtime::Session;

namespace {

std::vector<double> doubles(const Array& a) {
  Array d = a.cast(DType::kDouble);
  auto s = d.as<double>();
  return {s.begin(), s.end()};
}

Array array_of(DType dtype, const Dims& dims, const std::vector<double>& values) {
  return Array::from<double>(dims, std::span<const double>(values)).cast(dtype);
}

// Weights in ±[0.5, 1.5), from a small generator: fixed, without pattern, never near 0.
std::vector<double> weights(int64_t n) {
  std::vector<double> w;
  uint64_t s = 0x9e3779b97f4a7c15ULL;
  for (int64_t i = 0; i < n; ++i) {
    s ^= s << 13, s ^= s >> 7, s ^= s << 17;
    double unit = static_cast<double>(s >> 11) * 0x1.0p-53;
    w.push_back((s & 1 ? 1 : -1) * (0.5 + unit));
  }
  return w;
}

}  // namespace

std::string GradientCheck::str() const {
  if (analytic.empty()) return "no elements";
  auto w = static_cast<size_t>(worst);
  return cat("element ", worst, ": analytic ", analytic[w], ", numeric ", numeric[w], ", error ", max_error);
}

GradientCheck check_gradient(const Tensor& y, const Tensor& x, const Array& x_value,
                             const GradientCheckOptions& o) {
  Graph& g = x.graph();
  auto real = [](DType t) { return t == DType::kFloat || t == DType::kDouble; };
  SLUICE_REQUIRE(real(x.dtype()) && real(y.dtype()), Code::kInvalidArgument,
                 "check_gradient needs float or double tensors, got ", x.dtype(), " and ", y.dtype());
  Tensor seed = placeholder(g, y.dtype(), y.shape(), "check_gradient/seed");
  passes::GradientOptions go;
  go.grad_ys = {GradValue(seed.output())};
  GradValue grad = passes::gradients({y}, {x}, go)[0];
  SLUICE_REQUIRE(!grad.none(), Code::kInvalidArgument, "check_gradient: ", y.name(),
                 " has no gradient with respect to ", x.name());
  Output dx = grad.is_slices() ? graph::densify(g, grad.slices) : grad.dense;

  Session session(g, {.mode = runtime::PlanMode::kReference64, .kernels = o.kernels});
  if (!o.init.empty()) session.run({}, {}, o.init);
  auto feeds = [&](const Array& value) {
    std::vector<Feed> f = o.feeds;
    f.push_back({x, value});
    return f;
  };
  Array x0 = x_value.cast(x.dtype());
  Array y0 = session.run({y}, feeds(x0))[0];
  std::vector<double> w = doubles(array_of(y.dtype(), y0.dims(), weights(y0.elements())));
  std::vector<Feed> with_seed = feeds(x0);
  with_seed.push_back({seed, array_of(y.dtype(), y0.dims(), w)});
  GradientCheck out;
  out.analytic = doubles(session.run({dx}, with_seed)[0]);

  auto combined = [&](const std::vector<double>& at) {
    std::vector<double> v = doubles(session.run({y}, feeds(array_of(x.dtype(), x0.dims(), at)))[0]);
    double sum = 0;
    for (size_t i = 0; i < v.size(); ++i) sum += v[i] * w[i];
    return sum;
  };
  std::vector<double> at = doubles(x0);
  SLUICE_REQUIRE(out.analytic.size() == at.size(), Code::kInvalidArgument,
                 "check_gradient: the gradient has ", out.analytic.size(), " elements, ", x.name(), " has ",
                 at.size());
  for (size_t i = 0; i < at.size(); ++i) {
    double centre = at[i], h = o.delta * std::max(1.0, std::abs(centre));
    // The points as x's type holds them: their distance is then exact.
    double up = doubles(array_of(x.dtype(), {}, {centre + h}))[0];
    double down = doubles(array_of(x.dtype(), {}, {centre - h}))[0];
    at[i] = up;
    double high = combined(at);
    at[i] = down;
    double low = combined(at);
    at[i] = centre;
    out.numeric.push_back((high - low) / (up - down));
    double a = out.analytic[i], n = out.numeric.back();
    double error = std::abs(a - n) / std::max({1.0, std::abs(a), std::abs(n)});
    if (std::isnan(out.max_error)) continue;
    if (!(error <= out.max_error)) out.max_error = error, out.worst = static_cast<int64_t>(i);
  }
  return out;
}

}  // namespace sluice::dsl
