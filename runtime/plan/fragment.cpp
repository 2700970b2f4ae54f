#include "runtime/plan/fragment.h"

#include <algorithm>

#include "graph/support/check.h"

namespace sluice::runtime::plan {
namespace {

bool loop_dtype(DType t) { return t == DType::kFloat || t == DType::kInt32 || t == DType::kBool; }

// Values that a kernel sees as plain bytes of known size.
bool has_bytes(const PlanValue& v) {
  return v.known_dims && v.storage != Storage::kHandle && v.storage != Storage::kDynamic &&
         loop_dtype(v.spec.dtype);
}

Dims without_leading_ones(const Dims& d) {
  size_t i = 0;
  while (i < d.size() && d[i] == 1) ++i;
  return Dims(d.begin() + static_cast<long>(i), d.end());
}

// How an operand of dims `d` lies in a space of dims `whole`; sets `cols` where it decides them.
std::optional<RegionExtent> extent_in(const Dims& d, const Dims& whole, int64_t& cols) {
  const int64_t count = graph::num_elements(d);
  if (count == graph::num_elements(whole)) return RegionExtent::kWhole;
  if (count == 1) return RegionExtent::kScalar;
  auto decide = [&](int64_t c, RegionExtent e) -> std::optional<RegionExtent> {
    if (cols != 0 && cols != c) return std::nullopt;
    cols = c;
    return e;
  };
  const Dims tail = without_leading_ones(d);
  if (tail.size() <= whole.size() && std::equal(tail.rbegin(), tail.rend(), whole.rbegin()))
    return decide(count, RegionExtent::kCol);
  if (d.size() != whole.size()) return std::nullopt;
  size_t same = 0;
  while (same < d.size() && d[same] == whole[same]) ++same;
  for (size_t i = same; i < d.size(); ++i)
    if (d[i] != 1) return std::nullopt;
  return decide(graph::num_elements(whole) / count, RegionExtent::kRow);
}

std::optional<Fragment> elementwise(const PlanGraph& g, const PlanOp& op) {
  const PlanValue& out = g.value(op.outputs[0]);
  const Dims& whole = out.spec.dims;
  Fragment f;
  f.space.count = out.spec.elements();
  if (f.space.count == 0) return std::nullopt;
  std::vector<int> args;
  for (ValueId v : op.inputs) {
    const PlanValue& in = g.value(v);
    std::optional<RegionExtent> e = extent_in(in.spec.dims, whole, f.space.cols);
    // Select's vector condition goes with the first dim, where broadcasting would take it for the last.
    const bool by_row = op.op == "Select" && args.empty() && in.spec.dims.size() == 1 && whole.size() > 1;
    if (by_row) {
      f.space.cols = f.space.count / in.spec.elements();
      e = RegionExtent::kRow;
    }
    if (!e) return std::nullopt;
    args.push_back(static_cast<int>(f.program.inputs.size()));
    f.program.inputs.push_back({*e, in.spec.dtype});
  }
  const graph::AttrValue* alpha = op.node ? op.node->find_attr("alpha") : nullptr;
  RegionInst inst{op.op, args, out.spec.dtype};
  if (alpha && alpha->get_if<float>()) inst.alpha = *alpha->get_if<float>();
  f.program.insts.push_back(std::move(inst));
  f.program.outputs.push_back(
      {static_cast<int>(args.size()), RegionExtent::kWhole, RegionReduce::kNone, 1.0, out.spec.dtype});
  f.inputs = op.inputs;
  f.outputs = op.outputs;
  return f;
}

bool is_nchw(const PlanOp& op) {
  const graph::AttrValue* format = op.node ? op.node->find_attr("data_format") : nullptr;
  return format && format->get_if<std::string>() && *format->get_if<std::string>() == "NCHW";
}

// x and a vector over channels: BiasAdd and its gradient.
std::optional<RegionSpace> channel_space(const Dims& x, bool nchw) {
  RegionSpace s;
  s.count = graph::num_elements(x);
  if (s.count == 0 || (nchw && x.size() != 4)) return std::nullopt;
  s.cols = nchw ? x[1] : x.back();
  s.channels_last = nchw;
  if (nchw) s.dims = x;
  return s;
}

std::optional<Fragment> bias_add(const PlanGraph& g, const PlanOp& op) {
  Fragment f;
  std::optional<RegionSpace> s = channel_space(g.value(op.inputs[0]).spec.dims, is_nchw(op));
  const DType t = g.value(op.outputs[0]).spec.dtype;
  if (!s || t != DType::kFloat) return std::nullopt;
  f.space = *s;
  f.program.inputs = {{RegionExtent::kWhole, t}, {RegionExtent::kCol, t}};
  f.program.insts = {{"Add", {0, 1}, t}};
  f.program.outputs = {{2, RegionExtent::kWhole, RegionReduce::kNone, 1.0, t}};
  f.inputs = op.inputs;
  f.outputs = op.outputs;
  return f;
}

std::optional<Fragment> reduced(const PlanGraph& g, const PlanOp& op, RegionSpace space, RegionExtent to,
                                RegionReduce kind, double scale, bool square) {
  if (g.value(op.inputs[0]).spec.dtype != DType::kFloat || space.count == 0) return std::nullopt;
  Fragment f;
  f.space = std::move(space);
  f.program.inputs = {{RegionExtent::kWhole, DType::kFloat}};
  if (square) f.program.insts = {{"Square", {0}, DType::kFloat}};
  f.program.outputs = {{square ? 1 : 0, to, kind, scale, DType::kFloat}};
  f.inputs = {op.inputs[0]};
  f.outputs = op.outputs;
  return f;
}

// Sum, Mean, Max … over leading, trailing or all dims.
std::optional<Fragment> reduction(const PlanGraph& g, const PlanOp& op) {
  RegionReduce kind = RegionReduce::kNone;
  if (op.op == "Sum" || op.op == "Mean") kind = RegionReduce::kSum;
  if (op.op == "Max") kind = RegionReduce::kMax;
  if (op.op == "Min") kind = RegionReduce::kMin;
  if (op.op == "Prod") kind = RegionReduce::kProd;
  const PlanValue& x = g.value(op.inputs[0]);
  if (kind == RegionReduce::kNone || op.inputs.size() != 2 || !g.value(op.inputs[1]).literal)
    return std::nullopt;
  const Dims& dims = x.spec.dims;
  std::vector<char> gone(dims.size(), 0);
  for (int64_t a : g.value(op.inputs[1]).literal->to_int64s()) {
    if (a < 0) a += static_cast<int64_t>(dims.size());
    if (a < 0 || a >= static_cast<int64_t>(dims.size())) return std::nullopt;
    gone[static_cast<size_t>(a)] = 1;
  }
  int64_t before = 1, middle = 1, after = 1;  // kept, reduced, kept; dims of 1 are neither
  int part = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 1) continue;
    if (gone[i] && part == 0) part = 1;
    if (!gone[i] && part == 1) part = 2;
    if (gone[i] && part == 2) return std::nullopt;
    (part == 0 ? before : part == 1 ? middle : after) *= dims[i];
  }
  RegionSpace space;
  space.count = x.spec.elements();
  const double scale = op.op == "Mean" ? 1.0 / static_cast<double>(middle) : 1.0;
  if (before == 1 && after == 1) return reduced(g, op, space, RegionExtent::kScalar, kind, scale, false);
  if (before == 1) {
    space.cols = after;
    return reduced(g, op, space, RegionExtent::kCol, kind, scale, false);
  }
  if (after == 1) {
    space.cols = middle;
    return reduced(g, op, space, RegionExtent::kRow, kind, scale, false);
  }
  return std::nullopt;
}

}  // namespace

