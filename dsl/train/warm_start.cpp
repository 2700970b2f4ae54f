#include "dsl/train/warm_start.h"

#include <algorithm>
#include <regex>

#include "dsl/ops/array.h"
#include "dsl/ops/control.h"
#include "dsl/require.h"
#include "dsl/train/restore.h"
#include "graph/support/log.h"
#include "graph/support/near.h"
#include "passes/emit.h"
#include "runtime/io/bundle.h"

namespace sluice::dsl::train {

using passes::Emit;
using runtime::Array;
namespace io = runtime::io;

namespace {

std::regex regex_of(const std::string& pattern) {
  try {
    return std::regex(pattern);
  } catch (const std::regex_error& e) {
    throw_error(Code::kInvalidArgument, cat("'", pattern, "' is no regular expression: ", e.what()));
  }
}

std::string near_variables(Graph& g, const std::string& name) {
  std::vector<std::string> names;
  for (const Variable& v : global_variables(g)) names.push_back(v.name());
  return did_you_mean(name, names);
}

// The value a variable takes of the stored tensor.
Array part_of(const Array& stored, const Variable& v) {
  const auto& s = v.info()->slice;
  if (!s) return stored;
  io::TensorSlice slice;
  for (size_t i = 0; i < s->offset.size(); ++i) slice.push_back({s->offset[i], s->shape[i]});
  return io::extract_slice(stored, slice);
}

}  // namespace

RestoreList::RestoreList(const std::vector<Variable>& variables) {
  for (const Variable& v : variables) {
    const std::string name = saved_name(v);
    // A variable may stand in a list twice (get_variables_to_restore); once is enough.
    const bool twice =
        std::any_of(items_.begin(), items_.end(), [&](const auto& i) { return i.second == v; });
    if (!twice) items_.emplace_back(name, v);
  }
}
RestoreList::RestoreList(std::initializer_list<std::pair<std::string, Variable>> renamed) : items_(renamed) {}
RestoreList::RestoreList(const std::map<std::string, Variable>& renamed)
    : items_(renamed.begin(), renamed.end()) {}
RestoreList::RestoreList(const std::map<std::string, std::vector<Variable>>& renamed) {
  for (const auto& [name, parts] : renamed)
    for (const Variable& p : parts) items_.emplace_back(name, p);
}

void RestoreList::add(const std::string& name_in_checkpoint, const PartitionedVariable& v) {
  for (const Variable& p : v.parts()) items_.emplace_back(name_in_checkpoint, p);
}

RestoreList renamed_by_regex(const std::vector<Variable>& variables, const std::string& pattern,
                             const std::string& replacement) {
  const std::regex expression = regex_of(pattern);
  const RestoreList own(variables);
  RestoreList out;
  for (const auto& [name, v] : own.items()) out.add(std::regex_replace(name, expression, replacement), v);
  return out;
}

AssignOp assign_from_checkpoint(Graph& g, const std::string& model_path, const RestoreList& variables,
                                const AssignOptions& o, Loc loc) {
  SLUICE_REQUIRE_AT(loc, !variables.empty(), Code::kInvalidArgument, "var_list cannot be empty");
  const io::BundleReader reader(model_path);
  // Everything is looked at before the graph changes.
  std::string missing;
  std::vector<std::pair<Variable, Array>> values;
  std::vector<std::string> stored;
  for (const auto& [key, e] : reader.entries()) stored.push_back(key);
  for (const auto& [name, v] : variables.items()) {
    const io::BundleEntry* e = reader.find(name);
    if (!e) {
      const std::string line = cat("Checkpoint is missing variable [", name, "]");
      if (o.ignore_missing_vars)
        log_warning(line);
      else
        missing += cat(missing.empty() ? "" : "\n", line, did_you_mean(name, stored));
      continue;
    }
    SLUICE_REQUIRE_AT(loc, e->dtype == v.dtype(), Code::kInvalidArgument, "tensor_name = ", name,
                      "; expected dtype ", v.dtype(), " does not equal original dtype ", e->dtype);
    const Shape wanted = v.info()->slice ? Shape(v.info()->slice->full_shape) : v.shape();
    SLUICE_REQUIRE_AT(loc, wanted.compatible(Shape(e->dims)), Code::kInvalidArgument,
                      "Total size of new array must be unchanged for ", name, " lh_shape: [",
                      graph::dims_string(e->dims), "], rh_shape: [", wanted, "]");
    values.emplace_back(v, part_of(reader.read(name), v));
  }
  SLUICE_REQUIRE_AT(loc, missing.empty(), Code::kInvalidArgument, missing);
  AssignOp out;
  std::vector<Node*> assigns;
  for (auto& [v, value] : values) {
    Tensor fed = placeholder(g, v.dtype(), Shape(value.dims()), "placeholder", loc);
    assigns.push_back(&assign_op(v, fed, {}, loc));
    out.feeds.push_back({fed, std::move(value)});
  }
  out.op = &group(g, assigns, {}, loc);
  return out;
}

InitFn assign_from_checkpoint_fn(const std::string& model_path, const RestoreList& variables,
                                 const AssignOptions& o, Loc loc) {
  SLUICE_REQUIRE_AT(loc, !variables.empty(), Code::kInvalidArgument, "var_list cannot be empty");
  auto list = variables.items();
  if (o.ignore_missing_vars) {
    const io::BundleReader reader(model_path);
    std::erase_if(list, [&](const auto& item) {
      if (reader.find(item.first)) return false;
      log_warning("Variable ", item.first, " missing in checkpoint ", model_path);
      return true;
    });
  }
  if (list.empty()) {
    log_warning("No Variables to restore");
    return nullptr;
  }
  sort_and_check(&list, loc);
  return [model_path, list, reshape = o.reshape_variables](runtime::Session& session) {
    restore_variables(session, model_path, list, {.reshape = reshape});
  };
}

AssignOp assign_from_values(Graph& g, const std::map<std::string, Array>& values, Loc loc) {
  AssignOp out;
  std::vector<std::pair<Variable, Array>> pairs;
  for (const auto& [name, value] : values) {
    const std::vector<Variable> found = global_variables(g, name);
    SLUICE_REQUIRE_AT(loc, !found.empty(), Code::kInvalidArgument, "Variable ", name, " wasn't found",
                      near_variables(g, name));
    Variable v = found[0];
    if (found.size() > 1) {
      // The collection filters by the start of names: several match, one of them exactly.
      const auto exact =
          std::find_if(found.begin(), found.end(), [&](const Variable& c) { return c.name() == name; });
      SLUICE_REQUIRE_AT(loc, exact != found.end(), Code::kInvalidArgument, "Variable ", name,
                        " doesn't uniquely identify a variable");
      v = *exact;
    }
    const Dims dims = v.shape().fully_known() ? v.shape().dims() : value.dims();
    SLUICE_REQUIRE_AT(loc, graph::num_elements(dims) == value.elements(), Code::kInvalidArgument,
                      "cannot reshape array of size ", value.elements(), " into shape ", v.shape(),
                      " of variable ", v.name());
    Array fitting = value.dtype() == v.dtype() ? value : value.cast(v.dtype());
    pairs.emplace_back(v, fitting.reshaped(dims));
  }
  std::vector<Node*> assigns;
  for (auto& [v, value] : pairs) {
    Tensor fed;
    {
      graph::NameScope root(g, "");
      fed = placeholder(g, v.dtype(), Shape(value.dims()), "placeholder/" + v.name(), loc);
    }
    assigns.push_back(&assign_op(v, fed, {}, loc));
    out.feeds.push_back({fed, std::move(value)});
  }
  out.op = &group(g, assigns, {}, loc);
  return out;
}

InitFn assign_from_values_fn(Graph& g, const std::map<std::string, Array>& values, Loc loc) {
  return [assign = assign_from_values(g, values, loc)](runtime::Session& session) { assign.run(session); };
}

void init_from_checkpoint(Graph& g, const std::string& checkpoint,
                          const std::map<std::string, std::string>& assignment_map, Loc loc) {
  const io::BundleReader reader(checkpoint);
  std::vector<std::string> stored;
  for (const auto& [key, e] : reader.entries()) stored.push_back(key);
  RestoreList all;
  for (const Variable& v : global_variables(g)) all.add(saved_name(v), v);
  RestoreList chosen;
  for (const auto& [from, to] : assignment_map) {
    const bool scope = from.ends_with("/");
    SLUICE_REQUIRE_AT(loc, scope == to.ends_with("/"), Code::kInvalidArgument,
                      "Assignment map with scope only name ", from, " should map to scope only ", to,
                      ". Should be 'scope/': 'other_scope/'.");
    const std::string inside = to == "/" ? "" : to, source = from == "/" ? "" : from;
    bool any = false;
    for (const auto& [name, v] : all.items()) {
      if (scope ? !name.starts_with(inside) : name != to) continue;
      any = true;
      chosen.add(scope ? source + name.substr(inside.size()) : from, v);
    }
    SLUICE_REQUIRE_AT(loc, any, Code::kInvalidArgument, "Assignment map: the graph has no variable ",
                      scope ? "under " : "", to, scope ? "" : near_variables(g, to));
  }
  for (const auto& [name, v] : chosen.items()) {
    const io::BundleEntry* e = reader.find(name);
    SLUICE_REQUIRE_AT(loc, e, Code::kInvalidArgument, "Tensor ", name, " is not found in ", checkpoint,
                      " checkpoint.", did_you_mean(name, stored));
    const Shape wanted = v.info()->slice ? Shape(v.info()->slice->full_shape) : v.shape();
    SLUICE_REQUIRE_AT(loc, wanted.compatible(Shape(e->dims)), Code::kInvalidArgument, "Shape of variable ",
                      v.name(), " (", wanted, ") doesn't match with shape of tensor ", name, " (",
                      graph::dims_string(e->dims), ") from checkpoint reader.");
    SLUICE_REQUIRE_AT(loc, e->dtype == v.dtype(), Code::kInvalidArgument, "tensor_name = ", name,
                      "; expected dtype ", v.dtype(), " does not equal original dtype ", e->dtype);
  }
  graph::ControlDependencies outside(g, graph::ControlDependencies::Clear{});
  for (const auto& [name, v] : chosen.items()) {
    graph::NameScope root(g, "");
    graph::NameScope scope(g, "checkpoint_initializer");
    Emit e{g, loc};
    Output prefix = e.constant(Literal::scalar(checkpoint), "prefix");
    Output names = e.constant(Literal::strings({name}), "tensor_names");
    Output specs = e.constant(Literal::strings({slice_spec(v)}), "shape_and_slices");
    Node& restore = e.node("RestoreV2", {prefix, names, specs}, scope.scope(),
                           {{"dtypes", std::vector<DType>{v.dtype()}}});
    v.info()->initial_value_node = &restore;
    v.info()->initial_value_index = 0;
    v.info()->initializer = &assign_op(v, Tensor(restore.output(0)), {}, loc);
  }
}

std::vector<Variable> get_variables_to_restore(Graph& g,
                                               const std::optional<std::vector<std::string>>& include,
                                               const std::vector<std::string>& exclude) {
  std::vector<Variable> in;
  if (!include) {
    in = global_variables(g);
  } else {
    for (const std::string& scope : *include)
      for (const Variable& v : global_variables(g, scope)) in.push_back(v);
  }
  for (const std::string& scope : exclude) {
    const std::vector<Variable> out = global_variables(g, scope);
    std::erase_if(in, [&](const Variable& v) { return std::find(out.begin(), out.end(), v) != out.end(); });
  }
  return in;
}

Variable get_unique_variable(Graph& g, const std::string& op_name) {
  const std::vector<Variable> candidates = global_variables(g, op_name);
  SLUICE_REQUIRE(!candidates.empty(), Code::kInvalidArgument, "Couldn't find variable ", op_name,
                 near_variables(g, op_name));
  for (const Variable& v : candidates)
    if (v.name() == op_name) return v;
  throw_error(Code::kInvalidArgument, cat("Variable ", op_name, " does not uniquely identify a variable"));
}

std::vector<Variable> get_model_variables(Graph& g, const std::string& scope, const std::string& suffix) {
  std::vector<Variable> out = get_variables(g, graph::keys::kModelVariables, scope);
  std::erase_if(out, [&](const Variable& v) { return !v.name().ends_with(suffix); });
  return out;
}

std::vector<Variable> get_variables_by_suffix(Graph& g, const std::string& suffix, const std::string& scope) {
  std::vector<Variable> out = global_variables(g, scope);
  std::erase_if(out, [&](const Variable& v) { return !v.name().ends_with(suffix); });
  return out;
}

std::vector<Variable> get_variables_by_name(Graph& g, const std::string& given_name,
                                            const std::string& scope) {
  std::vector<Variable> out = global_variables(g, scope);
  std::erase_if(out, [&](const Variable& v) {
    return v.name() != given_name && !v.name().ends_with("/" + given_name);
  });
  return out;
}

std::vector<Variable> filter_variables(const std::vector<Variable>& variables,
                                       const std::vector<std::string>& include,
                                       const std::vector<std::string>& exclude, bool at_start) {
  auto any = [&](const std::vector<std::string>& patterns, const std::string& name) {
    return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& p) {
      return std::regex_search(
          name, regex_of(p),
          at_start ? std::regex_constants::match_continuous : std::regex_constants::match_default);
    });
  };
  std::vector<Variable> out;
  for (const Variable& v : variables)
    if ((include.empty() || any(include, v.name())) && !any(exclude, v.name())) out.push_back(v);
  return out;
}

}  // namespace sluice::dsl::train
