// Event messages to and from bytes (fields: graph-and-training §7.3).
#include "runtime/io/events.h"
#include "runtime/io/wire.h"

namespace sluice::runtime::io {
namespace {

SessionLog parse_session_log(std::string_view bytes, bool* sound) {
  SessionLog log;
  WireReader in(bytes);
  for (WireField f; in.next(&f);) {
    if (f.is_varint(1)) log.status = static_cast<SessionLog::Status>(f.value <= 3 ? f.value : 0);
    if (f.is_bytes(2)) log.checkpoint_path = f.bytes;
    if (f.is_bytes(3)) log.message = f.bytes;
  }
  *sound = in.sound();
  return log;
}

std::string serialize_session_log(const SessionLog& log) {
  WireWriter out;
  if (log.status != SessionLog::Status::kUnspecified) out.varint_field(1, static_cast<uint64_t>(log.status));
  out.text_field(2, log.checkpoint_path);
  out.text_field(3, log.message);
  return out.take();
}

// LogMessage {level = 1, message = 2} and TaggedRunMetadata {tag = 1, run_metadata = 2}.
bool parse_pair(std::string_view bytes, Event* e) {
  WireReader in(bytes);
  for (WireField f; in.next(&f);) {
    if (f.is_varint(1)) e->log_level = static_cast<int>(f.value);
    if (f.is_bytes(1)) e->tag = f.bytes;
    if (f.is_bytes(2)) e->data = f.bytes;
  }
  return in.sound();
}

}  // namespace

Event Event::summary(std::string serialized, int64_t step) {
  return {.kind = Kind::kSummary, .step = step, .data = std::move(serialized)};
}
Event Event::session(SessionLog log, int64_t step) {
  return {.kind = Kind::kSessionLog, .step = step, .session_log = std::move(log)};
}
Event Event::graph_def(std::string serialized) {
  return {.kind = Kind::kGraphDef, .data = std::move(serialized)};
}
Event Event::meta_graph_def(std::string serialized) {
  return {.kind = Kind::kMetaGraphDef, .data = std::move(serialized)};
}
Event Event::run_metadata(std::string tag, std::string serialized, int64_t step) {
  return {.kind = Kind::kRunMetadata, .step = step, .data = std::move(serialized), .tag = std::move(tag)};
}
Event Event::log_message(int level, std::string text, int64_t step) {
  return {.kind = Kind::kLogMessage, .step = step, .data = std::move(text), .log_level = level};
}

std::string serialize_event(const Event& e) {
  WireWriter out;
  if (e.wall_time != 0) out.double_field(1, e.wall_time);
  if (e.step != 0) out.varint_field(2, static_cast<uint64_t>(e.step));
  const int field = static_cast<int>(e.kind);
  switch (e.kind) {
    case Event::Kind::kNone:
      break;
    case Event::Kind::kFileVersion:
    case Event::Kind::kGraphDef:
    case Event::Kind::kSummary:
    case Event::Kind::kMetaGraphDef:
      out.bytes_field(field, e.data);
      break;
    case Event::Kind::kLogMessage: {
      WireWriter log;
      if (e.log_level != 0) log.varint_field(1, static_cast<uint64_t>(e.log_level));
      log.text_field(2, e.data);
      out.bytes_field(field, log.str());
      break;
    }
    case Event::Kind::kSessionLog:
      out.bytes_field(field, serialize_session_log(e.session_log));
      break;
    case Event::Kind::kRunMetadata: {
      WireWriter tagged;
      tagged.text_field(1, e.tag);
      tagged.text_field(2, e.data);
      out.bytes_field(field, tagged.str());
      break;
    }
  }
  return out.take();
}

Event parse_event(std::string_view bytes, const std::string& where) {
  Event e;
  bool sound = true;
  WireReader in(bytes);
  for (WireField f; sound && in.next(&f);) {
    if (f.is(1, WireType::kFixed64)) e.wall_time = f.as_double();
    if (f.is_varint(2)) e.step = static_cast<int64_t>(f.value);
    if (f.type != WireType::kBytes || f.number < 3 || f.number > 9) continue;
    e = {.kind = static_cast<Event::Kind>(f.number), .wall_time = e.wall_time, .step = e.step};
    if (e.kind == Event::Kind::kSessionLog)
      e.session_log = parse_session_log(f.bytes, &sound);
    else if (e.kind == Event::Kind::kLogMessage || e.kind == Event::Kind::kRunMetadata)
      sound = parse_pair(f.bytes, &e);
    else
      e.data = f.bytes;
  }
  SLUICE_REQUIRE(sound && in.sound(), Code::kDataLoss, where, ": not an Event message");
  return e;
}

}  // namespace sluice::runtime::io
