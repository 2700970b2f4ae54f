#include "runtime/trace.h"

#include <algorithm>
#include <chrono>

#include "graph/support/file.h"
#include "runtime/plan/plan.h"

namespace sluice::runtime {
namespace {

std::string quoted(const std::string& s) {
  std::string r = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') r += '\\';
    r += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return r + '"';
}

}  // namespace

StatsCollector::StatsCollector(RunMetadata& metadata) : metadata_(metadata) {
  using namespace std::chrono;
  start_ns_ = duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
  metadata_.start_unix_us = duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
}

void StatsCollector::step_ran(const Plan& plan, const Step& step, const StepTime& time) {
  StepStats s;
  s.name = step.name;
  s.op = step.op;
  s.kernel = step.candidate;
  s.nodes = step.nodes;
  s.start_us = (time.start_ns - start_ns_) / 1000;
  s.end_us = (time.end_ns - start_ns_) / 1000;
  s.thread = time.thread;
  for (plan::ValueId v : step.outputs) {
    const plan::PlanValue& value = plan.value(v);
    if (value.known_dims && value.storage != plan::Storage::kHandle) s.bytes += value.spec.bytes();
  }
  std::lock_guard lock(mutex_);
  metadata_.steps.push_back(std::move(s));
}

std::string chrome_trace(const RunMetadata& metadata) {
  constexpr int kPid = 0;
  std::string s = "{\"traceEvents\": [\n";
  s += cat("{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":", kPid,
           ",\"args\":{\"name\":\"/job:localhost/replica:0/task:0/device:CPU:0 Compute\"}}");
  for (const StepStats& step : metadata.steps) {
    std::string nodes;
    for (const std::string& n : step.nodes) nodes += cat(nodes.empty() ? "" : " ", n);
    s += cat(",\n{\"ph\":\"X\",\"cat\":\"Op\",\"name\":", quoted(step.op), ",\"pid\":", kPid,
             ",\"tid\":", step.thread, ",\"ts\":", metadata.start_unix_us + step.start_us,
             ",\"dur\":", std::max<int64_t>(step.end_us - step.start_us, 0),
             ",\"args\":{\"name\":", quoted(step.name), ",\"op\":", quoted(step.op),
             ",\"kernel\":", quoted(step.kernel), ",\"nodes\":", quoted(nodes), ",\"bytes\":", step.bytes,
             "}}");
  }
  return s + "\n]}\n";
}

void write_chrome_trace(const RunMetadata& metadata, const std::string& path) {
  write_file_atomically(path, chrome_trace(metadata));
}

}  // namespace sluice::runtime
