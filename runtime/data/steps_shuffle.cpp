// Shuffle. Two forms with the same order of elements: over a dataset that can be read by number the buffer
// holds numbers, otherwise elements.

#include <algorithm>

#include "runtime/data/random.h"
#include "runtime/data/state.h"
#include "runtime/data/steps.h"

namespace sluice::runtime::data {
namespace {

class ShuffleDataset final : public Dataset {
 public:
  ShuffleDataset(DatasetPtr input, ShuffleOptions o) : Dataset(input->spec(), {input}), o_(o) {}

  Random random(const IterateContext& context) const {
    uint64_t seed;
    if (o_.seed) {
      seed = *o_.seed;
    } else {
      const auto it = context.shared->ordinal.find(this);
      seed = Random(context.shared->seed, it == context.shared->ordinal.end() ? 0 : it->second).bits();
    }
    return Random(seed, o_.reshuffle_each_iteration ? context.epoch : 0);
  }

  // The buffer's places [0, count) are taken; one is drawn, the last takes its place.
  class ByNumber final : public Iterator {
   public:
    ByNumber(const ShuffleDataset& d, Random random)
        : input_(*d.inputs()[0]),
          size_(input_.cardinality()),
          capacity_(std::min(d.o_.buffer, size_)),
          random_(random) {}
    bool next(Element& out, const CancelToken&) override {
      while (static_cast<int64_t>(buffer_.size()) < capacity_ && at_ < size_) buffer_.push_back(at_++);
      if (buffer_.empty()) return false;
      int64_t& drawn = buffer_[random_.below(buffer_.size())];
      input_.read(drawn, out);
      drawn = buffer_.back();
      buffer_.pop_back();
      return true;
    }
    void save(StateWriter& out) override {
      out.put_u64(random_.state());
      out.put(at_);
      out.put(static_cast<int64_t>(buffer_.size()));
      for (int64_t i : buffer_) out.put(i);
    }
    void restore(StateReader& in) override {
      random_.set_state(in.get_u64());
      at_ = in.get(0, size_);
      buffer_.resize(static_cast<size_t>(in.get(0, capacity_)));
      for (int64_t& i : buffer_) i = in.get(0, size_ - 1);
    }

   private:
    const Dataset& input_;
    const int64_t size_, capacity_;
    Random random_;
    std::vector<int64_t> buffer_;
    int64_t at_ = 0;
  };

  class ByElement final : public Iterator {
   public:
    ByElement(const ShuffleDataset& d, Random random, std::unique_ptr<Iterator> input)
        : d_(d), random_(random), input_(std::move(input)) {}
    bool next(Element& out, const CancelToken& cancel) override {
      while (!ended_ && count_ < d_.o_.buffer) {
        if (static_cast<size_t>(count_) == buffer_.size()) buffer_.emplace_back();
        if (input_->next(buffer_[static_cast<size_t>(count_)], cancel))
          ++count_;
        else
          ended_ = true;
      }
      if (count_ == 0) return false;
      Element& drawn = buffer_[random_.below(static_cast<uint64_t>(count_))];
      Element& last = buffer_[static_cast<size_t>(--count_)];
      std::swap(out, drawn);
      std::swap(drawn, last);
      return true;
    }
    void save(StateWriter& out) override {
      out.put_u64(random_.state());
      out.put(ended_);
      out.put(count_);
      for (int64_t i = 0; i < count_; ++i) out.put_element(buffer_[static_cast<size_t>(i)]);
      input_->save(out);
    }
    void restore(StateReader& in) override {
      random_.set_state(in.get_u64());
      ended_ = in.get(0, 1) != 0;
      count_ = in.get(0, d_.o_.buffer);
      for (int64_t i = 0; i < count_; ++i) in.get_element(buffer_.emplace_back());
      input_->restore(in);
    }

   private:
    const ShuffleDataset& d_;
    Random random_;
    std::unique_ptr<Iterator> input_;
    std::vector<Element> buffer_;
    int64_t count_ = 0;
    bool ended_ = false;
  };

  std::unique_ptr<Iterator> iterate(const IterateContext& context) const override {
    if (inputs()[0]->indexed()) return std::make_unique<ByNumber>(*this, random(context));
    return std::make_unique<ByElement>(*this, random(context), inputs()[0]->iterate(context));
  }
  std::string describe() const override {
    return cat("Shuffle(", o_.buffer, ",", o_.seed ? cat(*o_.seed) : std::string("unseeded"),
               o_.reshuffle_each_iteration ? "" : ",same each iteration", ")");
  }
  int64_t cardinality() const override { return inputs()[0]->cardinality(); }

 private:
  const ShuffleOptions o_;
};

}  // namespace

DatasetPtr shuffle(DatasetPtr input, ShuffleOptions options) {
  SLUICE_REQUIRE(input != nullptr, Code::kInvalidArgument, "shuffle needs a dataset");
  SLUICE_REQUIRE(options.buffer >= 1, Code::kInvalidArgument, "buffer_size must be greater than zero, got ",
                 options.buffer);
  return std::make_shared<ShuffleDataset>(std::move(input), options);
}

}  // namespace sluice::runtime::data
