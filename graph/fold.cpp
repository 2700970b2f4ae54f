#include "graph/fold.h"

#include <unordered_map>

#include "graph/support/check.h"

namespace sluice::graph {
namespace {

constexpr int64_t kMaxElements = 1024;  // shape-like values are tiny; anything larger is the plan's business
constexpr int kMaxDepth = 64;           // of the integer subgraph behind a shape

using Memo = std::unordered_map<Output, std::optional<PartialInts>, OutputHash>;

const Literal* literal_of(const Node& n) {
  if (n.num_inputs() != 0 || n.num_outputs() != 1 || n.has(kStateful)) return nullptr;
  const AttrValue* v = n.find_attr("value");
  return v ? v->get_if<Literal>() : nullptr;
}

bool shape_like(Output o) {
  const DType t = o.dtype();
  if (t != DType::kInt32 && t != DType::kInt64 && t != DType::kBool) return false;
  const auto n = o.shape().elements();
  return !n || *n <= kMaxElements;
}

std::optional<PartialInts> evaluate(Output o, int depth, Memo& memo) {
  if (!shape_like(o)) return std::nullopt;
  if (const Literal* l = literal_of(*o.node)) {
    if (l->elements() > kMaxElements) return std::nullopt;
    PartialInts p;
    p.scalar = l->dims().empty();
    if (l->dims().size() > 1) p.higher = l->dims();
    for (int64_t v : l->to_int64s()) p.values.emplace_back(v);
    return p;
  }
  if (depth >= kMaxDepth || !o.node->def().fold) return std::nullopt;
  if (const auto it = memo.find(o); it != memo.end()) return it->second;
  FoldContext c(*o.node, [&](int i) {
    return o.node->input(i) ? evaluate(o.node->input(i), depth + 1, memo) : std::nullopt;
  });
  o.node->def().fold(c);
  for (int i = 0; i < o.node->num_outputs(); ++i) memo[{o.node, i}] = c.outputs()[static_cast<size_t>(i)];
  return memo[o];
}

}  // namespace

FoldContext::FoldContext(const Node& node, PartialFn input)
    : node_(node), input_(std::move(input)), outputs_(static_cast<size_t>(node.num_outputs())) {}

void FoldContext::set_output(int i, PartialInts value) {
  outputs_[static_cast<size_t>(i)] = std::move(value);
}

std::optional<PartialInts> partial_value(Output output) {
  Memo memo;
  return evaluate(output, 0, memo);
}

std::optional<Literal> constant_value(Output output) {
  Output o = output;
  // Through views that keep the shape (Identity and its kin).
  for (int hops = 0; hops < kMaxDepth && o.node->has(kViewOf0) && o.node->num_inputs() >= 1 &&
                     o.node->input(0) && o.node->input(0).shape() == o.shape() && o.shape().fully_known();
       ++hops)
    o = o.node->input(0);
  if (const Literal* l = literal_of(*o.node)) return *l;
  const auto p = partial_value(output);
  if (!p || !p->fully_known()) return std::nullopt;
  std::vector<int64_t> values = p->with_unknowns();
  Literal l = Literal::vector<int64_t>(std::span<const int64_t>(values)).cast(output.dtype());
  return l.reshaped(p->dims());
}

const Node* variable_behind(Output handle) {
  // A handle passes through identities, switches and loop entries unchanged: follow input 0 back to its
  // maker.
  for (int hops = 0; hops < 10'000 && handle; ++hops) {
    const Node& n = *handle.node;
    if (n.has(kVariable)) return &n;
    if (n.num_inputs() == 0 || !n.input(0) || n.input(0).dtype() != DType::kResource) return nullptr;
    handle = n.input(0);
  }
  return nullptr;
}

Shape handle_shape(Output handle) {
  const Node* variable = variable_behind(handle);
  return variable ? variable->attr_or<Shape>("shape", Shape()) : Shape();
}

}  // namespace sluice::graph
