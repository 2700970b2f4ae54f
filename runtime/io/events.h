#pragma once
// Event files, which TensorBoard shows (graph-and-training §7.3): TFRecords of Event messages, the first of
// which says "brain.Event:2". EventsWriter makes a file `events.out.tfevents.<seconds>.<host><suffix>` in a
// folder and buffers until `flush`; what was flushed has reached the file and outlives the process.
// EventsReader reads one back. A writer or reader belongs to one thread; dsl/train/summary_writer.h has the
// queue and the thread that training uses.
//
//   EventsWriter w("logs");
//   w.write(Event::summary(bytes, step));  w.flush();
//   for (EventsReader in(path); auto e = in.next();) …

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/array.h"

namespace sluice::runtime {
struct RunMetadata;
}
namespace sluice::runtime::io {

class RecordReader;

/// What a session tells about itself. START at a step makes TensorBoard drop what former runs wrote beyond
/// it.
struct SessionLog {
  enum class Status : int { kUnspecified = 0, kStart = 1, kStop = 2, kCheckpoint = 3 };
  Status status = Status::kUnspecified;
  std::string checkpoint_path, message;
  bool operator==(const SessionLog&) const = default;
};

/// One event. Messages inside it are kept serialized.
struct Event {
  enum class Kind : int {
    kNone = 0,
    kFileVersion = 3,
    kGraphDef = 4,
    kSummary = 5,
    kLogMessage = 6,
    kSessionLog = 7,
    kRunMetadata = 8,
    kMetaGraphDef = 9,
  };
  Kind kind = Kind::kNone;
  double wall_time = 0;  // seconds since 1970; 0 is replaced by now when the event is queued or written
  int64_t step = 0;
  std::string
      data;  // the version, or the serialized GraphDef, Summary, RunMetadata or MetaGraphDef; a message
  std::string tag;         // of kRunMetadata
  int log_level = 0;       // of kLogMessage: 0, 10, 20, 30, 40, 50
  SessionLog session_log;  // of kSessionLog

  static Event summary(std::string serialized, int64_t step);
  static Event session(SessionLog log, int64_t step);
  static Event graph_def(std::string serialized);
  static Event meta_graph_def(std::string serialized);
  static Event run_metadata(std::string tag, std::string serialized, int64_t step);
  static Event log_message(int level, std::string text, int64_t step);
  bool operator==(const Event&) const = default;
};

std::string serialize_event(const Event& event);
/// DataLoss "<where>: not an Event message" when the bytes are none. Unknown fields are passed over.
Event parse_event(std::string_view bytes, const std::string& where = "event");

/// A RunMetadata message (step statistics of the host's device), for kRunMetadata events.
std::string run_metadata_to_bytes(const RunMetadata& metadata);

/// One value of a summary; its content stays serialized until one of the functions below takes it apart.
struct SummaryValue {
  enum class Kind : int { kNone = 0, kSimple = 2, kImage = 4, kHistogram = 5, kAudio = 6, kTensor = 8 };
  std::string tag;
  Kind kind = Kind::kNone;
  float simple = 0;      // of kSimple
  std::string content;   // of the other kinds
  std::string metadata;  // SummaryMetadata, "" where there is none
};

struct HistogramValue {
  double min = 0, max = 0, num = 0, sum = 0, sum_squares = 0;
  std::vector<double> bucket_limits, buckets;
};
struct ImageValue {
  int height = 0, width = 0, colorspace = 0;
  std::string png;
};
struct AudioValue {
  float sample_rate = 0;
  int64_t channels = 0, frames = 0;
  std::string wav, content_type;
};
/// SummaryMetadata: which TensorBoard plugin shows the values of a tag, and how they are called.
struct SummaryMetadata {
  std::string plugin, plugin_content, display_name, description;
  int data_class = 0;  // 0 unknown, 1 scalar, 2 tensor, 3 blob sequence
  bool operator==(const SummaryMetadata&) const = default;
};

/// DataLoss when the bytes are no Summary.
std::vector<SummaryValue> parse_summary(std::string_view bytes);
std::string serialize_summary(const std::vector<SummaryValue>& values);
/// A summary of one number, for figures that no op makes ("global_step/sec").
std::string scalar_summary(const std::string& tag, float value);
HistogramValue parse_histogram(std::string_view content);
ImageValue parse_image(std::string_view content);
AudioValue parse_audio(std::string_view content);
SummaryMetadata parse_summary_metadata(std::string_view bytes);
std::string serialize_summary_metadata(const SummaryMetadata& metadata);

/// A TensorProto of a value: raw bytes, or one entry a string.
std::string tensor_to_bytes(const Array& value);
/// The value of a TensorProto as event files hold it. DataLoss when it isn't one or its size and shape
/// differ; one value that stands for many is refused beyond 16 MiB.
Array tensor_from_bytes(std::string_view content);

class EventsWriter {
 public:
  /// Makes the folder where it is absent, and a new file in it that begins with its version, already flushed.
  /// A file of that name (another writer in the same second) is left alone; the name gets ".1", ".2" … then.
  explicit EventsWriter(const std::string& directory, const std::string& suffix = {});
  /// Flushes; errors are logged, `close` reports them.
  ~EventsWriter();
  EventsWriter(const EventsWriter&) = delete;
  EventsWriter& operator=(const EventsWriter&) = delete;

  const std::string& path() const { return path_; }
  void write(const Event& event);
  void write_serialized(std::string_view event);
  /// Everything written reaches the file. Errors name the path: a full disk (the events wait, a later
  /// flush goes on), a file that was deleted meanwhile.
  void flush();
  void close();

 private:
  std::string path_, buffer_;
  int64_t waiting_ = 0;  // events in buffer_
  int fd_ = -1;
};

struct EventsReaderOptions {
  /// A cut-off record at the end is what a killed or running writer leaves: it ends the reading, not an
  /// error.
  bool torn_tail_is_end = true;
  /// Damaged records are counted and passed over.
  bool skip_damaged = false;
};

class EventsReader {
 public:
  /// NotFound when there is no such file.
  explicit EventsReader(const std::string& path, EventsReaderOptions options = {});
  ~EventsReader();

  /// The next event; none at the end. DataLoss naming file, offset and record number.
  std::optional<Event> next();
  /// True when the reading ended at a cut-off record.
  bool torn() const { return torn_; }
  int64_t damaged() const;
  uint64_t offset() const;

 private:
  std::unique_ptr<RecordReader> records_;
  std::string path_, record_;
  EventsReaderOptions options_;
  int64_t damaged_messages_ = 0;
  bool torn_ = false;
};

/// Event files in a folder (their base name contains "tfevents"), sorted by name; not those of its
/// subfolders.
std::vector<std::string> event_files(const std::string& directory);
/// "seconds since 1970" with microseconds.
double wall_time_now();

}  // namespace sluice::runtime::io
