#pragma once
// What the tests of passes and DSL share: names of nodes, texts of errors, one-line runs.

#include <string>
#include <vector>

#include "dsl/dsl.h"
#include "graph/support/log.h"

namespace sluice::dsl {

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "(no error)";
}

/// "name Op(input, ^control)" of the nodes whose names start with `prefix`, in creation order.
inline std::vector<std::string> nodes_under(const Graph& g, const std::string& prefix) {
  std::vector<std::string> out;
  for (Node* n : g.nodes()) {
    if (n->name().compare(0, prefix.size(), prefix) != 0) continue;
    std::string s = cat(n->name(), " ", n->op(), "(");
    bool first = true;
    for (const Output& in : n->inputs()) {
      s += cat(first ? "" : ", ", in.node->name(), in.index ? cat(":", in.index) : std::string());
      first = false;
    }
    for (Node* c : n->control_inputs()) {
      s += cat(first ? "" : ", ", "^", c->name());
      first = false;
    }
    out.push_back(s + ")");
  }
  return out;
}

inline std::vector<float> floats(const Array& a) {
  auto s = a.as<float>();
  return {s.begin(), s.end()};
}

inline Array vec(std::vector<float> v) {
  return Array::from<float>({static_cast<int64_t>(v.size())}, std::span<const float>(v));
}

/// Value of `t` in a fresh session.
inline std::vector<float> run(const Output& t, const std::vector<Feed>& feeds = {}) {
  Session s(t.graph());
  return floats(s.run({t}, feeds)[0]);
}

inline Output dense(const GradValue& g) {
  SLUICE_REQUIRE(!g.none() && !g.is_slices(), Code::kInternal, "not a dense gradient");
  return g.dense;
}

/// Log lines while it lives.
class LogCapture {
 public:
  LogCapture() {
    former_ = set_log_sink([this](LogLevel, std::string_view s) { lines.emplace_back(s); });
  }
  ~LogCapture() { set_log_sink(former_); }
  std::vector<std::string> lines;
  int count(const std::string& part) const {
    int n = 0;
    for (const std::string& l : lines) n += l.find(part) != std::string::npos;
    return n;
  }

 private:
  LogSink former_;
};

}  // namespace sluice::dsl
