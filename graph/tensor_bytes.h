#pragma once
// One constant as a serialized TensorProto, for files that hold tensors outside a graph (summaries of
// tensors, signatures). Pure; any thread.

#include <cstdint>
#include <string>
#include <string_view>

#include "graph/literal.h"

namespace sluice::graph {

std::string literal_to_bytes(const Literal& literal);
/// InvalidArgument naming `source` when the bytes are no TensorProto or its sizes disagree. One value may
/// stand for many elements; what that would allocate beyond the message is refused above `max_repeat_bytes`.
Literal literal_from_bytes(std::string_view bytes, const std::string& source = "tensor",
                           uint64_t max_repeat_bytes = uint64_t{1} << 24);

}  // namespace sluice::graph
