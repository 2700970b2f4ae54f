#include "tools/graph/json.h"

#include <cmath>

namespace sluice::tools {

using namespace graph;

namespace {

Json number(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  return v;
}

Json element(const std::string& v) { return v; }
Json element(int64_t v) { return v; }
Json element(float v) { return number(v); }
Json element(bool v) { return v; }
Json element(DType v) { return std::string(dtype_name(v)); }
Json element(const Shape& v) { return to_json(v); }
Json element(const Literal& v) { return to_json(v); }
Json element(const FuncAttr& v) {
  Json attrs = Json::object();
  if (v.attrs)
    for (const auto& [name, value] : *v.attrs) attrs[name] = to_json(value);
  return {{"func", v.name}, {"attrs", attrs}};
}

}  // namespace

Json to_json(const Shape& shape) {
  if (!shape.known_rank()) return nullptr;
  Json list = Json::array();
  for (int64_t d : shape.dims()) list.push_back(d < 0 ? Json() : Json(d));
  return list;
}

Json to_json(const Literal& literal, int max_values) {
  Json j = {{"dtype", std::string(dtype_name(literal.dtype()))}, {"shape", literal.dims()}};
  if (literal.elements() > max_values) return j;
  Json values = Json::array();
  if (literal.dtype() == DType::kString) {
    for (const std::string& s : literal.as_strings()) values.push_back(s);
  } else if (is_integer(literal.dtype())) {
    if (literal.dtype() == DType::kUint64)
      for (uint64_t v : literal.as<uint64_t>()) values.push_back(v);
    else
      for (int64_t v : literal.to_int64s()) values.push_back(v);
  } else if (literal.dtype() == DType::kBool) {
    for (int64_t v : literal.to_int64s()) values.push_back(v != 0);
  } else if (literal.dtype() == DType::kFloat || literal.dtype() == DType::kDouble) {
    for (double v : literal.to_doubles()) values.push_back(number(v));
  } else {
    return j;
  }
  j["values"] = std::move(values);
  return j;
}

Json to_json(const runtime::Array& array, int max_values) {
  // The bytes are only wrapped where they are printed.
  if (array.elements() > max_values)
    return {{"dtype", std::string(dtype_name(array.dtype()))}, {"shape", array.dims()}};
  return to_json(array.to_literal(), max_values);
}

Json to_json(const AttrValue& value) {
  return std::visit(
      []<class T>(const T& v) -> Json {
        if constexpr (std::is_same_v<T, std::monostate>)
          return nullptr;
        else if constexpr (std::is_same_v<T, EmptyList>)
          return Json::array();
        else if constexpr (std::is_same_v<T, PlaceholderAttr>)
          return Json{{"placeholder", v.name}};
        else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, int64_t> ||
                           std::is_same_v<T, float> || std::is_same_v<T, bool> || std::is_same_v<T, DType> ||
                           std::is_same_v<T, Shape> || std::is_same_v<T, Literal> ||
                           std::is_same_v<T, FuncAttr>)
          return element(v);
        else {
          Json list = Json::array();
          for (const auto& e : v) {
            if constexpr (std::is_same_v<T, std::vector<bool>>)
              list.push_back(static_cast<bool>(e));
            else
              list.push_back(element(e));
          }
          return list;
        }
      },
      value.variant());
}

Json to_json(const Node& node) {
  Json j = {{"name", node.name()}, {"op", node.op()}};
  if (!node.device().empty()) j["device"] = node.device();
  Json inputs = Json::array(), controls = Json::array(), outputs = Json::array(), attrs = Json::object();
  for (const Output& in : node.inputs()) inputs.push_back(in.name());
  for (const Node* c : node.control_inputs()) controls.push_back(c->name());
  for (int i = 0; i < node.num_outputs(); ++i)
    outputs.push_back(
        {{"dtype", std::string(dtype_name(node.output_type(i)))}, {"shape", to_json(node.output_shape(i))}});
  for (const auto& [name, value] : node.attrs()) attrs[name] = to_json(value);
  j["inputs"] = std::move(inputs);
  if (!controls.empty()) j["control_inputs"] = std::move(controls);
  j["outputs"] = std::move(outputs);
  j["attrs"] = std::move(attrs);
  return j;
}

Json graph_json(const Graph& graph) {
  Json nodes = Json::array(), collections = Json::object();
  for (const Node* n : graph.nodes()) nodes.push_back(to_json(*n));
  for (const std::string& key : graph.collections().keys()) {
    Json items = Json::array();
    for (const CollectionItem& item : graph.collections().get(key)) {
      if (const auto* s = std::get_if<std::string>(&item))
        items.push_back(*s);
      else if (const auto* i = std::get_if<int64_t>(&item))
        items.push_back(*i);
      else if (const auto* f = std::get_if<float>(&item))
        items.push_back(number(*f));
      else if (const auto* o = std::get_if<OpaqueItem>(&item))
        items.push_back({{"bytes", o->bytes.size()}});
      else
        items.push_back(item_name(item));
    }
    collections[key] = std::move(items);
  }
  return {{"versions",
           {{"producer", graph.versions().producer}, {"min_consumer", graph.versions().min_consumer}}},
          {"nodes", std::move(nodes)},
          {"collections", std::move(collections)}};
}

std::string dumped(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}
std::string dumped_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace sluice::tools
