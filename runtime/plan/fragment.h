#pragma once
// One op as a piece of a loop region: which program computes it over which iteration space. Fragments of the
// same space are joined by the pass in regions.cpp. An op has a fragment when every operand is float, int32
// or bool of known dims and lies whole, by column, by row or as a scalar in the space. Pure; one thread.

#include <optional>
#include <vector>

#include "runtime/plan/ir.h"
#include "runtime/region_writer.h"

namespace sluice::runtime::plan {

/// What fragments must agree on to share a loop.
struct RegionSpace {
  int64_t count = 0;           // elements of a whole operand
  int64_t cols = 0;            // 0: any (only whole and scalar operands so far)
  bool channels_last = false;  // operands are NCHW, columns are channels
  Dims dims;                   // of whole operands where channels_last
};

struct Fragment {
  RegionSpace space;
  RegionProgram program;  // its rows and cols are those of `space` where that knows them
  std::vector<ValueId> inputs, outputs;
};

/// Nullopt when the op cannot be part of a loop.
std::optional<Fragment> fragment_of(const PlanGraph& g, const PlanOp& op, const BuildOptions& options);

/// The space both fit into; nullopt when they do not.
std::optional<RegionSpace> join_spaces(const RegionSpace& a, const RegionSpace& b);

/// The value whose bytes `v` is: views taken off.
ValueId source_of(const PlanGraph& g, ValueId v);

/// Joins programs of one space: registers that an earlier fragment computed are reused, constants become
/// immediates, equal inputs are one.
class RegionJoiner {
 public:
  RegionJoiner(const PlanGraph& g, const RegionSpace& space);
  void add(const Fragment& f);
  /// True when a fragment made this value (not by a reduction).
  bool has(ValueId v) const;
  /// Makes the value, which some fragment computed, an output of the whole.
  void emit(ValueId v);
  /// Reads input value `v` from register `reg` from now on (an operand that a variable supplies).
  int add_input(ValueId v, RegionExtent extent, DType dtype);
  int inputs() const { return static_cast<int>(input_values_.size()); }

  RegionProgram take(std::vector<ValueId>& inputs, std::vector<ValueId>& outputs);

 private:
  struct Made {
    ValueId value = -1;
    int reg = -1;  // inputs are numbered from 0, instructions from kFirst
    RegionOutput output;
  };
  static constexpr int kFirst = 1 << 20;
  int find_register(ValueId v, RegionExtent extent);

  const PlanGraph& g_;
  RegionSpace space_;
  std::vector<RegionInput> inputs_;
  std::vector<ValueId> input_values_;
  std::vector<RegionInst> insts_;
  std::vector<Made> made_;
  std::vector<std::pair<ValueId, RegionOutput>> outputs_;
};

}  // namespace sluice::runtime::plan
