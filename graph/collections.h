#pragma once
// Named lists of things that belong to a graph: variables, losses, update ops (TensorFlow's collections,
// under its keys; graph-and-training §1.6). Order is insertion order, duplicates are allowed. Part of a Graph
// and under its thread rule. Adding to a finalized graph's collection is an error raised by Graph-level
// callers.

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "graph/shape.h"

namespace sluice::graph {

class Node;
struct Output;

/// The standard keys.
namespace keys {
inline constexpr const char* kGlobalVariables = "variables";
inline constexpr const char* kLocalVariables = "local_variables";
inline constexpr const char* kMetricVariables = "metric_variables";
inline constexpr const char* kModelVariables = "model_variables";
inline constexpr const char* kTrainableVariables = "trainable_variables";
inline constexpr const char* kTrainableResourceVariables = "trainable_resource_variables";
inline constexpr const char* kMovingAverageVariables = "moving_average_variables";
inline constexpr const char* kConcatenatedVariables = "concatenated_variables";
inline constexpr const char* kSummaries = "summaries";
inline constexpr const char* kQueueRunners = "queue_runners";
inline constexpr const char* kTableInitializers = "table_initializer";
inline constexpr const char* kAssetFilepaths = "asset_filepaths";
inline constexpr const char* kRegularizationLosses = "regularization_losses";
inline constexpr const char* kLosses = "losses";
inline constexpr const char* kUpdateOps = "update_ops";
inline constexpr const char* kSavers = "savers";
inline constexpr const char* kSaveableObjects = "saveable_objects";
inline constexpr const char* kResources = "resources";
inline constexpr const char* kLocalResources = "local_resources";
inline constexpr const char* kInitOp = "init_op";
inline constexpr const char* kLocalInitOp = "local_init_op";
inline constexpr const char* kReadyOp = "ready_op";
inline constexpr const char* kReadyForLocalInitOp = "ready_for_local_init_op";
inline constexpr const char* kSummaryOp = "summary_op";
inline constexpr const char* kGlobalStep = "global_step";
inline constexpr const char* kEvalStep = "eval_step";
inline constexpr const char* kTrainOp = "train_op";
inline constexpr const char* kCondContext = "cond_context";
inline constexpr const char* kWhileContext = "while_context";
inline constexpr const char* kWeights = "weights";
inline constexpr const char* kBiases = "biases";
inline constexpr const char* kActivations = "activations";
inline constexpr const char* kGlobalStepReadOpCache = "global_step_read_op_cache";
}  // namespace keys

/// Part of a larger logical variable (VariableDef.save_slice_info_def).
struct SaveSlice {
  std::string full_name;
  Dims full_shape, offset, shape;
};

/// A variable as the graph's author sees it: what VariableDef stores. One object may stand in several
/// collections.
struct VariableInfo {
  Node* node = nullptr;         // VarHandleOp or VariableV2
  Node* initializer = nullptr;  // the assign op that sets the initial value
  Node* snapshot_node =
      nullptr;  // the op whose output `snapshot_index` reads the value ("v/read", "v/Read/ReadVariableOp")
  int snapshot_index = 0;
  Node* initial_value_node = nullptr;
  int initial_value_index = 0;
  bool is_resource = true;
  bool trainable = true;
  std::shared_ptr<const SaveSlice> slice;  // null unless partitioned
  int32_t synchronization = 0, aggregation = 0;
};

/// A named graph element kept by (node, index); index -1 is the op itself.
struct GraphElement {
  Node* node = nullptr;
  int index = -1;
  bool operator==(const GraphElement&) const = default;
};

/// Bytes of a message this library does not interpret (QueueRunnerDef, CondContextDef …), kept verbatim.
struct OpaqueItem {
  std::string bytes;
  bool any = false;  // the bytes are a google.protobuf.Any and go back into an any_list
  bool operator==(const OpaqueItem&) const = default;
};

using CollectionItem =
    std::variant<GraphElement, std::shared_ptr<VariableInfo>, std::string, int64_t, float, OpaqueItem>;

/// The item's `.name` as TensorFlow shows it ("w:0" for tensors and variables, "op" for ops); "" when it has
/// none.
std::string item_name(const CollectionItem& item);
bool same_item(const CollectionItem& a, const CollectionItem& b);

class Collections {
 public:
  void add(std::string_view key, CollectionItem item);
  /// Adds unless an equal item is already there.
  void add_unique(std::string_view key, CollectionItem item);
  /// A copy; with `scope`, the items whose name matches the regex at its start (items without a name are
  /// dropped).
  std::vector<CollectionItem> get(std::string_view key, std::string_view scope = {}) const;
  /// The live list, created when missing.
  std::vector<CollectionItem>& ref(std::string_view key);
  void clear(std::string_view key);
  /// Keys of non-empty collections, sorted.
  std::vector<std::string> keys() const;
  bool empty(std::string_view key) const;

  /// Typed views of `get`: items of other kinds are left out.
  std::vector<std::shared_ptr<VariableInfo>> variables(std::string_view key,
                                                       std::string_view scope = {}) const;
  std::vector<GraphElement> elements(std::string_view key, std::string_view scope = {}) const;

 private:
  std::map<std::string, std::vector<CollectionItem>, std::less<>> lists_;
};

}  // namespace sluice::graph
