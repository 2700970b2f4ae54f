#include "runtime/plan/evaluate.h"

#include "runtime/session.h"

namespace sluice::runtime::plan {

using graph::Literal;
using graph::PartialInts;

std::optional<std::vector<Literal>> evaluate(const graph::Node& node, const graph::AttrMap& attrs,
                                             const std::vector<Literal>& inputs,
                                             const std::vector<ValueSpec>& outputs,
                                             const BuildOptions& options) {
  KernelSpec spec;
  spec.op = node.op();
  spec.node = &node;
  spec.attrs = attrs;
  spec.outputs = outputs;
  spec.resources = options.resources;
  std::vector<Array> in, out;
  for (const Literal& l : inputs) {
    spec.inputs.push_back({l.dtype(), l.dims(), {}});
    spec.constants.emplace_back(l);
    in.push_back(Array::from_literal(l));
  }
  spec.variables.resize(inputs.size());
  for (const ValueSpec& s : outputs) out.emplace_back(s.dtype, s.dims);
  for (const KernelDef* def : options.kernels->candidates(node.op())) {
    if (!def->reference) continue;
    try {
      Refusal refusal;
      std::unique_ptr<Kernel> kernel = def->make(spec, refusal);
      if (!kernel) continue;
      std::vector<Slot> is, os;
      for (size_t i = 0; i < in.size(); ++i) is.push_back({in[i].data(), &spec.inputs[i], &in[i], nullptr});
      for (size_t i = 0; i < out.size(); ++i)
        os.push_back({out[i].data(), &spec.outputs[i], &out[i], nullptr});
      Buffer scratch(kernel->scratch_bytes);
      std::unique_ptr<WorkQueue> queue = make_serial_queue();
      RunState state;
      const CancelToken token = CancelToken::none();
      state.cancel = &token;
      state.resources = options.resources;
      KernelRun run(is.data(), os.data(), static_cast<int>(is.size()), static_cast<int>(os.size()),
                    scratch.data(), *queue, state);
      kernel->run(run);
      std::vector<Literal> values;
      for (const Array& a : out) values.push_back(a.to_literal());
      return values;
    } catch (const Error&) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

std::optional<PartialInts> to_partial(const Literal& l) {
  if (!graph::is_integer(l.dtype()) || l.dims().size() > 1 || l.elements() > kEvaluateElements)
    return std::nullopt;
  PartialInts p;
  p.scalar = l.dims().empty();
  for (int64_t v : l.to_int64s()) p.values.emplace_back(v);
  return p;
}

Literal to_literal(const PartialInts& p, DType dtype) {
  return Literal::from<int64_t>(p.dims(), p.with_unknowns()).cast(dtype);
}

}  // namespace sluice::runtime::plan
