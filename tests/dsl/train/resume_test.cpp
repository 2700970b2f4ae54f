// Exact resume: random streams, registered objects, everything under a prefix that TensorFlow never asks for.
#include "dsl/train/resume_state.h"

#include "dsl/ops/random.h"
#include "runtime/io/bundle.h"
#include "runtime/saveable.h"
#include "tests/dsl/train/folder.h"

namespace sluice::dsl::train {
namespace {

using runtime::Saveable;
using runtime::SaveableRegistry;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
namespace io = runtime::io;

class Counter : public Saveable {
 public:
  explicit Counter(std::string key) : key_(std::move(key)) {}
  std::string key() const override { return key_; }
  std::vector<std::pair<std::string, Array>> save() override {
    return {{"at", Array::scalar<int64_t>(at)}, {"names/all", Array::strings({1}, {"x"})}};
  }
  void restore(const std::map<std::string, Array>& state) override { at = state.at("at").item<int64_t>(); }
  int64_t at = 0;

 private:
  std::string key_;
};

class Resume : public SaverFolderTest {
 protected:
  Tensor seeded = random_uniform(g, {4}, 0, 1, {.seed = 3});
  Tensor unseeded = random_normal(g, {4});
};

TEST_F(Resume, RandomOpsGoOnWhereTheyWere) {
  Saver saver(g);
  Session s(g);
  initialize(s);
  for (int i = 0; i < 3; ++i) s.run({seeded, unseeded});
  saver.save(s, at("m"));
  const auto a = s.run({seeded, unseeded});
  Session t(g);
  saver.restore(t, at("m"));
  const auto b = t.run({seeded, unseeded});
  EXPECT_EQ(floats(a[0]), floats(b[0]));
  EXPECT_EQ(floats(a[1]), floats(b[1])) << "a drawn seed is part of the state";
  // Back in the same session, too.
  saver.restore(s, at("m"));
  EXPECT_EQ(floats(s.run({seeded})[0]), floats(a[0]));
}

TEST_F(Resume, AStreamThatHadNotBegunStartsAgain) {
  Saver saver(g);
  Session s(g);
  initialize(s);
  saver.save(s, at("m"));
  const auto first = s.run({seeded});
  saver.restore(s, at("m"));
  EXPECT_EQ(floats(s.run({seeded})[0]), floats(first[0]));
}

TEST_F(Resume, CheckpointsWithoutStateLeaveStreamsAlone) {
  Saver saver(g, {.save_resume_state = false});
  Session s(g);
  initialize(s);
  saver.save(s, at("m"));
  const io::BundleReader reader(at("m"));
  EXPECT_EQ(reader.entries().size(), 2u);
  const auto first = s.run({seeded});
  Saver full(g, {.name = "full"});
  full.restore(s, at("m"));
  EXPECT_NE(floats(s.run({seeded})[0]), floats(first[0]));
}

TEST_F(Resume, RegisteredObjectsAreSavedAndRestored) {
  auto early = std::make_shared<Counter>("input/iterator");
  Saver saver(g);
  Session s(g);
  initialize(s);
  SaveableRegistry::of(s.resources()).add(early);
  early->at = 41;
  saver.save(s, at("m"));
  const io::BundleReader reader(at("m"));
  EXPECT_TRUE(reader.find("_sluice/state/input/iterator|at"));
  EXPECT_TRUE(reader.find("_sluice/state/input/iterator|names/all"));
  early->at = 50;
  saver.restore(s, at("m"));
  EXPECT_EQ(early->at, 41);
  // An object made after the restore finds its state, and a save in between does not lose it.
  Session t(g);
  saver.restore(t, at("m"));
  saver.save(t, at("n"));
  Session u(g);
  saver.restore(u, at("n"));
  auto late = std::make_shared<Counter>("input/iterator");
  SaveableRegistry::of(u.resources()).add(late);
  EXPECT_EQ(late->at, 41);
  EXPECT_THAT(
      error_of([&] { SaveableRegistry::of(u.resources()).add(std::make_shared<Counter>("input/iterator")); }),
      HasSubstr("under the key 'input/iterator'"));
  late.reset();
  EXPECT_THAT(SaveableRegistry::of(u.resources()).all(), IsEmpty());
}

TEST_F(Resume, ADamagedStateChangesNothing) {
  io::save_tensors(at("m"), {"v", "w", "_sluice/random/nodes"}, {},
                   {vec({1, 2}), vec({1, 2, 3}), Array::strings({1}, {"x"})});
  Saver saver(g);
  Session s(g);
  initialize(s);
  EXPECT_THAT(error_of([&] { saver.restore(s, at("m")); }),
              HasSubstr("does not hold the states of random ops"));
  EXPECT_THAT(get(s, w), ElementsAre(0, 0, 0));
}

}  // namespace
}  // namespace sluice::dsl::train
