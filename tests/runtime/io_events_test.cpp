// Event files: TensorFlow's bytes, what a reader does with damage, and the values inside summaries.
#include "runtime/io/events.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>

#include "graph/proto/event.pb.h"
#include "runtime/io/file.h"
#include "runtime/io/record.h"
#include "runtime/session.h"
#include "tests/runtime/io_test_util.h"

namespace sluice::runtime::io {
namespace {

using testing::MatchesRegex;

std::vector<Event> read_all(const std::string& path, EventsReaderOptions o = {}) {
  std::vector<Event> out;
  EventsReader in(path, o);
  while (auto e = in.next()) out.push_back(*e);
  return out;
}

TEST(EventBytes, AreTensorFlows) {
  EXPECT_EQ(
      to_hex(serialize_event({.kind = Event::Kind::kFileVersion, .wall_time = 1, .data = "brain.Event:2"})),
      "09000000000000f03f1a0d627261696e2e4576656e743a32");
  Event loss = Event::summary(scalar_summary("loss", 0.5f), 7);
  loss.wall_time = 2;
  EXPECT_EQ(to_hex(serialize_event(loss)), "09000000000000004010072a0d0a0b0a046c6f7373150000003f");
  std::string record;
  append_record(&record, serialize_event(loss));
  EXPECT_EQ(to_hex(record),
            "1a00000000000000129bd82d09000000000000004010072a0d0a0b0a046c6f7373150000003fc33fc24a");
}

TEST(EventBytes, EveryKindIsReadBackAndByTheMessageItself) {
  std::vector<Event> events{
      Event::summary(scalar_summary("a", 1), 3),
      Event::session({.status = SessionLog::Status::kStart}, 4),
      Event::session({.status = SessionLog::Status::kCheckpoint, .checkpoint_path = "/c", .message = "m"}, 5),
      Event::graph_def("graph"),
      Event::meta_graph_def("meta"),
      Event::run_metadata("step_1", "stats", 6),
      Event::log_message(30, "careful", -1),
  };
  for (Event& e : events) {
    e.wall_time = 12.5;
    const std::string bytes = serialize_event(e);
    EXPECT_EQ(parse_event(bytes), e);
    proto::Event message;
    ASSERT_TRUE(message.ParseFromString(bytes));
    EXPECT_EQ(message.SerializeAsString(), bytes);
    EXPECT_EQ(static_cast<int>(message.what_case()), static_cast<int>(e.kind));
    EXPECT_EQ(message.step(), e.step);
  }
}

TEST(EventBytes, UnknownFieldsArePassedOverAndDamageIsTold) {
  EXPECT_EQ(parse_event(from_hex("5203 0a01 78")).kind, Event::Kind::kNone);  // source_metadata
  for (const char* hex : {"09", "0a", "2aff01", "07", "3202", "3202080a0b", "00"}) {
    std::string text;
    EXPECT_EQ(error_of([&] { parse_event(from_hex(hex), "here"); }, &text), Code::kDataLoss) << hex;
    EXPECT_EQ(text, "here: not an Event message");
  }
}

TEST(EventFile, HasTensorFlowsNameAndBeginsWithItsVersionAtOnce) {
  const TempFolder t;
  EventsWriter w(t / "run/deep", ".suffix");
  EXPECT_THAT(w.path(), MatchesRegex(".*/run/deep/events\\.out\\.tfevents\\.[0-9]{10}\\..+\\.suffix"));
  const auto events = read_all(w.path());
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].data, "brain.Event:2");
  EXPECT_GT(events[0].wall_time, 1.7e9);
  EXPECT_EQ(event_files(t / "run/deep"), std::vector<std::string>{w.path()});
  EXPECT_TRUE(event_files(t / "run").empty());
}

TEST(EventFile, TwoWritersOfOneSecondGetTwoFiles) {
  const TempFolder t;
  std::vector<std::unique_ptr<EventsWriter>> writers;
  for (int i = 0; i < 5; ++i) {
    writers.push_back(std::make_unique<EventsWriter>(t.path()));
    writers.back()->write(Event::summary(scalar_summary("w", static_cast<float>(i)), i));
    writers.back()->close();
  }
  EXPECT_EQ(event_files(t.path()).size(), 5u);
  for (const auto& path : event_files(t.path())) EXPECT_EQ(read_all(path).size(), 2u);
}

