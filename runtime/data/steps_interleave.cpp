// interleave: several datasets at once, in a fixed turn.

#include <algorithm>

#include "runtime/data/state.h"
#include "runtime/data/steps.h"

namespace sluice::runtime::data {
namespace {

class InterleaveDataset final : public Dataset {
 public:
  InterleaveDataset(DatasetPtr input, ExpandFn expand, InterleaveOptions o)
      : Dataset(o.output, {input}), expand_(std::move(expand)), o_(std::move(o)) {}

  // Slots are visited in turn, `block` elements each; one whose dataset ended takes the next input element.
  class It final : public Iterator {
   public:
    It(const InterleaveDataset& d, const IterateContext& context)
        : d_(d),
          context_(context),
          input_(d.inputs()[0]->iterate(context)),
          open_(static_cast<size_t>(d.o_.cycle)) {}

    bool next(Element& out, const CancelToken& cancel) override {
      for (;;) {
        Open& open = open_[at_];
        if (!open.elements && !opened(open, cancel)) {
          if (std::none_of(open_.begin(), open_.end(), [](const Open& o) { return o.elements != nullptr; }))
            return false;
          turn();
          continue;
        }
        if (taken_ < d_.o_.block) {
          if (open.elements->next(out, cancel)) {
            ++taken_;
            return true;
          }
          open.elements.reset();
          open.dataset.reset();
        }
        turn();
        cancel.check();
      }
    }

    void save(StateWriter& out) override {
      out.put(static_cast<int64_t>(at_));
      out.put(taken_);
      out.put(ended_);
      out.put(started_);
      input_->save(out);
      for (Open& open : open_) {
        out.put(open.elements != nullptr);
        if (!open.elements) continue;
        out.put(open.number);
        out.put_element(open.from);
        out.put_text(pipeline_string(*open.dataset));
        open.elements->save(out);
      }
    }

    void restore(StateReader& in) override {
      at_ = static_cast<size_t>(in.get(0, d_.o_.cycle - 1));
      taken_ = in.get(0, d_.o_.block);
      ended_ = in.get(0, 1) != 0;
      started_ = in.get(0, kCountLimit);
      input_->restore(in);
      for (Open& open : open_) {
        if (in.get(0, 1) == 0) continue;
        open.number = in.get(0, kCountLimit);
        in.get_element(open.from);
        start(open);
        SLUICE_REQUIRE(in.get_text() == pipeline_string(*open.dataset), Code::kInvalidArgument,
                       "The saved position of an interleave belongs to another dataset than its function "
                       "gives now: ",
                       pipeline_string(*open.dataset));
        open.elements->restore(in);
      }
    }

   private:
    struct Open {
      Element from;  // the input element it was made of
      int64_t number = 0;
      DatasetPtr dataset;  // shared with whoever made it
      std::unique_ptr<Iterator> elements;
    };

    void turn() {
      at_ = (at_ + 1) % open_.size();
      taken_ = 0;
    }

    bool opened(Open& open, const CancelToken& cancel) {
      if (ended_) return false;
      if (!input_->next(open.from, cancel)) {
        ended_ = true;
        return false;
      }
      open.number = started_++;
      start(open);
      taken_ = 0;
      return true;
    }

    void start(Open& open) {
      try {
        open.dataset = d_.expand_(open.from);
        SLUICE_REQUIRE(open.dataset != nullptr, Code::kInvalidArgument,
                       "The interleave function gave no dataset");
        const ElementSpec &got = open.dataset->spec(), &want = d_.spec();
        bool fits = got.size() == want.size();
        for (size_t i = 0; fits && i < got.size(); ++i)
          fits = got[i].dtype == want[i].dtype && got[i].shape.compatible(want[i].shape);
        SLUICE_REQUIRE(fits, Code::kInvalidArgument, "The interleave function gave a dataset of ",
                       spec_string(got), " where ", spec_string(want), " was declared");
        const uint64_t epoch = context_.epoch * 0xD1342543DE82EF95u + static_cast<uint64_t>(open.number);
        open.elements = open.dataset->iterate({epoch, context_.shared});
      } catch (const Error& e) {
        open.dataset.reset();
        rethrow_at(e, open.from.origin);
      }
      if (d_.o_.parallel) {
        const int ahead = std::clamp(2 * d_.o_.block, 8, 64);
        open.elements = read_ahead(std::move(open.elements), {nullptr, d_.spec(), 1, ahead, true});
      }
    }

    const InterleaveDataset& d_;
    const IterateContext context_;
    std::unique_ptr<Iterator> input_;
    std::vector<Open> open_;
    size_t at_ = 0;
    int64_t taken_ = 0, started_ = 0;
    bool ended_ = false;
  };

  std::unique_ptr<Iterator> iterate(const IterateContext& context) const override {
    return std::make_unique<It>(*this, context);
  }
  std::string describe() const override {
    return cat(o_.parallel ? "ParallelInterleave(" : "Interleave(", o_.cycle, ",", o_.block, ")");
  }

 private:
  const ExpandFn expand_;
  const InterleaveOptions o_;
};

}  // namespace

DatasetPtr interleave(DatasetPtr input, ExpandFn expand, InterleaveOptions options) {
  SLUICE_REQUIRE(input != nullptr, Code::kInvalidArgument, "interleave needs a dataset");
  SLUICE_REQUIRE(expand != nullptr, Code::kInvalidArgument, "interleave needs a function");
  SLUICE_REQUIRE(!options.output.empty(), Code::kInvalidArgument,
                 "interleave needs the spec of the elements its datasets give");
  SLUICE_REQUIRE(options.cycle >= 1, Code::kInvalidArgument, "`cycle_length` must be > 0");
  SLUICE_REQUIRE(options.block >= 1, Code::kInvalidArgument, "`block_length` must be > 0");
  return std::make_shared<InterleaveDataset>(std::move(input), std::move(expand), std::move(options));
}

}  // namespace sluice::runtime::data
