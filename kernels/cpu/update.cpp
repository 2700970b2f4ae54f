// "_Update": one elementwise loop over many tensors' state, in place (runtime/plan/updates.cpp makes it,
// group_updates.cpp joins them). Inputs, in this order:
//
//   of each of `tensors`: its `handles` variables, then its other whole operands     (program order)
//   the program's scalar operands, shared by all tensors                             (program order)
//
// Operand i and output i of the program, i < handles, are variable i's bytes, whatever buffer it has by then.
// All tensors are cut into the same chunks and shared out over the team together, so that a step with a
// hundred small variables costs one hand-off, not a hundred.

#include <algorithm>
#include <optional>

#include "graph/support/check.h"
#include "kernels/cpu/common.h"
#include "kernels/cpu/region_machine.h"
#include "kernels/cpu/register.h"

namespace sluice::kernels::cpu {
namespace {

constexpr int kMaxOperands = 128;
// Variables locked at a time. Tensors beyond that take their turn after these: what one run of the loop over
// the team is worth is had long before, and the lists below are on the stack.
constexpr int kMaxLocked = 60;

class Update final : public Kernel {
 public:
  Update(const KernelSpec& spec, std::unique_ptr<RegionMachine> machine, int handles, int tensors)
      : machine_(std::move(machine)), handles_(handles), num_inputs_(static_cast<int>(spec.inputs.size())) {
    scratch_bytes = machine_->scratch_bytes();
    for (const runtime::RegionInput& in : spec.region->inputs)
      is_whole_.push_back(in.extent == runtime::RegionExtent::kWhole);
    wholes_ = static_cast<int>(std::count(is_whole_.begin(), is_whole_.end(), 1));
    const int operands = static_cast<int>(is_whole_.size());
    SLUICE_CHECK(tensors * wholes_ + operands - wholes_ == num_inputs_, "an update of ", tensors,
                 " tensors has ", num_inputs_, " inputs");
    for (int t = 0; t < tensors; ++t)
      counts_.push_back(spec.inputs[static_cast<size_t>(t * wholes_)].elements());
    per_turn_ = std::max(1, std::min(kMaxLocked / handles, kMaxOperands / operands));
    for (int first = 0; first < tensors; first += per_turn_) {
      Turn turn{first, std::min(per_turn_, tensors - first), {}};
      for (int t = first; t < first + turn.tensors; ++t)
        for (int h = 0; h < handles; ++h) turn.lock_order.push_back(t * wholes_ + h);
      // Locked in one order everywhere, so that two updates of the same variables never wait for each other.
      std::sort(turn.lock_order.begin(), turn.lock_order.end(), [&](int a, int b) {
        return std::less<>()(spec.variables[static_cast<size_t>(a)].get(),
                             spec.variables[static_cast<size_t>(b)].get());
      });
      turns_.push_back(std::move(turn));
    }
  }

  void run(KernelRun& r) const override {
    for (const Turn& turn : turns_) run_turn(r, turn);
  }

 private:
  struct Turn {
    int first, tensors;
    std::vector<int> lock_order;  // inputs
  };

  void run_turn(KernelRun& r, const Turn& turn) const {
    std::optional<runtime::Variable::WriteGuard> guards[kMaxLocked];
    const auto guard = [&](int input) -> std::optional<runtime::Variable::WriteGuard>& {
      const int t = input / wholes_ - turn.first;
      return guards[t * handles_ + input % wholes_];
    };
    for (int input : turn.lock_order) guard(input).emplace(r.variable(input));
    const void* in[kMaxOperands];
    void* out[kMaxLocked];
    RegionMachine::Tensor tensors[kMaxLocked];
    const int operands = static_cast<int>(is_whole_.size());
    for (int k = 0; k < turn.tensors; ++k) {
      const int t = turn.first + k;
      const void** mine = in + k * operands;
      int whole = t * wholes_, scalar = num_inputs_ - (operands - wholes_);
      for (int i = 0; i < operands; ++i) {
        const int input = is_whole_[static_cast<size_t>(i)] ? whole++ : scalar++;
        mine[i] = i < handles_ ? bytes_of(r, *guard(input), input, t) : r.in_data(input);
      }
      for (int h = 0; h < handles_; ++h) out[k * handles_ + h] = const_cast<void*>(mine[h]);
      tensors[k] = {mine, out + k * handles_, counts_[static_cast<size_t>(t)], 0};
    }
    machine_->run(tensors, turn.tensors, r.scratch(), r.queue());
  }

  const void* bytes_of(const KernelRun& r, runtime::Variable::WriteGuard& guard, int input, int t) const {
    runtime::VariableBuffer& buffer = guard.buffer();
    SLUICE_REQUIRE(buffer.spec.elements() == counts_[static_cast<size_t>(t)] && buffer.spec.layout.plain(),
                   Code::kAborted, "Variable ", r.variable(input).name(), " became ", buffer.spec.str(),
                   " while the run was under way");
    return buffer.buffer.data();
  }

  std::unique_ptr<RegionMachine> machine_;
  int handles_, num_inputs_;
  int wholes_ = 0, per_turn_ = 1;
  std::vector<char> is_whole_;   // by operand of the program
  std::vector<int64_t> counts_;  // elements, by tensor
  std::vector<Turn> turns_;
};

std::unique_ptr<Kernel> make_update(const KernelSpec& spec, Refusal& refusal) {
  const int handles = static_cast<int>(spec.attr<int64_t>("handles"));
  const int tensors = static_cast<int>(spec.attr<int64_t>("tensors"));
  if (!spec.region || handles > kMaxLocked || spec.region->inputs.size() > kMaxOperands) {
    refusal.reason = "no program, or too many operands";
    return nullptr;
  }
  auto machine = RegionMachine::compile(*spec.region, fns(), spec.threads, refusal.reason);
  if (!machine) return nullptr;
  if (!machine->flat()) {
    refusal.reason = "not elementwise";
    return nullptr;
  }
  for (int i = 0; i < handles; ++i) {
    const auto& pairs = machine->may_share();
    SLUICE_CHECK(std::find(pairs.begin(), pairs.end(), std::pair(i, i)) != pairs.end(),
                 "an update that reads its variable after writing it: ", spec.region->str());
  }
  return std::make_unique<Update>(spec, std::move(machine), handles, tensors);
}

}  // namespace

void register_update(KernelRegistry& r) {
  r.add({.op = "_Update", .name = "tiles", .make = make_update, .priority = kVectorPriority});
}

}  // namespace sluice::kernels::cpu
