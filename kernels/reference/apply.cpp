// The optimizers' update ops (graph-and-training §4.3, §4.4): one struct a formula, run over all elements or
// over the rows that `indices` names. Each op's inputs are spelt as roles, in order:
//   v variable or slot   g gradient   i indices   h hyper-parameter (a scalar, handed on in order)

#include <cmath>
#include <string_view>

#include "kernels/reference/apply_rules.h"
#include "kernels/reference/common.h"
#include "kernels/reference/register.h"
#include "kernels/reference/variable_edit.h"

namespace sluice::kernels {
namespace {

constexpr int kMaxSlots = 4, kMaxHypers = 8;

struct Roles {
  int variables = 0, gradient = -1, indices = -1, hypers = 0;
  int hyper_at[kMaxHypers] = {};
};

Roles parse(std::string_view roles) {
  Roles p;
  for (int k = 0; k < static_cast<int>(roles.size()); ++k) switch (roles[static_cast<size_t>(k)]) {
      case 'v':
        ++p.variables;
        break;
      case 'g':
        p.gradient = k;
        break;
      case 'i':
        p.indices = k;
        break;
      default:
        p.hyper_at[p.hypers++] = k;
    }
  return p;
}

double hyper_value(const KernelRun& r, int input) {
  return graph::is_integer(r.in_dtype(input)) ? static_cast<double>(scalar_int(r, input))
                                              : real_at(r, input, 0);
}

void check_shapes(const KernelRun& r, const Roles& p, const Dims& var) {
  const Dims& g = r.in_dims(p.gradient);
  if (p.indices < 0) {
    SLUICE_REQUIRE(g == var, Code::kInvalidArgument, "var and grad do not have the same shape",
                   dims_string(var), " ", dims_string(g));
    return;
  }
  SLUICE_REQUIRE(!var.empty(), Code::kInvalidArgument, "var must be at least 1 dimensional");
  bool fits = g.size() == var.size() && g[0] == in_count(r, p.indices);
  for (size_t d = 1; fits && d < g.size(); ++d) fits = g[d] == var[d];
  SLUICE_REQUIRE(fits, Code::kInvalidArgument,
                 "grad must be the same size as indices in the first dimension and as var ", dims_string(var),
                 " in the others, got ", dims_string(g));
  for (int64_t k = 0; k < in_count(r, p.indices); ++k) {
    const int64_t row = int_at(r, p.indices, k);
    SLUICE_REQUIRE(row >= 0 && row < var[0], Code::kInvalidArgument, "Index ", row, " at offset ", k,
                   " in indices is out of range");
  }
}

template <class Rule, class T>
void run_rule(KernelRun& r, const Roles& p, bool flag) {
  std::optional<VariableEdit> edits[kMaxSlots];
  T* data[kMaxSlots] = {};
  for (int k = 0; k < p.variables; ++k) {
    for (int j = 0; j < k; ++j)
      SLUICE_REQUIRE(&r.variable(j) != &r.variable(k), Code::kInvalidArgument, "Variable ",
                     r.variable(k).name(), " is given twice to one update");
    edits[k].emplace(r.variable(k));
    SLUICE_REQUIRE(edits[k]->dims() == edits[0]->dims(), Code::kInvalidArgument, "var and ",
                   r.variable(k).name(), " do not have the same shape", dims_string(edits[0]->dims()), " ",
                   dims_string(edits[k]->dims()));
    data[k] = edits[k]->template data<T>();
  }
  const Dims& dims = edits[0]->dims();
  check_shapes(r, p, dims);
  T h[kMaxHypers] = {};
  for (int k = 0; k < p.hypers; ++k) h[k] = static_cast<T>(hyper_value(r, p.hyper_at[k]));
  const T* g = r.in<T>(p.gradient);
  const auto rule = Rule::template bind<T>(h, flag);
  if (p.indices < 0) {
    r.queue().parallel_for(edits[0]->elements(), 16384, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) rule(data, i, g[i]);
    });
  } else {
    int64_t inner = 1;
    for (size_t d = 1; d < dims.size(); ++d) inner *= dims[d];
    for (int64_t k = 0, n = in_count(r, p.indices); k < n; ++k) {
      const int64_t row = int_at(r, p.indices, k) * inner;
      for (int64_t i = 0; i < inner; ++i) rule(data, row + i, g[k * inner + i]);
    }
  }
  for (int k = 0; k < p.variables; ++k) edits[k]->commit();
}

