#pragma once
// What the graphdef*.cpp files share: our types to and from TensorFlow's messages. Private to graph/; the
// messages are only declared here, so no protobuf header is needed to include this. Any thread; a ReadContext
// belongs to one import.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "graph/graph.h"
#include "graph/graphdef.h"

namespace google::protobuf {
class Message;
}
namespace sluice::proto {
class AttrValue;
class GraphDef;
class MetaGraphDef;
class NodeDef;
class OpDef;
class SaverDef;
class TensorProto;
class TensorShapeProto;
}  // namespace sluice::proto

namespace sluice::graph::detail {

/// The GraphDef version this library is made for: TensorFlow 1.15's.
inline constexpr int kConsumer = 134;

/// Where an import stands (for messages) and what it may still allocate beyond the bytes that the file holds.
struct ReadContext {
  std::string source;  // file name, may be ""
  std::string node;    // node being read, may be ""
  std::string attr;    // attr being read, may be ""
  /// A constant may state one value for many elements. All such repetition in a file together stays under 2
  /// GiB, which is what a file could have held in full.
  uint64_t repeat_bytes_left = uint64_t{1} << 31;
  /// Outputs that number attrs ask for ("num_split = N") beyond one a node; they cost a file nothing.
  int64_t extra_outputs_left = int64_t{1} << 20;

  [[noreturn]] void fail(Code code, const std::string& rule) const;
};

void literal_to_proto(const Literal& literal, proto::TensorProto* out);
Literal literal_from_proto(const proto::TensorProto& in, ReadContext& context);
/// Bytes that reading it would allocate beyond the values it holds; the largest number when that overflows.
uint64_t repeat_bytes(const proto::TensorProto& in);
void shape_to_proto(const Shape& shape, proto::TensorShapeProto* out);
Shape shape_from_proto(const proto::TensorShapeProto& in, ReadContext& context);
void attr_to_proto(const AttrValue& value, proto::AttrValue* out);
AttrValue attr_from_proto(const proto::AttrValue& in, ReadContext& context);
void op_def_to_proto(const OpDef& def, proto::OpDef* out);

/// `with_shapes` adds `_output_shapes` as TensorFlow's meta graphs have it.
void graph_to_proto(const Graph& graph, bool with_shapes, proto::GraphDef* out);
/// Takes the message apart while it reads, so that constants are not held twice. `producer_default(op, attr)`
/// is the default that the writing program's op list states, null when it states none. Returns the name scope
/// that was put before every name: "" or "prefix/".
using ProducerDefault =
    std::function<const proto::AttrValue*(const std::string& op, const std::string& attr)>;
std::string graph_from_proto(Graph& graph, proto::GraphDef& in, const ImportOptions& options,
                             const ProducerDefault& producer_default = {});

void collections_to_proto(const Graph& graph, proto::MetaGraphDef* out);
void collections_from_proto(Graph& graph, const proto::MetaGraphDef& in, const std::string& scope,
                            const ReadContext& context);

/// Deterministic bytes or text; InvalidArgument "GraphDef cannot be larger than 2GB." beyond the format's
/// limit.
std::string serialize(const google::protobuf::Message& message, FileFormat format);
/// False (and the reason) when the bytes are not such a message. `text` tells which form to read.
bool parse(std::string_view bytes, bool text, google::protobuf::Message* message, std::string* why);
/// True when the bytes hold control characters that no text file has.
bool looks_binary(std::string_view bytes);

}  // namespace sluice::graph::detail
