#pragma once
// Initial values from a checkpoint or from memory (tf.contrib.framework; graph-and-training §5.4). A list of
// what to restore is made from variables, from names in the checkpoint, or by a rule for renaming; what comes
// out is a function that a Scaffold runs once, when nothing was restored from the run's own directory. The
// builder's thread makes it; the function needs no nodes and runs on a finalized graph.
//
//   auto vars = get_variables_to_restore(g, {"conv"}, {"fc8", "fc9"});
//   scaffold.init_fn = assign_from_checkpoint_fn("/old/model-300", vars);

#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dsl/partitioned.h"
#include "dsl/variable.h"
#include "runtime/session.h"

namespace sluice::dsl::train {

using InitFn = std::function<void(runtime::Session&)>;

/// Names in a checkpoint, each with the variable (or the parts of one) that takes the tensor.
class RestoreList {
 public:
  RestoreList() = default;
  /// Each under its own name, parts of a partitioned variable under the whole's.
  RestoreList(const std::vector<Variable>& variables);  // NOLINT: lists of variables are lists to restore
  RestoreList(std::initializer_list<std::pair<std::string, Variable>> renamed);
  RestoreList(const std::map<std::string, Variable>& renamed);               // NOLINT
  RestoreList(const std::map<std::string, std::vector<Variable>>& renamed);  // NOLINT
  RestoreList(std::vector<std::pair<std::string, Variable>> renamed)         // NOLINT
      : items_(std::move(renamed)) {}

  void add(const std::string& name_in_checkpoint, const Variable& v) {
    items_.emplace_back(name_in_checkpoint, v);
  }
  void add(const std::string& name_in_checkpoint, const PartitionedVariable& v);
  bool empty() const { return items_.empty(); }
  const std::vector<std::pair<std::string, Variable>>& items() const { return items_; }

 private:
  std::vector<std::pair<std::string, Variable>> items_;
};

/// The variables whose names match `pattern` (a regex, anywhere) under the name that replacing it gives
/// ("^new/(.*)" → "old/$1"); the others under their own.
RestoreList renamed_by_regex(const std::vector<Variable>& variables, const std::string& pattern,
                             const std::string& replacement);

struct AssignOptions {
  bool ignore_missing_vars = false;  // a warning instead of an error
  bool reshape_variables = false;    // of the _fn form: as many elements are enough
};

/// An op and what to feed it with.
struct AssignOp {
  Node* op = nullptr;
  std::vector<runtime::Feed> feeds;
  void run(runtime::Session& session) const { session.run({}, feeds, {op}); }
};

/// Placeholders, assignments and the values for them, read now. InvalidArgument "Checkpoint is missing
/// variable [x]", "Total size of new array must be unchanged for …".
AssignOp assign_from_checkpoint(Graph& g, const std::string& model_path, const RestoreList& variables,
                                const AssignOptions& o = {}, Loc loc = Loc::current());
/// Restores from the checkpoint when called, all or nothing, with Saver::restore's errors. Null, with the
/// warning "No Variables to restore", when nothing is left of the list. InvalidArgument "var_list cannot be
/// empty".
InitFn assign_from_checkpoint_fn(const std::string& model_path, const RestoreList& variables,
                                 const AssignOptions& o = {}, Loc loc = Loc::current());

/// A placeholder `placeholder/<variable>` and an assignment for each name. InvalidArgument "Variable x wasn't
/// found", "Variable x doesn't uniquely identify a variable". Values take the variable's shape.
AssignOp assign_from_values(Graph& g, const std::map<std::string, runtime::Array>& values,
                            Loc loc = Loc::current());
InitFn assign_from_values_fn(Graph& g, const std::map<std::string, runtime::Array>& values,
                             Loc loc = Loc::current());

/// tf.train.init_from_checkpoint: replaces initializers. "old_scope/" → "new_scope/" for whole scopes ("/" is
/// the root), "name" → "variable" for single ones, partitioned ones by the whole's name. Variables of a
/// mapped scope that the checkpoint lacks are errors.
void init_from_checkpoint(Graph& g, const std::string& checkpoint,
                          const std::map<std::string, std::string>& assignment_map, Loc loc = Loc::current());

/// Global variables that an `include` entry matches (each a regex at the start of the name; nullopt: all),
/// without those that an `exclude` entry matches. A variable that two entries include stands twice.
std::vector<Variable> get_variables_to_restore(Graph& g,
                                               const std::optional<std::vector<std::string>>& include = {},
                                               const std::vector<std::string>& exclude = {});
/// InvalidArgument "Couldn't find variable x", "Variable x does not uniquely identify a variable".
Variable get_unique_variable(Graph& g, const std::string& op_name);
/// MODEL_VARIABLES under `scope`, whose names end in `suffix`.
std::vector<Variable> get_model_variables(Graph& g, const std::string& scope = {},
                                          const std::string& suffix = {});
std::vector<Variable> get_variables_by_suffix(Graph& g, const std::string& suffix,
                                              const std::string& scope = {});
/// Variables whose name below `scope` is `given_name`.
std::vector<Variable> get_variables_by_name(Graph& g, const std::string& given_name,
                                            const std::string& scope = {});
/// Those of the list whose names match one include regex (empty: all) and no exclude regex, anywhere in the
/// name or, with `whole_start`, at its start.
std::vector<Variable> filter_variables(const std::vector<Variable>& variables,
                                       const std::vector<std::string>& include,
                                       const std::vector<std::string>& exclude = {}, bool at_start = false);

}  // namespace sluice::dsl::train
