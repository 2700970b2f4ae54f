// Transformations that pass elements on: map, filter, repeat, take, skip, shard, zip, concatenate, prefetch.

#include <algorithm>
#include <atomic>

#include "runtime/data/state.h"
#include "runtime/data/steps.h"
#include "runtime/work_queue.h"

namespace sluice::runtime::data {
namespace {

void require_input(const DatasetPtr& input, const char* who) {
  SLUICE_REQUIRE(input != nullptr, Code::kInvalidArgument, who, " needs a dataset");
}

/// A step with one input and its iterator made by a function of (context, input iterator).
class Step : public Dataset {
 public:
  Step(ElementSpec spec, DatasetPtr input) : Dataset(std::move(spec), {std::move(input)}) {}
  const Dataset& input() const { return *inputs()[0]; }
};

/// An iterator with one input.
class StepIterator : public Iterator {
 public:
  explicit StepIterator(std::unique_ptr<Iterator> input) : input_(std::move(input)) {}
  void save(StateWriter& out) override { input_->save(out); }
  void restore(StateReader& in) override { input_->restore(in); }

 protected:
  std::unique_ptr<Iterator> input_;
};

class MapDataset final : public Step {
 public:
  MapDataset(DatasetPtr input, MapFn fn, MapOptions o)
      : Step(o.output.empty() ? input->spec() : o.output, input), fn_(std::move(fn)), o_(std::move(o)) {}

  class It final : public StepIterator {
   public:
    It(const MapDataset& d, std::unique_ptr<Iterator> input) : StepIterator(std::move(input)), d_(d) {}
    bool next(Element& out, const CancelToken& cancel) override {
      if (!input_->next(in_, cancel)) return false;
      if (out.size() > d_.spec().size()) out.values.resize(d_.spec().size());
      try {
        d_.fn_(in_, out);
        check_element(d_.spec(), out, "The map function");
      } catch (const Error& e) {
        rethrow_at(e, in_.origin);
      }
      out.origin = in_.origin;
      return true;
    }

   private:
    const MapDataset& d_;
    Element in_;
  };

  std::unique_ptr<Iterator> iterate(const IterateContext& context) const override {
    auto in = input().iterate(context);
    if (o_.threads == 1) return std::make_unique<It>(*this, std::move(in));
    return read_ahead(std::move(in), {fn_, spec(), o_.threads, o_.threads, o_.ordered});
  }
  std::string describe() const override {
    return cat(o_.threads == 1 ? "Map" : o_.ordered ? "ParallelMap" : "UnorderedMap", spec_string(spec()));
  }
  int64_t cardinality() const override { return input().cardinality(); }
  bool repeatable() const override { return o_.ordered && Dataset::repeatable(); }

 private:
  const MapFn fn_;
  const MapOptions o_;
};

class FilterDataset final : public Step {
 public:
  FilterDataset(DatasetPtr input, std::function<bool(const Element&)> keep)
      : Step(input->spec(), input), keep_(std::move(keep)) {}

  class It final : public StepIterator {
   public:
    It(const FilterDataset& d, std::unique_ptr<Iterator> input) : StepIterator(std::move(input)), d_(d) {}
    bool next(Element& out, const CancelToken& cancel) override {
      while (input_->next(out, cancel)) {
        try {
          if (d_.keep_(out)) return true;
        } catch (const Error& e) {
          rethrow_at(e, out.origin);
        }
        cancel.check();
      }
      return false;
    }

   private:
    const FilterDataset& d_;
  };

  std::unique_ptr<Iterator> iterate(const IterateContext& context) const override {
    return std::make_unique<It>(*this, input().iterate(context));
  }
  std::string describe() const override { return "Filter"; }

 private:
  const std::function<bool(const Element&)> keep_;
};

// The number of pass `i` within pass `epoch` of what surrounds it.
uint64_t pass_within(uint64_t epoch, int64_t i) {
  return epoch * 0x9E3779B97F4A7C15u + static_cast<uint64_t>(i);
}

class RepeatDataset final : public Step {
 public:
  RepeatDataset(DatasetPtr input, int64_t count) : Step(input->spec(), input), count_(count) {}

