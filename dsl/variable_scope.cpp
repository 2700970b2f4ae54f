#include "dsl/require.h"
#include "dsl/variable_store.h"

namespace sluice::dsl {

using graph::ColocateWith;
using graph::ControlDependencies;
using graph::NameScope;

VariableStore& VariableStore::of(Graph& g) {
  std::any& slot = g.attachment("dsl.variables");
  if (!slot.has_value()) slot = std::make_shared<VariableStore>();  // shared: std::any needs a copyable value
  return *std::any_cast<std::shared_ptr<VariableStore>&>(slot);
}

namespace {

std::string under(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "/" + name;
}

Variable shared_variable(const VariableStore::Entry& entry, const std::string& name, const Dims& shape,
                         const VariableOptions& o) {
  const Variable& v = entry.variable;
  SLUICE_REQUIRE(o.initial_value || v.shape() == Shape(shape), Code::kInvalidArgument,
                 "Trying to share variable ", name, ", but specified shape ", graph::dims_string(shape),
                 " and found shape ", v.shape(), ".");
  SLUICE_REQUIRE(v.dtype() == o.dtype, Code::kInvalidArgument, "Trying to share variable ", name,
                 ", but specified dtype ", o.dtype, " and found dtype ", v.dtype(), ".");
  return v;
}

void regularize(const Variable& v, const Regularizer& regularizer) {
  if (!regularizer) return;
  Graph& g = v.graph();
  ControlDependencies outside(g, ControlDependencies::Clear{});
  ColocateWith beside(g, &v.node());
  NameScope scope(g, v.name() + "/Regularizer/");
  Tensor loss = regularizer(v);
  if (loss)
    g.collections().add(graph::keys::kRegularizationLosses,
                        graph::GraphElement{&loss.node(), loss.output().index});
}

}  // namespace

Variable get_variable(Graph& g, const std::string& name, const Dims& shape, const VariableOptions& o,
                      Loc loc) {
  VariableStore& store = VariableStore::of(g);
  const VariableStore::Scope& scope = store.scopes.back();
  SLUICE_REQUIRE_AT(loc, !name.empty() || !scope.path.empty(), Code::kInvalidArgument,
                    "get_variable needs a name outside every variable scope");
  std::string full = name.empty() ? scope.path : under(scope.path, name);
  VariableOptions with = o;
  if (with.initial_value) with.dtype = with.initial_value.dtype();
  for (int64_t d : shape) {
    SLUICE_REQUIRE_AT(loc, d >= 0, Code::kInvalidArgument, "Shape of a new variable (", full,
                      ") must be fully defined, but instead was ", graph::dims_string(shape), ".");
  }
  auto it = store.variables.find(full);
  if (it != store.variables.end()) {
    if (scope.reuse == Reuse::kFalse) {
      throw_error(Code::kInvalidArgument,
                  cat("Variable ", full,
                      " already exists, disallowed. Did you mean to set reuse=True or reuse=tf.AUTO_REUSE in "
                      "VarScope? Originally defined at: ",
                      it->second.loc.str()),
                  full, loc);
    }
    return shared_variable(it->second, full, shape, with);
  }
  if (scope.reuse == Reuse::kTrue) {
    throw_error(Code::kInvalidArgument,
                cat("Variable ", full,
                    " does not exist, or was not created with tf.get_variable(). Did you mean to set "
                    "reuse=tf.AUTO_REUSE in VarScope?"),
                full, loc);
  }
  Dims dims = shape;
  if (with.initial_value) {
    const Shape& s = with.initial_value.shape();
    SLUICE_REQUIRE_AT(loc, s.fully_known() && (shape.empty() || s == Shape(shape)), Code::kInvalidArgument,
                      "Shape of a new variable (", full, ") must be fully defined, but instead was ", s, ".");
    dims = s.dims();
  } else if (!with.initializer) {
    with.initializer = scope.initializer ? scope.initializer : default_initializer(full, with.dtype);
  }
  bool resource = o.use_resource.value_or(scope.use_resource.value_or(true));
  Regularizer regularizer = o.regularizer ? o.regularizer : scope.regularizer;
  // A variable named by its scope alone (a slot) takes the scope's very name.
  std::string node_name = name.empty() ? full + "/" : full;
  Variable v = create_variable(g, node_name, /*scoped=*/false, dims, with, resource, loc);
  store.variables[full] = {v, loc};
  regularize(v, regularizer);
  return v;
}

void VariableScope::open(const std::string& name, const VariableScopeOptions& o) {
  VariableStore& store = VariableStore::of(g_);
  VariableStore::Scope scope = store.scopes.back();
  scope.path = path_ = under(scope.path, name);
  // As in TensorFlow, reuse=False inside a reusing scope still reuses.
  if (o.reuse == Reuse::kTrue || o.reuse == Reuse::kAuto) scope.reuse = o.reuse;
  if (o.initializer) scope.initializer = o.initializer;
  if (o.regularizer) scope.regularizer = o.regularizer;
  if (o.use_resource) scope.use_resource = o.use_resource;
  if (o.dtype) scope.dtype = o.dtype;
  ++store.scope_counts[path_];
  if (o.name_scope) names_.emplace(g_, name);
  store.scopes.push_back(std::move(scope));
}

VariableScope::VariableScope(Graph& g, const std::string& name, const VariableScopeOptions& o) : g_(g) {
  SLUICE_REQUIRE(!name.empty(), Code::kInvalidArgument, "a variable scope needs a name");
  open(name, o);
}

VariableScope::VariableScope(Graph& g, const Default& default_name, const VariableScopeOptions& o) : g_(g) {
  VariableStore& store = VariableStore::of(g);
  const std::string& path = store.scopes.back().path;
  std::string name = default_name.name;
  auto used = [&](const std::string& n) {
    auto it = store.scope_counts.find(under(path, n));
    return it != store.scope_counts.end() && it->second > 0;
  };
  for (int i = 1; used(name); ++i) name = cat(default_name.name, "_", i);
  open(name, o);
}

VariableScope::~VariableScope() {
  VariableStore& store = VariableStore::of(g_);
  // Scopes inside this one may be opened under the same default names when it is entered again.
  std::string prefix = path_ + "/";
  for (auto it = store.scope_counts.lower_bound(prefix);
       it != store.scope_counts.end() && it->first.compare(0, prefix.size(), prefix) == 0;) {
    it = store.scope_counts.erase(it);
  }
  store.scopes.pop_back();
}

std::string variable_scope_name(Graph& g) { return VariableStore::of(g).scopes.back().path; }

}  // namespace sluice::dsl
