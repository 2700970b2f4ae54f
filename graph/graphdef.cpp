// Bytes, text and files around the messages: formats, limits, recognition.

#include "graph/graphdef.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/text_format.h>

#include <climits>

#include "graph/graphdef_internal.h"
#include "graph/proto/meta_graph.pb.h"
#include "graph/support/file.h"

namespace sluice::graph {
namespace detail {
namespace {

namespace pb = google::protobuf;

// Deeper nesting than any real file has; keeps hostile ones off the stack.
constexpr int kRecursionLimit = 100;

// Keeps the text parser's first error and first warning (an unknown field), with their places.
class FirstError : public pb::io::ErrorCollector {
 public:
  void AddWarning(int line, pb::io::ColumnNumber column, const std::string& message) override {
    if (warning_.empty()) warning_ = cat("line ", line + 1, ", column ", column + 1, ": ", message);
  }
  const std::string& warning() const { return warning_; }
  void AddError(int line, pb::io::ColumnNumber column, const std::string& message) override {
    if (text_.empty()) text_ = cat("line ", line + 1, ", column ", column + 1, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_, warning_;
};

// The version of the program that wrote a graph file; 0 when the message is none or states none.
int producer_of(const pb::Message& message) {
  if (const auto* g = dynamic_cast<const proto::GraphDef*>(&message)) return g->versions().producer();
  if (const auto* m = dynamic_cast<const proto::MetaGraphDef*>(&message))
    return m->graph_def().versions().producer();
  return 0;
}

}  // namespace

void ReadContext::fail(Code code, const std::string& rule) const {
  std::string text = source.empty() ? "" : cat(source, ": ");
  if (!node.empty()) text += cat("node '", node, "': ");
  if (!attr.empty()) text += cat("attr '", attr, "': ");
  throw Error(code, text + rule, node);
}

std::string serialize(const pb::Message& message, FileFormat format) {
  const size_t size = message.ByteSizeLong();
  SLUICE_REQUIRE(size <= kMaxMessageBytes, Code::kInvalidArgument,
                 "GraphDef cannot be larger than 2GB. (This one has ", size,
                 " bytes; keep large values in variables and checkpoints.)");
  std::string out;
  if (format == FileFormat::kText) {
    pb::TextFormat::Printer printer;
    SLUICE_CHECK(printer.PrintToString(message, &out), "text printing failed");
    return out;
  }
  out.reserve(size);
  {
    pb::io::StringOutputStream stream(&out);
    pb::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    SLUICE_CHECK(message.SerializeToCodedStream(&coded), "serialization failed");
  }
  return out;
}

bool looks_binary(std::string_view bytes) {
  for (const char c : bytes.substr(0, 65536)) {
    const auto u = static_cast<unsigned char>(c);
    if ((u < 0x20 && u != '\n' && u != '\r' && u != '\t' && u != '\f' && u != '\v') || u == 0x7f) return true;
  }
  return false;
}

bool parse(std::string_view bytes, bool text, pb::Message* message, std::string* why) {
  pb::LogSilencer quiet;  // the library would print invalid UTF-8 on stderr; the caller's error says it
  if (bytes.size() > kMaxMessageBytes) {
    *why = cat(bytes.size(), " bytes are more than the 2 GiB a message may have");
    return false;
  }
  if (!text) {
    pb::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                                    static_cast<int>(bytes.size()));
    stream.SetTotalBytesLimit(INT_MAX);
    stream.SetRecursionLimit(kRecursionLimit);
    if (message->ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage()) return true;
    *why = "truncated, corrupt, or not such a message";
    return false;
  }
  if (looks_binary(bytes)) {
    *why = "the bytes are binary, not protobuf text";
    return false;
  }
  FirstError first;
  pb::TextFormat::Parser parser;
  parser.RecordErrorsTo(&first);
  parser.SetRecursionLimit(kRecursionLimit);
  // Binary files carry a newer program's fields through; in text they are names. A field that is unknown in a
  // file of our own time is a mistake.
  parser.AllowUnknownField(true);
  pb::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  const bool read = parser.Parse(&stream, message);
  if (read && (first.warning().empty() || producer_of(*message) > kConsumer)) return true;
  *why = !first.text().empty()      ? first.text()
         : !first.warning().empty() ? first.warning()
                                    : "not such a message";
  return false;
}

}  // namespace detail

namespace {

using detail::ReadContext;

bool is_text_name(std::string_view path) { return path.ends_with("txt"); }

// A MetaGraphDef read as a GraphDef has nodes without op (its meta_info_def is field 1 too), and the reverse.
bool plausible(const proto::GraphDef& g) {
  for (const auto& n : g.node())
    if (n.op().empty() && n.name().empty()) return false;
  return g.GetReflection()->GetUnknownFields(g).empty();
}

// Reads `Message` in the asked form, or in either; throws with the more telling of the two complaints.
template <class Message>
void parse_or_fail(std::string_view bytes, FileFormat format, Message* out, const ReadContext& context,
                   const char* what) {
  std::string why, why_text;
  if (format != FileFormat::kText && detail::parse(bytes, false, out, &why)) return;
  out->Clear();
  if (format != FileFormat::kBinary && detail::parse(bytes, true, out, &why_text)) {
    if (format == FileFormat::kText || out->ByteSizeLong() > 0) return;
    why_text = "it holds nothing";  // blank text is more likely a damaged binary file
  }
  const bool told_as_text =
      format == FileFormat::kText || (format == FileFormat::kAuto && !detail::looks_binary(bytes));
  context.fail(Code::kDataLoss, cat("cannot be read as a ", told_as_text ? "text " : "binary ", what, " (",
                                    bytes.size(), " bytes): ", told_as_text ? why_text : why));
}

void from_proto(const proto::SaverDef& s, const std::string& scope, MetaGraphInfo& info) {
  auto named = [&](const std::string& name) { return name.empty() ? name : scope + name; };
  info.saver = SaverInfo{.filename_tensor = named(s.filename_tensor_name()),
                         .save_tensor = named(s.save_tensor_name()),
                         .restore_op = named(s.restore_op_name()),
                         .max_to_keep = s.max_to_keep(),
                         .sharded = s.sharded(),
                         .keep_checkpoint_every_n_hours = s.keep_checkpoint_every_n_hours(),
                         .version = s.version()};
}

MetaGraphInfo read_meta(Graph& graph, proto::MetaGraphDef& in, const ImportOptions& options) {
  MetaGraphInfo info;
  const ReadContext context{.source = options.source};
  if (!in.has_graph_def()) context.fail(Code::kInvalidArgument, "the MetaGraphDef holds no graph_def");
  // The writer's defaults, so that attrs newer than this library can be told from settings that matter.
  std::map<std::pair<std::string, std::string>, const proto::AttrValue*> defaults;
  for (const auto& op : in.meta_info_def().stripped_op_list().op())
    for (const auto& attr : op.attr())
      if (attr.has_default_value()) defaults[{op.name(), attr.name()}] = &attr.default_value();
  const std::string scope = detail::graph_from_proto(graph, *in.mutable_graph_def(), options,
                                                     [&](const std::string& op, const std::string& attr) {
                                                       const auto it = defaults.find({op, attr});
                                                       return it == defaults.end() ? nullptr : it->second;
                                                     });
  detail::collections_from_proto(graph, in, scope, context);
  info.tags.assign(in.meta_info_def().tags().begin(), in.meta_info_def().tags().end());
  info.tensorflow_version = in.meta_info_def().tensorflow_version();
  if (in.has_saver_def()) from_proto(in.saver_def(), scope, info);
  // Each part is kept as a MetaGraphDef that holds nothing else, so that merging it back restores it.
  auto keep = [](auto&& fill) {
    proto::MetaGraphDef part;
    fill(part);
    return detail::serialize(part, FileFormat::kBinary);
  };
  if (in.signature_def_size() > 0)
    info.signature_def = keep([&](auto& p) { *p.mutable_signature_def() = in.signature_def(); });
  if (in.asset_file_def_size() > 0)
    info.asset_file_def = keep([&](auto& p) { *p.mutable_asset_file_def() = in.asset_file_def(); });
  if (in.has_object_graph_def())
    info.object_graph_def = keep([&](auto& p) { *p.mutable_object_graph_def() = in.object_graph_def(); });
  return info;
}

}  // namespace

std::string graph_to_bytes(const Graph& graph, FileFormat format) {
  proto::GraphDef out;
  detail::graph_to_proto(graph, false, &out);
  return detail::serialize(out, format);
}

void graph_from_bytes(Graph& graph, std::string_view bytes, FileFormat format, const ImportOptions& options) {
  proto::GraphDef in;
  parse_or_fail(bytes, format, &in, ReadContext{.source = options.source}, "GraphDef");
  detail::graph_from_proto(graph, in, options);
}

std::string meta_graph_to_bytes(const Graph& graph, const MetaGraphInfo& info, FileFormat format) {
  proto::MetaGraphDef out;
  auto* meta = out.mutable_meta_info_def();
  for (const auto& tag : info.tags) meta->add_tags(tag);
  meta->set_tensorflow_version(info.tensorflow_version);
  std::map<std::string_view, const OpDef*> used;
  for (const Node* n : graph.nodes()) used.emplace(n->op(), &n->def());
  for (const auto& [name, def] : used)
    detail::op_def_to_proto(*def, meta->mutable_stripped_op_list()->add_op());
  detail::graph_to_proto(graph, true, out.mutable_graph_def());
  if (info.saver) {
    auto* s = out.mutable_saver_def();
    s->set_filename_tensor_name(info.saver->filename_tensor);
    s->set_save_tensor_name(info.saver->save_tensor);
    s->set_restore_op_name(info.saver->restore_op);
    s->set_max_to_keep(info.saver->max_to_keep);
    s->set_sharded(info.saver->sharded);
    s->set_keep_checkpoint_every_n_hours(info.saver->keep_checkpoint_every_n_hours);
    s->set_version(static_cast<proto::SaverDef::CheckpointFormatVersion>(info.saver->version));
  }
  detail::collections_to_proto(graph, &out);
  for (const std::string* part : {&info.signature_def, &info.asset_file_def, &info.object_graph_def}) {
    proto::MetaGraphDef kept;
    std::string why;
    SLUICE_REQUIRE(detail::parse(*part, false, &kept, &why), Code::kInvalidArgument,
                   "a kept part of a MetaGraphDef cannot be read: ", why);
    out.MergeFrom(kept);
  }
  return detail::serialize(out, format);
}

MetaGraphInfo meta_graph_from_bytes(Graph& graph, std::string_view bytes, FileFormat format,
                                    const ImportOptions& options) {
  proto::MetaGraphDef in;
  parse_or_fail(bytes, format, &in, ReadContext{.source = options.source}, "MetaGraphDef");
  return read_meta(graph, in, options);
}

void write_graph_file(const Graph& graph, const std::string& path, FileFormat format) {
  if (format == FileFormat::kAuto) format = is_text_name(path) ? FileFormat::kText : FileFormat::kBinary;
  require_parent_directory(path);
  write_file_atomically(path, graph_to_bytes(graph, format));
}

void write_meta_graph_file(const Graph& graph, const MetaGraphInfo& info, const std::string& path) {
  require_parent_directory(path);
  write_file_atomically(
      path, meta_graph_to_bytes(graph, info, is_text_name(path) ? FileFormat::kText : FileFormat::kBinary));
}

MetaGraphInfo read_graph_file(Graph& graph, const std::string& path, const ImportOptions& given) {
  ImportOptions options = given;
  if (options.source.empty()) options.source = path;
  const ReadContext context{.source = options.source};
  const std::string bytes = read_file(path);
  if (bytes.empty()) context.fail(Code::kDataLoss, "the file is empty");
  if (bytes[0] == '\x08' || std::string_view(bytes).starts_with("saved_model_schema_version"))
    context.fail(
        Code::kUnimplemented,
        "this is a SavedModel; only GraphDef and MetaGraphDef files can be read (export one of those)");
  std::string why_binary, why_text;
  for (const bool text : {false, true}) {
    std::string& why = text ? why_text : why_binary;
    {
      proto::GraphDef in;
      if (detail::parse(bytes, text, &in, &why) && plausible(in)) {
        detail::graph_from_proto(graph, in, options);
        return {};
      }
    }
    std::string why_meta;
    proto::MetaGraphDef in;
    if (detail::parse(bytes, text, &in, &why_meta) && in.has_graph_def() && plausible(in.graph_def()))
      return read_meta(graph, in, options);
    // The text parser stops at the first field that it does not know: report the reading that came further.
    if (text && bytes.find("graph_def") != std::string::npos) why = why_meta;
  }
  const bool binary = detail::looks_binary(bytes);
  context.fail(
      Code::kDataLoss,
      cat("is neither a GraphDef nor a MetaGraphDef (", binary ? "binary" : "text", ", ", bytes.size(),
          " bytes): ", binary ? (why_binary.empty() ? "its nodes have no ops" : why_binary) : why_text));
}

}  // namespace sluice::graph
