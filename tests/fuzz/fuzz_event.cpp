// Event files, events, and everything inside summaries: byte 0 tells whether the others are a file or one
// message.
#include "runtime/io/events.h"
#include "runtime/io/record.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace sluice;
using namespace sluice::runtime::io;

void take_apart(const SummaryValue& v) {
  fuzz::swallow([&] { parse_summary_metadata(v.metadata); });
  fuzz::swallow([&] {
    switch (v.kind) {
      case SummaryValue::Kind::kHistogram:
        parse_histogram(v.content);
        break;
      case SummaryValue::Kind::kImage:
        parse_image(v.content);
        break;
      case SummaryValue::Kind::kAudio:
        parse_audio(v.content);
        break;
      case SummaryValue::Kind::kTensor:
        tensor_from_bytes(v.content);
        break;
      default:
        break;
    }
  });
}

void look_into(const Event& e) {
  const std::string once = serialize_event(e);
  fuzz::require(serialize_event(parse_event(once)) == once, "an event is read back as it was written");
  if (e.kind != Event::Kind::kSummary) return;
  fuzz::swallow([&] {
    for (const SummaryValue& v : parse_summary(e.data)) take_apart(v);
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::quiet();
  if (size == 0) return 0;
  const std::string_view bytes = fuzz::view(data + 1, size - 1);
  if (data[0] % 2 == 0) {
    fuzz::swallow([&] { look_into(parse_event(bytes)); });
    return 0;
  }
  const std::string path = fuzz::scratch_path("events");
  fuzz::write_scratch(path, bytes);
  for (bool skip : {false, true})
    fuzz::swallow([&] {
      EventsReader in(path, {.torn_tail_is_end = skip, .skip_damaged = skip});
      while (const auto e = in.next()) look_into(*e);
    });
  return 0;
}
