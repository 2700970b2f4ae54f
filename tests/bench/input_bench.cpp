// Input pipelines, elements a second, on the chains that input_twin.py runs with tf.data:
//   images   60000 28×28 bytes and labels: map to floats (2 threads), shuffle 10000, batch 128, prefetch
//   records  TFRecord file of tf.Examples (784 bytes, 1 label): batch 128, parse (2 threads), prefetch
//   floats   TFRecord file of tf.Examples (784 floats, 1 label): parse one by one (2 threads), shuffle, batch
// Usage: input_bench write FILE BYTES|FLOATS | input_bench CHAIN FILE SECONDS [session]. Prints "CHAIN RATE".

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "dsl/data.h"
#include "dsl/dsl.h"
#include "runtime/data/random.h"
#include "runtime/io/example.h"
#include "runtime/io/record.h"

namespace {

using namespace sluice;
using namespace sluice::dsl;
using runtime::io::Feature;

constexpr int64_t kImages = 60'000, kPixels = 784, kBatch = 128;

void write_records(const std::string& path, bool floats) {
  runtime::data::Random random(1);
  runtime::io::RecordWriter w(path);
  for (int64_t i = 0; i < kImages / (floats ? 4 : 1); ++i) {
    runtime::io::Example e;
    if (floats) {
      Feature f{Feature::Kind::kFloat, {}, {}, {}};
      for (int64_t k = 0; k < kPixels; ++k) f.floats.push_back(random.uniform(0, 1));
      e["image"] = std::move(f);
    } else {
      std::string pixels(kPixels, '\0');
      for (char& c : pixels) c = static_cast<char>(random.bits());
      e["image"] = {Feature::Kind::kBytes, {pixels}, {}, {}};
    }
    e["label"] = {Feature::Kind::kInt64, {}, {}, {i % 10}};
    w.write(runtime::io::serialize_example(e));
  }
  w.close();
}

data::Dataset chain(const std::string& name, const std::string& file) {
  if (name == "images") {
    Array images(DType::kUint8, {kImages, 28, 28}), labels(DType::kInt64, {kImages});
    runtime::data::Random random(1);
    for (uint8_t& p : images.as<uint8_t>()) p = static_cast<uint8_t>(random.bits());
    for (int64_t i = 0; i < kImages; ++i) labels.as<int64_t>()[static_cast<size_t>(i)] = i % 10;
    return data::tensor_slices({images, labels}, {"image", "label"})
        .repeat()
        .map(
            [](data::Element& in, data::Element& out) {
              const auto from = std::as_const(in[0]).as<uint8_t>();
              auto to = out.make<float>(0, {28, 28});
              for (size_t i = 0; i < from.size(); ++i) to[i] = static_cast<float>(from[i]) / 255.0f;
              out.take(1, in, 1);
            },
            {.output = {{"image", DType::kFloat, {28, 28}}, {"label", DType::kInt64, {}}}, .threads = 2})
        .shuffle({.buffer = 10'000, .seed = 1})
        .batch(kBatch, true)
        .prefetch();
  }
  const data::FeatureConfig label = data::fixed_len("label", {}, DType::kInt64);
  if (name == "records")
    return data::tf_records({file})
        .repeat()
        .batch(kBatch, true)
        .parse_example({data::fixed_len("image", {}, DType::kString), label}, 2)
        .prefetch();
  SLUICE_REQUIRE(name == "floats", Code::kInvalidArgument, "unknown chain ", name);
  return data::tf_records({file})
      .repeat()
      .parse_example({data::fixed_len("image", {kPixels}, DType::kFloat), label}, 2)
      .shuffle({.buffer = 1'000, .seed = 1})
      .batch(kBatch, true)
      .prefetch();
}

double seconds_since(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count();
}

double rate(const std::function<void()>& next, double seconds) {
  for (int i = 0; i < 20; ++i) next();
  const auto start = std::chrono::steady_clock::now();
  int64_t batches = 0;
  while (seconds_since(start) < seconds) {
    for (int i = 0; i < 10; ++i) next();
    batches += 10;
  }
  return static_cast<double>(batches * kBatch) / seconds_since(start);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr,
                 "usage: input_bench write FILE bytes|floats | input_bench CHAIN FILE SECONDS [session]\n");
    return 2;
  }
  try {
    const std::string name = argv[1], file = argv[2];
    if (name == "write") {
      write_records(file, std::strcmp(argv[3], "floats") == 0);
      return 0;
    }
    const data::Dataset d = chain(name, file);
    const double seconds = std::atof(argv[3]);
    if (argc > 4) {
      Graph g;
      const data::Next next = data::make_one_shot_iterator(g, d).get_next();
      Session s(g);
      std::vector<Array> results;
      std::printf("%s %.0f\n", name.c_str(), rate([&] { s.run_into(results, {next[0], next[1]}); }, seconds));
      return 0;
    }
    data::Pipeline p = d.iterate();
    data::Element e;
    std::printf("%s %.0f\n", name.c_str(), rate([&] { p.next(e); }, seconds));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
