#include "dsl/train/restore.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "dsl/require.h"
#include "dsl/train/checkpoint_state.h"
#include "dsl/train/resume_state.h"
#include "dsl/train/saver.h"
#include "graph/support/log.h"
#include "graph/support/near.h"
#include "runtime/io/slice.h"

namespace sluice::dsl::train {

using runtime::Array;
using runtime::Layout;
using runtime::ValueSpec;
using runtime::VariableBuffer;
namespace io = runtime::io;

namespace {

constexpr const char* kMissingText =
    "Restoring from checkpoint failed. This is most likely due to a Variable name or other graph key that is "
    "missing from the checkpoint. Please ensure that you have not altered the graph expected based on the "
    "checkpoint. Original error:\n\n";
constexpr const char* kMismatchText =
    "Restoring from checkpoint failed. This is most likely due to a mismatch between the current graph and "
    "the "
    "graph from the checkpoint. Please ensure that you have not altered the graph expected based on the "
    "checkpoint. Original error:\n\n";
constexpr size_t kNamesShown = 20;

std::string join(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < names.size() && i < kNamesShown; ++i) out += cat(i ? ", " : "", names[i]);
  if (names.size() > kNamesShown) out += cat(" and ", names.size() - kNamesShown, " more");
  return out;
}

// One variable and what it will hold.
struct Item {
  const std::string* name;  // in the list
  std::string key;          // in the checkpoint
  const Variable* variable;
  Dims dims;  // the shape it takes
  std::shared_ptr<runtime::Variable> target;
  std::shared_ptr<VariableBuffer> value;
};

// "" when the stored tensor fits, else why not.
std::string misfit(Item* item, const io::BundleEntry& e, const RestoreRules& rules) {
  const Variable& v = *item->variable;
  if (e.dtype != v.dtype())
    return cat("tensor_name = ", *item->name, "; expected dtype ", v.dtype(),
               " does not equal original dtype ", e.dtype);
  const auto& slice = v.info()->slice;
  if (slice) {
    item->dims = slice->shape;
    if (e.dims == slice->full_shape) return {};
    return cat("tensor_name = ", *item->name, "; shape in shape_and_slice spec ",
               graph::dims_string(slice->full_shape),
               " does not match the shape stored in checkpoint: ", graph::dims_string(e.dims));
  }
  item->dims = e.dims;
  if (v.shape().compatible(Shape(e.dims))) return {};
  if (rules.reshape && v.shape().fully_known() &&
      graph::num_elements(v.shape().dims()) == graph::num_elements(e.dims)) {
    item->dims = v.shape().dims();
    return {};
  }
  return cat("variable ", v.name(), " (tensor_name = ", *item->name,
             "): Assign requires shapes of both tensors to match. lhs shape= ", v.shape(),
             " rhs shape= ", graph::dims_string(e.dims));
}

void read_value(const io::BundleReader& reader, Item* item) {
  const Variable& v = *item->variable;
  const Layout layout = item->target->preferred_layout();
  const auto& slice = v.info()->slice;
  item->value = std::make_shared<VariableBuffer>(ValueSpec{v.dtype(), item->dims, layout});
  if (slice || v.dtype() == DType::kString) {
    Array value = slice ? reader.read_slice(item->key, io::parse_slice_spec(slice_spec(v)).slice)
                        : reader.read(item->key);
    value = value.reshaped(item->dims);
    if (v.dtype() == DType::kString)
      item->value->strings = std::move(value);
    else
      runtime::reorder(v.dtype(), item->dims, Layout{}, value.data(), layout, item->value->buffer.data());
  } else if (layout.plain()) {
    reader.read_into(item->key, item->value->buffer.data());
  } else {
    const Array value = reader.read(item->key).reshaped(item->dims);
    runtime::reorder(v.dtype(), item->dims, Layout{}, value.data(), layout, item->value->buffer.data());
  }
}

}  // namespace

