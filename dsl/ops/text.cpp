#include "dsl/ops/text.h"

#include "dsl/call.h"
#include "dsl/require.h"

namespace sluice::dsl {

Tensor as_string(const Operand& input, const AsStringOptions& o, Loc loc) {
  Call c(graph_of({&input}), o.name, "AsString", loc);
  return c.make("AsString", {c.in(input, "input")},
                {{"precision", int64_t{o.precision}},
                 {"scientific", o.scientific},
                 {"shortest", o.shortest},
                 {"width", int64_t{o.width}},
                 {"fill", o.fill}});
}

Tensor string_join(const std::vector<Operand>& inputs, const std::string& separator, const std::string& name,
                   Loc loc) {
  Call c(graph_of(inputs), name, "StringJoin", loc);
  std::vector<Output> in;
  for (const Operand& x : inputs) in.push_back(c.in(x, "inputs", DType::kString));
  return c.make("StringJoin", std::move(in), {{"separator", separator}});
}

Tensor reduce_join(const Operand& inputs, const ReduceJoinOptions& o, Loc loc) {
  Call c(graph_of({&inputs}), o.name, "ReduceJoin", loc);
  Tensor x = c.in(inputs, "inputs", DType::kString);
  std::vector<int64_t> axes = o.axis;
  if (axes.empty()) {
    SLUICE_REQUIRE_AT(loc, x.shape().known_rank(), Code::kInvalidArgument,
                      "reduce_join over all axes needs a known rank, got ", x.name());
    for (int d = 0; d < x.shape().rank(); ++d) axes.push_back(d);
  }
  return c.make("ReduceJoin", {x, c.i32s(axes, "reduction_indices")},
                {{"keep_dims", o.keepdims}, {"separator", o.separator}});
}

Tensor regex_replace(const Operand& input, const std::string& pattern, const std::string& rewrite,
                     bool replace_global, const std::string& name, Loc loc) {
  Call c(graph_of({&input}), name, "StaticRegexReplace", loc);
  return c.make("StaticRegexReplace", {c.in(input, "input", DType::kString)},
                {{"pattern", pattern}, {"rewrite", rewrite}, {"replace_global", replace_global}});
}

Tensor regex_full_match(const Operand& input, const std::string& pattern, const std::string& name, Loc loc) {
  Call c(graph_of({&input}), name, "StaticRegexFullMatch", loc);
  return c.make("StaticRegexFullMatch", {c.in(input, "input", DType::kString)}, {{"pattern", pattern}});
}

SplitStrings string_split(const Operand& source, const std::string& delimiter, bool skip_empty,
                          const std::string& name, Loc loc) {
  Call c(graph_of({&source}), name, "StringSplit", loc);
  Output in = c.in(source, "source", DType::kString);
  Output at = c.constant(Literal::scalar(delimiter), "delimiter");
  Node& n = c.make("StringSplit", {in, at}, {{"skip_empty", skip_empty}});
  return {n.output(0), n.output(1), n.output(2)};
}

Tensor string_strip(const Operand& input, const std::string& name, Loc loc) {
  Call c(graph_of({&input}), name, "StringStrip", loc);
  return c.make("StringStrip", {c.in(input, "input", DType::kString)});
}

Tensor string_length(const Operand& input, const std::string& name, Loc loc) {
  Call c(graph_of({&input}), name, "StringLength", loc);
  return c.make("StringLength", {c.in(input, "input", DType::kString)});
}

Tensor substr(const Operand& input, int64_t pos, int64_t len, const std::string& name, Loc loc) {
  Call c(graph_of({&input}), name, "Substr", loc);
  Output in = c.in(input, "input", DType::kString);
  Output from = c.i32(pos, "pos");
  return c.make("Substr", {in, from, c.i32(len, "len")});
}

Tensor string_to_number(const Operand& input, DType out_type, const std::string& name, Loc loc) {
  Call c(graph_of({&input}), name, "StringToNumber", loc);
  return c.make("StringToNumber", {c.in(input, "string_tensor", DType::kString)}, {{"out_type", out_type}});
}

}  // namespace sluice::dsl
