// The C++ half of events.py.
//   events_conformance write DIR            summaries of every kind, event files, records
//   events_conformance records FILE KIND    the records of a file ("", ZLIB or GZIP), one a line in
//   hexadecimal events_conformance events FILE          one line an event: kind, step, tags
//   events_conformance train DIR            a small training with summaries: the picture in docs/summaries.md
//   events_conformance sequence FILE        reads SequenceExamples and writes them again to FILE.again
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "dsl/dsl.h"
#include "runtime/io/example.h"
#include "runtime/io/file.h"
#include "runtime/io/record.h"
#include "runtime/io/record_index.h"

namespace {

using namespace sluice;
using namespace sluice::dsl;
using namespace sluice::runtime::io;
using runtime::io::SessionLog;
using sluice::dsl::train::FileWriter;

std::string hex(const std::string& bytes) {
  std::string out;
  for (unsigned char c : bytes) {
    char pair[3];
    std::snprintf(pair, sizeof pair, "%02x", c);
    out += pair;
  }
  return out;
}

// The rule events.py knows too.
Tensor numbers(Graph& g, const Dims& dims) {
  std::vector<float> v(static_cast<size_t>(graph::num_elements(dims)));
  for (size_t i = 0; i < v.size(); ++i)
    v[i] = static_cast<float>(static_cast<int>(i * 37 % 101) - 50) / 16.0f;
  return constant(g, v, dims);
}

std::vector<std::string> some_records() {
  std::vector<std::string> r{"", "abc"};
  for (int i = 0; i < 200; ++i) r.push_back(std::string(static_cast<size_t>(i * 13), static_cast<char>(i)));
  return r;
}

SequenceExample some_sequence() {
  SequenceExample e;
  e.context["id"] = {.kind = Feature::Kind::kInt64, .ints = {7, -1}};
  e.feature_lists["words"] = {{.kind = Feature::Kind::kBytes, .bytes = {"a", "b"}},
                              {.kind = Feature::Kind::kBytes, .bytes = {"c"}}};
  e.feature_lists["scores"] = {{.kind = Feature::Kind::kFloat, .floats = {0.5f, -1}}};
  return e;
}

void write_summaries(const std::string& dir) {
  Graph g;
  const Tensor wave = divide(numbers(g, {2, 50, 2}), 4.0);
  const Tensor labels = greater(numbers(g, {60}), 0.0);
  const std::vector<std::pair<std::string, Tensor>> all{
      {"scalar", summary::scalar("loss", constant(g, 0.25))},
      {"scalar_family", summary::scalar("loss", constant(g, 0.5), {.family = "fam"})},
      {"histogram", summary::histogram("weights", numbers(g, {300}))},
      {"histogram_empty", summary::histogram("nothing", numbers(g, {0}))},
      {"image", summary::image("picture", numbers(g, {2, 5, 4, 3}))},
      {"image_bytes",
       summary::image("bytes", cast(add(numbers(g, {1, 3, 3, 1}), 50.0), DType::kUint8), {.max_outputs = 1})},
      {"audio", summary::audio("sound", wave, 8000.0)},
      {"tensor",
       summary::tensor("whole", numbers(g, {2, 3}),
                       {.plugin = "mine", .plugin_content = "c", .display_name = "n", .description = "d"})},
      {"tensor_v1", Tensor(g.add({.op = "TensorSummary", .name = "old", .inputs = {numbers(g, {2, 2})}}))},
      {"text", summary::text("words", constant(g, "**hello**"))},
      {"pr_curve", summary::pr_curve("pr", labels, sigmoid(numbers(g, {60})), {.num_thresholds = 11})},
  };
  const Tensor merged = summary::merge_all(g);
  Session s(g);
  FileWriter w(dir + "/kinds", {.graph = &g});
  w.add_session_log({.status = SessionLog::Status::kStart}, 1);
  for (const auto& [name, t] : all)
    write_file_atomically(dir + "/" + name + ".pb", s.run({t})[0].string_values()[0]);
  RunMetadata metadata;
  for (int64_t step = 1; step <= 3; ++step)
    w.add_summary(s.run({merged}, {}, {}, {.trace_level = runtime::TraceLevel::kFull}, &metadata)[0], step);
  w.add_run_metadata(metadata, "step_3", 3);
  w.add_session_log({.status = SessionLog::Status::kCheckpoint, .checkpoint_path = "/tmp/m"}, 3);
}

// Two runs in one folder, the second from step 10 on.
void write_resumed(const std::string& dir) {
  for (int64_t start : {0, 10}) {
    FileWriter w(dir + "/resumed");
    w.add_session_log({.status = SessionLog::Status::kStart}, start);
    for (int64_t i = start; i <= start + 15; i += 5)
      w.add_summary(scalar_summary("loss", static_cast<float>(i)), i);
  }
}

int write(const std::string& dir) {
  write_summaries(dir);
  write_resumed(dir);
  for (Compression c : {Compression::kNone, Compression::kZlib, Compression::kGzip}) {
    RecordWriter w(dir + "/records" + std::string(compression_name(c)), {.compression = c});
    for (const auto& r : some_records()) w.write(r);
    w.close();
  }
  write_record_index(dir + "/records", dir + "/records.idx");
  RecordWriter w(dir + "/sequences");
  w.write(serialize_sequence_example(some_sequence()));
  w.close();
  return 0;
}

int print_records(const std::string& path, const std::string& kind) {
  RecordReader in(path, {.compression = compression_from_name(kind)});
  for (std::string record; in.next(&record);) std::puts(hex(record).c_str());
  return 0;
}

int print_events(const std::string& path) {
  EventsReader in(path);
  while (const auto e = in.next()) {
    std::string tags;
    if (e->kind == Event::Kind::kSummary)
      for (const SummaryValue& v : parse_summary(e->data)) tags += " " + v.tag;
    std::printf("%d %lld%s\n", static_cast<int>(e->kind), static_cast<long long>(e->step), tags.c_str());
  }
  return 0;
}

// Two layers learn which of three blobs a picture shows.
int train_blobs(const std::string& dir) {
  Graph g;
  constexpr int kBatch = 60, kSide = 12, kSteps = 400;
  std::vector<float> pixels;
  std::vector<int32_t> answers;
  for (int n = 0; n < kBatch; ++n) {
    answers.push_back(n % 3);
    const int cx = 3 + 3 * (n % 3) + n % 2, cy = 2 + n % 8;
    for (int y = 0; y < kSide; ++y)
      for (int x = 0; x < kSide; ++x)
        pixels.push_back(1.0f / (1.0f + static_cast<float>((x - cx) * (x - cx) + (y - cy) * (y - cy))));
  }
  const Tensor images = constant(g, pixels, {kBatch, kSide, kSide, 1}, "images");
  const Tensor labels = constant(g, Literal::vector<int32_t>(answers), "labels");
  const Tensor hidden = relu(layers::dense(reshape(images, {kBatch, kSide * kSide}), 16));
  const Tensor logits = layers::dense(hidden, 3);
  const Tensor loss = losses::sparse_softmax_cross_entropy(labels, logits);
  train::GradientDescentOptimizer opt(0.2);
  const Tensor train_op = train::create_train_op(loss, opt, {.summarize_gradients = true});
  summary::scalar("loss", loss);
  const Tensor right = equal(cast(argmax(logits, 1), DType::kInt32), labels);
  summary::scalar("accuracy", reduce_mean(cast(right, DType::kFloat)));
  summary::histogram("hidden", hidden);
  summary::image("pictures", images);
  const Tensor merged = summary::merge_all(g);
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  FileWriter w(dir, {.graph = &g});
  for (int64_t step = 0; step < kSteps; ++step) {
    s.run({train_op});
    if (step % 10 == 0) w.add_summary(s.run({merged})[0], step);
  }
  return 0;
}

int rewrite_sequences(const std::string& path) {
  RecordReader in(path);
  RecordWriter out(path + ".again");
  for (std::string record; in.next(&record);)
    out.write(serialize_sequence_example(parse_sequence_example(record)));
  out.close();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (words.size() == 2 && words[0] == "write") return write(words[1]);
    if (words.size() == 3 && words[0] == "records") return print_records(words[1], words[2]);
    if (words.size() == 2 && words[0] == "events") return print_events(words[1]);
    if (words.size() == 2 && words[0] == "train") return train_blobs(words[1]);
    if (words.size() == 2 && words[0] == "sequence") return rewrite_sequences(words[1]);
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  std::fputs(
      "usage: events_conformance write DIR | records FILE KIND | events FILE | train DIR | sequence FILE\n",
      stderr);
  return 2;
}
