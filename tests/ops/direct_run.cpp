#include "tests/ops/direct_run.h"

#include <algorithm>
#include <chrono>

#include "graph/infer.h"
#include "runtime/session.h"

namespace sluice::optest {

using graph::Literal;
using graph::PartialInts;
using graph::Shape;
using runtime::KernelDef;
using runtime::Layout;
using runtime::Slot;
using runtime::ValueSpec;

namespace {

constexpr int kThreads = 2;

bool is_ref_input(const graph::OpRegistry& ops, const std::string& op, size_t input) {
  const graph::OpDef& def = ops.get(op);
  return input < def.input_args.size() && def.input_args[input].is_ref;
}

std::optional<PartialInts> partial_of(const Array& a) {
  if (!graph::is_integer(a.dtype()) || a.rank() > 1) return std::nullopt;
  PartialInts p;
  p.scalar = a.rank() == 0;
  for (int64_t v : a.to_literal().to_int64s()) p.values.emplace_back(v);
  return p;
}

}  // namespace

DirectRun::DirectRun(Call call) : call_(std::move(call)), graph_(std::make_unique<graph::Graph>()) {
  graph::Graph& g = *graph_;
  auto narrowed = [&](DType t) { return call_.widen && t == DType::kDouble ? DType::kFloat : t; };
  auto widened = [&](DType t) { return call_.widen && t == DType::kFloat ? DType::kDouble : t; };
  std::vector<graph::Output> inputs;
  for (size_t i = 0; i < call_.inputs.size(); ++i) {
    const Operand& in = call_.inputs[i];
    if (in.variable) {
      const Shape shape = in.variable->initialized() ? Shape(in.variable->spec()->dims) : Shape();
      const bool ref = is_ref_input(g.ops(), call_.op, i);
      inputs.push_back(g.add({.op = ref ? "VariableV2" : "VarHandleOp",
                              .name = in.variable->name(),
                              .attrs = {{"dtype", in.variable->dtype()}, {"shape", shape}}})
                           .output());
    } else {
      inputs.push_back(
          g.add({.op = "Placeholder",
                 .name = cat("in", i),
                 .attrs = {{"dtype", narrowed(in.value.dtype())}, {"shape", Shape(in.value.dims())}}})
              .output());
    }
  }
  node_ = &g.add({.op = call_.op, .name = call_.name, .inputs = inputs, .attrs = call_.attrs});

  spec_.op = call_.op;
  spec_.node = node_;
  spec_.resources = call_.resources;
  spec_.threads = kThreads;
  for (const Operand& in : call_.inputs) {
    const bool variable = in.variable != nullptr;
    if (variable)
      spec_.inputs.push_back(in.variable->spec().value_or(ValueSpec{in.variable->dtype(), {}, {}}));
    else
      spec_.inputs.push_back({in.value.dtype(), in.value.dims(), {}});
    spec_.variables.push_back(in.variable);
    spec_.constants.push_back(
        !variable && call_.constants_known ? std::optional<Literal>(in.value.to_literal()) : std::nullopt);
  }
  const std::vector<Shape> shapes = inferred(true);
  for (int i = 0; i < node_->num_outputs(); ++i) {
    const Shape& s = shapes[static_cast<size_t>(i)];
    open_.push_back(!s.fully_known());
    spec_.outputs.push_back(
        {widened(graph::base_dtype(node_->output_type(i))), s.fully_known() ? s.dims() : Dims{}, {}});
  }
}

DirectRun::~DirectRun() = default;

std::vector<Shape> DirectRun::inferred(bool with_values) const {
  std::vector<Shape> shapes;
  for (const graph::Output& in : node_->inputs()) shapes.push_back(in.shape());
  auto value = [&](int i) -> std::optional<Literal> {
    const Operand& in = call_.inputs[static_cast<size_t>(i)];
    if (!with_values || in.variable) return std::nullopt;
    return in.value.to_literal();
  };
  auto partial = [&](int i) -> std::optional<PartialInts> {
    const Operand& in = call_.inputs[static_cast<size_t>(i)];
    if (!with_values || in.variable) return std::nullopt;
    return partial_of(in.value);
  };
  auto handle = [&](int i) {
    const auto& v = call_.inputs[static_cast<size_t>(i)].variable;
    return v && v->initialized() ? Shape(v->spec()->dims) : Shape();
  };
  graph::InferContext c(*node_, std::move(shapes), value, partial, handle);
  if (node_->def().infer) node_->def().infer(c);
  return c.outputs();
}

std::vector<std::string> DirectRun::candidates() const {
  std::vector<std::string> names;
  for (const KernelDef* d : runtime::standard_kernels().candidates(call_.op)) names.push_back(d->name);
  return names;
}

std::unique_ptr<runtime::Kernel> DirectRun::make(const std::string& candidate, std::string& why) const {
  for (const KernelDef* d : runtime::standard_kernels().candidates(call_.op)) {
    if (d->name != candidate) continue;
    runtime::Refusal refusal;
    auto kernel = d->make(spec_, refusal);
    if (!kernel) why = refusal.reason;
    return kernel;
  }
  why = cat("op ", call_.op, " has no kernel named ", candidate);
  return nullptr;
}

// What one run works on, in the layouts the kernel wants.
struct DirectRun::Buffers {
  std::vector<ValueSpec> in_specs, out_specs;
  std::vector<Array> in, out;
  std::vector<Slot> is, os;
  std::unique_ptr<runtime::Buffer> scratch;
};

std::unique_ptr<DirectRun::Buffers> DirectRun::prepare(const runtime::Kernel& kernel) const {
  const size_t n_in = call_.inputs.size(), n_out = spec_.outputs.size();
  auto b = std::make_unique<Buffers>();
  b->in_specs = spec_.inputs;
  b->out_specs = spec_.outputs;
  b->in.resize(n_in);
  b->out.resize(n_out);
  b->is.resize(n_in);
  b->os.resize(n_out);
  for (size_t i = 0; i < n_in; ++i) {
    const Operand& op = call_.inputs[i];
    b->is[i].spec = &b->in_specs[i];
    b->is[i].variable = op.variable.get();
    if (op.variable) continue;
    b->in[i] = op.value.clone();
    if (!kernel.input_layouts.empty() && !kernel.input_layouts[i].plain()) {
      const Layout& layout = kernel.input_layouts[i];
      runtime::reorder(op.value.dtype(), op.value.dims(), Layout{}, op.value.data(), layout, b->in[i].data());
      b->in_specs[i].layout = layout;
    }
    b->is[i].array = &b->in[i];
    b->is[i].data = b->in[i].dtype() == DType::kString ? nullptr : b->in[i].data();
  }
  for (size_t i = 0; i < n_out; ++i) {
    b->os[i].spec = &b->out_specs[i];
    if (graph::is_ref(node_->output_type(static_cast<int>(i)))) continue;
    if (open_[i] || b->out_specs[i].dtype == DType::kString) {
      b->os[i].array = &b->out[i];
      continue;
    }
    if (!kernel.output_layouts.empty()) b->out_specs[i].layout = kernel.output_layouts[i];
    b->out[i] = Array(b->out_specs[i].dtype, b->out_specs[i].dims);
    // Bytes a kernel forgets to write must not look right by chance.
    if (b->out[i].bytes() > 0) std::memset(b->out[i].data(), 0xee, b->out[i].bytes());
    b->os[i].data = b->out[i].data();
  }
  b->scratch = std::make_unique<runtime::Buffer>(std::max<size_t>(kernel.scratch_bytes, 64));
  return b;
}

void DirectRun::execute(const runtime::Kernel& kernel, Buffers& b, runtime::WorkQueue& queue) const {
  runtime::RunState state;
  const runtime::CancelToken token;
  state.cancel = &token;
  state.resources = call_.resources;
  runtime::KernelRun run(b.is.data(), b.os.data(), static_cast<int>(b.is.size()),
                         static_cast<int>(b.os.size()), b.scratch->data(), queue, state);
  kernel.run(run);
}

std::vector<Array> DirectRun::run(const runtime::Kernel& kernel) const {
  auto b = prepare(kernel);
  auto queue = runtime::make_thread_queue(kThreads);
  execute(kernel, *b, *queue);
  for (size_t i = 0; i < b->out.size(); ++i) {
    const ValueSpec& s = b->out_specs[i];
    if (s.layout.plain()) continue;
    Array plain(s.dtype, s.dims);
    runtime::reorder(plain.dtype(), plain.dims(), s.layout, b->out[i].data(), Layout{}, plain.data());
    b->out[i] = plain;
  }
  return std::move(b->out);
}

double DirectRun::time(const runtime::Kernel& kernel) const {
  auto b = prepare(kernel);
  auto queue = runtime::make_default_queue(kThreads);
  execute(kernel, *b, *queue);
  const auto start = std::chrono::steady_clock::now();
  execute(kernel, *b, *queue);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<Array> run_op(Call call, const std::string& candidate) {
  const DirectRun direct(std::move(call));
  std::string why;
  auto kernel = direct.make(candidate, why);
  SLUICE_REQUIRE(kernel != nullptr, Code::kUnimplemented, "kernel ", candidate, " declines: ", why);
  return direct.run(*kernel);
}

}  // namespace sluice::optest
