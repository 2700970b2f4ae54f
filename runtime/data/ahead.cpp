#include "runtime/data/ahead.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "runtime/data/state.h"

namespace sluice::runtime::data {
namespace {

using Clock = std::chrono::steady_clock;

// A claim of elements is sized so that it takes about this long: locks are then rare, and no reader waits
// long for its first element.
constexpr auto kClaimTime = std::chrono::microseconds(100);
constexpr int kMaxClaim = 32;
constexpr auto kAskCancel = std::chrono::milliseconds(5);

class AheadIterator final : public Iterator {
 public:
  AheadIterator(std::unique_ptr<Iterator> input, AheadOptions options)
      : o_(std::move(options)), input_(std::move(input)) {
    const int threads = std::max(o_.threads, 1);
    const int slots = o_.fn ? std::max(o_.depth, threads) + threads * kMaxClaim : std::max(o_.depth, 1);
    slots_.resize(static_cast<size_t>(slots));
    for (int i = slots; i-- > 0;) free_.push_back(i);
  }

  ~AheadIterator() override {
    stop_.cancel();
    {
      std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    work_.notify_all();
    for (std::thread& t : threads_) t.join();
  }

  bool next(Element& out, const CancelToken& cancel) override {
    if (mine_.empty() && !refill(cancel)) return false;
    const int id = mine_.front();
    mine_.pop_front();
    Slot& slot = slots_[static_cast<size_t>(id)];
    used_.push_back(id);
    if (slot.error) {
      const std::exception_ptr error = std::exchange(slot.error, nullptr);
      if (mine_.empty()) give_back();
      std::rethrow_exception(error);
    }
    std::swap(out, slot.out);
    if (mine_.empty()) give_back();
    return true;
  }

  void save(StateWriter& out) override {
    std::unique_lock lock(mutex_);
    ++paused_;
    settled_.wait(lock, [&] { return !pulling_ && running_ == 0; });
    out.put(static_cast<int64_t>(mine_.size() + line_.size()));
    auto put = [&](int id) {
      const Slot& slot = slots_[static_cast<size_t>(id)];
      out.put_error(slot.error);
      if (!slot.error) out.put_element(slot.out);
    };
    for (int id : mine_) put(id);
    for (int id : line_) put(id);
    out.put(ended_);
    input_->save(out);
    --paused_;
    lock.unlock();
    work_.notify_all();
  }

  void restore(StateReader& in) override {
    // As many as there are, whatever depth this iterator has: they come from another.
    const int64_t waiting = in.get(0, INT32_MAX);
    for (int64_t i = 0; i < waiting; ++i) {
      Slot slot;
      slot.error = in.get_error();
      if (!slot.error) in.get_element(slot.out);
      slot.done = true;
      if (free_.empty()) {
        slots_.push_back(std::move(slot));
        line_.push_back(static_cast<int>(slots_.size()) - 1);
      } else {
        slots_[static_cast<size_t>(free_.back())] = std::move(slot);
        line_.push_back(free_.back());
        free_.pop_back();
      }
    }
    ended_ = in.get(0, 1) != 0;
    input_->restore(in);
  }

 private:
  struct Slot {
    Element in, out;
    std::exception_ptr error;
    bool done = false;  // guarded by mutex_; the rest belongs to whoever holds the slot
  };

  // Takes over all that is ready; false at the end.
  bool refill(const CancelToken& cancel) {
    std::unique_lock lock(mutex_);
    if (threads_.empty() && !ended_)
      for (int i = 0; i < std::max(o_.threads, 1); ++i) threads_.emplace_back([this] { work(); });
    auto ready = [&] { return !line_.empty() && slots_[static_cast<size_t>(line_.front())].done; };
    auto over = [&] { return ended_ && line_.empty() && !pulling_ && running_ == 0; };
    while (!ready() && !over()) {
      filled_.wait_for(lock, kAskCancel, [&] { return ready() || over(); });
      if (!ready() && !over()) cancel.check();
    }
    // A shallow queue gives slot by slot, so that the thread may go on at once.
    while (ready()) {
      mine_.push_back(line_.front());
      line_.pop_front();
      if (!o_.fn && o_.depth < kMaxClaim) break;
    }
    return !mine_.empty();
  }

  void give_back() {
    {
      std::lock_guard lock(mutex_);
      free_.insert(free_.end(), used_.begin(), used_.end());
    }
    used_.clear();
    work_.notify_all();
  }

  void work() {
    std::vector<int> claim;
    // Deep queues of cheap elements may fill in larger pieces.
    const int most = o_.fn ? kMaxClaim : std::clamp(o_.depth / 8, 1, kMaxClaim);
    int wanted = 1;
    std::unique_lock lock(mutex_);
    for (;;) {
      // Cheap functions may fill every slot, dear ones only what was asked for.
      auto may_claim = [&] {
        const auto waiting = static_cast<int>(slots_.size() - free_.size());
        return !free_.empty() &&
               (!o_.fn || wanted > 1 || waiting < std::max(o_.depth, o_.threads) + o_.threads);
      };
      work_.wait(lock, [&] { return stopped_ || (!ended_ && paused_ == 0 && !pulling_ && may_claim()); });
      if (stopped_) return;
      pulling_ = true;
      claim.clear();
      while (static_cast<int>(claim.size()) < wanted && !free_.empty()) {
        claim.push_back(free_.back());
        free_.pop_back();
      }
      lock.unlock();
      const auto start = Clock::now();
      size_t got = 0;
      const bool end = pull(claim, got);
      lock.lock();
      pulling_ = false;
      for (size_t i = got; i < claim.size(); ++i) free_.push_back(claim[i]);
      claim.resize(got);
      if (end) ended_ = true;
      for (int id : claim) {
        slots_[static_cast<size_t>(id)].done = !o_.fn;
        if (o_.ordered || !o_.fn) line_.push_back(id);
      }
      auto size_next_claim = [&] {
        const auto took = Clock::now() - start;
        if (took < kClaimTime / 2 && static_cast<int>(got) == wanted) wanted = std::min(2 * wanted, most);
        if (took > 2 * kClaimTime) wanted = std::max(wanted / 2, 1);
      };
      if (!o_.fn) {
        size_next_claim();
        if (paused_ > 0) settled_.notify_all();
        filled_.notify_one();
        continue;
      }
      ++running_;
      lock.unlock();
      if (o_.threads > 1 || end) work_.notify_all();
      for (int id : claim) apply(slots_[static_cast<size_t>(id)]);
      size_next_claim();
      lock.lock();
      --running_;
      for (int id : claim) {
        slots_[static_cast<size_t>(id)].done = true;
        if (!o_.ordered) line_.push_back(id);
      }
      if (paused_ > 0) settled_.notify_all();
      filled_.notify_one();
    }
  }

  // Reads elements into the slots; true at the end of the input.
  bool pull(const std::vector<int>& claim, size_t& got) {
    for (int id : claim) {
      Slot& slot = slots_[static_cast<size_t>(id)];
      try {
        if (!input_->next(o_.fn ? slot.in : slot.out, stop_)) return true;
      } catch (...) {
        slot.error = std::current_exception();
        if (stop_.cancelled()) return false;
      }
      ++got;
    }
    return false;
  }

  void apply(Slot& slot) const {
    if (slot.error) return;
    try {
      const Origin& origin = slot.in.origin;
      if (slot.out.size() > o_.spec.size()) slot.out.values.resize(o_.spec.size());
      try {
        o_.fn(slot.in, slot.out);
        check_element(o_.spec, slot.out, "The map function");
      } catch (const Error& e) {
        rethrow_at(e, origin);
      }
      slot.out.origin = origin;
    } catch (...) {
      slot.error = std::current_exception();
    }
  }

  const AheadOptions o_;
  std::unique_ptr<Iterator> input_;  // used by the one thread that set pulling_
  CancelToken stop_;                 // cancelled when this iterator goes
  std::mutex mutex_;                 // guards all below up to the line
  std::condition_variable work_, filled_, settled_;
  std::deque<Slot> slots_;  // a deque: restoring may add some
  std::vector<int> free_;
  std::deque<int> line_;  // in the order of delivery
  bool pulling_ = false, ended_ = false, stopped_ = false;
  int running_ = 0, paused_ = 0;
  // The reader's own.
  std::deque<int> mine_;
  std::vector<int> used_;
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<Iterator> read_ahead(std::unique_ptr<Iterator> input, AheadOptions options) {
  return std::make_unique<AheadIterator>(std::move(input), std::move(options));
}

}  // namespace sluice::runtime::data
