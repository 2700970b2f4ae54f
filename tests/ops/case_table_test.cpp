// The modes of the op-case table that need no session: shapes, the reference loops in float and double
// against each row's formula, every other kernel against the reference.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/op_case.h"

namespace sluice::optest {
namespace {

class Table : public testing::TestWithParam<OpCase> {};

std::vector<Operand> operands(const OpCase& c, DType real) {
  std::vector<Operand> in;
  for (Array& a : make_inputs(c, real)) in.emplace_back(std::move(a));
  return in;
}

void expect_close(const Doubles& got, const Doubles& want, double tolerance, const std::string& what) {
  ASSERT_EQ(got.dims, want.dims) << what;
  for (int64_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want[i])) {
      EXPECT_TRUE(std::isnan(got[i])) << what << " element " << i << " is " << got[i] << ", not NaN";
    } else if (std::isinf(want[i])) {
      EXPECT_EQ(got[i], want[i]) << what << " element " << i;
    } else {
      EXPECT_NEAR(got[i], want[i], tolerance * std::max(1.0, std::fabs(want[i]))) << what << " element " << i;
    }
  }
}

void expect_formula(const OpCase& c, DType real, bool constants_known) {
  const std::vector<Array> out = run_op({.op = c.op,
                                         .inputs = operands(c, real),
                                         .attrs = c.attrs,
                                         .constants_known = constants_known,
                                         .widen = real == DType::kDouble});
  std::vector<Doubles> in;
  for (const Array& a : make_inputs(c, real))
    in.push_back(a.dtype() == DType::kString ? Doubles{a.dims(), {}} : to_doubles(a));
  const std::vector<Doubles> want = c.expect(in);
  ASSERT_LE(want.size(), out.size());
  for (size_t k = 0; k < want.size(); ++k)
    expect_close(to_doubles(out[k]), want[k], real == DType::kDouble ? c.tolerance64 : c.tolerance,
                 cat("output ", static_cast<int>(k)));
}

TEST_P(Table, InferredShapesAreThoseOfTheValues) {
  const OpCase& c = GetParam();
  const DirectRun direct({.op = c.op, .inputs = operands(c, DType::kFloat), .attrs = c.attrs});
  std::string why;
  auto kernel = direct.make("reference", why);
  ASSERT_TRUE(kernel) << why;
  const std::vector<Array> out = direct.run(*kernel);
  const auto shapes = direct.inferred(false), exact = direct.inferred(true);
  for (size_t k = 0; k < out.size(); ++k) {
    EXPECT_TRUE(shapes[k].compatible(graph::Shape(out[k].dims())))
        << shapes[k].str() << " was inferred for " << graph::dims_string(out[k].dims());
    if (!direct.node().has(graph::kDynamicShape)) {
      EXPECT_EQ(exact[k], graph::Shape(out[k].dims())) << "with the inputs' values known";
    }
  }
}

TEST_P(Table, ReferenceFollowsTheFormula) { expect_formula(GetParam(), DType::kFloat, true); }

TEST_P(Table, ReferenceInDoubleFollowsTheFormula) { expect_formula(GetParam(), DType::kDouble, false); }

TEST_P(Table, OtherKernelsAgreeWithTheReference) {
  const OpCase& c = GetParam();
  const DirectRun direct({.op = c.op, .inputs = operands(c, DType::kFloat), .attrs = c.attrs});
  std::string why;
  auto reference = direct.make("reference", why);
  ASSERT_TRUE(reference) << why;
  const std::vector<Array> want = direct.run(*reference);
  for (const std::string& name : direct.candidates()) {
    if (name == "reference") continue;
    auto kernel = direct.make(name, why);
    if (!kernel) continue;  // a reasoned refusal is legal; explain prints it
    const std::vector<Array> got = direct.run(*kernel);
    for (size_t k = 0; k < want.size(); ++k)
      expect_close(to_doubles(got[k]), to_doubles(want[k]), c.tolerance * 4,
                   cat(name, " output ", static_cast<int>(k)));
  }
}

TEST(CaseNames, AreUnique) {
  std::vector<std::string> names;
  for (const OpCase& c : all_cases()) names.push_back(c.name);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

// Switch and Merge are the runtime's business; every other op must be able to run.
TEST(Coverage, EveryOpHasAReferenceKernel) {
  std::vector<std::string> missing;
  for (const std::string& name : graph::standard_ops().names()) {
    if (graph::standard_ops().get(name).has(graph::kControlFlow)) continue;
    // A library does not end its process.
    if (name == "Abort") continue;
    const auto candidates = runtime::standard_kernels().candidates(name);
    if (std::none_of(candidates.begin(), candidates.end(), [](const auto* d) { return d->reference; }))
      missing.push_back(name);
  }
  EXPECT_THAT(missing, testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Ops, Table, testing::ValuesIn(all_cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace sluice::optest