void restore_variables(runtime::Session& session, const std::string& path,
                       const std::vector<std::pair<std::string, Variable>>& variables,
                       const RestoreRules& rules) {
  SLUICE_REQUIRE(!path.empty(), Code::kInvalidArgument, "Can't load save_path when it is empty.");
  SLUICE_REQUIRE(checkpoint_exists(path), Code::kInvalidArgument,
                 "The passed save_path is not a valid checkpoint: ", path);
  const io::BundleReader reader(path);
  std::vector<std::string> known, missing, missing_lines, wrong;
  std::set<std::string_view> used;
  for (const auto& [key, e] : reader.entries())
    if (!key.starts_with(kResumePrefix) && !key.starts_with("_CHECKPOINTABLE")) known.push_back(key);
  std::vector<Item> items;
  // Checkpoints of TF2's objects hold variables under attribute paths, and a list of the names they had.
  const std::map<std::string, std::string> by_object = io::object_graph_names(reader);
  for (const auto& [name, v] : variables) {
    const io::BundleEntry* e = reader.find(name);
    const auto mapped = by_object.find(name);
    const std::string& key = !e && mapped != by_object.end() ? mapped->second : name;
    if (!e) e = reader.find(key);
    used.insert(key);
    if (!e) {
      if (!missing.empty() && missing.back() == name) continue;  // the next part of it
      missing.push_back(name);
      missing_lines.push_back(cat("Key ", name, " not found in checkpoint.", did_you_mean(name, known)));
      continue;
    }
    Item item{.name = &name, .key = key, .variable = &v};
    if (std::string why = misfit(&item, *e, rules); !why.empty())
      wrong.push_back(std::move(why));
    else
      items.push_back(std::move(item));
  }
  std::vector<std::string> surplus;
  for (const std::string& key : known)
    if (!used.contains(key)) surplus.push_back(key);
  const bool fails = !wrong.empty() || (!missing.empty() && !rules.ignore_missing);
  if (fails) {
    const bool absent = !missing.empty() && !rules.ignore_missing;
    std::string text = cat(absent ? kMissingText : kMismatchText, path, ":");
    if (absent) text += cat("\n", missing.size(), " of ", variables.size(), " variables are missing:");
    if (absent)
      for (const std::string& line : missing_lines) text += "\n  " + line;
    if (!wrong.empty()) text += cat("\n", wrong.size(), " of ", variables.size(), " variables do not fit:");
    for (const std::string& line : wrong) text += "\n  " + line;
    if (!surplus.empty()) text += cat("\nThe checkpoint also holds, and no variable takes: ", join(surplus));
    if (!by_object.empty())
      text +=
          "\nThe checkpoint is object-based (tf.train.Checkpoint); the names it lists for its variables were "
          "tried.";
    text += "\nNo variable was changed.";
    throw_error(absent ? Code::kNotFound : Code::kInvalidArgument, text);
  }
  for (const std::string& name : missing) log_warning("Variable ", name, " missing in checkpoint ", path);
  runtime::ResourceManager& resources = session.resources();
  for (Item& item : items) {
    const auto [container, key] = resource_key(*item.variable);
    item.target = resources.variable(container, key, item.variable->dtype());
    read_value(reader, &item);
  }
  std::vector<std::pair<std::string, Array>> state;
  if (rules.resume_state) state = read_resume_state(reader);
  // An object may refuse its state; nothing after that fails.
  if (!state.empty()) apply_resume_state(session, state);
  for (Item& item : items) item.target->install(std::move(item.value));
  if (!surplus.empty())
    log_info(path, " also holds ", surplus.size(), " tensors that no variable takes: ", join(surplus));
}

std::string slice_spec(const Variable& v) {
  const auto& slice = v.info()->slice;
  if (!slice) return {};
  std::string out;
  for (int64_t d : slice->full_shape) out += cat(d, " ");
  for (size_t i = 0; i < slice->offset.size(); ++i)
    out += cat(i ? ":" : "", slice->offset[i], ",", slice->shape[i]);
  return out;
}

std::string saved_name(const Variable& v) { return v.info()->slice ? v.info()->slice->full_name : v.name(); }

void sort_and_check(std::vector<std::pair<std::string, Variable>>* variables, Loc loc) {
  auto offset = [](const Variable& v) { return v.info()->slice ? v.info()->slice->offset : Dims{}; };
  std::stable_sort(variables->begin(), variables->end(), [&](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : offset(a.second) < offset(b.second);
  });
  for (size_t i = 1; i < variables->size(); ++i) {
    const auto& [name, v] = (*variables)[i];
    const auto& [former_name, former] = (*variables)[i - 1];
    const bool parts = v.info()->slice && former.info()->slice && offset(v) != offset(former);
    SLUICE_REQUIRE_AT(loc, name != former_name || parts, Code::kInvalidArgument,
                      "At least two variables have the same name: ", name);
  }
}

}  // namespace sluice::dsl::train