ValueId source_of(const PlanGraph& g, ValueId v) {
  for (;;) {
    const OpId p = g.value(v).producer;
    if (p < 0 || g.op(p).removed || g.op(p).kind != OpKind::kView || !g.op(p).after.empty()) return v;
    const ValueId in = g.op(p).inputs[0];
    if (!has_bytes(g.value(in))) return v;
    v = in;
  }
}

std::optional<Fragment> fragment_of(const PlanGraph& g, const PlanOp& op, const BuildOptions& options) {
  if (op.kind != OpKind::kKernel || op.keep || op.outputs.empty()) return std::nullopt;
  for (const auto* list : {&op.inputs, &op.outputs})
    for (ValueId v : *list)
      if (!g.value(v).known_dims || g.value(v).storage == Storage::kHandle) return std::nullopt;
  if (op.op == "_Region") {
    Fragment f;
    f.program = *op.region;
    f.space.count = op.region->rows * op.region->cols;
    f.space.cols = op.region->cols;
    auto flag = op.attrs.find("channels_last");
    f.space.channels_last = flag != op.attrs.end() && *flag->second.get_if<bool>();
    for (size_t i = 0; i < op.inputs.size(); ++i)
      if (f.space.channels_last && f.program.inputs[i].extent == RegionExtent::kWhole)
        f.space.dims = g.value(op.inputs[i]).spec.dims;
    f.inputs = op.inputs;
    f.outputs = op.outputs;
    return f;
  }
  for (ValueId v : op.outputs)
    if (!has_bytes(g.value(v))) return std::nullopt;
  if (op.op == "BiasAdd") return bias_add(g, op);
  if (op.op == "BiasAddGrad" || op.op == "L2Loss") {
    const Dims& x = g.value(op.inputs[0]).spec.dims;
    if (op.op == "L2Loss")
      return reduced(g, op, {graph::num_elements(x), 0, false, {}}, RegionExtent::kScalar, RegionReduce::kSum,
                     0.5, true);
    std::optional<RegionSpace> s = channel_space(x, is_nchw(op));
    if (!s) return std::nullopt;
    return reduced(g, op, *s, RegionExtent::kCol, RegionReduce::kSum, 1.0, false);
  }
  if (op.has(graph::kReduction)) return reduction(g, op);
  if (!(op.has(graph::kElementwise) || op.has(graph::kAggregate)) || op.outputs.size() != 1 ||
      op.inputs.empty() || op.has(graph::kStateful) || op.has(graph::kRandom))
    return std::nullopt;
  for (ValueId v : op.inputs)
    if (!has_bytes(g.value(v))) return std::nullopt;
  const DType operand = g.value(op.inputs.back()).spec.dtype;
  if (!options.kernels->region_supports || !options.kernels->region_supports(op.op, operand))
    return std::nullopt;
  return elementwise(g, op);
}

