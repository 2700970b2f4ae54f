// "_Update": a loop region over variables, in place. The first `handles` inputs are variables: operand i and
// output i of the program are variable i's bytes, whatever buffer it has by then; the others are values.

#include <algorithm>
#include <optional>

#include "graph/support/check.h"
#include "kernels/cpu/common.h"
#include "kernels/cpu/region_machine.h"
#include "kernels/cpu/register.h"

namespace sluice::kernels::cpu {
namespace {

constexpr int kMaxHandles = 4, kMaxOperands = 128;

class Update final : public Kernel {
 public:
  Update(const KernelSpec& spec, std::unique_ptr<RegionMachine> machine, int handles)
      : machine_(std::move(machine)), handles_(handles), elements_(spec.inputs[0].elements()) {
    scratch_bytes = machine_->scratch_bytes();
  }
  void run(KernelRun& r) const override {
    // Locked in one order everywhere, so that two updates of the same variables never wait for each other.
    int order[kMaxHandles];
    for (int i = 0; i < handles_; ++i) order[i] = i;
    // By insertion: four handles at most, and std::sort's threshold confuses GCC 12's bounds warning.
    for (int i = 1; i < handles_; ++i)
      for (int k = i; k > 0 && &r.variable(order[k]) < &r.variable(order[k - 1]); --k)
        std::swap(order[k], order[k - 1]);
    std::optional<runtime::Variable::WriteGuard> guards[kMaxHandles];
    for (int i = 0; i < handles_; ++i) guards[order[i]].emplace(r.variable(order[i]));
    const void* in[kMaxOperands];
    void* out[kMaxHandles];
    for (int i = 0; i < handles_; ++i) {
      runtime::VariableBuffer& buffer = guards[i]->buffer();
      SLUICE_REQUIRE(buffer.spec.elements() == elements_ && buffer.spec.layout.plain(), Code::kAborted,
                     "Variable ", r.variable(i).name(), " became ", buffer.spec.str(),
                     " while the run was under way");
      in[i] = out[i] = buffer.buffer.data();
    }
    for (int i = handles_; i < r.num_inputs(); ++i) in[i] = r.in_data(i);
    machine_->run(in, out, r.scratch(), r.queue());
  }

 private:
  std::unique_ptr<RegionMachine> machine_;
  int handles_;
  int64_t elements_;
};

std::unique_ptr<Kernel> make_update(const KernelSpec& spec, Refusal& refusal) {
  const int handles = static_cast<int>(spec.attr<int64_t>("handles"));
  if (!spec.region || handles > kMaxHandles || spec.inputs.size() > kMaxOperands) {
    refusal.reason = "no program, or too many operands";
    return nullptr;
  }
  auto machine = RegionMachine::compile(*spec.region, fns(), spec.threads, refusal.reason);
  if (!machine) return nullptr;
  for (int i = 0; i < handles; ++i) {
    const auto& pairs = machine->may_share();
    SLUICE_CHECK(std::find(pairs.begin(), pairs.end(), std::pair(i, i)) != pairs.end(),
                 "an update that reads its variable after writing it: ", spec.region->str());
  }
  return std::make_unique<Update>(spec, std::move(machine), handles);
}

}  // namespace

void register_update(KernelRegistry& r) {
  r.add({.op = "_Update", .name = "tiles", .make = make_update, .priority = kVectorPriority});
}

}  // namespace sluice::kernels::cpu
