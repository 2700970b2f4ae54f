#pragma once
// Compares a gradient built by passes/gradients with finite differences, for authors of ops and layers. Runs
// the graph in double throughout (PlanMode::kReference64), so the tolerance can be tight. The graph gains the
// gradient's nodes. The builder's thread.
//
//   GradientCheck c = check_gradient(y, x, x_value);
//   EXPECT_LT(c.max_error, 1e-6);

#include <string>
#include <vector>

#include "dsl/tensor.h"
#include "runtime/session.h"

namespace sluice::dsl {

struct GradientCheck {
  /// Largest |analytic - numeric| / max(1, |analytic|, |numeric|).
  double max_error = 0;
  int64_t worst = 0;  // flat index of the element it is at
  std::vector<double> analytic, numeric;
  /// "element 3: analytic 1.5, numeric 2" of the worst element.
  std::string str() const;
};

struct GradientCheckOptions {
  double delta = 1e-5;                    // step of the central differences, relative to max(1, |x|)
  std::vector<runtime::Feed> feeds = {};  // further placeholders
  std::vector<Node*> init = {};           // targets that run first (variable initialisers)
  const runtime::KernelRegistry* kernels = nullptr;
};

/// The gradient of a fixed random combination of y's elements with respect to every element of x, at
/// `x_value`. x is fed, so it may be any tensor on the way to y, of float or double type. InvalidArgument
/// when y does not depend on x through differentiable ops.
GradientCheck check_gradient(const Tensor& y, const Tensor& x, const runtime::Array& x_value,
                             const GradientCheckOptions& o = {});

}  // namespace sluice::dsl
