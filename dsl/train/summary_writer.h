#pragma once
// FileWriter: event files for TensorBoard, written beside training (graph-and-training §7.3). Events go to a
// bounded queue; a thread of the writer puts them into the file, every `flush_secs` at the latest. What
// `flush` has returned from is in the file, whatever happens to the process then. All functions may be called
// from any thread. An error of the disk is told by the next call.
//
//   FileWriter w("logs", {.graph = &g});
//   w.add_summary(session.run({merged})[0], step);
//
// FileWriterCache gives one writer a folder, which the hooks of a process share.

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "graph/graphdef.h"
#include "runtime/io/events.h"

namespace sluice::dsl::train {

using runtime::io::Event;
using runtime::io::SessionLog;

struct FileWriterOptions {
  const graph::Graph* graph = nullptr;  // its GraphDef and MetaGraphDef are written first
  int max_queue = 10;                   // events that wait before a caller has to
  double flush_secs = 120;
  std::string filename_suffix = {};
};

class FileWriter {
 public:
  /// Makes the folder and the file. InvalidArgument for max_queue < 1 or flush_secs < 0.
  explicit FileWriter(std::string logdir, FileWriterOptions options = {});
  /// Writes what is queued and closes; errors are logged.
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  /// A serialized Summary. SummaryMetadata is kept for the first value of each tag in this writer only.
  /// DataLoss when the bytes are no Summary.
  void add_summary(std::string_view serialized, int64_t step);
  /// The value of a summary op: one string, or several of them.
  void add_summary(const runtime::Array& summary, int64_t step);
  /// An event without a time gets now. On a closed writer this and every add_… only warns, as TensorFlow
  /// does.
  void add_event(Event event);
  void add_graph(const graph::Graph& graph);
  void add_meta_graph(const graph::Graph& graph, const graph::MetaGraphInfo& info = {});
  /// InvalidArgument "The provided tag was already used for this event type" for a tag used before.
  void add_run_metadata(const runtime::RunMetadata& metadata, const std::string& tag, int64_t step = 0);
  void add_session_log(SessionLog log, int64_t step);

  /// Waits until everything added so far is in the file.
  void flush();
  /// flush, then the file is closed; twice is once.
  void close();
  /// A closed writer goes on, in a new file. Nothing happens to an open one.
  void reopen();
  bool closed() const;

  const std::string& logdir() const;
  /// The file being written.
  std::string path() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The process's writers by folder. Hooks of several sessions write into one file that way, so the writer is
/// shared: it lives until `clear` and the last holder.
class FileWriterCache {
 public:
  /// The folder's writer, made where there is none.
  static std::shared_ptr<FileWriter> get(const std::string& logdir);
  /// Flushes all and forgets them.
  static void clear();
};

}  // namespace sluice::dsl::train
