#pragma once
// Summaries: nodes that give a serialized Summary string, for FileWriter and TensorBoard. Each joins the
// SUMMARIES collection (or those it is told), so that merge_all finds it. Tag and node are `name` under the
// open name scopes; characters that a name can't have become '_'. With a family, name scope and tag are
// "family/name" and the tag has the family once more in front, as TensorFlow's. The builder's thread.
//
//   summary::scalar("loss", loss);
//   summary::histogram("weights", w, {.family = "conv1"});
//   Tensor merged = summary::merge_all(g);

#include <cstdint>
#include <string>
#include <vector>

#include "dsl/tensor.h"
#include "graph/collections.h"

namespace sluice::dsl::summary {

using Collections = std::vector<std::string>;

struct Options {
  std::string family = {};
  Collections collections = {graph::keys::kSummaries};
};

/// One number of any real type; stored as float.
Tensor scalar(const std::string& name, const Operand& tensor, const Options& o = {},
              Loc loc = Loc::current());
/// NaN or infinity among the values fails the step, "Nan in summary histogram for: <node>".
Tensor histogram(const std::string& name, const Operand& values, const Options& o = {},
                 Loc loc = Loc::current());

struct MediaOptions {
  int max_outputs = 3;
  std::string family = {};
  Collections collections = {graph::keys::kSummaries};
};
/// [batch, height, width, 1|3|4] of uint8, or of floats that are scaled per picture. Tags "<name>/image/<i>",
/// "<name>/image" when max_outputs is 1.
Tensor image(const std::string& name, const Operand& tensor, const MediaOptions& o = {},
             Loc loc = Loc::current());
/// [batch, frames, channels] or [batch, frames] floats in [-1, 1]; sample_rate in Hz. Tags as image's.
Tensor audio(const std::string& name, const Operand& tensor, const Operand& sample_rate,
             const MediaOptions& o = {}, Loc loc = Loc::current());

struct TensorOptions {
  std::string family = {};
  Collections collections = {graph::keys::kSummaries};
  std::string plugin = {}, plugin_content = {};  // which TensorBoard plugin shows it, and its own bytes
  std::string display_name = {}, description = {};
};
/// A whole tensor of any type.
Tensor tensor(const std::string& name, const Operand& value, const TensorOptions& o = {},
              Loc loc = Loc::current());
/// Strings, as Markdown; a matrix of them is a table. InvalidArgument "Expected tensor … to have dtype
/// string".
Tensor text(const std::string& name, const Tensor& strings,
            const Collections& collections = {graph::keys::kSummaries}, Loc loc = Loc::current());

struct PrCurveOptions {
  int num_thresholds = 201;
  Tensor weights = {};  // of predictions' shape; none: all 1
  std::string display_name = {}, description = {};
  Collections collections = {graph::keys::kSummaries};
};
/// Precision and recall over evenly spaced thresholds, for TensorBoard's PR-curve page; tag
/// "<name>/pr_curves". `labels` are bool, `predictions` probabilities of the same shape.
Tensor pr_curve(const std::string& name, const Tensor& labels, const Tensor& predictions,
                const PrCurveOptions& o = {}, Loc loc = Loc::current());

struct MergeOptions {
  std::string name = {};
  Collections collections = {};
};
/// One string of all of `inputs`; a tag that comes twice fails the step. InvalidArgument for an empty list.
Tensor merge(const std::vector<Tensor>& inputs, const MergeOptions& o = {}, Loc loc = Loc::current());
/// Of everything under `key` whose name matches `scope` at its start; empty when there is nothing.
Tensor merge_all(Graph& g, const std::string& key = graph::keys::kSummaries, const std::string& scope = {},
                 const std::string& name = {}, Loc loc = Loc::current());

/// `name` as tags spell it: characters outside [-/\w.] are '_', leading slashes go; a change is logged.
std::string clean_tag(const std::string& name);

}  // namespace sluice::dsl::summary
