// RunMetadata as TensorBoard's graph page reads it (graph-and-training §7.9): one entry a plan step, under
// the first graph node that it stands for, so that the page finds it.
#include <algorithm>
#include <map>

#include "graph/proto/event.pb.h"
#include "runtime/io/events.h"
#include "runtime/session.h"

namespace sluice::runtime::io {

namespace {

constexpr const char* kDevice = "/job:localhost/replica:0/task:0/device:CPU:0";

}  // namespace

std::string run_metadata_to_bytes(const RunMetadata& metadata) {
  proto::RunMetadata out;
  proto::DeviceStepStats& device = *out.mutable_step_stats()->add_dev_stats();
  device.set_device(kDevice);
  std::map<int, bool> threads;
  for (const StepStats& step : metadata.steps) {
    const auto duration = std::max<int64_t>(step.end_us - step.start_us, 0);
    // A fused step is told once; the other nodes in it appear with no time of their own.
    for (size_t i = 0; i < std::max<size_t>(step.nodes.size(), 1); ++i) {
      proto::NodeExecStats& s = *device.add_node_stats();
      s.set_node_name(step.nodes.empty() ? step.name : step.nodes[i]);
      s.set_all_start_micros(metadata.start_unix_us + step.start_us);
      s.set_scheduled_micros(metadata.start_unix_us + step.start_us);
      s.set_timeline_label(cat(s.node_name(), " = ", step.op, "() [", step.kernel, "]"));
      s.set_thread_id(static_cast<uint32_t>(step.thread));
      if (i > 0) continue;
      s.set_op_end_rel_micros(duration);
      s.set_all_end_rel_micros(duration);
      if (step.bytes == 0) continue;
      proto::AllocatorMemoryUsed& m = *s.add_memory();
      m.set_allocator_name("cpu");
      m.set_total_bytes(static_cast<int64_t>(step.bytes));
      m.set_peak_bytes(static_cast<int64_t>(step.bytes));
    }
    threads[step.thread] = true;
  }
  for (const auto& [thread, seen] : threads)
    (*device.mutable_thread_names())[static_cast<uint32_t>(thread)] = cat("worker ", thread);
  return out.SerializeAsString();
}

}  // namespace sluice::runtime::io
