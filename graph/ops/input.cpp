// Input pipelines: iterators over datasets, and tf.Example records into tensors. A pipeline itself is C++
// code (runtime/data); the graph names it.

#include "graph/ops/register.h"
#include "graph/ops/shapes.h"

namespace sluice::graph::ops {
namespace {

constexpr const char* kTypes = "output_types: list(type) >= 1";
constexpr const char* kShapes = "output_shapes: list(shape) >= 1";
constexpr const char* kExampleTypes = "list({float, int64, string}) >= 0";

void next_shape(InferContext& c) {
  const auto shapes = c.attr<std::vector<Shape>>("output_shapes");
  require(c, static_cast<int>(shapes.size()) == c.num_outputs(),
          "`output_shapes` must be the same length as ", "`output_types` (", shapes.size(), " vs. ",
          c.num_outputs(), ")");
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, shapes[static_cast<size_t>(i)]);
}

// Outputs of a parse op from `output` on: sparse indices, values and shapes, then dense values.
int parsed_shapes(InferContext& c, int64_t num_sparse, const Shape& batch, bool single) {
  int output = 0;
  const int64_t rank = single ? 1 : 2;
  for (int64_t i = 0; i < num_sparse; ++i) c.set_output(output++, Shape{-1, rank});
  for (int64_t i = 0; i < num_sparse; ++i) c.set_output(output++, Shape{-1});
  for (int64_t i = 0; i < num_sparse; ++i) c.set_output(output++, Shape{rank});
  const auto dense = c.attr<std::vector<Shape>>("dense_shapes");
  require(c, dense.size() == c.attr<std::vector<DType>>("Tdense").size(),
          "len(dense_shapes) must be len(Tdense)");
  for (const Shape& s : dense) {
    require(c, s.known_rank(), "dense_shapes must have known ranks");
    for (int d = 1; d < s.rank(); ++d)
      require(c, s.known_dim(d), "dense_shapes[", output - 3 * num_sparse,
              "] has unknown rank or unknown inner ", "dimensions: ", s);
    c.set_output(output++, single ? s : batch.concat(s));
  }
  return output;
}

void parse_example_shape(InferContext& c) {
  parsed_shapes(c, c.attr<int64_t>("Nsparse"), c.with_rank(0, 1), false);
}

void parse_example_v2_shape(InferContext& c) {
  const Shape& serialized = c.input(0);
  require(c, !serialized.known_rank() || serialized.rank() <= 1, "serialized must be a scalar or a vector");
  const bool single = serialized.known_rank() && serialized.rank() == 0;
  if (!serialized.known_rank()) return;
  int output = parsed_shapes(c, c.attr<int64_t>("num_sparse"), serialized, single);
  const auto ragged = c.attr<std::vector<DType>>("ragged_value_types").size();
  require(c, c.attr<std::vector<DType>>("ragged_split_types").size() == ragged,
          "len(ragged_value_types) must be len(ragged_split_types)");
  for (size_t i = 0; i < ragged; ++i) c.set_output(output++, Shape{-1});
  for (size_t i = 0; i < ragged; ++i)
    c.set_output(output++, Shape{single ? -1 : add_dims(serialized.dim(0), 1)});
}

void parse_single_shape(InferContext& c) {
  require_scalar(c, 0);
  parsed_shapes(c, c.attr<int64_t>("num_sparse"), Shape(), true);
}

void add_iterators(OpRegistry& r) {
  for (const char* name : {"Iterator", "IteratorV2"})
    r.add({.name = name,
           .outputs = {"handle: resource"},
           .attrs = {"shared_name: string", "container: string", kTypes, kShapes},
           .doc = "A handle to an iterator, which MakeIterator sets at the beginning of a dataset.",
           .traits = kStateful | kHostOnly,
           .infer = scalar_output});
  r.add({.name = "OneShotIterator",
         .outputs = {"handle: resource"},
         .attrs = {"dataset_factory: func", kTypes, kShapes, "container: string = ''",
                   "shared_name: string = ''"},
         .doc = "A handle to an iterator that begins at its first use and cannot begin anew.",
         .traits = kStateful | kHostOnly,
         .infer = scalar_output});
  r.add({.name = "AttachedDataset",
         .outputs = {"handle: variant"},
         .attrs = {"shared_name: string = ''", kTypes, kShapes},
         .doc = "The input pipeline that the program attached under this name (dsl/data.h).",
         .traits = kStateful | kHostOnly,
         .infer = scalar_output});
  r.add({.name = "MakeIterator",
         .inputs = {"dataset: variant", "iterator: resource"},
         .doc = "Sets the iterator at the beginning of the dataset.",
         .traits = kStateful | kHostOnly | kNotDifferentiable,
         .infer = no_outputs});
  for (const char* name : {"IteratorGetNext", "IteratorGetNextSync"})
    r.add({.name = name,
           .inputs = {"iterator: resource"},
           .outputs = {"components: output_types"},
           .attrs = {kTypes, kShapes},
           .doc = "The iterator's next element; OutOfRange \"End of sequence\" behind the last.",
           .traits = kStateful | kHostOnly | kMayBlock | kDynamicShape | kNotDifferentiable,
           .infer = next_shape});
}

void add_parsing(OpRegistry& r) {
  const std::string sparse_types = cat("sparse_types: ", kExampleTypes),
                    dense_types = cat("Tdense: ", kExampleTypes);
  constexpr uint32_t kParse = kHostOnly | kDynamicShape | kNotDifferentiable;
  r.add({.name = "ParseExample",
         .inputs = {"serialized: string", "names: string", "sparse_keys: Nsparse * string",
                    "dense_keys: Ndense * string", "dense_defaults: Tdense"},
         .outputs = {"sparse_indices: Nsparse * int64", "sparse_values: sparse_types",
                     "sparse_shapes: Nsparse * int64", "dense_values: Tdense"},
         .attrs = {"Nsparse: int >= 0", "Ndense: int >= 0", sparse_types, dense_types,
                   "dense_shapes: list(shape) >= 0"},
         .doc = "Features of a vector of tf.Example records as tensors.",
         .traits = kParse,
         .infer = parse_example_shape});
  r.add({.name = "ParseExampleV2",
         .inputs = {"serialized: string", "names: string", "sparse_keys: string", "dense_keys: string",
                    "ragged_keys: string", "dense_defaults: Tdense"},
         .outputs = {"sparse_indices: num_sparse * int64", "sparse_values: sparse_types",
                     "sparse_shapes: num_sparse * int64", "dense_values: Tdense",
                     "ragged_values: ragged_value_types", "ragged_row_splits: ragged_split_types"},
         .attrs = {dense_types, "num_sparse: int >= 0", sparse_types,
                   cat("ragged_value_types: ", kExampleTypes),
                   "ragged_split_types: list({int32, int64}) >= 0", "dense_shapes: list(shape) >= 0"},
         .doc = "Features of one or of a vector of tf.Example records as tensors.",
         .traits = kParse,
         .infer = parse_example_v2_shape});
  r.add({.name = "ParseSingleExample",
         .inputs = {"serialized: string", "dense_defaults: Tdense"},
         .outputs = {"sparse_indices: num_sparse * int64", "sparse_values: sparse_types",
                     "sparse_shapes: num_sparse * int64", "dense_values: Tdense"},
         .attrs = {"num_sparse: int >= 0", "sparse_keys: list(string) >= 0", "dense_keys: list(string) >= 0",
                   sparse_types, dense_types, "dense_shapes: list(shape) >= 0"},
         .doc = "Features of one tf.Example record as tensors.",
         .traits = kParse,
         .infer = parse_single_shape});
}

}  // namespace

void register_input(OpRegistry& r) {
  add_iterators(r);
  add_parsing(r);
}

}  // namespace sluice::graph::ops
