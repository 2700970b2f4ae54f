#pragma once
// What the hooks share: the step they read, values as people print them. Private to dsl/train.

#include <string>

#include "dsl/train/session_run_hook.h"

namespace sluice::dsl::train {

/// The global step's read; FailedPrecondition "Global step should be created to use <hook>."
Tensor require_global_step_read(Graph& g, const char* hook);
int64_t read_step(Session& session, const Tensor& step);
/// A scalar bare ("0.25"), an array in brackets ("[1 2 3]"); long arrays are cut.
std::string value_text(const Array& a);
/// As printf("%g").
std::string general(double v);

}  // namespace sluice::dsl::train
