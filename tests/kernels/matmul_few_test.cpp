// Products with few rows or columns: every layout of the operands, and sums whose error does not grow with
// the number of terms.

#include <cmath>
#include <span>

#include "kernel_runner.h"

namespace sluice::test {
namespace {

constexpr DType F = DType::kFloat;

struct Product {
  int64_t m, n, k;
  bool ta = false, tb = false;
  int64_t batch = 0;  // 0: MatMul
  bool shared_a = false, shared_b = false;
};

std::string describe(const Product& p) {
  return cat(p.batch, " times ", p.m, "x", p.k, p.ta ? "ᵀ" : "", " · ", p.k, "x", p.n, p.tb ? "ᵀ" : "",
             p.shared_a ? ", one a" : "", p.shared_b ? ", one b" : "");
}

KernelCase case_of(const Product& p, float mean = 0) {
  auto dims = [&](int64_t rows, int64_t cols, bool turned, bool shared) {
    Dims d = turned ? Dims{cols, rows} : Dims{rows, cols};
    if (p.batch > 0) d.insert(d.begin(), shared ? 1 : p.batch);
    return d;
  };
  graph::AttrMap attrs = p.batch > 0 ? graph::AttrMap{{"T", F}, {"adj_x", p.ta}, {"adj_y", p.tb}}
                                     : graph::AttrMap{{"T", F}, {"transpose_a", p.ta}, {"transpose_b", p.tb}};
  return {p.batch > 0 ? "BatchMatMulV2" : "MatMul",
          attrs,
          {random_array(dims(p.m, p.k, p.ta, p.shared_a), 1, 1, mean),
           random_array(dims(p.k, p.n, p.tb, p.shared_b), 2)},
          {{F, dims(p.m, p.n, false, false), {}}},
          nullptr};
}

std::vector<Product> with_transposes(std::vector<Product> shapes) {
  std::vector<Product> all;
  for (Product p : shapes)
    for (bool ta : {false, true})
      for (bool tb : {false, true}) {
        p.ta = ta, p.tb = tb;
        all.push_back(p);
      }
  return all;
}

TEST(FewRows, EveryLayoutEqualsTheReferenceAtAnyWidth) {
  for (const Product& p : with_transposes({{1, 1, 256},
                                           {1, 100, 1000},
                                           {2, 1, 4099},
                                           {2, 70, 301},
                                           {3, 300, 513},
                                           {5, 7, 700},
                                           {16, 33, 1025},
                                           {300, 4, 257},
                                           {65, 9, 1600},
                                           {3, 50, 260, false, false, 4},
                                           {50, 2, 263, false, false, 3, true, false},
                                           {7, 40, 600, false, false, 3, false, true}})) {
    SCOPED_TRACE(describe(p));
    const KernelCase c = case_of(p);
    const std::vector<Array> one = run_kernel(c, "few_rows", 1), two = run_kernel(c, "few_rows", 2);
    expect_close(two.at(0), run_kernel(c, "reference").at(0), 1e-6f, "product");
    EXPECT_TRUE(same_bits(one.at(0), two.at(0)));
  }
}

TEST(FewRows, NaNAndInfinityStayInTheirRowAndColumn) {
  for (const Product& p : with_transposes({{2, 21, 300}, {21, 2, 300}})) {
    SCOPED_TRACE(describe(p));
    KernelCase c = case_of(p);
    c.inputs[0].as<float>()[0] = INFINITY;
    c.inputs[1].as<float>()[0] = NAN;
    expect_close(run_kernel(c, "few_rows").at(0), run_kernel(c, "reference").at(0), 1e-6f, "product");
  }
}

float pairwise(std::span<const float> x) {
  if (x.size() == 1) return x[0];
  return pairwise(x.first(x.size() / 2)) + pairwise(x.subspan(x.size() / 2));
}

// What a plan would take, against sums in double: its errors stay within four times those of pairwise
// summation in float, whatever the number of terms, also where the sums do not hover around zero.
TEST(FewRows, ErrorsStayNearPairwiseSummation) {
  for (float mean : {0.f, 1.f})
    for (int64_t k : {256, 4096, 20000})
      for (const Product& p :
           with_transposes({{2, 1, k}, {1, 2, k}, {2, 40, k}, {40, 4, k}, {4, 19, k, false, false, 3}})) {
        SCOPED_TRACE(cat(describe(p), " mean ", mean));
        const KernelCase c = case_of(p, mean);
        const Array got = run_kernel(c, "few_rows").at(0);
        const auto a = c.inputs[0].as<float>(), b = c.inputs[1].as<float>(), y = got.as<float>();
        double ours = 0, peer = 0, size = 0;
        std::vector<float> terms(static_cast<size_t>(k));
        for (int64_t i = 0; i < got.elements(); ++i) {
          const int64_t col = i % p.n, row = i / p.n % p.m, at = i / p.n / p.m;
          double exact = 0;
          for (int64_t q = 0; q < k; ++q) {
            const float x = a[static_cast<size_t>(at * p.m * k + (p.ta ? q * p.m + row : row * k + q))];
            const float w = b[static_cast<size_t>(at * p.n * k + (p.tb ? col * k + q : q * p.n + col))];
            exact += static_cast<double>(x) * w;
            terms[static_cast<size_t>(q)] = x * w;
          }
          ours += std::pow(y[static_cast<size_t>(i)] - exact, 2);
          peer += std::pow(pairwise(terms) - exact, 2);
          size += std::pow(exact, 2);
        }
        // A handful of results may be exact by luck: half an ULP of their size is every float's due.
        EXPECT_LE(std::sqrt(ours), 4 * std::max(std::sqrt(peer), 0x1p-24 * std::sqrt(size)));
      }
}

}  // namespace
}  // namespace sluice::test
