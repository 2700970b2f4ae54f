// Elementwise functions, broadcasting, reductions, scans, matrix products.

#include <cmath>
#include <limits>

#include "tests/ops/op_case.h"

namespace sluice::optest {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

using V = const std::vector<Doubles>&;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

void add_unary(std::vector<OpCase>& t) {
  struct Row {
    const char* op;
    double (*f)(double);
    double low, high;
    bool smooth;
  };
  const Row rows[] = {
      {"Abs", [](double x) { return std::fabs(x); }, -2, 2, true},
      {"Acos", [](double x) { return std::acos(x); }, -0.9, 0.9, true},
      {"Asin", [](double x) { return std::asin(x); }, -0.9, 0.9, true},
      {"Atan", [](double x) { return std::atan(x); }, -3, 3, true},
      {"Ceil", [](double x) { return std::ceil(x); }, -3, 3, false},
      {"Cos", [](double x) { return std::cos(x); }, -3, 3, true},
      {"Cosh", [](double x) { return std::cosh(x); }, -3, 3, true},
      {"Elu", [](double x) { return x < 0 ? std::exp(x) - 1 : x; }, -3, 3, true},
      {"Erf", [](double x) { return std::erf(x); }, -2, 2, true},
      {"Erfc", [](double x) { return 1 - std::erf(x); }, -2, 2, true},
      {"Exp", [](double x) { return std::exp(x); }, -3, 3, true},
      {"Expm1", [](double x) { return std::exp(x) - 1; }, -1, 1, true},
      {"Floor", [](double x) { return std::floor(x); }, -3, 3, false},
      {"Inv", [](double x) { return 1 / x; }, 0.5, 3, true},
      {"Log", [](double x) { return std::log(x); }, 0.2, 5, true},
      {"Log1p", [](double x) { return std::log(1 + x); }, -0.5, 5, true},
      {"Neg", [](double x) { return -x; }, -3, 3, true},
      {"Reciprocal", [](double x) { return 1 / x; }, 0.5, 3, true},
      {"Relu", [](double x) { return x > 0 ? x : 0; }, -3, 3, true},
      {"Relu6", [](double x) { return x < 0   ? 0
                                      : x > 6 ? 6
                                              : x; }, -3, 9, true},
      {"Rint", [](double x) { return std::nearbyint(x); }, -3, 3, false},
      {"Round", [](double x) { return std::nearbyint(x); }, -3, 3, false},
      {"Rsqrt", [](double x) { return 1 / std::sqrt(x); }, 0.3, 4, true},
      {"Selu",
       [](double x) { return 1.0507009873554805 * (x < 0 ? 1.6732632423543772 * (std::exp(x) - 1) : x); }, -3,
       3, true},
      {"Sigmoid", sigmoid, -4, 4, true},
      {"Sign", [](double x) { return x > 0   ? 1.0
                                     : x < 0 ? -1.0
                                             : 0.0; }, -3, 3, false},
      {"Sin", [](double x) { return std::sin(x); }, -3, 3, true},
      {"Sinh", [](double x) { return std::sinh(x); }, -3, 3, true},
      {"Softplus", [](double x) { return std::log(1 + std::exp(x)); }, -4, 4, true},
      {"Softsign", [](double x) { return x / (1 + std::fabs(x)); }, -3, 3, true},
      {"Sqrt", [](double x) { return std::sqrt(x); }, 0.2, 5, true},
      {"Square", [](double x) { return x * x; }, -3, 3, true},
      {"Tan", [](double x) { return std::tan(x); }, -1, 1, true},
      {"Tanh", [](double x) { return std::tanh(x); }, -3, 3, true},
  };
  for (const Row& r : rows) {
    OpCase c{.name = r.op, .op = r.op, .inputs = {f({3, 17}, r.low, r.high)}, .expect = unary(r.f)};
    if (r.smooth) c.gradient = {0};
    t.push_back(c);
    c.name = cat(r.op, "_scalar");
    c.inputs[0].dims = {};
    t.push_back(c);
    c.name = cat(r.op, "_empty");
    c.inputs[0].dims = {0, 4};
    c.gradient = {};
    t.push_back(c);
  }
  const std::vector<double> edges{kNan, kInf, -kInf, 0.0, -0.0, 1.0, -1.0, 100.0, -100.0};
  struct Edge {
    const char* op;
    std::vector<double> want;
  };
  const Edge table[] = {
      {"Relu", {kNan, kInf, 0, 0, 0, 1, 0, 100, 0}},
      {"Relu6", {kNan, 6, 0, 0, 0, 1, 0, 6, 0}},
      {"Elu", {kNan, kInf, -1, 0, -0.0, 1, std::expm1(-1.0), 100, -1}},
      {"Softplus",
       {kNan, kInf, 0, std::log(2.0), std::log(2.0), std::log1p(std::exp(1.0)), std::log1p(std::exp(-1.0)),
        100, std::exp(-100.0)}},
      {"Sigmoid", {kNan, 1, 0, 0.5, 0.5, sigmoid(1), sigmoid(-1), 1, sigmoid(-100)}},
      {"Tanh", {kNan, 1, -1, 0, -0.0, std::tanh(1.0), -std::tanh(1.0), 1, -1}},
      {"Sign", {kNan, 1, -1, 0, 0, 1, -1, 1, -1}},
      {"Abs", {kNan, kInf, kInf, 0, 0, 1, 1, 100, 100}},
      {"Exp", {kNan, kInf, 0, 1, 1, std::exp(1.0), std::exp(-1.0), std::exp(100.0), std::exp(-100.0)}},
  };
  for (const Edge& e : table) {
    OpCase c{.name = cat(e.op, "_edge_values"),
             .op = e.op,
             .inputs = {given({9}, edges)},
             .expect = [want = e.want](V) {
               return std::vector<Doubles>{{{9}, want}};
             }};
    // e^100 is no float; the row is about special values.
    if (c.op == "Exp") c.inputs[0].values[7] = 80;
    if (c.op == "Exp")
      c.expect = [want = e.want](V) {
        auto w = want;
        w[7] = std::exp(80.0);
        return std::vector<Doubles>{{{9}, w}};
      };
    t.push_back(c);
  }
  for (DType type : {DType::kInt32, DType::kInt64})
    for (const char* op : {"Abs", "Neg", "Sign", "Square", "Relu"}) {
      const std::string o = op;
      t.push_back({.name = cat(op, "_", type),
                   .op = op,
                   .inputs = {ints({11}, -5, 5, type)},
                   .expect = o == "Abs"      ? unary([](double x) { return std::fabs(x); })
                             : o == "Neg"    ? unary([](double x) { return -x; })
                             : o == "Square" ? unary([](double x) { return x * x; })
                             : o == "Relu"   ? unary([](double x) { return x > 0 ? x : 0; })
                                             : unary([](double x) {
                                               return x > 0 ? 1.0 : x < 0 ? -1.0 : 0.0;
                                             })});
    }
  t.push_back({.name = "LeakyRelu",
               .op = "LeakyRelu",
               .inputs = {f({5, 7})},
               .expect = unary([](double x) { return x > 0 ? x : 0.3f * x; }),
               .attrs = {{"alpha", 0.3f}},
               .gradient = {0}});
  for (const char* op : {"IsNan", "IsInf", "IsFinite"}) {
    const std::string o = op;
    t.push_back({.name = cat(op, "_edge_values"),
                 .op = op,
                 .inputs = {given({9}, edges)},
                 .expect = o == "IsNan"   ? unary([](double x) { return std::isnan(x) ? 1.0 : 0.0; })
                           : o == "IsInf" ? unary([](double x) { return std::isinf(x) ? 1.0 : 0.0; })
                                          : unary([](double x) { return std::isfinite(x) ? 1.0 : 0.0; })});
  }
  t.push_back({.name = "LogicalNot",
               .op = "LogicalNot",
               .inputs = {ints({6}, 0, 1, DType::kBool)},
               .expect = unary([](double x) { return 1 - x; })});
}

void add_binary(std::vector<OpCase>& t) {
  struct Row {
    const char* op;
    double (*f)(double, double);
    double low, high;
    std::vector<int> gradient;
  };
  const Row rows[] = {
      {"Add", [](double x, double y) { return x + y; }, -2, 2, {0, 1}},
      {"AddV2", [](double x, double y) { return x + y; }, -2, 2, {0, 1}},
      {"Div", [](double x, double y) { return x / y; }, 0.5, 3, {0, 1}},
      {"DivNoNan", [](double x, double y) { return y == 0 ? 0 : x / y; }, 0.5, 3, {0, 1}},
      {"FloorDiv", [](double x, double y) { return std::floor(x / y); }, 0.5, 9, {}},
      {"FloorMod", [](double x, double y) { return x - y * std::floor(x / y); }, 0.5, 9, {}},
      {"Maximum", [](double x, double y) { return x > y ? x : y; }, -2, 2, {0, 1}},
      {"Minimum", [](double x, double y) { return x < y ? x : y; }, -2, 2, {0, 1}},
      {"Mul", [](double x, double y) { return x * y; }, -2, 2, {0, 1}},
      {"MulNoNan", [](double x, double y) { return y == 0 ? 0 : x * y; }, -2, 2, {}},
      {"Pow", [](double x, double y) { return std::pow(x, y); }, 0.5, 3, {0, 1}},
      {"RealDiv", [](double x, double y) { return x / y; }, 0.5, 3, {0, 1}},
      {"SquaredDifference", [](double x, double y) { return (x - y) * (x - y); }, -2, 2, {0, 1}},
      {"Sub", [](double x, double y) { return x - y; }, -2, 2, {0, 1}},
      {"Xdivy", [](double x, double y) { return x == 0 ? 0 : x / y; }, 0.5, 3, {}},
      {"Xlogy", [](double x, double y) { return x == 0 ? 0 : x * std::log(y); }, 0.5, 3, {}},
      {"Equal", [](double x, double y) { return x == y ? 1.0 : 0.0; }, -2, 2, {}},
      {"Greater", [](double x, double y) { return x > y ? 1.0 : 0.0; }, -2, 2, {}},
      {"GreaterEqual", [](double x, double y) { return x >= y ? 1.0 : 0.0; }, -2, 2, {}},
      {"Less", [](double x, double y) { return x < y ? 1.0 : 0.0; }, -2, 2, {}},
      {"LessEqual", [](double x, double y) { return x <= y ? 1.0 : 0.0; }, -2, 2, {}},
      {"NotEqual", [](double x, double y) { return x != y ? 1.0 : 0.0; }, -2, 2, {}},
  };
  for (const Row& r : rows) {
    OpCase c{.name = r.op,
             .op = r.op,
             .inputs = {f({3, 5}, r.low, r.high), f({3, 5}, r.low, r.high)},
             .expect = binary(r.f),
             .tolerance = 4e-6,
             .gradient = r.gradient};
    t.push_back(c);
    const std::pair<const char*, std::pair<Dims, Dims>> shapes[] = {{"row", {{4, 3, 5}, {5}}},
                                                                    {"column", {{3, 1}, {3, 5}}},
                                                                    {"scalar", {{2, 3}, {}}},
                                                                    {"both", {{2, 1, 3}, {4, 1}}},
                                                                    {"middle", {{2, 3, 4}, {2, 1, 4}}}};
    for (const auto& [suffix, dims] : shapes) {
      c.name = cat(r.op, "_", suffix);
      c.inputs[0].dims = dims.first;
      c.inputs[1].dims = dims.second;
      t.push_back(c);
    }
    c.name = cat(r.op, "_empty");
    c.gradient = {};
    c.inputs[0].dims = {0, 3};
    c.inputs[1].dims = {1, 3};
    t.push_back(c);
  }
  for (DType type : {DType::kInt32, DType::kInt64}) {
    auto add = [&](const char* op, double (*g)(double, double), std::vector<double> x,
                   std::vector<double> y) {
      t.push_back({.name = cat(op, "_", type),
                   .op = op,
                   .inputs = {given({4}, x, type), given({4}, y, type)},
                   .expect = binary(g)});
    };
    add("FloorDiv", [](double x, double y) { return std::floor(x / y); }, {7, -7, 7, -7}, {2, 2, -2, -2});
    add("FloorMod", [](double x, double y) { return x - y * std::floor(x / y); }, {7, -7, 7, -7},
        {2, 2, -2, -2});
    add("TruncateDiv", [](double x, double y) { return std::trunc(x / y); }, {7, -7, 7, -7}, {2, 2, -2, -2});
    add("Pow", [](double x, double y) { return std::pow(x, y); }, {2, -3, 5, 0}, {10, 3, 0, 2});
    add("Maximum", [](double x, double y) { return std::max(x, y); }, {2, -3, 5, 0}, {10, 3, 0, 2});
    add("Sub", [](double x, double y) { return x - y; }, {2, -3, 5, 0}, {10, 3, 0, 2});
  }
  const std::vector<double> a{kNan, 1, 0, kInf, -kInf}, b{1, kNan, -0.0, kInf, kInf};
  t.push_back({.name = "Maximum_edge_values",
               .op = "Maximum",
               .inputs = {given({5}, a), given({5}, b)},
               .expect = [](V) {
                 return std::vector<Doubles>{{{5}, {kNan, kNan, 0, kInf, kInf}}};
               }});
  t.push_back({.name = "Minimum_edge_values",
               .op = "Minimum",
               .inputs = {given({5}, a), given({5}, b)},
               .expect = [](V) {
                 return std::vector<Doubles>{{{5}, {kNan, kNan, 0, kInf, -kInf}}};
               }});
  t.push_back({.name = "FloorMod_signs",
               .op = "FloorMod",
               .inputs = {given({6}, {7.5, -7.5, 7, -7, kNan, 5.5}), given({6}, {2, 2, -2, -2, 1, -3})},
               .expect = [](V) {
                 return std::vector<Doubles>{{{6}, {1.5, 0.5, -1, -1, kNan, -0.5}}};
               }});
  for (const char* op : {"LogicalAnd", "LogicalOr"})
    t.push_back({.name = op,
                 .op = op,
                 .inputs = {ints({2, 3}, 0, 1, DType::kBool), ints({3}, 0, 1, DType::kBool)},
                 .expect = std::string(op) == "LogicalAnd"
                               ? binary([](double x, double y) { return x * y; })
                               : binary([](double x, double y) { return std::max(x, y); })});
  t.push_back(
      {.name = "AddN",
       .op = "AddN",
       .inputs = {f({3, 4}), f({3, 4}), f({3, 4})},
       .expect = elements({3, 4},
                          [](V in, const Dims& i) {
                            return in[0].at({i[0], i[1]}) + in[1].at({i[0], i[1]}) + in[2].at({i[0], i[1]});
                          }),
       .gradient = {0, 1, 2}});
}

// Gradient ops on their own, with the cases that the plain formula gets wrong.
void add_grad_ops(std::vector<OpCase>& t) {
  struct Row {
    const char* op;
    double (*f)(double, double);
  };
  const Row rows[] = {
      {"ReluGrad", [](double dy, double x) { return x > 0 ? dy : 0; }},
      {"Relu6Grad", [](double dy, double x) { return x > 0 && x < 6 ? dy : 0; }},
      {"EluGrad", [](double dy, double y) { return y < 0 ? dy * (y + 1) : dy; }},
      {"SeluGrad",
       [](double dy, double y) { return y < 0 ? dy * (y + 1.7580993408473768) : dy * 1.0507009873554805; }},
      {"SoftplusGrad", [](double dy, double x) { return dy * sigmoid(x); }},
      {"SoftsignGrad", [](double dy, double x) { return dy / ((1 + std::fabs(x)) * (1 + std::fabs(x))); }},
      {"TanhGrad", [](double y, double dy) { return dy * (1 - y * y); }},
      {"SigmoidGrad", [](double y, double dy) { return dy * y * (1 - y); }},
      {"SqrtGrad", [](double y, double dy) { return dy / (2 * y); }},
      {"RsqrtGrad", [](double y, double dy) { return -dy * y * y * y / 2; }},
      {"InvGrad", [](double y, double dy) { return -dy * y * y; }},
      {"ReciprocalGrad", [](double y, double dy) { return -dy * y * y; }},
  };
  for (const Row& r : rows)
    t.push_back({.name = r.op,
                 .op = r.op,
                 .inputs = {f({4, 9}), f({4, 9})},
                 .expect = binary(r.f),
                 .tolerance = 1e-5});
  t.push_back({.name = "SqrtGrad_at_zero",
               .op = "SqrtGrad",
               .inputs = {given({3}, {0, 0, kNan}), given({3}, {0, 1, 0})},
               .expect = [](V) {
                 return std::vector<Doubles>{{{3}, {0, kInf, 0}}};
               }});
  t.push_back({.name = "ReluGrad_edge_values",
               .op = "ReluGrad",
               .inputs = {given({5}, {1, 1, kNan, kNan, 2}), given({5}, {kNan, 0, 0, 2, kInf})},
               .expect = [](V) {
                 return std::vector<Doubles>{{{5}, {0, 0, kNan, kNan, 2}}};
               }});
  t.push_back({.name = "LeakyReluGrad",
               .op = "LeakyReluGrad",
               .inputs = {f({9}), f({9})},
               .expect = binary([](double dy, double x) { return x > 0 ? dy : 0.2f * dy; }),
               .attrs = {{"alpha", 0.2f}}});
}

// The reduction of `f` over the flagged axes of a [3,4,5] value, in order.
Formula reduced(std::vector<bool> flags, bool keep, double start, double (*f)(double, double),
                double (*end)(double, double)) {
  return [=](V in) {
    const Doubles& x = in[0];
    Dims out;
    double count = 1;
    for (size_t d = 0; d < x.dims.size(); ++d) {
      if (flags[d]) count *= static_cast<double>(x.dims[d]);
      if (!flags[d])
        out.push_back(x.dims[d]);
      else if (keep)
        out.push_back(1);
    }
    Doubles y = zeros(out);
    for (double& v : y.v) v = start;
    for (int64_t i = 0; i < x.size(); ++i) {
      int64_t rest = i, at = 0, stride = 1;
      for (size_t d = x.dims.size(); d-- > 0;) {
        const int64_t k = rest % x.dims[d];
        rest /= x.dims[d];
        if (flags[d]) continue;
        at += k * stride;
        stride *= x.dims[d];
      }
      y[at] = f(y[at], x[i]);
    }
    for (double& v : y.v) v = end(v, count);
    return std::vector<Doubles>{y};
  };
}

void add_reductions(std::vector<OpCase>& t) {
  struct Row {
    const char* op;
    double start;
    double (*f)(double, double);
    double (*end)(double, double);
    bool smooth;
  };
  auto same = [](double v, double) { return v; };
  const Row rows[] = {
      {"Sum", 0, [](double a, double b) { return a + b; }, same, true},
      {"Mean", 0, [](double a, double b) { return a + b; }, [](double v, double n) { return v / n; }, true},
      {"Prod", 1, [](double a, double b) { return a * b; }, same, true},
      {"Max", -kInf, [](double a, double b) { return b > a ? b : a; }, same, true},
      {"Min", kInf, [](double a, double b) { return b < a ? b : a; }, same, true},
      {"EuclideanNorm", 0, [](double a, double b) { return a + b * b; },
       [](double v, double) { return std::sqrt(v); }, false},
  };
  const std::pair<const char*, std::vector<double>> axes[] = {
      {"all", {0, 1, 2}}, {"first", {0}},      {"last", {-1}}, {"middle", {1}},
      {"outer", {0, 2}},  {"leading", {0, 1}}, {"none", {}}};
  for (const Row& r : rows)
    for (const auto& [suffix, list] : axes)
      for (bool keep : {false, true}) {
        std::vector<bool> flags(3);
        for (double a : list) flags[static_cast<size_t>(a < 0 ? a + 3 : a)] = true;
        OpCase c{.name = cat(r.op, "_", suffix, keep ? "_keep" : ""),
                 .op = r.op,
                 .inputs = {f({3, 4, 5}, 0.5, 1.5), i32(list)},
                 .expect = reduced(flags, keep, r.start, r.f, r.end),
                 .attrs = {{"keep_dims", keep}}};
        if (r.smooth && !keep) c.gradient = {0};
        t.push_back(c);
      }
  t.push_back({.name = "Sum_long",
               .op = "Sum",
               .inputs = {f({1 << 16}, 0, 1), i32({0})},
               .expect = reduced({true}, false, 0, rows[0].f, same),
               .tolerance = 1e-6});
  t.push_back({.name = "Sum_wide_rows",
               .op = "Sum",
               .inputs = {f({9, 150}, 0, 1), i32({0})},
               .expect = reduced({true, false}, false, 0, rows[0].f, same)});
  t.push_back({.name = "Sum_int32",
               .op = "Sum",
               .inputs = {ints({4, 5}, -9, 9), i32({1})},
               .expect = reduced({false, true}, false, 0, rows[0].f, same)});
  t.push_back({.name = "Max_empty_axis", .op = "Max", .inputs = {f({2, 0}), i32({1})}, .expect = [](V) {
                 return std::vector<Doubles>{{{2}, {-kInf, -kInf}}};
               }});
  t.push_back({.name = "Sum_empty_axis", .op = "Sum", .inputs = {f({2, 0}), i32({1})}, .expect = [](V) {
                 return std::vector<Doubles>{{{2}, {0, 0}}};
               }});
  t.push_back({.name = "Mean_empty_axis", .op = "Mean", .inputs = {f({2, 0}), i32({1})}, .expect = [](V) {
                 return std::vector<Doubles>{{{2}, {kNan, kNan}}};
               }});
  t.push_back({.name = "Max_sees_nan",
               .op = "Max",
               .inputs = {given({2, 3}, {1, kNan, 3, 1, 2, 3}), i32({1})},
               .expect = [](V) {
                 return std::vector<Doubles>{{{2}, {kNan, 3}}};
               }});
  for (const char* op : {"All", "Any"})
    t.push_back({.name = op,
                 .op = op,
                 .inputs = {given({3, 2}, {1, 1, 0, 1, 0, 0}, DType::kBool), i32({1})},
                 .expect = [all = std::string(op) == "All"](V) {
                   return std::vector<Doubles>{
                       {{3}, all ? std::vector<double>{1, 0, 0} : std::vector<double>{1, 1, 0}}};
                 }});
  t.push_back({.name = "ArgMax_first_of_ties",
               .op = "ArgMax",
               .inputs = {given({2, 4}, {1, 7, 7, 2, 5, 5, 5, 5}), i32_scalar(1)},
               .expect = [](V) {
                 return std::vector<Doubles>{{{2}, {1, 0}}};
               }});
  t.push_back({.name = "ArgMin_axis0",
               .op = "ArgMin",
               .inputs = {given({2, 3}, {1, 7, 3, 0, 8, 2}), i32_scalar(0)},
               .expect =
                   [](V) {
                     return std::vector<Doubles>{{{3}, {1, 0, 1}}};
                   },
               .attrs = {{"output_type", DType::kInt32}}});
  for (bool exclusive : {false, true})
    for (bool reverse : {false, true})
      for (const char* op : {"Cumsum", "Cumprod"}) {
        const bool sum = std::string(op) == "Cumsum";
        t.push_back({.name = cat(op, exclusive ? "_exclusive" : "", reverse ? "_reverse" : ""),
                     .op = op,
                     .inputs = {f({2, 5, 3}, 0.5, 1.5), i32_scalar(1)},
                     .expect =
                         [=](V in) {
                           Doubles y = in[0];
                           for (int64_t a = 0; a < 2; ++a)
                             for (int64_t b = 0; b < 3; ++b) {
                               double acc = sum ? 0 : 1;
                               for (int64_t k = 0; k < 5; ++k) {
                                 const int64_t at = reverse ? 4 - k : k;
                                 const double x = in[0].at({a, at, b});
                                 const double next = sum ? acc + x : acc * x;
                                 y.at({a, at, b}) = exclusive ? acc : next;
                                 acc = next;
                               }
                             }
                           return std::vector<Doubles>{y};
                         },
                     .attrs = {{"exclusive", exclusive}, {"reverse", reverse}},
                     .gradient = {0}});
      }
}

void add_matrix(std::vector<OpCase>& t) {
  for (bool ta : {false, true})
    for (bool tb : {false, true}) {
      t.push_back({.name = cat("MatMul", ta ? "_ta" : "", tb ? "_tb" : ""),
                   .op = "MatMul",
                   .inputs = {f(ta ? Dims{7, 5} : Dims{5, 7}), f(tb ? Dims{70, 7} : Dims{7, 70})},
                   .expect =
                       [=](V in) {
                         Doubles y = zeros({5, 70});
                         for (int64_t i = 0; i < 5; ++i)
                           for (int64_t j = 0; j < 70; ++j)
                             for (int64_t k = 0; k < 7; ++k)
                               y.at({i, j}) += (ta ? in[0].at({k, i}) : in[0].at({i, k})) *
                                               (tb ? in[1].at({j, k}) : in[1].at({k, j}));
                         return std::vector<Doubles>{y};
                       },
                   .attrs = {{"transpose_a", ta}, {"transpose_b", tb}},
                   .tolerance = 1e-5,
                   .gradient = {0, 1}});
      t.push_back({.name = cat("BatchMatMul", ta ? "_adjx" : "", tb ? "_adjy" : ""),
                   .op = "BatchMatMul",
                   .inputs = {f(ta ? Dims{2, 3, 4, 5} : Dims{2, 3, 5, 4}),
                              f(tb ? Dims{2, 3, 6, 4} : Dims{2, 3, 4, 6})},
                   .expect =
                       [=](V in) {
                         Doubles y = zeros({2, 3, 5, 6});
                         for (int64_t b = 0; b < 6; ++b)
                           for (int64_t i = 0; i < 5; ++i)
                             for (int64_t j = 0; j < 6; ++j)
                               for (int64_t k = 0; k < 4; ++k)
                                 y[(b * 5 + i) * 6 + j] += in[0][b * 20 + (ta ? k * 5 + i : i * 4 + k)] *
                                                           in[1][b * 24 + (tb ? j * 4 + k : k * 6 + j)];
                         return std::vector<Doubles>{y};
                       },
                   .attrs = {{"adj_x", ta}, {"adj_y", tb}},
                   .tolerance = 1e-5,
                   .gradient = {0, 1}});
    }
  t.push_back({.name = "BatchMatMulV2_broadcast",
               .op = "BatchMatMulV2",
               .inputs = {f({2, 1, 3, 4}), f({5, 4, 2})},
               .expect =
                   [](V in) {
                     Doubles y = zeros({2, 5, 3, 2});
                     for (int64_t a = 0; a < 2; ++a)
                       for (int64_t b = 0; b < 5; ++b)
                         for (int64_t i = 0; i < 3; ++i)
                           for (int64_t j = 0; j < 2; ++j)
                             for (int64_t k = 0; k < 4; ++k)
                               y.at({a, b, i, j}) += in[0].at({a, 0, i, k}) * in[1].at({b, k, j});
                     return std::vector<Doubles>{y};
                   },
               .tolerance = 1e-5,
               .gradient = {0, 1}});
  t.push_back({.name = "MatMul_no_inner", .op = "MatMul", .inputs = {f({2, 0}), f({0, 3})}, .expect = [](V) {
                 return std::vector<Doubles>{zeros({2, 3})};
               }});
}

}  // namespace

std::vector<OpCase> math_cases() {
  std::vector<OpCase> t;
  add_unary(t);
  add_binary(t);
  add_grad_ops(t);
  add_reductions(t);
  add_matrix(t);
  return t;
}

}  // namespace sluice::optest
