#include "dsl/train/clock.h"

#include <chrono>
#include <thread>

namespace sluice::dsl::train {
namespace {

class SystemClock final : public Clock {
 public:
  double now() override {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  void sleep(double seconds) override {
    if (seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }
};

}  // namespace

Clock& Clock::system() {
  static SystemClock clock;
  return clock;
}

double ManualClock::now() {
  std::lock_guard lock(mutex_);
  return now_;
}

void ManualClock::advance(double seconds) {
  std::lock_guard lock(mutex_);
  now_ += seconds;
}

}  // namespace sluice::dsl::train
