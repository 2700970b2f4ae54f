// Summary messages taken apart and put together (fields: graph-and-training §7.3).
#include <limits>

#include "graph/tensor_bytes.h"
#include "runtime/io/events.h"
#include "runtime/io/wire.h"

namespace sluice::runtime::io {
namespace {

[[noreturn]] void not_a(const char* what) {
  throw_error(Code::kDataLoss, cat("The bytes are no ", what, " message"));
}

// Packed or one by one; both are allowed.
void add_doubles(const WireField& f, std::vector<double>* to) {
  if (f.type == WireType::kFixed64) to->push_back(f.as_double());
  if (f.type != WireType::kBytes) return;
  if (f.bytes.size() % sizeof(double) != 0) not_a("HistogramProto");
  const size_t had = to->size(), n = f.bytes.size() / sizeof(double);
  to->resize(had + n);
  if (n > 0) std::memcpy(to->data() + had, f.bytes.data(), f.bytes.size());
}

SummaryValue parse_value(std::string_view bytes) {
  using Kind = SummaryValue::Kind;
  SummaryValue v;
  WireReader in(bytes);
  for (WireField f; in.next(&f);) {
    if (f.is_bytes(1)) v.tag = f.bytes;
    if (f.is_bytes(9)) v.metadata = f.bytes;
    if (f.is(2, WireType::kFixed32)) v.kind = Kind::kSimple, v.simple = f.as_float(), v.content.clear();
    for (Kind k : {Kind::kImage, Kind::kHistogram, Kind::kAudio, Kind::kTensor})
      if (f.is_bytes(static_cast<int>(k))) v.kind = k, v.content = f.bytes, v.simple = 0;
  }
  if (!in.sound()) not_a("Summary");
  return v;
}

}  // namespace

std::vector<SummaryValue> parse_summary(std::string_view bytes) {
  size_t n = 0;
  WireReader count(bytes);
  for (WireField f; count.next(&f);) n += f.is_bytes(1);
  if (!count.sound()) not_a("Summary");
  std::vector<SummaryValue> values;
  values.reserve(n);
  WireReader in(bytes);
  for (WireField f; in.next(&f);)
    if (f.is_bytes(1)) values.push_back(parse_value(f.bytes));
  return values;
}

std::string serialize_summary(const std::vector<SummaryValue>& values) {
  WireWriter summary;
  for (const SummaryValue& v : values) {
    WireWriter value;
    value.text_field(1, v.tag);
    if (v.kind == SummaryValue::Kind::kSimple) value.float_field(2, v.simple);
    if (v.kind != SummaryValue::Kind::kSimple && v.kind != SummaryValue::Kind::kNone)
      value.bytes_field(static_cast<int>(v.kind), v.content);
    value.text_field(9, v.metadata);
    summary.bytes_field(1, value.str());
  }
  return summary.take();
}

std::string scalar_summary(const std::string& tag, float value) {
  SummaryValue v{.tag = tag, .kind = SummaryValue::Kind::kSimple, .simple = value};
  return serialize_summary({v});
}

HistogramValue parse_histogram(std::string_view content) {
  HistogramValue h;
  WireReader in(content);
  for (WireField f; in.next(&f);) {
    double* const plain[] = {&h.min, &h.max, &h.num, &h.sum, &h.sum_squares};
    if (f.type == WireType::kFixed64 && f.number <= 5) *plain[f.number - 1] = f.as_double();
    if (f.number == 6) add_doubles(f, &h.bucket_limits);
    if (f.number == 7) add_doubles(f, &h.buckets);
  }
  if (!in.sound()) not_a("HistogramProto");
  return h;
}

ImageValue parse_image(std::string_view content) {
  ImageValue image;
  WireReader in(content);
  for (WireField f; in.next(&f);) {
    if (f.is_varint(1)) image.height = static_cast<int>(f.value);
    if (f.is_varint(2)) image.width = static_cast<int>(f.value);
    if (f.is_varint(3)) image.colorspace = static_cast<int>(f.value);
    if (f.is_bytes(4)) image.png = f.bytes;
  }
  if (!in.sound()) not_a("Summary.Image");
  return image;
}

AudioValue parse_audio(std::string_view content) {
  AudioValue audio;
  WireReader in(content);
  for (WireField f; in.next(&f);) {
    if (f.is(1, WireType::kFixed32)) audio.sample_rate = f.as_float();
    if (f.is_varint(2)) audio.channels = static_cast<int64_t>(f.value);
    if (f.is_varint(3)) audio.frames = static_cast<int64_t>(f.value);
    if (f.is_bytes(4)) audio.wav = f.bytes;
    if (f.is_bytes(5)) audio.content_type = f.bytes;
  }
  if (!in.sound()) not_a("Summary.Audio");
  return audio;
}

SummaryMetadata parse_summary_metadata(std::string_view bytes) {
  SummaryMetadata m;
  WireReader in(bytes);
  for (WireField f; in.next(&f);) {
    if (f.is_bytes(1)) {
      WireReader plugin(f.bytes);
      for (WireField p; plugin.next(&p);) {
        if (p.is_bytes(1)) m.plugin = p.bytes;
        if (p.is_bytes(2)) m.plugin_content = p.bytes;
      }
      if (!plugin.sound()) not_a("SummaryMetadata");
    }
    if (f.is_bytes(2)) m.display_name = f.bytes;
    if (f.is_bytes(3)) m.description = f.bytes;
    if (f.is_varint(4)) m.data_class = static_cast<int>(f.value);
  }
  if (!in.sound()) not_a("SummaryMetadata");
  return m;
}

std::string serialize_summary_metadata(const SummaryMetadata& m) {
  WireWriter plugin, out;
  plugin.text_field(1, m.plugin);
  plugin.text_field(2, m.plugin_content);
  out.text_field(1, plugin.str());
  out.text_field(2, m.display_name);
  out.text_field(3, m.description);
  if (m.data_class != 0) out.varint_field(4, static_cast<uint64_t>(m.data_class));
  return out.take();
}

std::string tensor_to_bytes(const Array& value) { return graph::literal_to_bytes(value.to_literal()); }

Array tensor_from_bytes(std::string_view content) {
  try {
    return Array::from_literal(graph::literal_from_bytes(content));
  } catch (const Error& e) {
    throw_error(Code::kDataLoss, e.message());
  }
}

}  // namespace sluice::runtime::io
