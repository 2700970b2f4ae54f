// Optimizer update ops (formulas: graph-and-training §4.3). One row states an update; from it come the
// reference form, the resource form and, where TensorFlow has them, their sparse forms.

#include "graph/ops/register.h"
#include "graph/ops/shapes.h"

namespace sluice::graph::ops {
namespace {

struct Update {
  const char* name;
  std::vector<std::string> state;  // the variable and its slots
  // "grad" and "delta" have the variable's shape, the rest are scalars, of its type unless they say
  // otherwise.
  std::vector<std::string> arguments;
  std::vector<std::string> attrs;  // besides T and use_locking
  bool sparse;
  const char* doc;
  std::vector<std::string> later_attrs = {};
  bool resource_only = false;
};

const std::vector<Update>& updates() {
  static const std::string kNesterov = "use_nesterov: bool = false", kSlots = "update_slots: bool = true",
                           kLate = "multiply_linear_by_lr: bool = false";
  static const std::vector<Update> rows = {
      {"GradientDescent", {"var"}, {"alpha", "delta"}, {}, false, "var -= alpha * delta"},
      {"ProximalGradientDescent",
       {"var"},
       {"alpha", "l1", "l2", "delta"},
       {},
       true,
       "p = var - alpha * delta; var = sign(p) / (1 + alpha * l2) * max(|p| - alpha * l1, 0)"},
      {"Momentum",
       {"var", "accum"},
       {"lr", "grad", "momentum"},
       {kNesterov},
       true,
       "accum = momentum * accum + grad; var -= lr * accum (nesterov: lr * grad + lr * momentum * accum)"},
      {"Adagrad",
       {"var", "accum"},
       {"lr", "grad"},
       {kSlots},
       true,
       "accum += grad^2; var -= lr * grad / sqrt(accum)"},
      {"AdagradV2",
       {"var", "accum"},
       {"lr", "epsilon", "grad"},
       {kSlots},
       true,
       "accum += grad^2; var -= lr * grad / (sqrt(accum) + epsilon)"},
      {"AdagradDA",
       {"var", "gradient_accumulator", "gradient_squared_accumulator"},
       {"grad", "lr", "l1", "l2", "global_step: int64"},
       {},
       true,
       "G += grad; GG += grad^2; var = -sign(G) * lr * max(|G| - l1 * global_step, 0) / (l2 * global_step * "
       "lr + sqrt(GG))"},
      {"ProximalAdagrad",
       {"var", "accum"},
       {"lr", "l1", "l2", "grad"},
       {},
       true,
       "accum += grad^2; the proximal step with rate lr / sqrt(accum)"},
      {"Adadelta",
       {"var", "accum", "accum_update"},
       {"lr", "rho", "epsilon", "grad"},
       {},
       true,
       "accum = rho * accum + (1 - rho) * grad^2; u = sqrt(accum_update + epsilon) / sqrt(accum + epsilon) * "
       "grad; var -= lr * u; accum_update = rho * accum_update + (1 - rho) * u^2"},
      {"RMSProp",
       {"var", "ms", "mom"},
       {"lr", "rho", "momentum", "epsilon", "grad"},
       {},
       true,
       "ms += (grad^2 - ms) * (1 - rho); mom = momentum * mom + lr * grad / sqrt(ms + epsilon); var -= mom"},
      {"CenteredRMSProp",
       {"var", "mg", "ms", "mom"},
       {"lr", "rho", "momentum", "epsilon", "grad"},
       {},
       true,
       "as RMSProp with mg += (grad - mg) * (1 - rho) and sqrt(ms - mg^2 + epsilon)"},
      {"Adam",
       {"var", "m", "v"},
       {"beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon", "grad"},
       {kNesterov},
       false,
       "alpha = lr * sqrt(1 - beta2_power) / (1 - beta1_power); m += (grad - m) * (1 - beta1); v += (grad^2 "
       "- "
       "v) * (1 - beta2); var -= alpha * m / (sqrt(v) + epsilon)"},
      {"AdaMax",
       {"var", "m", "v"},
       {"beta1_power", "lr", "beta1", "beta2", "epsilon", "grad"},
       {},
       false,
       "m += (grad - m) * (1 - beta1); v = max(beta2 * v, |grad|); var -= lr / (1 - beta1_power) * m / (v + "
       "epsilon)"},
      {"AdamWithAmsgrad",
       {"var", "m", "v", "vhat"},
       {"beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon", "grad"},
       {},
       false,
       "as Adam with vhat = max(vhat, v) in place of v in the step",
       {},
       true},
      {"Ftrl",
       {"var", "accum", "linear"},
       {"grad", "lr", "l1", "l2", "lr_power"},
       {},
       true,
       "n = accum + grad^2; linear += grad - (n^-lr_power - accum^-lr_power) / lr * var; var = |linear| > l1 "
       "? "
       "(sign(linear) * l1 - linear) / (n^-lr_power / lr + 2 * l2) : 0; accum = n",
       {kLate}},
      {"FtrlV2",
       {"var", "accum", "linear"},
       {"grad", "lr", "l1", "l2", "l2_shrinkage", "lr_power"},
       {},
       true,
       "as Ftrl with grad + 2 * l2_shrinkage * var in linear",
       {kLate}},
  };
  return rows;
}

bool is_gradient(const std::string& argument) { return argument == "grad" || argument == "delta"; }

// The variable and its slots have one shape, which is the gradient's too; a sparse gradient has a row per
// index. Everything else is a scalar.
void apply_shape(InferContext& c) {
  const auto& args = c.node().def().input_args;
  Shape state;
  int indices = -1;
  for (size_t a = 0; a < args.size(); ++a)
    if (args[a].name == "indices") indices = static_cast<int>(a);
  for (size_t a = 0; a < args.size(); ++a) {
    const auto i = static_cast<int>(a);
    if (args[a].is_ref) {
      state = c.merge(state, c.input(i));
    } else if (args[a].type == DType::kResource) {
      state = c.merge(state, c.handle_shape(i));
    } else if (i == indices) {
      c.with_rank(i, 1);
    } else if (!is_gradient(args[a].name)) {
      require_scalar(c, i);
    } else if (indices < 0) {
      state = c.merge(state, c.input(i));
    } else if (const Shape& grad = c.input(i); grad.known_rank()) {
      require(c, grad.rank() >= 1, "Shape must be at least rank 1 but is rank 0");
      c.merge_dim(c.with_rank(indices, 1).dim(0), grad.dim(0));
      state = c.merge(state, Shape{kUnknownDim}.concat(grad.slice(1, grad.rank())));
    }
  }
  if (c.num_outputs() > 0) c.set_output(0, state);
}

void add_form(OpRegistry& r, const Update& u, bool resource, bool sparse) {
  OpDef def;
  def.name = cat(resource ? "Resource" : "", sparse ? "SparseApply" : "Apply", u.name);
  for (const std::string& s : u.state) def.inputs.push_back(cat(s, resource ? ": resource" : ": Ref(T)"));
  for (const std::string& a : u.arguments) {
    // TensorFlow calls the sparse form of a delta a gradient.
    const std::string name = sparse && a == "delta" ? "grad" : a;
    def.inputs.push_back(name.find(':') == std::string::npos ? name + ": T" : name);
    if (sparse && is_gradient(a)) def.inputs.push_back("indices: Tindices");
  }
  if (!resource) def.outputs = {"out: Ref(T)"};
  def.attrs = {"T: numbertype"};
  if (sparse) def.attrs.push_back("Tindices: {int32, int64}");
  def.attrs.push_back("use_locking: bool = false");
  def.attrs.insert(def.attrs.end(), u.attrs.begin(), u.attrs.end());
  def.later_attrs = u.later_attrs;
  def.doc = cat(u.doc, sparse ? "; only the rows that indices name, which are unique." : ".");
  def.traits = kStateful | kWritesVariable | kNotDifferentiable;
  def.infer = apply_shape;
  r.add(std::move(def));
}

}  // namespace

void register_train(OpRegistry& r) {
  for (const Update& u : updates())
    for (const bool resource : {false, true}) {
      if (u.resource_only && !resource) continue;
      add_form(r, u, resource, false);
      if (u.sparse) add_form(r, u, resource, true);
    }
}

}  // namespace sluice::graph::ops
