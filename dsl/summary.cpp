#include "dsl/summary.h"

#include <algorithm>
#include <cctype>

#include "dsl/call.h"
#include "dsl/require.h"
#include "graph/support/log.h"
#include "runtime/io/events.h"

namespace sluice::dsl::summary {

namespace {

std::string scope_name(const std::string& name, const std::string& family) {
  return family.empty() ? clean_tag(name) : clean_tag(family) + "/" + clean_tag(name);
}

// The scope of one summary, its tag and its collections.
class Site {
 public:
  Site(Graph& g, const std::string& name, const std::string& family, const Collections& collections, Loc loc)
      : call_(g, scope_name(name, family), "summary", loc), collections_(collections) {
    tag_ = call_.scope();
    if (!tag_.empty() && tag_.back() == '/') tag_.pop_back();
    if (!family.empty()) tag_ = clean_tag(family) + "/" + tag_;
  }
  const Call& call() const { return call_; }
  Output tag(const char* arg) const { return call_.constant(Literal::scalar(tag_), arg); }
  Tensor make(const char* op, std::vector<Output> inputs, AttrMap attrs = {}) const {
    Node& n = call_.make(op, std::move(inputs), std::move(attrs));
    for (const std::string& key : collections_)
      call_.graph().collections().add(key, graph::GraphElement{&n, 0});
    return n;
  }

 private:
  Call call_;
  const Collections& collections_;
  std::string tag_;
};

}  // namespace

std::string clean_tag(const std::string& name) {
  std::string out;
  for (char ch : name) {
    const bool legal =
        std::isalnum(static_cast<unsigned char>(ch)) || ch == '-' || ch == '/' || ch == '_' || ch == '.';
    out.push_back(legal ? ch : '_');
  }
  out.erase(0, std::min(out.find_first_not_of('/'), out.size()));
  if (out != name) log_info("Summary name ", name, " is illegal; using ", out, " instead.");
  return out;
}

Tensor scalar(const std::string& name, const Operand& tensor, const Options& o, Loc loc) {
  const Site s(graph_of({&tensor}), name, o.family, o.collections, loc);
  const Output tags = s.tag("tags");
  return s.make("ScalarSummary", {tags, s.call().in(tensor, "values")});
}

Tensor histogram(const std::string& name, const Operand& values, const Options& o, Loc loc) {
  const Site s(graph_of({&values}), name, o.family, o.collections, loc);
  const Output tag = s.tag("tag");
  return s.make("HistogramSummary", {tag, s.call().in(values, "values")});
}

Tensor image(const std::string& name, const Operand& tensor, const MediaOptions& o, Loc loc) {
  const Site s(graph_of({&tensor}), name, o.family, o.collections, loc);
  const Output tag = s.tag("tag");
  return s.make("ImageSummary", {tag, s.call().in(tensor, "tensor")}, {{"max_images", o.max_outputs}});
}

Tensor audio(const std::string& name, const Operand& tensor, const Operand& sample_rate,
             const MediaOptions& o, Loc loc) {
  const Site s(graph_of({&tensor, &sample_rate}), name, o.family, o.collections, loc);
  const Output rate = s.call().in(sample_rate, "sample_rate");
  const Output tag = s.tag("tag");
  return s.make("AudioSummaryV2", {tag, s.call().in(tensor, "tensor"), rate},
                {{"max_outputs", o.max_outputs}});
}

Tensor tensor(const std::string& name, const Operand& value, const TensorOptions& o, Loc loc) {
  const Site s(graph_of({&value}), name, o.family, o.collections, loc);
  const std::string metadata = runtime::io::serialize_summary_metadata({.plugin = o.plugin,
                                                                        .plugin_content = o.plugin_content,
                                                                        .display_name = o.display_name,
                                                                        .description = o.description});
  const Output tag = s.tag("tag");
  const Output in = s.call().in(value, "tensor");
  return s.make("TensorSummaryV2",
                {tag, in, s.call().constant(Literal::scalar(metadata), "serialized_summary_metadata")});
}

Tensor text(const std::string& name, const Tensor& strings, const Collections& collections, Loc loc) {
  SLUICE_REQUIRE_AT(loc, strings.dtype() == DType::kString, Code::kInvalidArgument, "Expected tensor ",
                    strings.name(), " to have dtype string, got ", strings.dtype());
  return tensor(name, strings, {.collections = collections, .plugin = "text"}, loc);
}

Tensor merge(const std::vector<Tensor>& inputs, const MergeOptions& o, Loc loc) {
  SLUICE_REQUIRE_AT(loc, !inputs.empty(), Code::kInvalidArgument,
                    "summary::merge needs at least one summary");
  Call outer(inputs[0].graph(), o.name, "Merge", loc);
  Tensor out = outer.inner("MergeSummary", std::vector<Output>(inputs.begin(), inputs.end()));
  for (const std::string& key : o.collections)
    out.graph().collections().add(key, graph::GraphElement{&out.node(), 0});
  return out;
}

Tensor merge_all(Graph& g, const std::string& key, const std::string& scope, const std::string& name,
                 Loc loc) {
  std::vector<Tensor> all;
  for (const graph::GraphElement& e : g.collections().elements(key, scope))
    all.push_back(Output{e.node, std::max(e.index, 0)});
  return all.empty() ? Tensor() : merge(all, {.name = name}, loc);
}

}  // namespace sluice::dsl::summary
