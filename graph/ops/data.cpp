// Checkpoint files: what the graphs of tf.train.Saver are made of.

#include <charconv>

#include "graph/ops/register.h"
#include "graph/ops/shapes.h"

namespace sluice::graph::ops {
namespace {

constexpr uint32_t kFileOp = kStateful | kHostOnly;

void save_shape(InferContext& c) {
  require_scalar(c, 0);
  const int64_t n = c.num_inputs() - 3;
  for (int i : {1, 2}) require_dim(c, c.with_rank(i, 1).dim(0), n);
}

int64_t number(InferContext& c, std::string_view text) {
  int64_t v = 0;
  const auto r = std::from_chars(text.data(), text.data() + text.size(), v);
  require(c, r.ec == std::errc() && r.ptr == text.data() + text.size(),
          "Expected a pair of numbers or '-' but got '", text, "'");
  return v;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t at = 0;;) {
    const size_t next = text.find(separator, at);
    parts.push_back(text.substr(at, next - at));
    if (next == std::string_view::npos) return parts;
    at = next + 1;
  }
}

// "2 3 0,2:0,1" names rows 0–1 and column 0 of a [2, 3] variable; "" its whole, of unknown shape.
Shape sliced_shape(InferContext& c, std::string_view spec) {
  if (spec.empty()) return Shape();
  auto words = split(spec, ' ');
  const auto extents = split(words.back(), ':');
  words.pop_back();
  Dims dims;
  for (size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] == "-") {
      dims.push_back(i < words.size() ? number(c, words[i]) : kUnknownDim);
      continue;
    }
    const auto pair = split(extents[i], ',');
    require(c, pair.size() == 2, "Expected a pair of numbers or '-' but got '", extents[i],
            "': string = ", words.empty() ? std::string_view() : extents[i]);
    dims.push_back(number(c, pair[1]));
  }
  require(c, dims.size() == words.size(), "The slice '", spec, "' names ", dims.size(), " of ", words.size(),
          " dimensions");
  return Shape(std::move(dims));
}

void restore_shape(InferContext& c) {
  require_scalar(c, 0);
  const Shape names = c.with_rank(1, 1), slices = c.with_rank(2, 1);
  c.merge(names, slices);
  const auto specs = c.value(2);
  if (!specs || specs->dtype() != DType::kString) return;
  require(c, specs->elements() == c.num_outputs(),
          "The number of shape_and_slice doesn't match tensor outputs.");
  for (int i = 0; i < c.num_outputs(); ++i)
    c.set_output(i, sliced_shape(c, specs->as_strings()[static_cast<size_t>(i)]));
}

void merge_checkpoints_shape(InferContext& c) {
  c.with_rank(0, 1);
  require_scalar(c, 1);
}

}  // namespace

void register_data(OpRegistry& r) {
  r.add({.name = "SaveV2",
         .inputs = {"prefix: string", "tensor_names: string", "shape_and_slices: string", "tensors: dtypes"},
         .attrs = {"dtypes: list(type) >= 1"},
         .doc = "Writes the tensors to the checkpoint `prefix` under their names.",
         .traits = kFileOp,
         .infer = save_shape});
  r.add({.name = "RestoreV2",
         .inputs = {"prefix: string", "tensor_names: string", "shape_and_slices: string"},
         .outputs = {"tensors: dtypes"},
         .attrs = {"dtypes: list(type) >= 1"},
         .doc = "Reads tensors by name from the checkpoint `prefix`.",
         .traits = kFileOp | kDynamicShape,
         .infer = restore_shape});
  r.add({.name = "MergeV2Checkpoints",
         .inputs = {"checkpoint_prefixes: string", "destination_prefix: string"},
         .attrs = {"delete_old_dirs: bool = true"},
         .doc = "Makes one checkpoint of the shards written under several prefixes.",
         .traits = kFileOp,
         .infer = merge_checkpoints_shape,
         .later_attrs = {"allow_missing_files: bool = false"}});
}

}  // namespace sluice::graph::ops
