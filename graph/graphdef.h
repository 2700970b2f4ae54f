#pragma once
// GraphDef and MetaGraphDef files: read and write, binary and text (graph-and-training §7.6–7.8). Readers
// check every rule before they allocate what a file asks for, and one error names file, node and rule. No
// protobuf type appears here; any thread, one per graph.

#include <iosfwd>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace sluice::graph {

enum class FileFormat { kAuto, kBinary, kText };

struct ImportOptions {
  std::string prefix;                       // name scope of every imported node; "" keeps the names
  std::map<std::string, Output> input_map;  // "x" or "x:1" in the file → an output of this graph
  std::string source;                       // file name for messages
  /// Constants may state one value for many elements; what all of them in a file may take beyond its bytes.
  uint64_t max_repeat_bytes = uint64_t{1} << 31;
};

/// SaverDef's fields that a saver needs.
struct SaverInfo {
  std::string filename_tensor, save_tensor, restore_op;
  int max_to_keep = 5;
  bool sharded = false;
  float keep_checkpoint_every_n_hours = 10000.0f;
  int version = 2;
};

struct MetaGraphInfo {
  std::vector<std::string> tags;
  std::string tensorflow_version;
  std::optional<SaverInfo> saver;
  std::string signature_def, asset_file_def, object_graph_def;  // serialized, kept verbatim
};

/// GraphDef ⟷ bytes. `to_bytes` writes nodes in creation order, default attrs included.
std::string graph_to_bytes(const Graph& graph, FileFormat format = FileFormat::kBinary);
void graph_from_bytes(Graph& graph, std::string_view bytes, FileFormat format = FileFormat::kAuto,
                      const ImportOptions& options = {});
std::string meta_graph_to_bytes(const Graph& graph, const MetaGraphInfo& info,
                                FileFormat format = FileFormat::kBinary);
MetaGraphInfo meta_graph_from_bytes(Graph& graph, std::string_view bytes,
                                    FileFormat format = FileFormat::kAuto, const ImportOptions& options = {});

/// File forms; a name ending in "txt" is text. Written to a temporary name and renamed. Reading tries binary,
/// then text, and takes a MetaGraphDef where the file is one. Errors name the path.
void write_graph_file(const Graph& graph, const std::string& path, FileFormat format = FileFormat::kAuto);
void write_meta_graph_file(const Graph& graph, const MetaGraphInfo& info, const std::string& path);
MetaGraphInfo read_graph_file(Graph& graph, const std::string& path, const ImportOptions& options = {});

}  // namespace sluice::graph
