#include <omp.h>

#include "runtime/work_queue_impl.h"

namespace sluice::runtime {
namespace {

class OpenMpQueue final : public WorkQueue {
 public:
  explicit OpenMpQueue(int width) : width_(width) {}
  int width() const override { return width_; }

  void run_chunks(int64_t count, int64_t grain, Body body, void* context) override {
    // One chunk, or a call from inside a loop: opening a team would only cost.
    if (count <= grain || omp_in_parallel()) {
      for (int64_t b = 0; b < count; b += grain) body(context, b, b + grain < count ? b + grain : count, 0);
      return;
    }
    shares_.begin(width_, count, grain, body, context);
#pragma omp parallel num_threads(width_)
    shares_.work(omp_get_thread_num());
    shares_.rethrow();
  }

 private:
  const int width_;
  ChunkShares shares_;
};

}  // namespace

TeamWidth::TeamWidth(int width) : former_(omp_get_max_threads()) {
  if (former_ != width) omp_set_num_threads(width);
}
TeamWidth::~TeamWidth() {
  if (omp_get_max_threads() != former_) omp_set_num_threads(former_);
}

std::unique_ptr<WorkQueue> make_openmp_queue(int width) { return std::make_unique<OpenMpQueue>(width); }

}  // namespace sluice::runtime
