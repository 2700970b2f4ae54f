// A small training program fed by an input pipeline: IDX files as Fashion-MNIST has them, shuffled, scaled,
// batched and prefetched; and its exact resume from a checkpoint.

#include <gtest/gtest.h>

#include "dsl/dsl.h"
#include "dsl/train/optimizer.h"
#include "tests/data/pipeline_util.h"

namespace sluice {
namespace {

using namespace pipetest;
using namespace sluice::dsl;

constexpr int kImages = 96, kSide = 8;

// Four kinds of picture: one quarter of each is bright.
void write_pictures(const Folder& f) {
  auto header = [](std::vector<uint32_t> dims) {
    std::string s{0, 0, 8, static_cast<char>(dims.size())};
    for (uint32_t d : dims)
      for (int shift = 24; shift >= 0; shift -= 8) s.push_back(static_cast<char>(d >> shift));
    return s;
  };
  std::string images = header({kImages, kSide, kSide}), labels = header({kImages});
  for (int i = 0; i < kImages; ++i) {
    const int kind = i % 4;
    for (int y = 0; y < kSide; ++y)
      for (int x = 0; x < kSide; ++x) {
        const bool bright = (2 * y / kSide) * 2 + 2 * x / kSide == kind;
        images.push_back(static_cast<char>((bright ? 180 : 20) + (i * 7 + y * 3 + x) % 40));
      }
    labels.push_back(static_cast<char>(kind));
  }
  f.write("train-images-idx3-ubyte", images);
  f.write("train-labels-idx1-ubyte", labels);
}

struct Program {
  explicit Program(const std::string& dir) {
    data::Dataset input =
        data::idx({dir + "/train-images-idx3-ubyte", dir + "/train-labels-idx1-ubyte"}, {"image", "label"})
            .shuffle({.buffer = kImages, .seed = 7})
            .repeat()
            .map(
                [](Element& in, Element& out) {
                  const auto from = std::as_const(in[0]).as<uint8_t>();
                  auto to = out.make<float>(0, {kSide, kSide});
                  for (size_t i = 0; i < from.size(); ++i) to[i] = static_cast<float>(from[i]) / 255;
                  out.make<int64_t>(1, {})[0] = std::as_const(in[1]).as<uint8_t>()[0];
                },
                {.output = {{"image", DType::kFloat, {kSide, kSide}}, {"label", DType::kInt64, {}}},
                 .threads = 2})
            .batch(16, true)
            .prefetch(2);
    g.set_seed(1);
    const data::Next next = data::make_one_shot_iterator(g, input, {.name = "input"}).get_next();
    Tensor logits = layers::dense(layers::flatten(next["image"]), 4);
    Tensor loss = losses::sparse_softmax_cross_entropy(next["label"], logits);
    train::GradientDescentOptimizer optimizer(0.2);
    train_op = train::create_train_op(loss, optimizer);
    init = &global_variables_initializer(g);
    saver.emplace(g);
  }
  std::vector<float> steps(Session& s, int n) {
    std::vector<float> losses;
    for (int i = 0; i < n; ++i) losses.push_back(s.run({train_op})[0].item<float>());
    return losses;
  }

  Graph g;
  Tensor train_op;
  Node* init = nullptr;
  std::optional<train::Saver> saver;
};

TEST(PipelineTraining, LearnsFromPicturesInFiles) {
  const Folder f("train");
  write_pictures(f);
  Program p(f.str());
  Session s(p.g);
  s.run({}, {}, {p.init});
  const std::vector<float> losses = p.steps(s, 100);
  EXPECT_LT(losses.back(), 0.25 * losses.front());
}

TEST(PipelineTraining, GoesOnBitForBitFromACheckpoint) {
  const Folder f("resume_train");
  write_pictures(f);
  std::vector<float> want;
  std::string checkpoint;
  {
    Program p(f.str());
    Session s(p.g);
    s.run({}, {}, {p.init});
    p.steps(s, 11);
    checkpoint = p.saver->save(s, f.file("model"), 11);
    want = p.steps(s, 14);  // over the end of a pass
  }
  Program p(f.str());
  Session s(p.g);
  p.saver->restore(s, checkpoint);
  EXPECT_EQ(p.steps(s, 14), want);
}

}  // namespace
}  // namespace sluice
