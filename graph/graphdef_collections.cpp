// Collections to and from CollectionDef (graph-and-training §7.8). Variables are VariableDef messages, other
// known protos stay as bytes, tensors and ops are kept by name.

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "graph/graphdef_internal.h"
#include "graph/proto/meta_graph.pb.h"
#include "graph/support/log.h"

namespace sluice::graph::detail {
namespace {

using VariablePtr = std::shared_ptr<VariableInfo>;

// The collections whose items TensorFlow stores as VariableDef.
constexpr std::array<std::string_view, 10> kVariableKeys = {keys::kGlobalVariables,
                                                            keys::kLocalVariables,
                                                            keys::kMetricVariables,
                                                            keys::kModelVariables,
                                                            keys::kTrainableVariables,
                                                            keys::kTrainableResourceVariables,
                                                            keys::kConcatenatedVariables,
                                                            keys::kMovingAverageVariables,
                                                            keys::kGlobalStep,
                                                            keys::kEvalStep};

// Those whose items are other messages.
constexpr std::array<std::string_view, 4> kMessageKeys = {keys::kSavers, keys::kQueueRunners,
                                                          keys::kCondContext, keys::kWhileContext};

template <size_t N>
bool contains(const std::array<std::string_view, N>& keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

std::string tensor_name(const Node* node, int index) {
  return node ? cat(node->name(), ":", index) : std::string();
}

proto::VariableDef to_proto(const VariableInfo& v) {
  proto::VariableDef out;
  out.set_variable_name(tensor_name(v.node, 0));
  if (v.initializer) out.set_initializer_name(v.initializer->name());
  out.set_snapshot_name(tensor_name(v.snapshot_node, v.snapshot_index));
  out.set_initial_value_name(tensor_name(v.initial_value_node, v.initial_value_index));
  out.set_is_resource(v.is_resource);
  out.set_trainable(v.trainable);
  out.set_synchronization(v.synchronization);
  out.set_aggregation(v.aggregation);
  if (v.slice) {
    auto* s = out.mutable_save_slice_info_def();
    s->set_full_name(v.slice->full_name);
    s->mutable_full_shape()->Add(v.slice->full_shape.begin(), v.slice->full_shape.end());
    s->mutable_var_offset()->Add(v.slice->offset.begin(), v.slice->offset.end());
    s->mutable_var_shape()->Add(v.slice->shape.begin(), v.slice->shape.end());
  }
  return out;
}

std::string bytes_of(const google::protobuf::Message& m) { return serialize(m, FileFormat::kBinary); }

// One collection; false when its items are of kinds that do not go together.
bool collection_to_proto(std::string_view key, const std::vector<CollectionItem>& items,
                         proto::CollectionDef* out) {
  const bool as_variables = contains(kVariableKeys, key) &&
                            std::all_of(items.begin(), items.end(),
                                        [](const auto& i) { return std::holds_alternative<VariablePtr>(i); });
  for (const CollectionItem& item : items) {
    if (out->kind_case() != proto::CollectionDef::KIND_NOT_SET) {
      const bool bytes = as_variables || std::holds_alternative<std::string>(item) ||
                         (std::get_if<OpaqueItem>(&item) && !std::get<OpaqueItem>(item).any);
      const bool any = std::get_if<OpaqueItem>(&item) && std::get<OpaqueItem>(item).any;
      const auto kind = bytes                                   ? proto::CollectionDef::kBytesList
                        : any                                   ? proto::CollectionDef::kAnyList
                        : std::holds_alternative<int64_t>(item) ? proto::CollectionDef::kInt64List
                        : std::holds_alternative<float>(item)   ? proto::CollectionDef::kFloatList
                                                                : proto::CollectionDef::kNodeList;
      if (kind != out->kind_case()) return false;
    }
    if (const auto* v = std::get_if<VariablePtr>(&item); v && as_variables) {
      out->mutable_bytes_list()->add_value(bytes_of(to_proto(**v)));
    } else if (const auto* s = std::get_if<std::string>(&item)) {
      out->mutable_bytes_list()->add_value(*s);
    } else if (const auto* i = std::get_if<int64_t>(&item)) {
      out->mutable_int64_list()->add_value(*i);
    } else if (const auto* f = std::get_if<float>(&item)) {
      out->mutable_float_list()->add_value(*f);
    } else if (const auto* o = std::get_if<OpaqueItem>(&item)) {
      if (!o->any) {
        out->mutable_bytes_list()->add_value(o->bytes);
      } else if (!out->mutable_any_list()->add_value()->ParseFromString(o->bytes)) {
        return false;
      }
    } else {
      out->mutable_node_list()->add_value(item_name(item));
    }
  }
  return true;
}

class CollectionReader {
 public:
  CollectionReader(Graph& graph, const proto::MetaGraphDef& in, const std::string& scope,
                   const ReadContext& context)
      : graph_(graph), in_(in), scope_(scope), context_(context) {}

  void run() {
    // Sorted, but trainable variables first: older files do not state `trainable`, and the first reading of a
    // variable decides.
    std::set<std::string> names;
    for (const auto& [key, value] : in_.collection_def()) names.insert(key);
    for (const char* first : {keys::kTrainableVariables})
      if (names.erase(first)) read(first);
    for (const std::string& key : names) read(key);
  }

 private:
  [[noreturn]] void fail(const std::string& key, const std::string& rule) const {
    context_.fail(Code::kInvalidArgument, cat("collection '", key, "': ", rule));
  }

  void read(const std::string& key) {
    const proto::CollectionDef& def = in_.collection_def().at(key);
    auto& list = graph_.collections().ref(key);
    switch (def.kind_case()) {
      case proto::CollectionDef::kNodeList:
        for (const auto& name : def.node_list().value()) list.push_back(element(key, name));
        break;
      case proto::CollectionDef::kBytesList:
        for (const auto& bytes : def.bytes_list().value()) {
          if (contains(kVariableKeys, key))
            list.push_back(variable(key, bytes));
          else if (contains(kMessageKeys, key))
            list.push_back(OpaqueItem{.bytes = bytes});
          else
            list.push_back(bytes);
        }
        break;
      case proto::CollectionDef::kInt64List:
        for (int64_t v : def.int64_list().value()) list.push_back(v);
        break;
      case proto::CollectionDef::kFloatList:
        for (float v : def.float_list().value()) list.push_back(v);
        break;
      case proto::CollectionDef::kAnyList:
        for (const auto& v : def.any_list().value())
          list.push_back(OpaqueItem{.bytes = bytes_of(v), .any = true});
        break;
      case proto::CollectionDef::KIND_NOT_SET:
        log_warning("collection '", key, "' of ",
                    context_.source.empty() ? "the meta graph" : context_.source,
                    " states no kind and is skipped");
        break;
    }
  }

  GraphElement element(const std::string& key, const std::string& name) const {
    const size_t colon = name.rfind(':');
    const std::string op = scope_ + name.substr(0, colon);
    Node* node = graph_.find(op);
    if (!node) fail(key, cat("names '", name, "', which is not in the graph"));
    if (colon == std::string::npos) return {node, -1};
    int index = 0;
    for (const char c : name.substr(colon + 1)) {
      if (c < '0' || c > '9' || index > node->num_outputs()) fail(key, cat("'", name, "' is no tensor name"));
      index = index * 10 + (c - '0');
    }
    if (index >= node->num_outputs())
      fail(key, cat("names '", name, "', but '", op, "' has only ", node->num_outputs(), " outputs"));
    return {node, index};
  }

  Output tensor(const std::string& key, const std::string& name) const {
    if (name.empty()) return {};
    const GraphElement e = element(key, name);
    return {e.node, std::max(e.index, 0)};
  }

  VariablePtr variable(const std::string& key, const std::string& bytes) {
    // The same message in several collections is one variable.
    const auto known = variables_.find(bytes);
    if (known != variables_.end()) return known->second;
    proto::VariableDef def;
    std::string why;
    if (!parse(bytes, false, &def, &why)) fail(key, cat("holds a VariableDef that cannot be read: ", why));
    auto v = std::make_shared<VariableInfo>();
    v->node = tensor(key, def.variable_name()).node;
    if (!v->node) fail(key, "holds a VariableDef without a name");
    if (!def.initializer_name().empty()) v->initializer = element(key, def.initializer_name()).node;
    const Output snapshot = tensor(key, def.snapshot_name()), initial = tensor(key, def.initial_value_name());
    v->snapshot_node = snapshot.node, v->snapshot_index = snapshot.index;
    v->initial_value_node = initial.node, v->initial_value_index = initial.index;
    v->is_resource = def.is_resource();
    v->trainable = def.trainable() || key == keys::kTrainableVariables;
    v->synchronization = def.synchronization(), v->aggregation = def.aggregation();
    if (def.has_save_slice_info_def()) {
      const auto& s = def.save_slice_info_def();
      v->slice = std::make_shared<const SaveSlice>(
          SaveSlice{.full_name = s.full_name(),
                    .full_shape = Dims(s.full_shape().begin(), s.full_shape().end()),
                    .offset = Dims(s.var_offset().begin(), s.var_offset().end()),
                    .shape = Dims(s.var_shape().begin(), s.var_shape().end())});
    }
    variables_.emplace(bytes, v);
    return v;
  }

  Graph& graph_;
  const proto::MetaGraphDef& in_;
  const std::string& scope_;
  const ReadContext& context_;
  std::map<std::string, VariablePtr, std::less<>> variables_;
};

}  // namespace

void collections_to_proto(const Graph& graph, proto::MetaGraphDef* out) {
  for (const std::string& key : graph.collections().keys()) {
    proto::CollectionDef def;
    if (collection_to_proto(key, graph.collections().get(key), &def))
      (*out->mutable_collection_def())[key] = std::move(def);
    else
      log_warning("collection '", key, "' holds items of several kinds and is left out of the meta graph");
  }
}

void collections_from_proto(Graph& graph, const proto::MetaGraphDef& in, const std::string& scope,
                            const ReadContext& context) {
  CollectionReader(graph, in, scope, context).run();
}

}  // namespace sluice::graph::detail