std::optional<RegionSpace> join_spaces(const RegionSpace& a, const RegionSpace& b) {
  if (a.count != b.count) return std::nullopt;
  if (a.cols != 0 && b.cols != 0 && a.cols != b.cols) return std::nullopt;
  if (a.channels_last == b.channels_last) {
    if (a.channels_last && a.dims != b.dims) return std::nullopt;
    RegionSpace s = a;
    s.cols = std::max(a.cols, b.cols);
    return s;
  }
  // Elementwise ops follow any order; ops over columns of the logical order do not.
  const RegionSpace& flat = a.channels_last ? b : a;
  if (flat.cols != 0) return std::nullopt;
  return a.channels_last ? a : b;
}

RegionJoiner::RegionJoiner(const PlanGraph& g, const RegionSpace& space) : g_(g), space_(space) {}

int RegionJoiner::add_input(ValueId v, RegionExtent extent, DType dtype) {
  inputs_.push_back({extent, dtype});
  input_values_.push_back(v);
  return static_cast<int>(inputs_.size()) - 1;
}

int RegionJoiner::find_register(ValueId v, RegionExtent extent) {
  v = space_.channels_last ? v : source_of(g_, v);
  for (const Made& m : made_)
    if (m.value == v && m.output.reduce == RegionReduce::kNone) return m.reg;
  const PlanValue& value = g_.value(v);
  if (extent == RegionExtent::kScalar && value.literal && value.spec.dtype != DType::kBool) {
    const double imm = value.literal->to_doubles()[0];
    for (size_t i = 0; i < insts_.size(); ++i)
      if (insts_[i].op == "_Imm" && insts_[i].imm == imm && insts_[i].dtype == value.spec.dtype)
        return kFirst + static_cast<int>(i);
    RegionInst inst{"_Imm", {}, value.spec.dtype, imm};
    insts_.push_back(inst);
    return kFirst + static_cast<int>(insts_.size()) - 1;
  }
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (input_values_[i] == v && inputs_[i].extent == extent) return static_cast<int>(i);
  return add_input(v, extent, value.spec.dtype);
}

void RegionJoiner::add(const Fragment& f) {
  std::vector<int> map;
  for (size_t i = 0; i < f.inputs.size(); ++i)
    map.push_back(find_register(f.inputs[i], f.program.inputs[i].extent));
  for (RegionInst inst : f.program.insts) {
    for (int& a : inst.args) a = map[static_cast<size_t>(a)];
    insts_.push_back(std::move(inst));
    map.push_back(kFirst + static_cast<int>(insts_.size()) - 1);
  }
  for (size_t o = 0; o < f.outputs.size(); ++o) {
    Made m{f.outputs[o], map[static_cast<size_t>(f.program.outputs[o].reg)], f.program.outputs[o]};
    made_.push_back(m);
  }
}

bool RegionJoiner::has(ValueId v) const {
  return std::any_of(made_.begin(), made_.end(), [&](const Made& m) { return m.value == v; });
}

void RegionJoiner::emit(ValueId v) {
  for (const Made& m : made_) {
    if (m.value != v) continue;
    RegionOutput out = m.output;
    out.reg = m.reg;
    outputs_.emplace_back(v, out);
    return;
  }
  SLUICE_CHECK(false, "a region was asked for a value it does not make");
}

RegionProgram RegionJoiner::take(std::vector<ValueId>& inputs, std::vector<ValueId>& outputs) {
  RegionProgram p;
  const int n = static_cast<int>(inputs_.size());
  auto reg = [&](int r) { return r < kFirst ? r : r - kFirst + n; };
  p.cols = space_.cols != 0 ? space_.cols : space_.count;
  p.rows = space_.count / std::max<int64_t>(1, p.cols);
  p.inputs = inputs_;
  p.insts = std::move(insts_);
  for (RegionInst& inst : p.insts)
    for (int& a : inst.args) a = reg(a);
  outputs.clear();
  for (auto& [v, out] : outputs_) {
    out.reg = reg(out.reg);
    p.outputs.push_back(out);
    outputs.push_back(v);
  }
  inputs = input_values_;
  return p;
}

}  // namespace sluice::runtime::plan
