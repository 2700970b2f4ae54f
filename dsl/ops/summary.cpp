#include "dsl/ops/summary.h"

#include <cctype>

#include "dsl/call.h"
#include "dsl/require.h"
#include "graph/support/log.h"

namespace sluice::dsl {

namespace {

std::string clean_tag(const std::string& name) {
  std::string out;
  for (char ch : name) {
    bool legal =
        std::isalnum(static_cast<unsigned char>(ch)) || ch == '-' || ch == '/' || ch == '_' || ch == '.';
    out.push_back(legal ? ch : '_');
  }
  out.erase(0, out.find_first_not_of('/') == std::string::npos ? out.size() : out.find_first_not_of('/'));
  if (out != name) {
    log_info("Summary name ", name, " is illegal; using ", out, " instead.");
  }
  return out;
}

Tensor summary(const char* op, const char* tag_arg, const std::string& name, const Operand& value,
               const std::vector<std::string>& collections, Loc loc) {
  Graph& g = graph_of({&value});
  Call c(g, clean_tag(name), "summary", loc);
  std::string tag = c.scope();
  if (!tag.empty() && tag.back() == '/') tag.pop_back();
  Output t = c.constant(Literal::scalar(tag), tag_arg);
  Tensor out = c.make(op, {t, c.in(value, "values")});
  for (const std::string& key : collections) {
    g.collections().add(key, graph::GraphElement{&out.node(), 0});
  }
  return out;
}

}  // namespace

Tensor summary_scalar(const std::string& name, const Operand& tensor,
                      const std::vector<std::string>& collections, Loc loc) {
  return summary("ScalarSummary", "tags", name, tensor, collections, loc);
}
Tensor summary_histogram(const std::string& name, const Operand& values,
                         const std::vector<std::string>& collections, Loc loc) {
  return summary("HistogramSummary", "tag", name, values, collections, loc);
}

Tensor summary_merge(const std::vector<Tensor>& inputs, const std::string& name, Loc loc) {
  SLUICE_REQUIRE_AT(loc, !inputs.empty(), Code::kInvalidArgument, "summary_merge needs at least one summary");
  Call outer(inputs[0].graph(), name, "Merge", loc);
  std::vector<Output> in(inputs.begin(), inputs.end());
  return outer.inner("MergeSummary", std::move(in));
}

Tensor summary_merge_all(Graph& g, const std::string& key, Loc loc) {
  std::vector<Tensor> all;
  for (const graph::GraphElement& e : g.collections().elements(key)) {
    all.push_back(Output{e.node, e.index < 0 ? 0 : e.index});
  }
  return all.empty() ? Tensor() : summary_merge(all, {}, loc);
}

}  // namespace sluice::dsl