  class It final : public Iterator {
   public:
    It(const RepeatDataset& d, const IterateContext& context) : d_(d), context_(context) { begin(0); }
    bool next(Element& out, const CancelToken& cancel) override {
      while (input_) {
        if (input_->next(out, cancel)) {
          any_ = true;
          return true;
        }
        // An empty input repeated for ever is empty.
        begin(any_ || d_.count_ >= 0 ? pass_ + 1 : INT64_MAX);
        cancel.check();
      }
      return false;
    }
    void save(StateWriter& out) override {
      out.put(input_ ? pass_ : 0);
      out.put(any_);
      out.put(input_ != nullptr);
      if (input_) input_->save(out);
    }
    void restore(StateReader& in) override {
      const int64_t pass = in.get(0, kCountLimit);
      any_ = in.get(0, 1) != 0;
      const bool open = in.get(0, 1) != 0;
      if (!open) {
        input_.reset();
        pass_ = pass;
        return;
      }
      begin(pass);
      if (!input_) StateReader::fail("a repetition goes beyond its count");
      input_->restore(in);
    }

   private:
    void begin(int64_t pass) {
      pass_ = pass;
      input_.reset();
      if (pass != INT64_MAX && (d_.count_ < 0 || pass < d_.count_))
        input_ = d_.input().iterate({pass_within(context_.epoch, pass), context_.shared});
    }

    const RepeatDataset& d_;
    const IterateContext context_;
    std::unique_ptr<Iterator> input_;
    int64_t pass_ = 0;
    bool any_ = false;  // some element came
  };

  std::unique_ptr<Iterator> iterate(const IterateContext& context) const override {
    return std::make_unique<It>(*this, context);
  }
  std::string describe() const override { return cat("Repeat(", count_, ")"); }
  int64_t cardinality() const override {
    const int64_t n = input().cardinality();
    if (count_ == 0 || n == 0) return 0;
    if (count_ < 0) return n == kUnknown ? kUnknown : kInfinite;
    return n < 0 ? n : n * count_;
  }

 private:
  const int64_t count_;
};

// take and skip: elements [first, last) of the input; last < 0: to its end.
class SliceDataset final : public Step {
 public:
  SliceDataset(DatasetPtr input, int64_t first, int64_t last, std::string text)
      : Step(input->spec(), input), first_(first), last_(last), text_(std::move(text)) {}

  class It final : public StepIterator {
   public:
    It(const SliceDataset& d, std::unique_ptr<Iterator> input) : StepIterator(std::move(input)), d_(d) {}
    bool next(Element& out, const CancelToken& cancel) override {
      while (at_ < d_.first_) {
        if (!input_->next(out, cancel)) return false;
        ++at_;
        cancel.check();
      }
      if (d_.last_ >= 0 && at_ >= d_.last_) return false;
      if (!input_->next(out, cancel)) return false;
      ++at_;
      return true;
    }
    void save(StateWriter& out) override {
      out.put(at_);
      input_->save(out);
    }
    void restore(StateReader& in) override {
      at_ = in.get(0, kCountLimit);
      input_->restore(in);
    }

   private:
    const SliceDataset& d_;
    int64_t at_ = 0;
  };

  std::unique_ptr<Iterator> iterate(const IterateContext& context) const override {
    return std::make_unique<It>(*this, input().iterate(context));
  }
  std::string describe() const override { return text_; }
  int64_t cardinality() const override {
    const int64_t n = input().cardinality();
    if (n == kUnknown) return last_ >= 0 && first_ >= last_ ? 0 : kUnknown;
    if (n == kInfinite) return last_ >= 0 ? last_ - first_ : kInfinite;
    const int64_t end = last_ >= 0 ? std::min(last_, n) : n;
    return std::max<int64_t>(end - first_, 0);
  }

