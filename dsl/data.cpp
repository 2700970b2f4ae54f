#include "dsl/data.h"

#include "dsl/require.h"
#include "graph/collections.h"
#include "runtime/data/iterator_resource.h"

namespace sluice::dsl::data {

namespace rd = runtime::data;

namespace {

AttrMap element_attrs(const ElementSpec& spec) {
  std::vector<DType> types;
  std::vector<Shape> shapes;
  for (const Component& c : spec) {
    types.push_back(c.dtype);
    shapes.push_back(c.shape);
  }
  return {{"output_types", std::move(types)}, {"output_shapes", std::move(shapes)}};
}

std::string shared_name(const Node& n) {
  std::string name = n.attr_or<std::string>("shared_name", "");
  return name.empty() ? n.name() : name;
}

Node& dataset_node(Graph& g, const Dataset& dataset, Loc loc) {
  AttrMap attrs = element_attrs(dataset.spec());
  Node& n = g.add({.op = "AttachedDataset", .name = "Dataset", .attrs = std::move(attrs), .loc = loc});
  rd::attach(g, n.name(), dataset.ptr());
  return n;
}

}  // namespace

Dataset Dataset::map(MapFn fn, MapOptions options) const {
  return Dataset(rd::map(dataset_, std::move(fn), std::move(options)));
}
Dataset Dataset::filter(std::function<bool(const Element&)> keep) const {
  return Dataset(rd::filter(dataset_, std::move(keep)));
}
Dataset Dataset::shuffle(ShuffleOptions options) const { return Dataset(rd::shuffle(dataset_, options)); }
Dataset Dataset::repeat(int64_t count) const { return Dataset(rd::repeat(dataset_, count)); }
Dataset Dataset::take(int64_t count) const { return Dataset(rd::take(dataset_, count)); }
Dataset Dataset::skip(int64_t count) const { return Dataset(rd::skip(dataset_, count)); }
Dataset Dataset::shard(int64_t num_shards, int64_t index) const {
  return Dataset(rd::shard(dataset_, num_shards, index));
}
Dataset Dataset::batch(int64_t size, bool drop_remainder) const {
  return Dataset(rd::batch(dataset_, size, drop_remainder));
}
Dataset Dataset::padded_batch(PaddedBatchOptions options) const {
  return Dataset(rd::padded_batch(dataset_, std::move(options)));
}
Dataset Dataset::cache() const { return Dataset(rd::cache(dataset_)); }
Dataset Dataset::prefetch(int depth) const { return Dataset(rd::prefetch(dataset_, depth)); }
Dataset Dataset::concatenate(const Dataset& next) const {
  return Dataset(rd::concatenate({dataset_, next.dataset_}));
}
Dataset Dataset::interleave(std::function<Dataset(const Element&)> expand, ElementSpec output,
                            InterleaveOptions options) const {
  SLUICE_REQUIRE(expand != nullptr, Code::kInvalidArgument, "interleave needs a function");
  rd::ExpandFn fn = [expand = std::move(expand)](const Element& e) { return expand(e).ptr(); };
  return Dataset(rd::interleave(dataset_, std::move(fn),
                                {std::move(output), options.cycle, options.block, options.parallel}));
}
Dataset Dataset::parse_example(std::vector<FeatureConfig> features, int threads) const {
  return Dataset(rd::parse_example(dataset_, std::move(features), threads));
}
Dataset Dataset::ignore_errors(std::atomic<int64_t>* skipped) const {
  return Dataset(rd::ignore_errors(dataset_, skipped));
}

Dataset tensor_slices(std::vector<Array> arrays, std::vector<std::string> names) {
  return Dataset(rd::tensor_slices(std::move(arrays), std::move(names)));
}
Dataset tensors(std::vector<Array> arrays, std::vector<std::string> names) {
  return Dataset(rd::tensors(std::move(arrays), std::move(names)));
}
Dataset range(int64_t start, int64_t stop, int64_t step) { return Dataset(rd::range(start, stop, step)); }
Dataset generator(ElementSpec spec, std::function<GenerateFn()> start) {
  return Dataset(rd::generator(std::move(spec), std::move(start)));
}
Dataset list_files(const std::string& pattern) {
  std::vector<std::string> files = rd::match_files(pattern);
  const auto n = static_cast<int64_t>(files.size());
  return tensor_slices({Array::strings({n}, std::move(files))}, {"file"});
}
Dataset tf_records(std::vector<std::string> files, runtime::io::RecordReaderOptions options) {
  return Dataset(rd::tf_records(std::move(files), options));
}
Dataset text_lines(std::vector<std::string> files) { return Dataset(rd::text_lines(std::move(files))); }
Dataset csv(std::vector<std::string> files, std::vector<CsvColumn> columns, CsvOptions options) {
  return Dataset(rd::csv(std::move(files), std::move(columns), std::move(options)));
}
Dataset idx(const std::vector<std::string>& files, std::vector<std::string> names) {
  return Dataset(rd::idx(files, std::move(names)));
}
Dataset zip(const std::vector<Dataset>& datasets) {
  std::vector<rd::DatasetPtr> all;
  for (const Dataset& d : datasets) all.push_back(d.ptr());
  return Dataset(rd::zip(std::move(all)));
}

const Tensor& Next::operator[](std::string_view component) const {
  for (size_t i = 0; i < spec_.size(); ++i)
    if (spec_[i].name == component) return tensors_[i];
  throw_error(Code::kNotFound, cat("No component '", component, "' in elements ", rd::spec_string(spec_)));
}

std::string GraphIterator::name() const { return shared_name(*handle_); }

Node& GraphIterator::initializer() const {
  SLUICE_REQUIRE(initializer_ != nullptr, Code::kFailedPrecondition, "Iterator '", name(),
                 "' has no initializer: a one-shot iterator begins at its first use");
  return *initializer_;
}

Next GraphIterator::get_next(const std::string& name, Loc loc) const {
  Node& n = handle_->graph().add({.op = "IteratorGetNext",
                                  .name = name,
                                  .inputs = {handle_->output()},
                                  .attrs = element_attrs(spec_),
                                  .loc = loc});
  std::vector<Tensor> tensors;
  for (int i = 0; i < n.num_outputs(); ++i) tensors.emplace_back(n.output(i));
  return {spec_, std::move(tensors)};
}

Node& GraphIterator::make_initializer(const Dataset& dataset, const std::string& name, Loc loc) const {
  SLUICE_REQUIRE_AT(loc, initializer_ != nullptr, Code::kFailedPrecondition, "Iterator '", this->name(),
                    "' is one-shot: it cannot begin anew");
  const ElementSpec& got = dataset.spec();
  bool fits = got.size() == spec_.size();
  for (size_t i = 0; fits && i < got.size(); ++i)
    fits = got[i].dtype == spec_[i].dtype && got[i].shape.compatible(spec_[i].shape);
  SLUICE_REQUIRE_AT(loc, fits, Code::kInvalidArgument, "Iterator '", this->name(), "' has elements ",
                    rd::spec_string(spec_), ", the dataset ", rd::spec_string(got));
  Graph& g = handle_->graph();
  Node& from = dataset_node(g, dataset, loc);
  return g.add(
      {.op = "MakeIterator", .name = name, .inputs = {from.output(), handle_->output()}, .loc = loc});
}

GraphIterator make_one_shot_iterator(Graph& g, const Dataset& dataset, IteratorOptions options, Loc loc) {
  AttrMap attrs = element_attrs(dataset.spec());
  attrs["dataset_factory"] = graph::FuncAttr{"attached_pipeline", nullptr};
  attrs["shared_name"] = options.shared_name;
  Node& n = g.add({.op = "OneShotIterator", .name = options.name, .attrs = std::move(attrs), .loc = loc});
  rd::attach(g, shared_name(n), dataset.ptr());
  return {n, nullptr, dataset.spec()};
}

GraphIterator make_initializable_iterator(Graph& g, const Dataset& dataset, IteratorOptions options,
                                          Loc loc) {
  Node& from = dataset_node(g, dataset, loc);
  AttrMap attrs = element_attrs(dataset.spec());
  attrs["container"] = "";
  attrs["shared_name"] = options.shared_name;
  Node& n = g.add({.op = "IteratorV2", .name = options.name, .attrs = std::move(attrs), .loc = loc});
  // The pipeline's name is the iterator's, so that a loaded graph asks for that one.
  g.set_attr(from, "shared_name", shared_name(n));
  rd::attach(g, shared_name(n), dataset.ptr());
  Node& make = g.add({.op = "MakeIterator", .inputs = {from.output(), n.output()}, .loc = loc});
  if (options.in_table_initializers)
    g.collections().add(graph::keys::kTableInitializers, graph::GraphElement{&make, -1});
  return {n, &make, dataset.spec()};
}

void attach(runtime::Session& session, const std::string& iterator, const Dataset& dataset) {
  rd::attach(session.resources(), iterator, dataset.ptr());
}

}  // namespace sluice::dsl::data
