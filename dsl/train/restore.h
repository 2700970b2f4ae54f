#pragma once
// Checkpoint → variables, all or nothing; what savers and warm starts share. Private to dsl/train. One thread
// a session.

#include <string>
#include <utility>
#include <vector>

#include "dsl/variable.h"
#include "runtime/session.h"

namespace sluice::dsl::train {

struct RestoreRules {
  bool reshape = false;         // as many elements are enough
  bool ignore_missing = false;  // a warning for each
  bool resume_state = false;    // random streams and Saveables too, where the checkpoint has them
};

/// Reads and checks every tensor, then sets every variable. One error (NotFound where something is missing,
/// else InvalidArgument, with TF's first sentence) lists everything missing, with near names, everything of
/// another type or shape, and the names left over. DataLoss for a damaged file. Left-over names alone are a
/// log line.
void restore_variables(runtime::Session& session, const std::string& path,
                       const std::vector<std::pair<std::string, Variable>>& variables,
                       const RestoreRules& rules);

/// "5 4 0,2:0,4" for a part of a partitioned variable, "" for a whole one.
std::string slice_spec(const Variable& v);
/// The name a variable has in checkpoints: its own, or that of the whole it is a part of.
std::string saved_name(const Variable& v);
/// Sorted by name, parts by offset; InvalidArgument for two variables of one name.
void sort_and_check(std::vector<std::pair<std::string, Variable>>* variables, Loc loc);

}  // namespace sluice::dsl::train