 private:
  const int64_t first_, last_;
  const std::string text_;
};

class ShardDataset final : public Step {
 public:
  ShardDataset(DatasetPtr input, int64_t shards, int64_t index)
      : Step(input->spec(), input), shards_(shards), index_(index) {}

  class It final : public StepIterator {
   public:
    It(const ShardDataset& d, std::unique_ptr<Iterator> input) : StepIterator(std::move(input)), d_(d) {}
    bool next(Element& out, const CancelToken& cancel) override {
      while (input_->next(out, cancel)) {
        if (at_++ % d_.shards_ == d_.index_) return true;
        cancel.check();
      }
      return false;
    }
    void save(StateWriter& out) override {
      out.put(at_);
      input_->save(out);
    }
    void restore(StateReader& in) override {
      at_ = in.get(0, kCountLimit);
      input_->restore(in);
    }

   private:
    const ShardDataset& d_;
    int64_t at_ = 0;
  };

  std::unique_ptr<Iterator> iterate(const IterateContext& context) const override {
    return std::make_unique<It>(*this, input().iterate(context));
  }
  std::string describe() const override { return cat("Shard(", shards_, ",", index_, ")"); }
  int64_t cardinality() const override {
    const int64_t n = input().cardinality();
    return n < 0 ? n : n / shards_ + (index_ < n % shards_ ? 1 : 0);
  }

 private:
  const int64_t shards_, index_;
};

class PrefetchDataset final : public Step {
 public:
  PrefetchDataset(DatasetPtr input, int depth) : Step(input->spec(), input), depth_(depth) {}
  std::unique_ptr<Iterator> iterate(const IterateContext& context) const override {
    return read_ahead(input().iterate(context), {nullptr, spec(), 1, depth_, true});
  }
  std::string describe() const override { return "Prefetch"; }
  int64_t cardinality() const override { return input().cardinality(); }

 private:
  const int depth_;
};

ElementSpec joined(const std::vector<DatasetPtr>& inputs) {
  SLUICE_REQUIRE(!inputs.empty(), Code::kInvalidArgument, "zip needs a dataset at least");
  ElementSpec spec;
  for (const DatasetPtr& in : inputs) {
    require_input(in, "zip");
    spec.insert(spec.end(), in->spec().begin(), in->spec().end());
  }
  return spec;
}

class ZipDataset final : public Dataset {
 public:
  explicit ZipDataset(std::vector<DatasetPtr> inputs) : Dataset(joined(inputs), inputs) {}

  class It final : public Iterator {
   public:
    explicit It(std::vector<std::unique_ptr<Iterator>> inputs)
        : inputs_(std::move(inputs)), parts_(inputs_.size()) {}
    bool next(Element& out, const CancelToken& cancel) override {
      // What has come stays until the others have come too, even if one throws.
      for (; !ended_ && have_ < inputs_.size(); ++have_) {
        ended_ = !inputs_[have_]->next(parts_[have_], cancel);
        if (ended_) break;
      }
      if (ended_) return false;
      have_ = 0;
      size_t k = 0;
      out.origin = parts_[0].origin;
      for (Element& part : parts_)
        for (size_t i = 0; i < part.size(); ++i) out.take(k++, part, i);
      return true;
    }
    void save(StateWriter& out) override {
      out.put(ended_);
      out.put(static_cast<int64_t>(have_));
      for (size_t i = 0; i < inputs_.size(); ++i) {
        if (i < have_) out.put_element(parts_[i]);
        inputs_[i]->save(out);
      }
    }
    void restore(StateReader& in) override {
      ended_ = in.get(0, 1) != 0;
      have_ = static_cast<size_t>(in.get(0, static_cast<int64_t>(inputs_.size())));
      for (size_t i = 0; i < inputs_.size(); ++i) {
        if (i < have_) in.get_element(parts_[i]);
        inputs_[i]->restore(in);
      }
    }

   private:
    std::vector<std::unique_ptr<Iterator>> inputs_;
    std::vector<Element> parts_;
    size_t have_ = 0;
    bool ended_ = false;
  };

