#include "graph/op.h"

#include <algorithm>

#include "graph/support/check.h"
#include "graph/support/near.h"

namespace sluice::graph {

const AttrSpec* OpDef::find_attr(std::string_view attr) const {
  for (const AttrSpec& a : attr_specs)
    if (a.name == attr) return &a;
  return nullptr;
}

bool OpDef::ignores_attr(std::string_view attr, const AttrValue& value) const {
  for (const AttrSpec& a : later_attr_specs)
    // compared as text, which takes an untyped empty list for an empty list of any type
    if (a.name == attr) return !a.default_value.has_value() || a.default_value.str() == value.str();
  return false;
}

const OpDef& OpRegistry::add(OpDef def) {
  SLUICE_REQUIRE(!def.name.empty(), Code::kInvalidArgument, "an op definition needs a name");
  try {
    for (const std::string& s : def.attrs) def.attr_specs.push_back(parse_attr_spec(s));
    for (const std::string& s : def.later_attrs) def.later_attr_specs.push_back(parse_attr_spec(s));
    for (const std::string& s : def.inputs) def.input_args.push_back(parse_arg_spec(s, def.attr_specs));
    for (const std::string& s : def.outputs) def.output_args.push_back(parse_arg_spec(s, def.attr_specs));
  } catch (const Error& e) {
    throw_error(e.code(), cat("op '", def.name, "': ", e.message()));
  }
  auto shared = std::make_shared<const OpDef>(std::move(def));
  const auto [it, fresh] = defs_.emplace(shared->name, shared);
  SLUICE_REQUIRE(fresh, Code::kAlreadyExists, "op '", shared->name, "' is defined twice");
  return *it->second;
}

const OpDef* OpRegistry::find(std::string_view name) const {
  const auto it = defs_.find(name);
  return it == defs_.end() ? nullptr : it->second.get();
}

std::shared_ptr<const OpDef> OpRegistry::find_shared(std::string_view name) const {
  const auto it = defs_.find(name);
  return it == defs_.end() ? nullptr : it->second;
}

const OpDef& OpRegistry::get(std::string_view name) const {
  const OpDef* def = find(name);
  if (!def)
    throw_error(Code::kNotFound, cat("Op type not registered '", name, "'.", did_you_mean(name, names())));
  return *def;
}

std::vector<std::string> OpRegistry::names() const {
  std::vector<std::string> out;
  out.reserve(defs_.size());
  for (const auto& [name, def] : defs_) out.push_back(name);
  std::sort(out.begin(), out.end());
  return out;
}

void OpRegistry::add_gradient(std::string name, GradFn fn) {
  gradients_[std::move(name)] = std::make_shared<const GradFn>(std::move(fn));
}

const GradFn* OpRegistry::find_gradient(std::string_view name) const {
  if (const auto it = gradients_.find(name); it != gradients_.end()) return it->second.get();
  const OpDef* def = find(name);
  return def && def->grad ? &def->grad : nullptr;
}

}  // namespace sluice::graph
