#include "dsl/train/coordinator.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "graph/support/log.h"

namespace sluice::dsl::train {

struct Coordinator::Impl {
  struct Thread {
    std::thread thread;
    bool done = false;  // guarded by mutex
  };

  std::vector<Code> clean_stop;
  mutable std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  std::exception_ptr exception;
  bool joined = false;
  std::list<Thread> threads;

  bool all_done() const {
    return std::all_of(threads.begin(), threads.end(), [](const Thread& t) { return t.done; });
  }
  // Threads that have ended, out of the list and joined.
  void reap(std::unique_lock<std::mutex>& lock) {
    std::list<Thread> ended;
    for (auto it = threads.begin(); it != threads.end();) {
      auto next = std::next(it);
      if (it->done) ended.splice(ended.end(), threads, it);
      it = next;
    }
    lock.unlock();
    for (Thread& t : ended) t.thread.join();
    lock.lock();
  }
};

namespace {

std::string text_of(const std::exception_ptr& e) {
  try {
    std::rethrow_exception(e);
  } catch (const std::exception& x) {
    return x.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}

}  // namespace

Coordinator::Coordinator(std::vector<Code> clean_stop) : impl_(std::make_unique<Impl>()) {
  impl_->clean_stop = std::move(clean_stop);
}

Coordinator::~Coordinator() {
  request_stop();
  std::unique_lock lock(impl_->mutex);
  impl_->changed.wait(lock, [&] { return impl_->all_done(); });
  impl_->reap(lock);
}

void Coordinator::start_thread(std::function<void()> body) {
  std::lock_guard lock(impl_->mutex);
  Impl::Thread& t = impl_->threads.emplace_back();
  auto run = [this, &t, body = std::move(body)]() mutable {
    try {
      body();
    } catch (...) {
      std::exception_ptr e = std::current_exception();
      try {
        request_stop(e);
      } catch (...) {
        log_error("A thread failed after its coordinator had joined: ", text_of(e));
      }
    }
    body = nullptr;
    std::lock_guard done(impl_->mutex);
    t.done = true;
    impl_->changed.notify_all();
  };
  try {
    t.thread = std::thread(std::move(run));
  } catch (...) {  // no thread could be made: nobody may wait for it
    impl_->threads.pop_back();
    throw;
  }
}

std::exception_ptr Coordinator::filter(std::exception_ptr e) const {
  if (!e) return e;
  try {
    std::rethrow_exception(e);
  } catch (const Error& error) {
    const auto& clean = impl_->clean_stop;
    if (std::find(clean.begin(), clean.end(), error.code()) != clean.end()) return nullptr;
  } catch (...) {
  }
  return e;
}

void Coordinator::request_stop(std::exception_ptr exception) {
  exception = filter(std::move(exception));
  {
    std::lock_guard lock(impl_->mutex);
    if (!impl_->joined || !exception) {
      if (!stop_.load(std::memory_order_relaxed) && exception && !impl_->exception) {
        log_info("Error reported to Coordinator: ", text_of(exception));
        impl_->exception = exception;
        failed_.store(true, std::memory_order_release);
      }
      stop_.store(true, std::memory_order_release);
      impl_->changed.notify_all();
      return;
    }
  }
  // Nobody is going to ask for it any more.
  if (exception) std::rethrow_exception(exception);
}

void Coordinator::clear_stop() {
  std::lock_guard lock(impl_->mutex);
  impl_->joined = false;
  impl_->exception = nullptr;
  failed_.store(false, std::memory_order_release);
  stop_.store(false, std::memory_order_release);
}

void Coordinator::stop_on_exception(const std::function<void()>& body) {
  try {
    body();
  } catch (...) {
    request_stop(std::current_exception());
  }
}

bool Coordinator::wait_for_stop(std::optional<double> timeout_secs) {
  std::unique_lock lock(impl_->mutex);
  if (!timeout_secs) {
    impl_->changed.wait(lock, [&] { return should_stop(); });
    return true;
  }
  return impl_->changed.wait_for(lock, std::chrono::duration<double>(*timeout_secs),
                                 [&] { return should_stop(); });
}

void Coordinator::join(const JoinOptions& o) {
  std::unique_lock lock(impl_->mutex);
  impl_->changed.wait(lock, [&] { return should_stop() || impl_->all_done(); });
  impl_->changed.wait_for(lock, std::chrono::duration<double>(std::max(0.0, o.stop_grace_period_secs)),
                          [&] { return impl_->all_done(); });
  impl_->reap(lock);
  const size_t alive = impl_->threads.size();
  impl_->joined = true;
  if (impl_->exception) std::rethrow_exception(impl_->exception);
  if (alive == 0) return;
  const std::string text = cat("Coordinator stopped with threads still running: ", alive);
  SLUICE_REQUIRE(o.ignore_live_threads, Code::kFailedPrecondition, text);
  log_info(text);
}

bool Coordinator::joined() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->joined;
}

void Coordinator::rethrow() const {
  std::exception_ptr e;
  {
    std::lock_guard lock(impl_->mutex);
    e = impl_->exception;
  }
  if (e) std::rethrow_exception(e);
}

}  // namespace sluice::dsl::train
