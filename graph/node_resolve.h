#pragma once
// How a node's flattened inputs and given attrs settle every type, number and default of its OpDef, with
// TensorFlow's error texts. Used by Graph::add and Graph::import_node only.

#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace sluice::graph {

struct ResolvedNode {
  AttrMap attrs;                    // complete: given, inferred and default ones
  std::vector<DType> output_types;  // ref types where the OpDef says Ref
};

/// Number of inputs each input arg takes. Throws when the inputs cannot be shared out.
std::vector<int> arg_lengths(const OpDef& def, const AttrMap& attrs, int num_inputs, const std::string& node);

/// Throws InvalidArgument. A null input (a back edge to come) is not checked.
ResolvedNode resolve_node(const OpDef& def, const std::string& node, std::span<const Output> inputs,
                          AttrMap attrs);

}  // namespace sluice::graph
