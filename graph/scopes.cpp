#include "graph/scopes.h"

#include <algorithm>
#include <charconv>

#include "graph/support/check.h"

namespace sluice::graph {
namespace {

bool word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool tail_char(char c) { return word_char(c) || c == '_' || c == '.' || c == '-' || c == '/' || c == '>'; }

int parse_index(std::string_view text, std::string_view whole) {
  if (text == "*") return -1;
  int v = -1;
  const auto r = std::from_chars(text.data(), text.data() + text.size(), v);
  SLUICE_REQUIRE(r.ec == std::errc() && r.ptr == text.data() + text.size() && v >= 0, Code::kInvalidArgument,
                 "Malformed device specification '", whole, "': '", text, "' is no index");
  return v;
}

}  // namespace

bool is_valid_op_name(std::string_view name) {
  if (name.empty() || !(word_char(name[0]) || name[0] == '.')) return false;
  return std::all_of(name.begin() + 1, name.end(), tail_char);
}

bool is_valid_scope_name(std::string_view name, bool nested) {
  if (!nested) return is_valid_op_name(name);
  return std::all_of(name.begin(), name.end(), tail_char);
}

DeviceSpec DeviceSpec::parse(std::string_view text) {
  DeviceSpec d;
  for (size_t pos = 0; pos < text.size();) {
    size_t end = text.find('/', pos);
    if (end == std::string_view::npos) end = text.size();
    const std::string_view part = text.substr(pos, end - pos);
    pos = end + 1;
    if (part.empty()) continue;
    const size_t colon = part.find(':');
    const std::string_view key = part.substr(0, colon);
    std::string_view value = colon == std::string_view::npos ? std::string_view() : part.substr(colon + 1);
    auto set_type = [&](std::string type, std::string_view index) {
      SLUICE_REQUIRE(d.type.empty(), Code::kInvalidArgument, "Cannot specify multiple device types: '", text,
                     "'");
      d.type = std::move(type);
      if (index == "*")
        d.any_index = true;
      else if (!index.empty())
        d.index = parse_index(index, text);
    };
    std::string upper(key);
    for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    if (key == "job" && !value.empty()) {
      if (value != "*") d.job = value;
    } else if (key == "replica") {
      d.replica = parse_index(value, text);
    } else if (key == "task") {
      d.task = parse_index(value, text);
    } else if (key == "device") {
      const size_t c2 = value.find(':');
      std::string type(value.substr(0, c2));
      if (type == "cpu" || type == "gpu")
        for (char& c : type) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      if (type != "*")
        set_type(type, c2 == std::string_view::npos ? std::string_view() : value.substr(c2 + 1));
    } else if (upper == "CPU" || upper == "GPU") {
      set_type(upper, value);
    } else {
      throw_error(Code::kInvalidArgument, cat("Unknown attribute: '", part, "' in '", text, "'"));
    }
  }
  return d;
}

void DeviceSpec::merge_under(const DeviceSpec& outer) {
  if (job.empty()) job = outer.job;
  if (replica < 0) replica = outer.replica;
  if (task < 0) task = outer.task;
  if (type.empty()) type = outer.type;
  if (index < 0 && !any_index) index = outer.index, any_index = outer.any_index;
}

std::string DeviceSpec::str() const {
  std::string s;
  if (!job.empty()) s += "/job:" + job;
  if (replica >= 0) s += cat("/replica:", replica);
  if (task >= 0) s += cat("/task:", task);
  if (!type.empty()) s += cat("/device:", type, ":", index >= 0 ? std::to_string(index) : "*");
  return s;
}

NameScope::NameScope(Graph& graph, std::string_view name)
    : graph_(graph), former_(graph.scopes().name_scope) {
  if (name.empty()) {
    scope_.clear();
  } else if (name.ends_with('/')) {
    scope_ = name;
  } else {
    SLUICE_REQUIRE(is_valid_scope_name(name, !former_.empty()), Code::kInvalidArgument, "'", name,
                   "' is not a valid scope name");
    scope_ = graph.unique_name(name) + "/";
  }
  graph.scopes().name_scope = scope_;
}

NameScope::~NameScope() { graph_.scopes().name_scope = former_; }

DeviceScope::DeviceScope(Graph& graph, std::optional<std::string> device) : graph_(graph) {
  std::optional<DeviceSpec> spec;
  if (device) spec = DeviceSpec::parse(*device);
  graph.scopes().devices.push_back(std::move(spec));
}

DeviceScope::~DeviceScope() { graph_.scopes().devices.pop_back(); }

ColocateWith::ColocateWith(Graph& graph, Node* node, bool ignore_existing)
    : graph_(graph), former_colocation_(graph.scopes().colocation), former_devices_(graph.scopes().devices) {
  SLUICE_REQUIRE(node || ignore_existing, Code::kInvalidArgument,
                 "Trying to reset colocation (op is None) but ignore_existing is not True");
  ScopeState& s = graph.scopes();
  if (ignore_existing) s.colocation.clear();
  if (node) s.colocation.push_back(node);
  s.devices.clear();
}

ColocateWith::~ColocateWith() {
  graph_.scopes().colocation = std::move(former_colocation_);
  graph_.scopes().devices = std::move(former_devices_);
}

ControlDependencies::ControlDependencies(Graph& graph, std::vector<Node*> controls) : graph_(graph) {
  // Ops that an outer open block already waits for are dropped, and so are duplicates; the order stays.
  std::vector<Node*> kept;
  for (Node* c : controls) {
    if (!c || std::find(kept.begin(), kept.end(), c) != kept.end()) continue;
    const auto& open = graph.scopes().controllers;
    const bool waited = std::any_of(open.begin(), open.end(), [&](const Controller& o) {
      return std::find(o.controls.begin(), o.controls.end(), c) != o.controls.end();
    });
    if (!waited) kept.push_back(c);
  }
  graph.scopes().controllers.push_back({std::move(kept), {}});
}

ControlDependencies::ControlDependencies(Graph& graph, Clear) : graph_(graph), clear_(true) {
  former_ = std::move(graph.scopes().controllers);
  graph.scopes().controllers.clear();
}

ControlDependencies::~ControlDependencies() {
  if (clear_)
    graph_.scopes().controllers = std::move(former_);
  else
    graph_.scopes().controllers.pop_back();
}

AttrScope::AttrScope(Graph& graph, std::string name, AttrValue value) : graph_(graph) {
  graph.scopes().attrs.emplace_back(std::move(name), std::move(value));
}

AttrScope::~AttrScope() { graph_.scopes().attrs.pop_back(); }

}  // namespace sluice::graph