TEST(EventFile, ErrorsNameThePath) {
  const TempFolder t;
  write_file_atomically(t / "file", "x");
  std::string text;
  EXPECT_NE(error_of([&] { EventsWriter w(t / "file/sub"); }, &text), Code::kOk);
  EXPECT_NE(text.find(t / "file/sub"), std::string::npos) << text;
  EventsWriter w(t / "run");
  std::filesystem::remove(w.path());
  w.write(Event::summary("", 1));
  w.write(Event::summary("", 2));
  EXPECT_EQ(error_of([&] { w.flush(); }, &text), Code::kNotFound);
  EXPECT_NE(text.find("2 events are lost"), std::string::npos) << text;
  EXPECT_NE(text.find(w.path()), std::string::npos);
  EXPECT_EQ(error_of([] { EventsReader r("/nowhere/e"); }), Code::kNotFound);
}

TEST(EventFile, AfterAFullDiskTheNextFlushGoesOnWhereItStopped) {
  const TempFolder t;
  EventsWriter w(t.path());
  ::signal(SIGXFSZ, SIG_IGN);  // a limit on the size of files stands for the disk
  rlimit former{};
  ::getrlimit(RLIMIT_FSIZE, &former);
  const rlimit tight{std::filesystem::file_size(w.path()) + 50, former.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &tight);
  for (int i = 0; i < 3; ++i) w.write(Event::summary(scalar_summary("a", 1), i));
  std::string text;
  EXPECT_EQ(error_of([&] { w.flush(); }, &text), Code::kResourceExhausted);
  EXPECT_EQ(error_of([&] { w.flush(); }), Code::kResourceExhausted);
  ::setrlimit(RLIMIT_FSIZE, &former);
  ::signal(SIGXFSZ, SIG_DFL);
  EXPECT_NE(text.find(w.path()), std::string::npos) << text;
  w.flush();
  EXPECT_EQ(read_all(w.path(), {.torn_tail_is_end = false}).size(), 4u);
}

TEST(EventFile, ATornTailIsTheEndUnlessAskedOtherwise) {
  const TempFolder t;
  EventsWriter w(t.path());
  w.write(Event::summary(scalar_summary("a", 1), 1));
  w.flush();
  const std::string sound = read_file(w.path());
  w.write(Event::summary(scalar_summary("a", 2), 2));
  w.flush();
  const std::string bytes = read_file(w.path());
  for (size_t cut = sound.size() + 1; cut < bytes.size(); ++cut) {
    write_file_atomically(t / "cut", bytes.substr(0, cut));
    EventsReader in(t / "cut");
    int n = 0;
    while (in.next()) ++n;
    EXPECT_EQ(n, 2);
    EXPECT_TRUE(in.torn());
    EXPECT_EQ(error_of([&] { read_all(t / "cut", {.torn_tail_is_end = false}); }), Code::kDataLoss);
  }
}

