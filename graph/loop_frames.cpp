#include "graph/loop_frames.h"

#include <map>

#include "graph/support/cat.h"

namespace sluice::graph {
namespace {

// Frames form a tree; frame 0 is the graph outside all loops.
struct Frame {
  int parent = -1;
  std::string_view name;
};

std::string frame_text(const Frame& f) { return f.parent < 0 ? "no loop" : cat("loop '", f.name, "'"); }

}  // namespace

std::optional<FrameFault> find_frame_fault(std::span<const FrameNode> nodes, std::span<const int> order) {
  std::vector<Frame> frames(1);
  std::map<std::pair<int, std::string_view>, int> children;
  std::vector<int> frame_of(nodes.size(), 0);
  for (int i : order) {
    const FrameNode& n = nodes[static_cast<size_t>(i)];
    int frame = 0, first = -1;
    for (int in : n.inputs) {
      const int from = frame_of[static_cast<size_t>(in)];
      if (first >= 0 && from != frame)
        return FrameFault{i, cat("node '", n.name, "' has inputs from different frames: '",
                                 nodes[static_cast<size_t>(first)].name, "' is in ",
                                 frame_text(frames[static_cast<size_t>(frame)]), " and '",
                                 nodes[static_cast<size_t>(in)].name, "' in ",
                                 frame_text(frames[static_cast<size_t>(from)]))};
      frame = from;
      first = in;
    }
    if (n.role == LoopRole::kEnters) {
      const auto [at, fresh] = children.try_emplace({frame, n.frame_name}, static_cast<int>(frames.size()));
      if (fresh) frames.push_back({frame, n.frame_name});
      frame = at->second;
    } else if (n.role != LoopRole::kStays && frame == 0) {
      return FrameFault{i, cat("node '", n.name, "' ",
                               n.role == LoopRole::kLeaves ? "leaves a loop" : "starts a loop's next turn",
                               ", but stands in no loop: no Enter leads to it")};
    } else if (n.role == LoopRole::kLeaves) {
      frame = frames[static_cast<size_t>(frame)].parent;
    }
    frame_of[static_cast<size_t>(i)] = frame;
  }
  return std::nullopt;
}

}  // namespace sluice::graph
