#include "runtime/session.h"

namespace sluice::runtime {

CancelToken CancelToken::watch(const CancelToken& caller, const CancelToken& session,
                               std::chrono::steady_clock::time_point deadline) {
  CancelToken t = caller;
  t.session_ = session.flag_;
  t.deadline_ = std::min(deadline, caller.deadline_);
  return t;
}

void CancelToken::cancel() {
  SLUICE_REQUIRE(flag_ != nullptr, Code::kFailedPrecondition,
                 "This token cannot be cancelled; set RunOptions::cancel to a CancelToken of yours");
  flag_->store(1, std::memory_order_release);
}

CancelToken::Reason CancelToken::reason() const {
  if (flag_ && flag_->load(std::memory_order_acquire)) return Reason::kCancelled;
  if (failed_ && failed_->load(std::memory_order_acquire)) return Reason::kCancelled;
  if (session_ && session_->load(std::memory_order_acquire)) return Reason::kClosed;
  if (deadline_ != std::chrono::steady_clock::time_point::max() &&
      std::chrono::steady_clock::now() >= deadline_)
    return Reason::kDeadline;
  return Reason::kNone;
}

void CancelToken::check() const {
  switch (reason()) {
    case Reason::kNone:
      return;
    case Reason::kCancelled:
      throw_error(Code::kCancelled, "Run call was cancelled");
    case Reason::kClosed:
      throw_error(Code::kCancelled, "Run call was cancelled: the session was closed");
    case Reason::kDeadline:
      throw_error(Code::kDeadlineExceeded, "Timed out waiting for notification");
  }
}

}  // namespace sluice::runtime
