#pragma once
// Input pipelines: Dataset, made of sources and transformations in tf.data's vocabulary, and iterators that
// feed a graph. A Dataset is a value (copies share) and immutable; elements are named arrays. Which elements
// come, and in what order, is decided by the seeds alone, at any parallelism. Pipelines are C++ code: a graph
// file names its iterators, and a program that loads it attaches a pipeline to each (docs/data.md).
//
//   using namespace sluice::dsl;
//   data::Dataset ds = data::tensor_slices({images, labels}, {"image", "label"})
//                          .shuffle({.buffer = 60'000, .seed = 1}).repeat().batch(128, true).prefetch();
//   data::GraphIterator it = data::make_one_shot_iterator(g, ds);
//   data::Next next = it.get_next();                     // next["image"]: float [128, 28, 28]
//
// Building is for one thread; sessions read pipelines from any. Positions are saved with checkpoints.

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/tensor.h"
#include "runtime/data/dataset.h"
#include "runtime/data/example_parser.h"
#include "runtime/data/sources.h"
#include "runtime/data/steps.h"
#include "runtime/session.h"

namespace sluice::dsl::data {

using runtime::Array;
using runtime::data::Component;
using runtime::data::CsvColumn;
using runtime::data::CsvOptions;
using runtime::data::Element;
using runtime::data::ElementSpec;
using runtime::data::FeatureConfig;
using runtime::data::fixed_len;
using runtime::data::fixed_len_sequence;
using runtime::data::GenerateFn;
using runtime::data::kAuto;
using runtime::data::MapFn;
using runtime::data::MapOptions;
using runtime::data::PaddedBatchOptions;
using runtime::data::Pipeline;
using runtime::data::ShuffleOptions;
using runtime::data::var_len;

struct InterleaveOptions {
  int cycle = 1;          // datasets open at once
  int block = 1;          // elements taken from each in turn
  bool parallel = false;  // each open dataset is read ahead by its own thread; the order stays the same
};

/// A pipeline, or a part of one. The transformations are those of runtime/data/steps.h, documented there;
/// all throw InvalidArgument for arguments that make no sense.
class Dataset {
 public:
  explicit Dataset(runtime::data::DatasetPtr dataset) : dataset_(std::move(dataset)) {}

  const ElementSpec& spec() const { return dataset_->spec(); }
  /// Elements of one pass; Dataset::kInfinite, kUnknown.
  int64_t cardinality() const { return dataset_->cardinality(); }
  static constexpr int64_t kUnknown = runtime::data::Dataset::kUnknown;
  static constexpr int64_t kInfinite = runtime::data::Dataset::kInfinite;
  /// The steps as text, and what `position` is checked against.
  std::string str() const { return runtime::data::pipeline_string(*dataset_); }
  const runtime::data::DatasetPtr& ptr() const { return dataset_; }
  /// The elements without a graph: `for (Element e; p.next(e);)`.
  Pipeline iterate() const { return Pipeline(dataset_); }

  /// `fn(in, out)` fills `out` (Element::make, take); see MapOptions for threads and the output's spec.
  Dataset map(MapFn fn, MapOptions options = {}) const;
  Dataset filter(std::function<bool(const Element&)> keep) const;
  Dataset shuffle(ShuffleOptions options) const;
  Dataset repeat(int64_t count = -1) const;
  Dataset take(int64_t count) const;
  Dataset skip(int64_t count) const;
  Dataset shard(int64_t num_shards, int64_t index) const;
  Dataset batch(int64_t size, bool drop_remainder = false) const;
  Dataset padded_batch(PaddedBatchOptions options) const;
  Dataset cache() const;
  Dataset prefetch(int depth = kAuto) const;
  Dataset concatenate(const Dataset& next) const;
  /// The elements of expand(e) for each e, `options.cycle` datasets at a time; `output` is their spec.
  Dataset interleave(std::function<Dataset(const Element&)> expand, ElementSpec output,
                     InterleaveOptions options = {}) const;
  Dataset flat_map(std::function<Dataset(const Element&)> expand, ElementSpec output) const {
    return interleave(std::move(expand), std::move(output));
  }
  /// tf.Example records, one or a batch an element, into one component a feature (var_len: three).
  Dataset parse_example(std::vector<FeatureConfig> features, int threads = 1) const;
  /// Elements that fail are left out; `skipped` counts them and must outlive the pipeline.
  Dataset ignore_errors(std::atomic<int64_t>* skipped = nullptr) const;

