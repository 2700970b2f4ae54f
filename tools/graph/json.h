#pragma once
// Graph things as JSON values, shared by the commands. Pure; any thread.

#include <nlohmann/json.hpp>
#include <string>

#include "graph/graph.h"
#include "runtime/array.h"

namespace sluice::tools {

using Json = nlohmann::ordered_json;

/// Numbers stay numbers (NaN and infinities become strings), types their names, shapes lists with null for
/// unknown dimensions; a tensor is {dtype, shape, values} with at most 64 values.
Json to_json(const graph::AttrValue& value);
Json to_json(const graph::Shape& shape);
Json to_json(const graph::Literal& literal, int max_values = 64);
Json to_json(const graph::Node& node);
Json to_json(const runtime::Array& array, int max_values = 64);
Json graph_json(const graph::Graph& graph);

/// Text of it; bytes that are not UTF-8 are replaced.
std::string dumped(const Json& json);
std::string dumped_line(const Json& json);

}  // namespace sluice::tools
