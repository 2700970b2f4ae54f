#include "graph/graphdef_internal.h"
#include "graph/proto/graph.pb.h"
#include "graph/tensor_bytes.h"

namespace sluice::graph {

std::string literal_to_bytes(const Literal& literal) {
  proto::TensorProto message;
  detail::literal_to_proto(literal, &message);
  return detail::serialize(message, FileFormat::kBinary);
}

Literal literal_from_bytes(std::string_view bytes, const std::string& source, uint64_t max_repeat_bytes) {
  proto::TensorProto message;
  std::string why;
  SLUICE_REQUIRE(detail::parse(bytes, false, &message, &why), Code::kInvalidArgument, source,
                 ": not a TensorProto: ", why);
  detail::ReadContext context{.source = source, .repeat_bytes_left = max_repeat_bytes};
  return detail::literal_from_proto(message, context);
}

}  // namespace sluice::graph