struct Entry {
  const char* op;
  const char* roles;
  const char* flag_attr;  // a bool attribute the rule looks at, or null
  bool flag_default;
};

template <class Rule>
void add_rule(KernelRegistry& r, const Entry& e) {
  for (const char* prefix : {"", "Resource"}) {
    auto make = [roles = parse(e.roles), attr = e.flag_attr, fallback = e.flag_default](
                    const KernelSpec& spec, runtime::Refusal&) -> std::unique_ptr<runtime::Kernel> {
      const bool flag = attr ? spec.attr_or<bool>(attr, fallback) : fallback;
      return bound_kernel([roles, flag](KernelRun& run) {
        for_float(run.variable(0).dtype(), [&]<class T>() { run_rule<Rule, T>(run, roles, flag); });
      });
    };
    r.add(
        {.op = std::string(prefix) + e.op, .name = "reference", .make = std::move(make), .reference = true});
  }
}

}  // namespace

void register_apply(KernelRegistry& r) {
  using namespace apply_rules;
  add_rule<GradientDescent>(r, {"ApplyGradientDescent", "vhg", nullptr, false});
  add_rule<Momentum>(r, {"ApplyMomentum", "vvhgh", "use_nesterov", false});
  add_rule<Momentum>(r, {"SparseApplyMomentum", "vvhgih", "use_nesterov", false});
  add_rule<RmsProp>(r, {"ApplyRMSProp", "vvvhhhhg", nullptr, false});
  add_rule<RmsProp>(r, {"SparseApplyRMSProp", "vvvhhhhgi", nullptr, false});
  add_rule<CenteredRmsProp>(r, {"ApplyCenteredRMSProp", "vvvvhhhhg", nullptr, false});
  add_rule<CenteredRmsProp>(r, {"SparseApplyCenteredRMSProp", "vvvvhhhhgi", nullptr, false});
  add_rule<Adagrad>(r, {"ApplyAdagrad", "vvhg", "update_slots", true});
  add_rule<Adagrad>(r, {"SparseApplyAdagrad", "vvhgi", "update_slots", true});
  add_rule<AdagradV2>(r, {"ApplyAdagradV2", "vvhhg", "update_slots", true});
  add_rule<AdagradV2>(r, {"SparseApplyAdagradV2", "vvhhgi", "update_slots", true});
  add_rule<Adadelta>(r, {"ApplyAdadelta", "vvvhhhg", nullptr, false});
  add_rule<Adadelta>(r, {"SparseApplyAdadelta", "vvvhhhgi", nullptr, false});
  add_rule<Adam>(r, {"ApplyAdam", "vvvhhhhhhg", "use_nesterov", false});
  add_rule<AdaMax>(r, {"ApplyAdaMax", "vvvhhhhhg", nullptr, false});
  add_rule<AmsGrad>(r, {"ApplyAdamWithAmsgrad", "vvvvhhhhhhg", nullptr, false});
  add_rule<Ftrl>(r, {"ApplyFtrl", "vvvghhhh", nullptr, false});
  add_rule<Ftrl>(r, {"SparseApplyFtrl", "vvvgihhhh", nullptr, false});
  add_rule<FtrlV2>(r, {"ApplyFtrlV2", "vvvghhhhh", nullptr, false});
  add_rule<FtrlV2>(r, {"SparseApplyFtrlV2", "vvvgihhhhh", nullptr, false});
  add_rule<ProximalGradientDescent>(r, {"ApplyProximalGradientDescent", "vhhhg", nullptr, false});
  add_rule<ProximalGradientDescent>(r, {"SparseApplyProximalGradientDescent", "vhhhgi", nullptr, false});
  add_rule<ProximalAdagrad>(r, {"ApplyProximalAdagrad", "vvhhhg", nullptr, false});
  add_rule<ProximalAdagrad>(r, {"SparseApplyProximalAdagrad", "vvhhhgi", nullptr, false});
  add_rule<AdagradDa>(r, {"ApplyAdagradDA", "vvvghhhh", nullptr, false});
  add_rule<AdagradDa>(r, {"SparseApplyAdagradDA", "vvvgihhhh", nullptr, false});
}

}  // namespace sluice::kernels