TEST(EventFile, DamageNamesFileOffsetAndNumberAndMayBeSkipped) {
  const TempFolder t;
  std::string bytes;
  append_record(&bytes, serialize_event({.kind = Event::Kind::kFileVersion, .data = "brain.Event:2"}));
  const size_t second = bytes.size();
  append_record(&bytes, "\xff\xff");
  const size_t third = bytes.size();
  append_record(&bytes, serialize_event(Event::summary("", 1)));
  append_record(&bytes, serialize_event(Event::summary("", 2)));
  bytes[third + 13] = static_cast<char>(bytes[third + 13] ^ 1);
  write_file_atomically(t / "e", bytes);
  std::string text;
  EventsReader in(t / "e");
  ASSERT_TRUE(in.next());
  EXPECT_EQ(error_of([&] { in.next(); }, &text), Code::kDataLoss);
  EXPECT_EQ(text, cat(t / "e", ": record at ", second, " (record number 1): not an Event message"));
  EXPECT_EQ(error_of([&] { in.next(); }, &text), Code::kDataLoss);
  EXPECT_NE(text.find(cat("corrupted record at ", third, " (record number 2)")), std::string::npos) << text;
  EventsReader skipping(t / "e", {.skip_damaged = true});
  std::vector<int64_t> steps;
  while (auto e = skipping.next()) steps.push_back(e->step);
  EXPECT_EQ(steps, (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(skipping.damaged(), 2);
}

TEST(SummaryValues, EveryKindIsTakenApart) {
  proto::Summary s;
  auto& a = *s.add_value();
  a.set_tag("scalar");
  a.set_simple_value(1.5f);
  auto& h = *s.add_value();
  h.set_tag("histo");
  h.mutable_histo()->set_max(4);
  h.mutable_histo()->set_sum_squares(9);
  h.mutable_histo()->add_bucket_limit(1);
  h.mutable_histo()->add_bucket_limit(2);
  h.mutable_histo()->add_bucket(3);
  auto& i = *s.add_value();
  i.set_tag("image");
  i.mutable_image()->set_width(2);
  i.mutable_image()->set_encoded_image_string("png");
  auto& u = *s.add_value();
  u.set_tag("audio");
  u.mutable_audio()->set_sample_rate(8000);
  u.mutable_audio()->set_content_type("audio/wav");
  auto& t = *s.add_value();
  t.set_tag("tensor");
  t.mutable_tensor()->ParseFromString(tensor_to_bytes(Array::from<float>({2}, {3, 4})));
  t.mutable_metadata()->mutable_plugin_data()->set_plugin_name("text");
  t.mutable_metadata()->set_summary_description("d");

  const auto values = parse_summary(s.SerializeAsString());
  ASSERT_EQ(values.size(), 5u);
  EXPECT_EQ(values[0].simple, 1.5f);
  const HistogramValue hist = parse_histogram(values[1].content);
  EXPECT_EQ(hist.max, 4);
  EXPECT_EQ(hist.sum_squares, 9);
  EXPECT_EQ(hist.bucket_limits, (std::vector<double>{1, 2}));
  EXPECT_EQ(hist.buckets, std::vector<double>{3});
  EXPECT_EQ(parse_image(values[2].content).width, 2);
  EXPECT_EQ(parse_image(values[2].content).png, "png");
  EXPECT_EQ(parse_audio(values[3].content).sample_rate, 8000);
  EXPECT_EQ(parse_audio(values[3].content).content_type, "audio/wav");
  EXPECT_EQ(tensor_from_bytes(values[4].content).as<float>()[1], 4);
  const SummaryMetadata m = parse_summary_metadata(values[4].metadata);
  EXPECT_EQ(m, (SummaryMetadata{.plugin = "text", .description = "d"}));
  EXPECT_EQ(parse_summary_metadata(serialize_summary_metadata(m)), m);
  proto::Summary again;
  ASSERT_TRUE(again.ParseFromString(serialize_summary(values)));
  EXPECT_EQ(again.SerializeAsString(), s.SerializeAsString());
}

TEST(SummaryValues, DamageIsDataLossAndNothingHugeIsAllocated) {
  EXPECT_EQ(error_of([] { parse_summary("\x0a\x7f"); }), Code::kDataLoss);
  EXPECT_EQ(error_of([] { parse_summary("\x0a\x02\x0a\x09"); }), Code::kDataLoss);
  EXPECT_EQ(error_of([] { parse_histogram("\x32\x03xxx"); }), Code::kDataLoss);
  EXPECT_EQ(error_of([] { parse_image("\x22\x05"); }), Code::kDataLoss);
  EXPECT_EQ(error_of([] { parse_audio("\x22\x05"); }), Code::kDataLoss);
  EXPECT_EQ(error_of([] { parse_summary_metadata("\x0a\x02\x0a\x09"); }), Code::kDataLoss);
  // One float that stands for 2^32 of them.
  EXPECT_EQ(error_of([] { tensor_from_bytes(from_hex("0801 1208 1206 088080808010 2a04 0000803f")); }),
            Code::kDataLoss);
}

TEST(RunMetadataBytes, HaveOneEntryANode) {
  RunMetadata m;
  m.start_unix_us = 1000;
  m.steps = {{.name = "fused",
              .op = "Conv2D",
              .kernel = "k",
              .nodes = {"conv", "bias"},
              .start_us = 5,
              .end_us = 9,
              .thread = 2,
              .bytes = 64}};
  proto::RunMetadata out;
  ASSERT_TRUE(out.ParseFromString(run_metadata_to_bytes(m)));
  ASSERT_EQ(out.step_stats().dev_stats_size(), 1);
  const auto& device = out.step_stats().dev_stats(0);
  EXPECT_EQ(device.device(), "/job:localhost/replica:0/task:0/device:CPU:0");
  ASSERT_EQ(device.node_stats_size(), 2);
  EXPECT_EQ(device.node_stats(0).node_name(), "conv");
  EXPECT_EQ(device.node_stats(0).all_start_micros(), 1005);
  EXPECT_EQ(device.node_stats(0).all_end_rel_micros(), 4);
  EXPECT_EQ(device.node_stats(0).memory(0).total_bytes(), 64);
  EXPECT_EQ(device.node_stats(1).node_name(), "bias");
  EXPECT_EQ(device.node_stats(1).all_end_rel_micros(), 0);
  EXPECT_EQ(device.thread_names().at(2), "worker 2");
}

}  // namespace
}  // namespace sluice::runtime::io