  std::unique_ptr<Iterator> iterate(const IterateContext& context) const override {
    std::vector<std::unique_ptr<Iterator>> its;
    for (const DatasetPtr& in : inputs()) its.push_back(in->iterate(context));
    return std::make_unique<It>(std::move(its));
  }
  std::string describe() const override { return "Zip"; }
  int64_t cardinality() const override {
    int64_t least = kInfinite;
    for (const DatasetPtr& in : inputs()) {
      const int64_t n = in->cardinality();
      if (n == kUnknown) return kUnknown;
      if (n >= 0) least = least < 0 ? n : std::min(least, n);
    }
    return least;
  }
};

ElementSpec common(const std::vector<DatasetPtr>& inputs) {
  SLUICE_REQUIRE(!inputs.empty(), Code::kInvalidArgument, "concatenate needs a dataset at least");
  for (const DatasetPtr& in : inputs) require_input(in, "concatenate");
  ElementSpec spec = inputs[0]->spec();
  for (const DatasetPtr& in : inputs) {
    bool fits = in->spec().size() == spec.size();
    for (size_t i = 0; fits && i < spec.size(); ++i) fits = in->spec()[i].dtype == spec[i].dtype;
    SLUICE_REQUIRE(fits, Code::kInvalidArgument,
                   "Two datasets to concatenate have different types: ", spec_string(spec), " and ",
                   spec_string(in->spec()));
    for (size_t i = 0; i < spec.size(); ++i) {
      const Shape &a = spec[i].shape, &b = in->spec()[i].shape;
      if (!a.known_rank() || !b.known_rank() || a.rank() != b.rank()) {
        spec[i].shape = Shape();
        continue;
      }
      Dims d = a.dims();
      for (size_t k = 0; k < d.size(); ++k)
        if (d[k] != b.dims()[k]) d[k] = graph::kUnknownDim;
      spec[i].shape = Shape(std::move(d));
    }
  }
  return spec;
}

class ConcatenateDataset final : public Dataset {
 public:
  explicit ConcatenateDataset(std::vector<DatasetPtr> inputs) : Dataset(common(inputs), inputs) {}

  class It final : public Iterator {
   public:
    It(const ConcatenateDataset& d, const IterateContext& context) : d_(d), context_(context) { begin(0); }
    bool next(Element& out, const CancelToken& cancel) override {
      while (input_) {
        if (input_->next(out, cancel)) return true;
        begin(at_ + 1);
      }
      return false;
    }
    void save(StateWriter& out) override {
      out.put(static_cast<int64_t>(at_));
      if (input_) input_->save(out);
    }
    void restore(StateReader& in) override {
      begin(static_cast<size_t>(in.get(0, static_cast<int64_t>(d_.inputs().size()))));
      if (input_) input_->restore(in);
    }

   private:
    void begin(size_t at) {
      at_ = at;
      input_ = at < d_.inputs().size() ? d_.inputs()[at]->iterate(context_) : nullptr;
    }
    const ConcatenateDataset& d_;
    const IterateContext context_;
    std::unique_ptr<Iterator> input_;
    size_t at_ = 0;
  };

  std::unique_ptr<Iterator> iterate(const IterateContext& context) const override {
    return std::make_unique<It>(*this, context);
  }
  std::string describe() const override { return "Concatenate"; }
  int64_t cardinality() const override {
    int64_t sum = 0;
    for (const DatasetPtr& in : inputs()) {
      const int64_t n = in->cardinality();
      if (n < 0) return n;
      sum += n;
    }
    return sum;
  }
};

class IgnoreErrorsDataset final : public Step {
 public:
  IgnoreErrorsDataset(DatasetPtr input, std::atomic<int64_t>* skipped)
      : Step(input->spec(), input), skipped_(skipped) {}

