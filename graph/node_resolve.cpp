#include "graph/node_resolve.h"

#include <algorithm>

#include "graph/support/check.h"

namespace sluice::graph {
namespace {

// -1: the attr that gives the length is not stated.
int stated_length(const ArgSpec& arg, const AttrMap& attrs) {
  if (!arg.number_attr.empty()) {
    const auto it = attrs.find(arg.number_attr);
    if (it == attrs.end()) return -1;
    const int64_t* n = it->second.get_if<int64_t>();
    return n ? static_cast<int>(*n) : -1;
  }
  if (!arg.type_list_attr.empty()) {
    const auto it = attrs.find(arg.type_list_attr);
    if (it == attrs.end()) return -1;
    if (it->second.get_if<EmptyList>()) return 0;
    const auto* list = it->second.get_if<std::vector<DType>>();
    return list ? static_cast<int>(list->size()) : -1;
  }
  return 1;
}

const std::string& length_key(const ArgSpec& arg) {
  return arg.number_attr.empty() ? arg.type_list_attr : arg.number_attr;
}

std::string allowed_list(const AttrSpec& spec) {
  std::string s;
  for (const AttrValue& v : spec.allowed) s += cat(s.empty() ? "" : ", ", v);
  return s;
}

bool is_allowed(const AttrSpec& spec, const AttrValue& value) {
  return spec.allowed.empty() ||
         std::find(spec.allowed.begin(), spec.allowed.end(), value) != spec.allowed.end();
}

// Sets an attr that follows from an input, or checks that it agrees with what is there.
void set_type_attr(const OpDef& def, AttrMap& attrs, const std::string& attr, DType type,
                   const std::string& arg, std::map<std::string, std::string>& first_arg) {
  const auto it = attrs.find(attr);
  if (it == attrs.end()) {
    const AttrSpec* spec = def.find_attr(attr);
    SLUICE_REQUIRE(!spec || is_allowed(*spec, type), Code::kInvalidArgument, "Value passed to parameter '",
                   arg, "' has DataType ", type, " not in list of allowed values: ", allowed_list(*spec));
    attrs.emplace(attr, type);
    first_arg[attr] = arg;
    return;
  }
  const DType* have = it->second.get_if<DType>();
  SLUICE_REQUIRE(have, Code::kInvalidArgument, "attr '", attr, "' of '", def.name, "' is a type, not ",
                 it->second);
  if (base_dtype(*have) == type) {
    first_arg.emplace(attr, arg);
    return;
  }
  const auto origin = first_arg.find(attr);
  throw_error(Code::kInvalidArgument,
              cat("Input '", arg, "' of '", def.name, "' Op has type ", type, " that does not match type ",
                  base_dtype(*have),
                  origin == first_arg.end() ? cat(" of attr '", attr, "'.")
                                            : cat(" of argument '", origin->second, "'.")));
}

void infer_from_inputs(const OpDef& def, std::span<const Output> inputs, const std::vector<int>& lengths,
                       AttrMap& attrs) {
  std::map<std::string, std::string> first_arg;
  size_t at = 0;
  for (size_t a = 0; a < def.input_args.size(); ++a) {
    const ArgSpec& arg = def.input_args[a];
    const auto group = inputs.subspan(at, static_cast<size_t>(lengths[a]));
    at += group.size();
    if (!arg.number_attr.empty()) attrs.try_emplace(arg.number_attr, static_cast<int64_t>(group.size()));
    std::vector<DType> group_types;
    for (const Output& in : group) {
      if (!in) continue;
      const DType full = in.node->output_type(in.index), type = base_dtype(full);
      group_types.push_back(type);
      SLUICE_REQUIRE(!arg.is_ref || is_ref(full), Code::kInvalidArgument, "Input '", arg.name, "' of '",
                     def.name, "' passed ", type,
                     " expected ref type; it must come straight from a ref variable, not '", in.name(), "'");
      if (arg.type != DType::kInvalid) {
        SLUICE_REQUIRE(type == arg.type, Code::kInvalidArgument, "Input '", arg.name, "' of '", def.name,
                       "' Op has type ", type, " that does not match expected type of ", arg.type, ".");
      } else if (!arg.type_attr.empty()) {
        set_type_attr(def, attrs, arg.type_attr, type, arg.name, first_arg);
      }
    }
    if (!arg.type_list_attr.empty() && group_types.size() == group.size()) {
      const auto [it, fresh] = attrs.try_emplace(arg.type_list_attr, group_types);
      const auto* have = it->second.get_if<std::vector<DType>>();
      SLUICE_REQUIRE(
          fresh || (group.empty() && it->second.get_if<EmptyList>()) || (have && *have == group_types),
          Code::kInvalidArgument, "Inputs '", arg.name, "' of '", def.name, "' Op have types ",
          AttrValue(group_types), " that do not match attr '", arg.type_list_attr, "' = ", it->second);
    }
  }
}

// An attr value of the kind its spec asks for: widens what C++ callers write naturally (an int for a float
// attr).
AttrValue coerce(const AttrSpec& spec, const AttrValue& v) {
  if (v.kind() == spec.kind || v.get_if<PlaceholderAttr>()) return v;
  if (spec.kind == "float" && v.get_if<int64_t>()) return static_cast<float>(*v.get_if<int64_t>());
  if (spec.kind.starts_with("list(") && v.get_if<EmptyList>()) return v;
  return {};
}

void check_attrs(const OpDef& def, AttrMap& attrs) {
  for (const AttrSpec& spec : def.attr_specs) {
    const auto it = attrs.find(spec.name);
    if (it == attrs.end()) {
      SLUICE_REQUIRE(spec.default_value.has_value(), Code::kInvalidArgument, "NodeDef missing attr '",
                     spec.name, "' from Op<name=", def.name, ">");
      attrs.emplace(spec.name, spec.default_value);
      continue;
    }
    AttrValue v = coerce(spec, it->second);
    SLUICE_REQUIRE(v.has_value(), Code::kInvalidArgument, "attr '", spec.name, "' of '", def.name,
                   "' must be a ", spec.kind, ", got ", it->second.kind(), " ", it->second);
    it->second = std::move(v);
    const AttrValue& value = it->second;
    if (const int64_t* i = value.get_if<int64_t>(); i && spec.has_minimum)
      SLUICE_REQUIRE(*i >= spec.minimum, Code::kInvalidArgument, "Value for attr '", spec.name, "' of ", *i,
                     " must be at least minimum ", spec.minimum, "; Op '", def.name, "'");
    if (spec.has_minimum && spec.kind.starts_with("list(")) {
      int64_t length = 0;
      std::visit(
          [&]<class T>(const T& x) {
            if constexpr (requires {
                            x.size();
                            x.begin();
                          } &&
                          !std::is_same_v<T, std::string>)
              length = static_cast<int64_t>(x.size());
          },
          value.variant());
      SLUICE_REQUIRE(length >= spec.minimum, Code::kInvalidArgument, "Length for attr '", spec.name, "' of ",
                     length, " must be at least minimum ", spec.minimum, "; Op '", def.name, "'");
    }
    if (spec.allowed.empty()) continue;
    if (const auto* list = value.get_if<std::vector<DType>>()) {
      for (DType t : *list)
        SLUICE_REQUIRE(is_allowed(spec, t), Code::kInvalidArgument, "Value for attr '", spec.name, "' of ", t,
                       " is not in the list of allowed values: ", allowed_list(spec), "; Op '", def.name,
                       "'");
    } else if (!value.get_if<PlaceholderAttr>() && !value.is_list()) {
      SLUICE_REQUIRE(is_allowed(spec, value), Code::kInvalidArgument, "Value for attr '", spec.name, "' of ",
                     value, " is not in the list of allowed values: ", allowed_list(spec), "; Op '", def.name,
                     "'");
    }
  }
  for (const auto& [name, value] : attrs)
    SLUICE_REQUIRE(
        name.starts_with('_') || def.find_attr(name), Code::kInvalidArgument, "NodeDef mentions attr '", name,
        "' not in Op<name=", def.name,
        ">. (Check whether your GraphDef-interpreting binary is up to date with your GraphDef-generating "
        "binary.)");
}

std::vector<DType> output_types(const OpDef& def, const AttrMap& attrs) {
  std::vector<DType> out;
  auto type_of = [&](const std::string& attr) {
    const DType* t = attrs.at(attr).get_if<DType>();
    SLUICE_REQUIRE(t, Code::kInvalidArgument, "attr '", attr, "' of '", def.name, "' is not bound to a type");
    return base_dtype(*t);
  };
  for (const ArgSpec& arg : def.output_args) {
    if (!arg.type_list_attr.empty()) {
      const AttrValue& v = attrs.at(arg.type_list_attr);
      if (const auto* list = v.get_if<std::vector<DType>>())
        for (DType t : *list) out.push_back(arg.is_ref ? make_ref(t) : t);
      continue;
    }
    const DType base = arg.type != DType::kInvalid ? arg.type : type_of(arg.type_attr);
    int64_t n = 1;
    if (!arg.number_attr.empty()) {
      const int64_t* stated = attrs.at(arg.number_attr).get_if<int64_t>();
      SLUICE_REQUIRE(stated && *stated >= 0 && *stated <= 1'000'000, Code::kInvalidArgument, "attr '",
                     arg.number_attr, "' of '", def.name, "' is no usable count of outputs");
      n = *stated;
    }
    out.insert(out.end(), static_cast<size_t>(n), arg.is_ref ? make_ref(base) : base);
  }
  return out;
}

}  // namespace

std::vector<int> arg_lengths(const OpDef& def, const AttrMap& attrs, int num_inputs,
                             const std::string& node) {
  std::vector<int> lengths;
  lengths.reserve(def.input_args.size());
  int known = 0, open = 0;
  const std::string* open_key = nullptr;
  bool ambiguous = false;
  for (const ArgSpec& arg : def.input_args) {
    const int n = stated_length(arg, attrs);
    lengths.push_back(n);
    if (n >= 0) {
      known += n;
    } else {
      ++open;
      if (open_key && *open_key != length_key(arg)) ambiguous = true;
      open_key = &length_key(arg);
    }
  }
  SLUICE_REQUIRE(!ambiguous, Code::kInvalidArgument, "Op '", def.name,
                 "' takes several lists: state the attr '", *open_key, "' of node '", node, "'");
  const int rest = num_inputs - known;
  const bool fits = open == 0 ? rest == 0 : rest >= 0 && rest % open == 0;
  SLUICE_REQUIRE(fits, Code::kInvalidArgument, "Op '", def.name, "' expects ", open ? "at least " : "", known,
                 " inputs, node '", node, "' has ", num_inputs);
  for (int& n : lengths)
    if (n < 0) n = rest / open;
  return lengths;
}

ResolvedNode resolve_node(const OpDef& def, const std::string& node, std::span<const Output> inputs,
                          AttrMap attrs) {
  const auto lengths = arg_lengths(def, attrs, static_cast<int>(inputs.size()), node);
  infer_from_inputs(def, inputs, lengths, attrs);
  check_attrs(def, attrs);
  ResolvedNode r;
  r.output_types = output_types(def, attrs);
  r.attrs = std::move(attrs);
  return r;
}

}  // namespace sluice::graph
