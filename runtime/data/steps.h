#pragma once
// The transformations of an input pipeline, in tf.data's vocabulary. Each takes a dataset and makes another;
// wrong arguments are InvalidArgument at once, with what was wrong. Any thread.

#include <functional>
#include <string>
#include <vector>

#include "runtime/data/ahead.h"
#include "runtime/data/dataset.h"

namespace sluice::runtime::data {

/// As many threads as CPUs, or a depth that suits them.
inline constexpr int kAuto = -1;

struct MapOptions {
  ElementSpec output;   // what the function makes; empty: elements of the same spec
  int threads = 1;      // > 1: on threads of their own; kAuto
  bool ordered = true;  // false: elements come as they get ready; such a pipeline isn't reproducible
};
/// `fn` of every element. With several threads it is called by several at once.
DatasetPtr map(DatasetPtr input, MapFn fn, MapOptions options = {});

/// Elements for which `keep` is true.
DatasetPtr filter(DatasetPtr input, std::function<bool(const Element&)> keep);

struct ShuffleOptions {
  int64_t buffer = 0;            // elements from which the next is drawn
  std::optional<uint64_t> seed;  // nullopt: drawn anew for every pipeline
  bool reshuffle_each_iteration = true;
};
DatasetPtr shuffle(DatasetPtr input, ShuffleOptions options);

/// The input `count` times, -1: for ever.
DatasetPtr repeat(DatasetPtr input, int64_t count = -1);
/// The first `count` elements, -1: all.
DatasetPtr take(DatasetPtr input, int64_t count);
/// Without the first `count`, -1: nothing is left.
DatasetPtr skip(DatasetPtr input, int64_t count);
/// Every num_shards-th element, from `index` on.
DatasetPtr shard(DatasetPtr input, int64_t num_shards, int64_t index);

/// `size` elements as one, along a new first dimension; the last may be smaller unless it is dropped.
DatasetPtr batch(DatasetPtr input, int64_t size, bool drop_remainder = false);

struct PaddedBatchOptions {
  int64_t size = 0;
  std::vector<Shape> shapes;          // per component; -1: the longest of the batch. Empty: the input's
  std::vector<Array> padding_values;  // scalars per component; empty: 0 and ""
  bool drop_remainder = false;
};
DatasetPtr padded_batch(DatasetPtr input, PaddedBatchOptions options);

/// Keeps the elements of the first whole pass in memory and gives them again. Of a partial pass nothing is
/// kept. A resumed pipeline fills its cache again before it goes on.
DatasetPtr cache(DatasetPtr input);

/// Up to `depth` elements are made ahead by a thread.
DatasetPtr prefetch(DatasetPtr input, int depth = kAuto);

/// Components of all inputs side by side; ends with the first that ends.
DatasetPtr zip(std::vector<DatasetPtr> inputs);
/// One after another; specs must agree in types, shapes become what all have in common.
DatasetPtr concatenate(std::vector<DatasetPtr> inputs);

/// What an element stands for: a file name, the dataset of its lines.
using ExpandFn = std::function<DatasetPtr(const Element&)>;
struct InterleaveOptions {
  ElementSpec output;     // of the datasets that the function makes
  int cycle = 1;          // datasets open at once
  int block = 1;          // elements taken from each in turn
  bool parallel = false;  // each open dataset is read ahead by a thread of its own; the order stays the same
};
DatasetPtr interleave(DatasetPtr input, ExpandFn expand, InterleaveOptions options);

/// Elements whose making fails are left out, and counted in `skipped` if given (it must outlive the
/// pipeline). Cancelled and DeadlineExceeded pass.
DatasetPtr ignore_errors(DatasetPtr input, std::atomic<int64_t>* skipped = nullptr);

/// -1 becomes the number of CPUs; InvalidArgument for others below 1.
int resolve_threads(int threads);

}  // namespace sluice::runtime::data
