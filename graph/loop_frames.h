#pragma once
// Loop frames of TensorFlow 1's control flow: Enter opens a frame, Exit leaves it, every other node stands in
// the frame of its inputs. A graph whose Exit has no Enter, or whose node mixes frames, can never run.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/op.h"

namespace sluice::graph {

/// What a node does with loop frames. Told by the op; defined beside the ops.
enum class LoopRole { kStays, kEnters, kLeaves, kRepeats };
LoopRole loop_role(const OpDef& def);

/// A node as the check sees it. Views must outlive the call.
struct FrameNode {
  std::string_view name;
  LoopRole role = LoopRole::kStays;
  std::string_view frame_name;  // of an Enter
  std::vector<int> inputs;      // positions of data and control inputs; back edges left out
};

struct FrameFault {
  int node = 0;  // position
  std::string rule;
};

/// The first node that breaks the rule, nullopt when all is well. `order`: positions, inputs first.
std::optional<FrameFault> find_frame_fault(std::span<const FrameNode> nodes, std::span<const int> order);

}  // namespace sluice::graph
