#pragma once
// Where a run's real batches come from: the data set that Settings names, read ahead by background threads.
// The object owns its threads; one consumer.

#include <memory>
#include <optional>

#include "runtime/data/prefetch.h"
#include "tools/bench/settings.h"

namespace sluice::bench {

class ImageInput {
 public:
  /// `training`: shuffled, distorted, for ever; else in order through the evaluation crop, once, or for ever
  /// when `repeat`.
  ImageInput(const Settings& settings, bool training, bool repeat);

  /// nullopt at the end of the data.
  std::optional<runtime::data::Batch> next() { return source_->next(); }

 private:
  std::unique_ptr<runtime::data::Prefetcher> source_;
};

/// Examples that one evaluation of the whole set reads, counted in the files.
int64_t count_eval_examples(const Settings& settings);

}  // namespace sluice::bench
