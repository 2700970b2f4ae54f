#include "graph/scopes.h"
#include "graph/support/check.h"
#include "graph/support/log.h"
#include "runtime/plan/stages.h"

namespace sluice::runtime::plan {
namespace {

constexpr const char* kCpu = "/job:localhost/replica:0/task:0/device:CPU:0";

// Job and task name this process, whatever the file calls it: sessions here are local.
bool is_here(const std::string& device) {
  if (device.empty()) return true;
  const graph::DeviceSpec spec = graph::DeviceSpec::parse(device);
  return (spec.type.empty() || spec.type == "CPU") && spec.index <= 0;
}

}  // namespace

void check_placement(const std::vector<graph::Node*>& nodes, const BuildOptions& options) {
  int moved = 0;
  std::string example;
  for (const graph::Node* n : nodes) {
    if (options.log_placement) log_info(n->name(), ": (", n->op(), "): ", kCpu);
    if (is_here(n->device())) continue;
    if (!options.allow_soft_placement)
      throw_error(Code::kInvalidArgument,
                  cat("Cannot assign a device for operation ", n->name(),
                      ": Operation was explicitly assigned to ", n->device(), " but available devices are [ ",
                      kCpu, " ]. Make sure the device specification refers to a valid device."),
                  n->name(), n->loc());
    if (moved++ == 0) example = n->device();
  }
  if (moved > 0)
    log_info(moved, " nodes asked for devices that are not here (", example, "); they run on ", kCpu);
}

}  // namespace sluice::runtime::plan
