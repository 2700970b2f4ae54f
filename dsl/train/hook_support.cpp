#include "dsl/train/hook_support.h"

#include <cstdio>
#include <limits>

#include "dsl/train/global_step.h"
#include "graph/support/check.h"

namespace sluice::dsl::train {

Tensor get_or_create_global_step_read(Graph& g) {
  const char* key = graph::keys::kGlobalStepReadOpCache;
  std::vector<graph::GraphElement> have = g.collections().elements(key);
  SLUICE_REQUIRE(have.size() <= 1, Code::kFailedPrecondition, "There are multiple items in collection ", key,
                 ". There should be only one.");
  if (!have.empty()) return Output{have[0].node, have[0].index};
  const Variable step = get_global_step(g);
  if (!step) return {};
  graph::NameScope scope(g, step.name() + "/");
  Tensor read = step.read_value() + 0;
  g.collections().add(key, graph::GraphElement{&read.node(), 0});
  return read;
}

Tensor require_global_step_read(Graph& g, const char* hook) {
  Tensor step = get_or_create_global_step_read(g);
  SLUICE_REQUIRE(step, Code::kFailedPrecondition, "Global step should be created to use ", hook, ".");
  return step;
}

int64_t read_step(Session& session, const Tensor& step) { return session.run({step})[0].item<int64_t>(); }

std::string general(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", v);
  return text;
}

namespace {

constexpr int64_t kMaxPrinted = 1000;

std::string element_text(const Array& a, int64_t i) {
  const auto k = static_cast<size_t>(i);
  switch (a.dtype()) {
    case DType::kFloat:
      return cat(a.as<float>()[k]);
    case DType::kDouble:
      return cat(a.as<double>()[k]);
    case DType::kBool:
      return a.as<bool>()[k] ? "True" : "False";
    case DType::kInt64:
      return cat(a.as<int64_t>()[k]);
    default:
      return a.string_values()[k];
  }
}

void print(std::string& s, const Array& a, size_t dim, int64_t& at) {
  if (dim == a.dims().size()) {
    s += element_text(a, at++);
    return;
  }
  s += '[';
  for (int64_t i = 0; i < a.dims()[dim]; ++i) {
    if (i) s += ' ';
    print(s, a, dim + 1, at);
  }
  s += ']';
}

}  // namespace

std::string value_text(const Array& a) {
  const bool plain = a.dtype() == DType::kFloat || a.dtype() == DType::kDouble || a.dtype() == DType::kBool ||
                     a.dtype() == DType::kString;
  if (!a || graph::is_complex(a.dtype()) || a.elements() > kMaxPrinted) return a.str();
  const Array shown = plain ? a : a.cast(graph::is_floating(a.dtype()) ? DType::kFloat : DType::kInt64);
  std::string s;
  int64_t at = 0;
  print(s, shown, 0, at);
  return s;
}

}  // namespace sluice::dsl::train
