// cache: the first whole pass fills a store that the pipeline's later passes read.

#include "runtime/data/state.h"
#include "runtime/data/steps.h"

namespace sluice::runtime::data {

/// Elements of one cache of one pipeline. The pipeline's iterators use it one after another; where several
/// are under way at once, only one fills it. `filling` and `complete` are guarded by SharedState's mutex.
class CacheStore {
 public:
  std::vector<Element> elements;   // written by the one who fills, not changed once complete
  uint64_t epoch = 0;              // the pass that they come from
  std::weak_ptr<const int> owner;  // the dataset's identity: an address may be another dataset's later
  bool filling = false, complete = false;
};

namespace {

enum class Mode : int64_t {
  kFill,  // elements pass and are kept
  kPass,  // elements pass: another iterator fills
  kRead,  // elements come from the store
};

class CacheDataset final : public Dataset {
 public:
  explicit CacheDataset(DatasetPtr input) : Dataset(input->spec(), {input}) {}

  class It final : public Iterator {
   public:
    It(const CacheDataset& d, const IterateContext& context) : input_set_(*d.inputs()[0]), context_(context) {
      {
        std::lock_guard lock(context_.shared->mutex);
        std::shared_ptr<CacheStore>& s = context_.shared->caches[&d];
        if (!s || s->owner.lock() != d.identity_) {
          s = std::make_shared<CacheStore>();
          s->owner = d.identity_;
        }
        store_ = s;
        mode_ = s->complete ? Mode::kRead : s->filling ? Mode::kPass : Mode::kFill;
        if (mode_ == Mode::kFill) {
          s->filling = true;
          s->elements.clear();
          s->epoch = context_.epoch;
        }
      }
      open_input();  // not under the lock: caches may lie in caches
    }
    ~It() override { stop_filling(false); }

    bool next(Element& out, const CancelToken& cancel) override {
      if (mode_ == Mode::kRead) {
        if (at_ >= store_->elements.size()) return false;
        out = store_->elements[at_++];  // arrays are shared
        return true;
      }
      if (ended_) return false;
      if (input_->next(out, cancel)) {
        if (mode_ == Mode::kFill) store_->elements.push_back(out);
        return true;
      }
      ended_ = true;
      stop_filling(true);
      return false;
    }

    void save(StateWriter& out) override {
      out.put(static_cast<int64_t>(mode_));
      out.put(ended_);
      out.put(static_cast<int64_t>(at_));
      if (mode_ != Mode::kPass) {
        out.put_u64(store_->epoch);
        out.put(static_cast<int64_t>(store_->elements.size()));
        if (!input_set_.repeatable())
          for (const Element& e : store_->elements) out.put_element(e);
      }
      if (input_) input_->save(out);
    }

    void restore(StateReader& in) override {
      stop_filling(false);
      mode_ = static_cast<Mode>(in.get(0, 2));
      ended_ = in.get(0, 1) != 0;
      at_ = static_cast<size_t>(in.get(0, kCountLimit));
      if (mode_ != Mode::kPass) {
        store_->epoch = in.get_u64();
        load(in, in.get(0, kCountLimit));
        if (at_ > store_->elements.size()) StateReader::fail("a cache holds too little");
        std::lock_guard lock(context_.shared->mutex);
        store_->complete = mode_ == Mode::kRead || ended_;
        store_->filling = !store_->complete;
      }
      if (mode_ == Mode::kRead) {
        input_.reset();
      } else {
        open_input();
        input_->restore(in);
      }
    }

   private:
    void open_input() {
      if (mode_ == Mode::kRead || input_) return;
      try {
        input_ = input_set_.iterate(context_);
      } catch (...) {
        stop_filling(false);  // no destructor runs for what is half built
        throw;
      }
    }
    void stop_filling(bool complete) {
      if (mode_ != Mode::kFill) return;
      std::lock_guard lock(context_.shared->mutex);
      if (!store_->filling) return;
      store_->filling = false;
      store_->complete = complete;
      if (!complete) store_->elements.clear();
    }

    // The same elements again: from the same pass of the input, or as they were saved.
    void load(StateReader& in, int64_t count) {
      store_->elements.clear();
      if (!input_set_.repeatable()) {
        for (int64_t i = 0; i < count; ++i) in.get_element(store_->elements.emplace_back());
        return;
      }
      auto again = input_set_.iterate({store_->epoch, context_.shared});
      const CancelToken never = CancelToken::none();
      for (int64_t i = 0; i < count;) {
        Element e;
        bool more = false;
        try {
          more = again->next(e, never);
        } catch (const Error&) {
          continue;  // it failed the first time as well, and was not kept
        }
        SLUICE_REQUIRE(more, Code::kFailedPrecondition,
                       "The input of a cache has become shorter since its position was saved");
        store_->elements.push_back(std::move(e));
        ++i;
      }
    }

    const Dataset& input_set_;
    const IterateContext context_;
    std::shared_ptr<CacheStore> store_;  // shared with the pipeline's later passes
    std::unique_ptr<Iterator> input_;    // null when reading the store
    Mode mode_ = Mode::kFill;
    size_t at_ = 0;  // of reading
    bool ended_ = false;
  };

  std::unique_ptr<Iterator> iterate(const IterateContext& context) const override {
    return std::make_unique<It>(*this, context);
  }
  std::string describe() const override { return "Cache"; }
  // What a pass gives depends on the pass that filled the store.
  bool repeatable() const override { return false; }
  int64_t cardinality() const override { return inputs()[0]->cardinality(); }

 private:
  const std::shared_ptr<const int> identity_ = std::make_shared<const int>(0);
};

}  // namespace

DatasetPtr cache(DatasetPtr input) {
  SLUICE_REQUIRE(input != nullptr, Code::kInvalidArgument, "cache needs a dataset");
  return std::make_shared<CacheDataset>(std::move(input));
}

}  // namespace sluice::runtime::data