  class It final : public StepIterator {
   public:
    It(const IgnoreErrorsDataset& d, std::unique_ptr<Iterator> input)
        : StepIterator(std::move(input)), d_(d) {}
    bool next(Element& out, const CancelToken& cancel) override {
      for (;;) {
        try {
          return input_->next(out, cancel);
        } catch (const Error& e) {
          if (e.code() == Code::kCancelled || e.code() == Code::kDeadlineExceeded) throw;
          if (d_.skipped_) d_.skipped_->fetch_add(1, std::memory_order_relaxed);
        }
        cancel.check();
      }
    }

   private:
    const IgnoreErrorsDataset& d_;
  };

  std::unique_ptr<Iterator> iterate(const IterateContext& context) const override {
    return std::make_unique<It>(*this, input().iterate(context));
  }
  std::string describe() const override { return "IgnoreErrors"; }

 private:
  std::atomic<int64_t>* const skipped_;
};

}  // namespace

int resolve_threads(int threads) {
  SLUICE_REQUIRE(threads >= 1 || threads == kAuto, Code::kInvalidArgument,
                 "num_parallel_calls must be greater than zero or kAuto, got ", threads);
  return threads == kAuto ? std::max(available_cpus(), 2) : threads;
}

DatasetPtr map(DatasetPtr input, MapFn fn, MapOptions options) {
  require_input(input, "map");
  SLUICE_REQUIRE(fn != nullptr, Code::kInvalidArgument, "map needs a function");
  options.threads = resolve_threads(options.threads);
  return std::make_shared<MapDataset>(std::move(input), std::move(fn), std::move(options));
}

DatasetPtr filter(DatasetPtr input, std::function<bool(const Element&)> keep) {
  require_input(input, "filter");
  SLUICE_REQUIRE(keep != nullptr, Code::kInvalidArgument, "filter needs a function");
  return std::make_shared<FilterDataset>(std::move(input), std::move(keep));
}

DatasetPtr repeat(DatasetPtr input, int64_t count) {
  require_input(input, "repeat");
  return std::make_shared<RepeatDataset>(std::move(input), std::max<int64_t>(count, -1));
}

DatasetPtr take(DatasetPtr input, int64_t count) {
  require_input(input, "take");
  return std::make_shared<SliceDataset>(std::move(input), 0, count, cat("Take(", count, ")"));
}

DatasetPtr skip(DatasetPtr input, int64_t count) {
  require_input(input, "skip");
  if (count < 0) return take(std::move(input), 0);
  return std::make_shared<SliceDataset>(std::move(input), count, -1, cat("Skip(", count, ")"));
}

DatasetPtr shard(DatasetPtr input, int64_t num_shards, int64_t index) {
  require_input(input, "shard");
  SLUICE_REQUIRE(num_shards >= 1, Code::kInvalidArgument,
                 "Number of shards must be greater than zero (currently num_shards = ", num_shards, ").");
  SLUICE_REQUIRE(index >= 0 && index < num_shards, Code::kInvalidArgument, "Index must be between 0 and ",
                 num_shards - 1, " (currently index = ", index, ").");
  return std::make_shared<ShardDataset>(std::move(input), num_shards, index);
}

DatasetPtr prefetch(DatasetPtr input, int depth) {
  require_input(input, "prefetch");
  SLUICE_REQUIRE(depth >= 1 || depth == kAuto, Code::kInvalidArgument,
                 "prefetch needs a depth of at least 1 or kAuto, got ", depth);
  return std::make_shared<PrefetchDataset>(std::move(input), depth == kAuto ? 2 : depth);
}

DatasetPtr zip(std::vector<DatasetPtr> inputs) { return std::make_shared<ZipDataset>(std::move(inputs)); }

DatasetPtr concatenate(std::vector<DatasetPtr> inputs) {
  return std::make_shared<ConcatenateDataset>(std::move(inputs));
}

DatasetPtr ignore_errors(DatasetPtr input, std::atomic<int64_t>* skipped) {
  require_input(input, "ignore_errors");
  return std::make_shared<IgnoreErrorsDataset>(std::move(input), skipped);
}

}  // namespace sluice::runtime::data
