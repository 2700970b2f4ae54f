#pragma once
// What get_variable and variable scopes remember, kept with the graph. Private to the DSL; the builder's
// thread.

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "dsl/variable.h"

namespace sluice::dsl {

struct VariableStore {
  struct Scope {
    std::string path;
    Reuse reuse = Reuse::kFalse;
    Initializer initializer;
    Regularizer regularizer;
    std::optional<bool> use_resource;
    std::optional<DType> dtype;
  };
  struct Entry {
    Variable variable;
    Loc loc;
  };
  std::unordered_map<std::string, Entry> variables;
  std::vector<Scope> scopes{Scope{}};
  std::map<std::string, int> scope_counts;  // openings of each path, for default names

  static VariableStore& of(Graph& g);
};

/// Makes the nodes of a variable. `name` is absolute ("a/w") or, with scoped, under the open name scopes.
Variable create_variable(Graph& g, const std::string& name, bool scoped, const Dims& shape,
                         const VariableOptions& o, bool use_resource, Loc loc);

}  // namespace sluice::dsl