 private:
  runtime::data::DatasetPtr dataset_;  // shared by copies and by what is made of them
};

// Sources (runtime/data/sources.h).

/// Row i of every array; tf.data's from_tensor_slices.
Dataset tensor_slices(std::vector<Array> arrays, std::vector<std::string> names = {});
/// One element; from_tensors.
Dataset tensors(std::vector<Array> arrays, std::vector<std::string> names = {});
Dataset range(int64_t start, int64_t stop, int64_t step = 1);
/// `start` is called for each pass and gives the function that fills element after element, false at the end.
Dataset generator(ElementSpec spec, std::function<GenerateFn()> start);
/// File names that match the pattern, sorted; shuffle() mixes them.
Dataset list_files(const std::string& pattern);
Dataset tf_records(std::vector<std::string> files, runtime::io::RecordReaderOptions options = {});
Dataset text_lines(std::vector<std::string> files);
Dataset csv(std::vector<std::string> files, std::vector<CsvColumn> columns, CsvOptions options = {});
Dataset idx(const std::vector<std::string>& files, std::vector<std::string> names = {});
Dataset zip(const std::vector<Dataset>& datasets);

// Feeding a graph.

/// The tensors of one element.
class Next {
 public:
  Next(ElementSpec spec, std::vector<Tensor> tensors)
      : spec_(std::move(spec)), tensors_(std::move(tensors)) {}
  size_t size() const { return tensors_.size(); }
  const Tensor& operator[](size_t i) const { return tensors_.at(i); }
  /// NotFound, with the names there are.
  const Tensor& operator[](std::string_view component) const;
  const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  ElementSpec spec_;
  std::vector<Tensor> tensors_;
};

/// An iterator of a graph: a handle to its nodes.
class GraphIterator {
 public:
  GraphIterator(Node& handle, Node* initializer, ElementSpec spec)
      : handle_(&handle), initializer_(initializer), spec_(std::move(spec)) {}
  /// What attach() and checkpoints call it.
  std::string name() const;
  Node& handle() const { return *handle_; }
  /// Sets it at the beginning; FailedPrecondition for a one-shot iterator, which has none.
  Node& initializer() const;
  const ElementSpec& spec() const { return spec_; }
  /// An IteratorGetNext: its outputs are the next element's, each time it runs; OutOfRange "End of sequence"
  /// at the end. Call it once and use the result everywhere: two nodes would take turns.
  Next get_next(const std::string& name = {}, Loc loc = Loc::current()) const;
  /// An op that sets this iterator at the beginning of another dataset of a like spec.
  Node& make_initializer(const Dataset& dataset, const std::string& name = {},
                         Loc loc = Loc::current()) const;

 private:
  Node* handle_;
  Node* initializer_;
  ElementSpec spec_;
};

struct IteratorOptions {
  std::string name = {};         // of the iterator's node
  std::string shared_name = {};  // empty: the node's name
  /// The initializer joins "table_initializer", which scaffolds run before the first step.
  bool in_table_initializers = false;
};

/// Begins at its first use; what training loops want.
GraphIterator make_one_shot_iterator(Graph& g, const Dataset& dataset, IteratorOptions options = {},
                                     Loc loc = Loc::current());
/// Begins each time its initializer runs.
GraphIterator make_initializable_iterator(Graph& g, const Dataset& dataset, IteratorOptions options = {},
                                          Loc loc = Loc::current());
/// Gives an iterator of a loaded graph its pipeline, for this session. Before its first use.
void attach(runtime::Session& session, const std::string& iterator, const Dataset& dataset);

// tf.Example records inside a graph.

/// Tensors by component name, as Dataset::parse_example names them. `serialized`: a vector of records;
/// `names` (optional, as many) stand in messages.
std::map<std::string, Tensor> parse_example(const Operand& serialized,
                                            const std::vector<FeatureConfig>& features,
                                            const Tensor& names = {}, const std::string& name = {},
                                            Loc loc = Loc::current());
/// One record, a scalar.
std::map<std::string, Tensor> parse_single_example(const Operand& serialized,
                                                   const std::vector<FeatureConfig>& features,
                                                   const std::string& name = {}, Loc loc = Loc::current());

}  // namespace sluice::dsl::data
