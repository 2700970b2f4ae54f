#pragma once
// tf.Example records into arrays, without making messages on the way: what the ops ParseExample,
// ParseExampleV2 and ParseSingleExample do, and parse_example of an input pipeline. Features may be dense of
// fixed shape, dense with a first dimension of any length, sparse, or ragged. Errors are InvalidArgument in
// TensorFlow's words. A parser is immutable; any thread.
//
//   ExampleParser p({.dense = {{"image", DType::kFloat, {28, 28}}, {"label", DType::kInt64, {}}}});
//   p.parse(records, {}, {}, out);                    // out[0]: [n, 28, 28], out[1]: [n]

#include <span>
#include <string>
#include <vector>

#include "runtime/data/dataset.h"

namespace sluice::runtime::data {

/// float, int64 and string are the types a tf.Example holds.
struct DenseFeature {
  std::string key;
  DType dtype = DType::kFloat;
  Dims shape;             // of one value; with `variable`, of one row of it
  bool variable = false;  // any number of rows; a batch is padded to its longest
};
struct SparseFeature {
  std::string key;
  DType dtype = DType::kFloat;
};
struct RaggedFeature {
  std::string key;
  DType dtype = DType::kFloat, splits = DType::kInt64;
};

struct ExampleSpec {
  std::vector<DenseFeature> dense = {};
  std::vector<SparseFeature> sparse = {};
  std::vector<RaggedFeature> ragged = {};
};

class ExampleParser {
 public:
  /// InvalidArgument for a type that a tf.Example does not hold.
  explicit ExampleParser(ExampleSpec spec);
  const ExampleSpec& spec() const { return spec_; }
  /// Values that parse() makes: sparse indices, sparse values, sparse shapes, dense values, ragged values,
  /// ragged row splits, each in the order of its features.
  size_t num_outputs() const {
    return 3 * spec_.sparse.size() + spec_.dense.size() + 2 * spec_.ragged.size();
  }

  /// A batch. `names` (empty, or one a record) stand in messages; `defaults`: one for each dense feature, an
  /// empty array where the feature is required; of a variable one, the element that pads. `places`: where
  /// each output goes in `out` (empty: as it comes).
  void parse(std::span<const std::string> records, std::span<const std::string> names,
             std::span<const Array> defaults, Element& out, std::span<const size_t> places = {}) const;
  /// One record: shapes without the batch's dimension.
  void parse_single(const std::string& record, std::span<const Array> defaults, Element& out,
                    std::span<const size_t> places = {}) const;

 private:
  struct Run;
  void run(Run& r) const;

  ExampleSpec spec_;
  std::vector<std::string> keys_;  // dense, sparse, ragged
  bool repeated_key_ = false;      // some feature is asked for in two forms
};

/// A feature of parse_example, under the name its component gets.
struct FeatureConfig {
  enum class Kind { kFixedLen, kVarLen, kFixedLenSequence };
  std::string name;
  Kind kind = Kind::kFixedLen;
  DType dtype = DType::kFloat;
  Dims shape = {};
  std::optional<Array> default_value = std::nullopt;  // of kFixedLenSequence: what pads a batch
  std::string key = {};                               // in the record; empty: the name
};
inline FeatureConfig fixed_len(std::string name, Dims shape, DType dtype,
                               std::optional<Array> default_value = std::nullopt) {
  return {std::move(name),  FeatureConfig::Kind::kFixedLen, dtype,
          std::move(shape), std::move(default_value),       {}};
}
/// Components name/indices, name/values, name/dense_shape.
inline FeatureConfig var_len(std::string name, DType dtype) {
  return {std::move(name), FeatureConfig::Kind::kVarLen, dtype, {}, std::nullopt, {}};
}
inline FeatureConfig fixed_len_sequence(std::string name, Dims shape, DType dtype,
                                        std::optional<Array> default_value = std::nullopt) {
  return {std::move(name),
          FeatureConfig::Kind::kFixedLenSequence,
          dtype,
          std::move(shape),
          std::move(default_value),
          {}};
}

/// Elements of one string component (a record, or a batch of them) parsed; `threads` as in MapOptions.
DatasetPtr parse_example(DatasetPtr input, std::vector<FeatureConfig> features, int threads = 1);

}  // namespace sluice::runtime::data
