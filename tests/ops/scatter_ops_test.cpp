// Writes to rows and slices of variables, and updates that only TensorFlow's later optimizers use: each in
// its reference and its resource form against numbers worked out by hand or in double.

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ops/direct_run.h"

namespace sluice::optest {
namespace {

using runtime::Variable;
using testing::ElementsAre;
using testing::HasSubstr;

std::shared_ptr<Variable> variable(const std::string& name, Array value) {
  auto v = std::make_shared<Variable>(name, value.dtype());
  v->assign(value);
  return v;
}
std::shared_ptr<Variable> one(const char* name, double value) {
  return variable(name, Array::from<double>({1}, {value}));
}
double value_of(const std::shared_ptr<Variable>& v) { return v->value().as<double>()[0]; }
Array num(double v) { return Array::scalar<double>(v); }
Array vec(double v) { return Array::from<double>({1}, {v}); }

class Scatter : public testing::TestWithParam<bool> {
 protected:
  // v[indices] op= updates on {1, 2, 3, 4, 5, 6} as [3, 2].
  std::vector<float> rows(const std::string& what, Array indices, Array updates) {
    return run(GetParam() ? "ResourceScatter" + what : "Scatter" + what, std::move(indices),
               std::move(updates), GetParam() && what.find("Nd") == std::string::npos);
  }
  std::vector<float> run(const std::string& op, Array indices, Array updates, bool dtype) {
    auto v = variable("v", Array::from<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
    AttrMap attrs;
    if (dtype) attrs["dtype"] = DType::kFloat;
    run_op({.op = op, .inputs = {v, std::move(indices), std::move(updates)}, .attrs = attrs});
    const Array out = v->value();
    return {out.as<float>().begin(), out.as<float>().end()};
  }
  Array at = Array::from<int32_t>({2}, {2, 0}), by = Array::from<float>({2, 2}, {1, 8, 4, 2});
};

TEST_P(Scatter, EveryOperatorOnRows) {
  EXPECT_THAT(rows("Update", at, by), ElementsAre(4, 2, 3, 4, 1, 8));
  EXPECT_THAT(rows("Add", at, by), ElementsAre(5, 4, 3, 4, 6, 14));
  EXPECT_THAT(rows("Sub", at, by), ElementsAre(-3, 0, 3, 4, 4, -2));
  EXPECT_THAT(rows("Mul", at, by), ElementsAre(4, 4, 3, 4, 5, 48));
  EXPECT_THAT(rows("Div", at, by), ElementsAre(.25f, 1, 3, 4, 5, .75f));
  EXPECT_THAT(rows("Min", at, by), ElementsAre(1, 2, 3, 4, 1, 6));
  EXPECT_THAT(rows("Max", at, by), ElementsAre(4, 2, 3, 4, 5, 8));
}

TEST_P(Scatter, DuplicatesActOneAfterAnother) {
  const Array twice = Array::from<int32_t>({2}, {1, 1});
  EXPECT_THAT(rows("Add", twice, by), ElementsAre(1, 2, 8, 14, 5, 6));
  EXPECT_THAT(rows("Mul", twice, by), ElementsAre(1, 2, 12, 64, 5, 6));
  EXPECT_THAT(rows("Update", twice, by), ElementsAre(1, 2, 4, 2, 5, 6));
}

TEST_P(Scatter, AScalarUpdatesEveryRowNamed) {
  EXPECT_THAT(rows("Mul", at, Array::scalar(10.0f)), ElementsAre(10, 20, 3, 4, 50, 60));
}

TEST_P(Scatter, SlicesByIndexVectors) {
  const Array places = Array::from<int32_t>({2, 2}, {2, 0, 0, 1}), two = Array::from<float>({2}, {10, 1});
  EXPECT_THAT(rows("NdAdd", places, two), ElementsAre(1, 3, 3, 4, 15, 6));
  EXPECT_THAT(rows("NdSub", places, two), ElementsAre(1, 1, 3, 4, -5, 6));
  EXPECT_THAT(rows("NdUpdate", places, two), ElementsAre(1, 1, 3, 4, 10, 6));
  EXPECT_THAT(rows("NdMin", places, two), ElementsAre(1, 1, 3, 4, 5, 6));
  EXPECT_THAT(rows("NdMax", places, two), ElementsAre(1, 2, 3, 4, 10, 6));
}

TEST_P(Scatter, AnIndexThatIsNoRowIsRefusedBeforeAnythingIsWritten) {
  auto v = variable("v", Array::from<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
  const std::string op = GetParam() ? "ResourceScatterNdAdd" : "ScatterNdAdd";
  try {
    run_op({.op = op,
            .inputs = {v, Array::from<int32_t>({2, 1}, {0, 3}), Array::from<float>({2, 2}, {9, 9, 9, 9})}});
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_THAT(e.message(), HasSubstr("indices[1] = [3] does not index into shape [3,2]"));
  }
  EXPECT_THAT(v->value().as<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
}

INSTANTIATE_TEST_SUITE_P(Forms, Scatter, testing::Bool(),
                         [](const auto& info) { return info.param ? "Resource" : "Reference"; });

TEST(ResourceGather, ReadsRowsOfAVariableInAnyLayoutAndType) {
  auto v = variable("v", Array::from<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
  auto gather = [&](const std::shared_ptr<Variable>& from) {
    return run_op({.op = "ResourceGather",
                   .inputs = {from, Array::from<int32_t>({2}, {2, 0})},
                   .attrs = {{"dtype", from->dtype()}}})[0];
  };
  EXPECT_THAT(gather(v).as<float>(), ElementsAre(5, 6, 1, 2));
  auto s = std::make_shared<Variable>("s", DType::kString);
  s->assign(Array::strings({3}, {"a", "b", "c"}));
  EXPECT_THAT(gather(s).string_values(), ElementsAre("c", "a"));
  auto conv = std::make_shared<Variable>("c", DType::kFloat);
  conv->assign(Array::from<float>({3, 2, 1, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}),
               runtime::Layout::channels_last(4));
  EXPECT_THAT(gather(conv).as<float>(), ElementsAre(9, 10, 11, 12, 1, 2, 3, 4));
}

// graph-and-training §4.3: w = 1, gradients 0.1, -0.2, 0.3, in double.
const double kGradients[] = {0.1, -0.2, 0.3};

TEST(Optimizers, AdaMax) {
  auto w = one("w", 1), m = one("m", 0), v = one("v", 0);
  double power = .9, sw = 1, sm = 0, sv = 0;
  for (double g : kGradients) {
    run_op({.op = "ResourceApplyAdaMax",
            .inputs = {w, m, v, num(power), num(.01), num(.9), num(.999), num(1e-8), vec(g)}});
    sm = .9 * sm + .1 * g;
    sv = std::max(.999 * sv, std::fabs(g));
    sw -= .01 / (1 - power) * sm / (sv + 1e-8);
    power *= .9;
  }
  EXPECT_NEAR(value_of(w), sw, 1e-15);
  EXPECT_NEAR(value_of(v), .3, 1e-15);
}

TEST(Optimizers, AmsGradKeepsTheLargestSecondMoment) {
  auto w = one("w", 1), m = one("m", 0), v = one("v", 0), hat = one("hat", 0);
  double p1 = .9, p2 = .999, sw = 1, sm = 0, sv = 0, sh = 0;
  for (double g : {0.5, 0.001, 0.001}) {
    run_op({.op = "ResourceApplyAdamWithAmsgrad",
            .inputs = {w, m, v, hat, num(p1), num(p2), num(.01), num(.9), num(.999), num(1e-8), vec(g)}});
    sm = .9 * sm + .1 * g;
    sv = .999 * sv + .001 * g * g;
    sh = std::max(sh, sv);
    sw -= .01 * std::sqrt(1 - p2) / (1 - p1) * sm / (std::sqrt(sh) + 1e-8);
    p1 *= .9;
    p2 *= .999;
  }
  EXPECT_NEAR(value_of(w), sw, 1e-14);
  EXPECT_NEAR(value_of(hat), sh, 1e-15);
  EXPECT_LT(value_of(v), value_of(hat));
}

TEST(Optimizers, AdagradV2HasAnEpsilon) {
  auto w = one("w", 1), a = one("a", .1);
  double sw = 1, sa = .1;
  for (double g : kGradients) {
    run_op({.op = "ResourceApplyAdagradV2", .inputs = {w, a, num(.1), num(.5), vec(g)}});
    sa += g * g;
    sw -= .1 * g / (std::sqrt(sa) + .5);
  }
  EXPECT_NEAR(value_of(w), sw, 1e-15);
}

TEST(Optimizers, AdagradDaAveragesAllGradients) {
  for (const char* op : {"ResourceApplyAdagradDA", "ApplyAdagradDA"}) {
    auto w = one("w", 1), s = one("s", 0), q = one("q", .1);
    double sum = 0, squares = .1, want = 0;
    int64_t step = 0;
    for (double g : kGradients) {
      ++step;
      run_op(
          {.op = op, .inputs = {w, s, q, vec(g), num(.5), num(.01), num(.1), Array::scalar<int64_t>(step)}});
      sum += g;
      squares += g * g;
      const double t = static_cast<double>(step);
      want = -(sum > 0 ? 1 : -1) * .5 * std::max(std::fabs(sum) - .01 * t, 0.) /
             (.1 * t * .5 + std::sqrt(squares));
    }
    EXPECT_NEAR(value_of(w), want, 1e-15) << op;
  }
}

TEST(Optimizers, SparseProximalUpdatesTouchOnlyTheirRows) {
  auto w = variable("w", Array::from<double>({3}, {1, 1, 1})),
       a = variable("a", Array::from<double>({3}, {.1, .1, .1}));
  const Array g = Array::from<double>({1}, {.5}), at = Array::from<int64_t>({1}, {1});
  run_op({.op = "ResourceSparseApplyProximalAdagrad", .inputs = {w, a, num(.1), num(.2), num(.3), g, at}});
  const double rate = .1 / std::sqrt(.1 + .25);
  const double p = 1 - rate * .5, want = (std::fabs(p) - rate * .2) / (1 + .3 * rate);
  EXPECT_THAT(w->value().as<double>(), ElementsAre(1, testing::DoubleNear(want, 1e-15), 1));
  EXPECT_THAT(a->value().as<double>(), ElementsAre(.1, testing::DoubleNear(.35, 1e-15), .1));
  auto x = variable("x", Array::from<double>({3}, {1, 1, 1}));
  run_op({.op = "SparseApplyProximalGradientDescent", .inputs = {x, num(.1), num(.2), num(.3), g, at}});
  EXPECT_THAT(x->value().as<double>(), ElementsAre(1, testing::DoubleNear((1 - .05 - .02) / 1.03, 1e-15), 1));
}

}  // namespace
}  // namespace sluice::optest
