// "_Region" on the tile machine. Whole operands of an image in NCHW lie channels-last, as the program's
// columns are channels; attr channels_last says so.

#include "kernels/cpu/common.h"
#include "kernels/cpu/region_machine.h"
#include "kernels/cpu/register.h"

namespace sluice::kernels::cpu {
namespace {

constexpr int kMaxOperands = 128;

class Region final : public Kernel {
 public:
  Region(const KernelSpec& spec, std::unique_ptr<RegionMachine> machine) : machine_(std::move(machine)) {
    const runtime::RegionProgram& p = *spec.region;
    input_layouts.resize(spec.inputs.size());
    output_layouts.resize(spec.outputs.size());
    Layout whole;
    if (spec.attr_or<bool>("channels_last", false)) {
      whole = Layout::channels_last(4);
    } else {
      // Any order will do as long as all whole operands share it: take the first that is on offer.
      bool has_lanes = false;
      for (const auto& in : p.inputs)
        has_lanes =
            has_lanes || in.extent == runtime::RegionExtent::kCol || in.extent == runtime::RegionExtent::kRow;
      for (const auto& out : p.outputs)
        has_lanes = has_lanes || out.extent == runtime::RegionExtent::kCol ||
                    out.extent == runtime::RegionExtent::kRow;
      bool same_dims = !has_lanes;
      const graph::Dims* dims = nullptr;
      auto check = [&](const runtime::ValueSpec& s, runtime::RegionExtent extent) {
        if (extent != runtime::RegionExtent::kWhole) return;
        if (!dims) dims = &s.dims;
        same_dims = same_dims && *dims == s.dims;
      };
      for (size_t i = 0; i < spec.inputs.size(); ++i) check(spec.inputs[i], p.inputs[i].extent);
      for (size_t i = 0; i < spec.outputs.size(); ++i) check(spec.outputs[i], p.outputs[i].extent);
      for (size_t i = 0; same_dims && i < spec.inputs.size(); ++i)
        if (p.inputs[i].extent == runtime::RegionExtent::kWhole && !spec.inputs[i].layout.plain()) {
          whole = spec.inputs[i].layout;
          break;
        }
    }
    for (size_t i = 0; i < spec.inputs.size(); ++i)
      if (p.inputs[i].extent == runtime::RegionExtent::kWhole) input_layouts[i] = whole;
    for (size_t i = 0; i < spec.outputs.size(); ++i)
      if (p.outputs[i].extent == runtime::RegionExtent::kWhole) output_layouts[i] = whole;
    scratch_bytes = machine_->scratch_bytes();
    may_share = machine_->may_share();
  }
  void run(KernelRun& r) const override {
    const void* in[kMaxOperands];
    void* out[kMaxOperands];
    for (int i = 0; i < r.num_inputs(); ++i) in[i] = r.in_data(i);
    for (int i = 0; i < r.num_outputs(); ++i) out[i] = r.out_data(i);
    machine_->run(in, out, r.scratch(), r.queue());
  }

 private:
  std::unique_ptr<RegionMachine> machine_;
};

std::unique_ptr<Kernel> make_region(const KernelSpec& spec, Refusal& refusal) {
  if (!spec.region) {
    refusal.reason = "no program";
    return nullptr;
  }
  if (spec.inputs.size() > kMaxOperands || spec.outputs.size() > kMaxOperands) {
    refusal.reason = "too many operands";
    return nullptr;
  }
  auto machine = RegionMachine::compile(*spec.region, fns(), spec.threads, refusal.reason);
  if (!machine) return nullptr;
  return std::make_unique<Region>(spec, std::move(machine));
}

}  // namespace

void register_region(KernelRegistry& r) {
  r.add({.op = "_Region", .name = "tiles", .make = make_region, .priority = kVectorPriority});
  r.region_supports = region_supports;
}

}  // namespace sluice::kernels::cpu
