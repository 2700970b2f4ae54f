#pragma once
// tf.Example and tf.SequenceExample records as plain C++ values (graph-and-training §7.2). Values only; any
// thread. Example: `parse_example(record).at("image/encoded").bytes.at(0)`.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::runtime::io {

struct Feature {
  /// kNone stands only in a feature list, for a step whose feature has no kind.
  enum class Kind { kBytes, kFloat, kInt64, kNone };
  Kind kind = Kind::kBytes;
  std::vector<std::string> bytes;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  bool operator==(const Feature&) const = default;
};

using Example = std::map<std::string, Feature, std::less<>>;

/// Features of the whole sequence, and lists with one feature a step.
struct SequenceExample {
  Example context;
  std::map<std::string, std::vector<Feature>, std::less<>> feature_lists;
  bool operator==(const SequenceExample&) const = default;
};

/// Features of no kind are left out. InvalidArgument "Could not parse example input, value: '…'".
Example parse_example(std::string_view record);
/// The same example always gives the same bytes.
std::string serialize_example(const Example& example);
/// The same for sequences: context features of no kind are left out, steps of no kind keep their place.
SequenceExample parse_sequence_example(std::string_view record);
std::string serialize_sequence_example(const SequenceExample& example);

/// The feature's only value, with TensorFlow's complaint when it is missing, of another kind, or not one.
const std::string& single_bytes(const Example& example, std::string_view key);
int64_t single_int(const Example& example, std::string_view key);

}  // namespace sluice::runtime::io
