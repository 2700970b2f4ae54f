// Writes the seeds of this folder anew: make_seeds FOLDER. They are kept in the tree; this says where they
// come from.
#include <cstdio>
#include <filesystem>

#include "dsl/dsl.h"
#include "dsl/train/saver.h"
#include "runtime/io/bundle.h"
#include "runtime/io/deflate.h"
#include "runtime/io/events.h"
#include "runtime/io/example.h"
#include "runtime/io/file.h"
#include "runtime/io/record.h"
#include "runtime/io/table.h"

namespace {

namespace fs = std::filesystem;
using namespace sluice;
using namespace sluice::dsl;
using namespace sluice::runtime::io;

std::string root;

void put(const std::string& reader, const std::string& name, const std::string& bytes) {
  fs::create_directories(fs::path(root) / reader);
  write_file_atomically((fs::path(root) / reader / name).string(), bytes);
}

std::string with_mode(int mode, const std::string& bytes) {
  return std::string(1, static_cast<char>(mode)) + bytes;
}

std::string deflated(const std::string& bytes, Compression c) {
  std::string out;
  Deflater d(c);
  d.add(bytes, &out);
  d.finish(&out);
  return out;
}

std::string counted(const std::string& bytes, size_t width) {
  std::string out;
  for (size_t i = 0; i < width; ++i) out.push_back(static_cast<char>(bytes.size() >> (8 * i)));
  return out + bytes;
}

void records() {
  std::string framed;
  for (const char* r : {"abc", "", "a longer record of some words"}) append_record(&framed, r);
  for (int mode : {0, 1, 3, 4, 129})  // 129: as 3, by zlib

    put("record", cat("plain_", mode), with_mode(mode, framed));
  put("record", "gzip", with_mode(2, deflated(framed, Compression::kGzip)));
  put("record", "zlib", with_mode(128, deflated(framed, Compression::kZlib)));  // 128 % 6 == 2
  put("record", "index", with_mode(5, "0 19\n19 26\n"));
}

void examples() {
  Example e;
  e["image"] = {.kind = Feature::Kind::kBytes, .bytes = {std::string("\0\xff", 2), ""}};
  e["label"] = {.kind = Feature::Kind::kInt64, .ints = {-1, 7, 300}};
  e["box"] = {.kind = Feature::Kind::kFloat, .floats = {0.5f, -2}};
  put("example", "example", serialize_example(e));
  SequenceExample s{.context = e};
  s.feature_lists["words"] = {e["image"], {.kind = Feature::Kind::kNone}, e["image"]};
  s.feature_lists["scores"] = {e["box"]};
  put("example", "sequence", serialize_sequence_example(s));
}

void events() {
  Graph g;
  const Tensor x = constant(g, std::vector<float>{0, 1, 2, 3}, {1, 2, 2, 1});
  const std::vector<Tensor> kinds{summary::scalar("loss", constant(g, 0.5)),
                                  summary::histogram("h", x),
                                  summary::image("i", x),
                                  summary::audio("a", constant(g, std::vector<float>{0, 1}, {1, 2}), 8000.0),
                                  summary::tensor("t", x, {.plugin = "p"}),
                                  summary::text("w", constant(g, "hello"))};
  Session s(g);
  std::string file;
  append_record(
      &file, serialize_event({.kind = Event::Kind::kFileVersion, .wall_time = 1, .data = "brain.Event:2"}));
  for (size_t i = 0; i < kinds.size(); ++i) {
    const std::string e = serialize_event(Event::summary(s.run({kinds[i]})[0].string_values()[0], 7));
    put("event", cat("summary_", i), with_mode(0, e));
    append_record(&file, e);
  }
  const std::string log = serialize_event(Event::session(
      {.status = SessionLog::Status::kCheckpoint, .checkpoint_path = "/m", .message = "m"}, 3));
  put("event", "session", with_mode(0, log));
  put("event", "run", with_mode(0, serialize_event(Event::run_metadata("tag", "bytes", 3))));
  put("event", "log", with_mode(0, serialize_event(Event::log_message(30, "careful", 3))));
  append_record(&file, log);
  put("event", "file", with_mode(1, file));
}

void checkpoints() {
  const std::string prefix = (fs::temp_directory_path() / "sluice_seed").string();
  BundleWriter w(prefix);
  w.add("w", runtime::Array::from<float>({2, 2}, {1, 2, 3, 4}));
  w.add("step", runtime::Array::scalar<int64_t>(7));
  w.add("names", runtime::Array::strings({2}, {"a", "bc"}));
  w.add_slice("part", {4}, TensorSlice{{0, 2}}, runtime::Array::from<float>({2}, {1, 2}));
  w.add_slice("part", {4}, TensorSlice{{2, 2}}, runtime::Array::from<float>({2}, {3, 4}));
  w.finish();
  const std::string index = read_file(prefix + ".index"), data = read_file(shard_path(prefix, 0, 1));
  put("table", "file", with_mode(0, index));
  std::string block, entries;
  TableBuilder small;
  small.add("a", "1");
  small.add("ab", "2");
  const std::string table = small.finish();
  block = table.substr(0, table.find('2') + 1 + 8);  // the entries, one restart, their number
  put("table", "data_block", with_mode(1, block));
  put("table", "index_block", with_mode(2, std::string("\0\1\2z\0\x0b\0\0\0\0\1\0\0\0", 14)));
  put("table", "snappy_block", with_mode(3, counted("\x38" + block, 1)));
  for (const auto& [key, value] : read_table(index, "index")) entries += counted(key, 1) + counted(value, 2);
  put("bundle", "file", with_mode(0, counted(data, 2) + index));
  put("bundle", "entries", with_mode(1, counted(data, 2) + entries));
}

void graphs() {
  Graph g;
  const Tensor x = placeholder(g, DType::kFloat, {-1, 3}, "x");
  const Variable w = get_variable(g, "w", {3, 2}, {.initializer = zeros_initializer()});
  const Tensor y = matmul(x, w);
  reduce_mean(square(y));
  g.collections().add("words", std::string("hello"));
  g.collections().add("numbers", int64_t{3});
  for (const auto& [format, reader] : {std::pair(graph::FileFormat::kBinary, "meta_graph"),
                                       std::pair(graph::FileFormat::kText, "meta_graph_text")}) {
    put(reader, "meta",
        graph::meta_graph_to_bytes(g, {.tags = {"train"}, .tensorflow_version = "1.15.0"}, format));
    put(reader, "graph", graph::graph_to_bytes(g, format));
    Graph small;
    constant(small, std::vector<float>{1, 1, 1, 1});
    constant(small, "text");
    NameScope scope(small, "s");
    add(constant(small, 1.0), constant(small, 2.0));
    put(reader, "constants", graph::graph_to_bytes(small, format));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fputs("usage: make_seeds FOLDER\n", stderr), 2;
  root = argv[1];
  records();
  examples();
  events();
  checkpoints();
  graphs();
  return 0;
}
