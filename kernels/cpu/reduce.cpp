// Reductions of float values as loop regions: BiasAddGrad, L2Loss, and Sum, Mean, Max, Min, Prod over one run
// of neighbouring axes (dims of size 1 aside), which is every reduction of the usual networks.

#include <algorithm>

#include "kernels/cpu/common.h"
#include "kernels/cpu/region_machine.h"
#include "kernels/cpu/register.h"

namespace sluice::kernels::cpu {
namespace {

using runtime::RegionExtent;
using runtime::RegionProgram;
using runtime::RegionReduce;

// Runs one machine over `count` equal pieces of the operand, one after the other.
class Reduce final : public Kernel {
 public:
  Reduce(std::unique_ptr<RegionMachine> machine, int64_t count, int64_t in_step, int64_t out_step)
      : machine_(std::move(machine)), count_(count), in_step_(in_step), out_step_(out_step) {
    scratch_bytes = machine_->scratch_bytes();
  }
  void run(KernelRun& r) const override {
    for (int64_t i = 0; i < count_; ++i) {
      const void* in[] = {r.in<float>(0) + i * in_step_};
      void* out[] = {r.out<float>(0) + i * out_step_};
      machine_->run(in, out, r.scratch(), r.queue());
    }
  }

 private:
  std::unique_ptr<RegionMachine> machine_;
  int64_t count_, in_step_, out_step_;
};

RegionProgram reduce_program(int64_t rows, int64_t cols, RegionExtent to, RegionReduce kind, double scale) {
  RegionProgram p;
  p.rows = rows, p.cols = cols;
  p.inputs = {{RegionExtent::kWhole, DType::kFloat}};
  p.outputs = {{0, to, kind, scale, DType::kFloat}};
  return p;
}

std::unique_ptr<Kernel> finish(const KernelSpec& spec, const RegionProgram& p, int64_t count,
                               int64_t out_step, Refusal& refusal) {
  auto machine = RegionMachine::compile(p, fns(), spec.threads, refusal.reason);
  if (!machine) return nullptr;
  return std::make_unique<Reduce>(std::move(machine), count, p.rows * p.cols, out_step);
}

KernelMake reduction(RegionReduce kind, bool mean) {
  return [kind, mean](const KernelSpec& spec, Refusal& refusal) -> std::unique_ptr<Kernel> {
    if (!all_float(spec, refusal, {0})) return nullptr;
    if (spec.constants.size() < 2 || !spec.constants[1]) {
      refusal.reason = "the axes are not known";
      return nullptr;
    }
    const Dims& dims = spec.inputs[0].dims;
    const int rank = static_cast<int>(dims.size());
    std::vector<char> reduced(dims.size(), 0);
    for (int64_t a : spec.constants[1]->to_int64s()) {
      if (a < 0) a += rank;
      if (a < 0 || a >= rank) {
        refusal.reason = "an axis out of range";
        return nullptr;
      }
      reduced[static_cast<size_t>(a)] = 1;
    }
    // outer × reduced × inner, skipping dims of one element.
    int64_t sizes[3] = {1, 1, 1};
    int part = 0;
    for (size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] == 1) continue;
      if (reduced[i] ? part == 2 : part == 1) ++part;
      if (reduced[i] && part == 0) part = 1;
      if (part > 2) {
        refusal.reason = "axes that are not neighbours";
        return nullptr;
      }
      sizes[part] *= dims[i];
    }
    const int64_t outer = sizes[0], middle = sizes[1], inner = sizes[2];
    if (outer * middle * inner == 0) {
      refusal.reason = "an empty operand";
      return nullptr;
    }
    const double scale = mean ? 1.0 / static_cast<double>(middle) : 1.0;
    if (inner > 1)
      return finish(spec, reduce_program(middle, inner, RegionExtent::kCol, kind, scale), outer, inner,
                    refusal);
    if (outer > 1)
      return finish(spec, reduce_program(outer, middle, RegionExtent::kRow, kind, scale), 1, 0, refusal);
    return finish(spec, reduce_program(1, middle, RegionExtent::kScalar, kind, scale), 1, 0, refusal);
  };
}

std::unique_ptr<Kernel> make_bias_grad(const KernelSpec& spec, Refusal& refusal) {
  if (!all_float(spec, refusal, {0})) return nullptr;
  const Dims& dims = spec.inputs[0].dims;
  const bool nchw = is_nchw(spec);
  if (nchw && dims.size() != 4) {
    refusal.reason = "NCHW of another rank than 4";
    return nullptr;
  }
  const int64_t cols = nchw ? dims[1] : dims.back();
  if (graph::num_elements(dims) == 0) {
    refusal.reason = "an empty operand";
    return nullptr;
  }
  auto kernel = finish(
      spec,
      reduce_program(graph::num_elements(dims) / cols, cols, RegionExtent::kCol, RegionReduce::kSum, 1.0), 1,
      0, refusal);
  if (kernel && nchw) {
    kernel->input_layouts = {image_layout(true)};
    kernel->output_layouts = {Layout{}};
  }
  return kernel;
}

std::unique_ptr<Kernel> make_l2_loss(const KernelSpec& spec, Refusal& refusal) {
  if (!all_float(spec, refusal, {0})) return nullptr;
  RegionProgram p =
      reduce_program(1, spec.inputs[0].elements(), RegionExtent::kScalar, RegionReduce::kSum, 0.5);
  p.insts = {{"Square", {0}, DType::kFloat}};
  p.outputs[0].reg = 1;
  return finish(spec, p, 1, 0, refusal);
}

}  // namespace

void register_reduce(KernelRegistry& r) {
  auto add = [&](const char* op, KernelMake make) {
    r.add({.op = op, .name = "tiles", .make = std::move(make), .priority = kVectorPriority});
  };
  add("BiasAddGrad", make_bias_grad);
  add("L2Loss", make_l2_loss);
  add("Max", reduction(RegionReduce::kMax, false));
  add("Mean", reduction(RegionReduce::kSum, true));
  add("Min", reduction(RegionReduce::kMin, false));
  add("Prod", reduction(RegionReduce::kProd, false));
  add("Sum", reduction(RegionReduce::kSum, false));
}

}  // namespace sluice::kernels::cpu
