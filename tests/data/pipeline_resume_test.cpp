// A position saved anywhere and put back gives the same elements, bit for bit, whatever the pipeline is made
// of and however many threads run it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "runtime/data/random.h"
#include "runtime/io/record.h"
#include "tests/data/pipeline_util.h"

namespace sluice {
namespace {

using namespace pipetest;
using dsl::data::Dataset;
using graph::DType;
using runtime::data::Random;
using testing::HasSubstr;
namespace data = dsl::data;

const data::ElementSpec kNumber{{"", DType::kInt64, {}}};

struct Files {
  Files() : folder("resume") {
    for (int f = 0; f < 3; ++f) {
      runtime::io::RecordWriter w(folder.file(cat("r", f)));
      std::string lines, values;
      for (int i = 0; i < 7 + f; ++i) {
        w.write(cat(100 * f + i));
        lines += cat(100 * f + i, "\n");
        values += cat(100 * f + i, ",\"x\ny\"\n");
      }
      w.close();
      records.push_back(folder.file(cat("r", f)));
      texts.push_back(folder.write(cat("t", f), lines));
      csvs.push_back(folder.write(cat("c", f), values));
    }
  }
  Folder folder;
  std::vector<std::string> records, texts, csvs;
};

// From a string of digits to a number.
Dataset parsed(const Dataset& d) {
  return d.map(
      [](Element& in, Element& out) {
        out.make<int64_t>(0, {})[0] = std::stoll(std::as_const(in[0]).string_values()[0]);
      },
      {.output = kNumber});
}

/// Random pipelines of int64 scalars (then batched, perhaps). The same seed makes the same pipeline, with
/// `threads` where threads may be.
class Maker {
 public:
  Maker(uint64_t seed, int threads, const Files& files) : random_(seed), threads_(threads), files_(files) {}

  Dataset pipeline() {
    Dataset d = scalars(3);
    const auto steps = random_.below(5);
    for (uint64_t i = 0; i < steps; ++i) d = step(d);
    switch (random_.below(4)) {
      case 0:
        d = d.batch(1 + below(5), random_.coin());
        break;
      case 1:
        d = d.padded_batch({.size = 1 + below(4)});
        break;
      default:
        break;
    }
    if (random_.coin()) d = d.prefetch(threads_ == 1 ? 1 : 3);
    return d;
  }

 private:
  int64_t below(int64_t n) { return static_cast<int64_t>(random_.below(static_cast<uint64_t>(n))); }

  Dataset source() {
    switch (random_.below(7)) {
      case 0:
        return parsed(data::tf_records(files_.records));
      case 1:
        return parsed(data::text_lines(files_.texts));
      case 2:
        return data::csv(files_.csvs, {{"", DType::kInt64, {}}, {"", DType::kString, {}}})
            .map([](Element& in, Element& out) { out.take(0, in, 0); }, {.output = kNumber});
      case 3: {
        const int64_t n = 5 + below(20);
        return data::generator(kNumber, [n] {
          return [n, i = int64_t{0}](Element& out, const CancelToken&) mutable {
            if (i == n) return false;
            out.make<int64_t>(0, {})[0] = i * i;
            ++i;
            return true;
          };
        });
      }
      case 4: {
        const int64_t n = 5 + below(20);
        std::vector<int64_t> v(static_cast<size_t>(n));
        std::iota(v.begin(), v.end(), 1000);
        return data::tensor_slices({Array::from<int64_t>({n}, std::span<const int64_t>(v))});
      }
      default:
        return data::range(0, 5 + below(30));
    }
  }

  Dataset scalars(int depth) {
    if (depth > 0 && random_.below(3) == 0) {
      Dataset a = scalars(depth - 1);
      switch (random_.below(3)) {
        case 0:
          return a.concatenate(scalars(depth - 1));
        case 1:
          return data::zip({a, scalars(depth - 1)})
              .map(
                  [](Element& in, Element& out) {
                    out.make<int64_t>(0, {})[0] = 3 * in[0].as<int64_t>()[0] + in[1].as<int64_t>()[0];
                  },
                  {.output = kNumber});
        default: {
          const bool shuffled = random_.coin();
          return a.interleave(
              [shuffled](const Element& e) {
                const int64_t v = e[0].as<int64_t>()[0];
                Dataset inner = data::range(v, v + 1 + (v % 5 + 5) % 5);
                return shuffled ? inner.shuffle({.buffer = 3, .seed = 4}) : inner;
              },
              kNumber,
              {.cycle = static_cast<int>(1 + below(4)),
               .block = static_cast<int>(1 + below(3)),
               .parallel = random_.coin()});
        }
      }
    }
    return source();
  }

  Dataset step(const Dataset& d) {
    switch (random_.below(12)) {
      case 0:
        return d.map(times(3));
      case 1:
        // Parallel in both: degrees may differ between save and restore, being parallel may not.
        return d.map(times(5), {.threads = threads_ == 1 ? 2 : threads_});
      case 2:
        return d.filter([](const Element& e) { return e[0].as<int64_t>()[0] % 3 != 1; });
      case 3:
        return d.shuffle(
            {.buffer = 1 + below(20), .seed = random_.bits(), .reshuffle_each_iteration = random_.coin()});
      case 4:
        return d.shuffle({.buffer = 1 + below(20)});
      case 5:
        return d.repeat(1 + below(3));
      case 6:
        return random_.coin() ? d.take(below(60)) : d.skip(below(6));
      case 7:
        return d.shard(1 + below(3), 0);
      case 8:
        return d.cache().repeat(1 + below(3));
      case 9:
        return d.prefetch(threads_ == 1 ? 1 : 4);
      case 10:
        return d.map(
            [](Element& in, Element& out) {
              SLUICE_REQUIRE(in[0].as<int64_t>()[0] % 7 != 3, Code::kInvalidArgument, "unlucky");
              out.take(0, in, 0);
            },
            {.threads = random_.coin() ? 1 : std::max(2, threads_)});
      default:
        return d.ignore_errors();
    }
  }

  Random random_;
  const int threads_;
  const Files& files_;
};

constexpr size_t kMost = 400;

TEST(Resume, AnyPipelineGoesOnBitForBitFromAnyPosition) {
  const Files files;
  Random random(2024);
  for (uint64_t seed = 0; seed < 150; ++seed) {
    const Dataset d = Maker(seed, 1 + static_cast<int>(seed % 3), files).pipeline();
    SCOPED_TRACE(cat("seed ", seed, ": ", d.str()));
    Pipeline whole = d.iterate();
    const size_t length = run(whole, kMost).size();
    for (int trial = 0; trial < 3; ++trial) {
      const size_t at = random.below(length + 2);
      Pipeline first = d.iterate();
      run(first, at);
      const std::string position = first.save();
      const std::vector<std::string> want = run(first, kMost);
      // Another process would build the same pipeline anew, maybe for another number of threads.
      Pipeline second = Maker(seed, 1 + static_cast<int>((seed + static_cast<uint64_t>(trial)) % 3), files)
                            .pipeline()
                            .iterate();
      if (trial == 1) run(second, 3);
      second.restore(position);
      ASSERT_EQ(run(second, kMost), want) << "at " << at;
      // And once more from what was restored.
      Pipeline third = d.iterate();
      third.restore(position);
      const size_t further = random.below(want.size() + 1);
      run(third, further);
      Pipeline fourth = d.iterate();
      fourth.restore(third.save());
      ASSERT_EQ(run(fourth, kMost - further),
                std::vector<std::string>(want.begin() + static_cast<long>(further), want.end()));
    }
  }
}

TEST(Resume, ThreadsChangeNoElement) {
  const Files files;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const Dataset one = Maker(seed, 1, files).pipeline(), many = Maker(seed, 4, files).pipeline();
    if (one.str().find("unseeded") != std::string::npos) continue;
    ASSERT_EQ(run(one, kMost), run(many, kMost)) << seed << ": " << one.str();
  }
}

TEST(Resume, AnUnorderedMapKeepsWhatIsUnderWay) {
  const Dataset d = data::range(0, 300).map(times(1), {.threads = 4, .ordered = false});
  Pipeline first = d.iterate();
  std::vector<std::string> all = run(first, 117);
  Pipeline second = d.iterate();
  second.restore(first.save());
  const std::vector<std::string> rest = run(second);
  all.insert(all.end(), rest.begin(), rest.end());
  std::sort(all.begin(), all.end());
  std::vector<std::string> want = run(data::range(0, 300));
  std::sort(want.begin(), want.end());
  EXPECT_EQ(all, want);
}

TEST(Resume, ACacheOfAnUnorderedMapIsSavedWithItsElements) {
  const Dataset d = data::range(0, 40).map(times(1), {.threads = 4, .ordered = false}).cache().repeat(3);
  for (size_t at : {5, 40, 63}) {
    Pipeline first = d.iterate();
    run(first, at);
    const std::string position = first.save();
    Pipeline second = d.iterate();
    second.restore(position);
    auto a = run(first), b = run(second);
    EXPECT_EQ(a.size(), b.size());
    if (at >= 40) {
      EXPECT_EQ(a, b);
    }
  }
}

TEST(Resume, APositionOfAnotherPipelineIsRefusedAndChangesNothing) {
  Pipeline p = data::range(0, 10).shuffle({.buffer = 4, .seed = 1}).iterate();
  const std::string position = p.save();
  Pipeline q = data::range(0, 10).shuffle({.buffer = 5, .seed = 1}).iterate();
  run(q, 3);
  try {
    q.restore(position);
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_THAT(e.message(), HasSubstr("belongs to another input pipeline"));
    EXPECT_THAT(e.message(), HasSubstr("Shuffle(4,1)"));
    EXPECT_THAT(e.message(), HasSubstr("Shuffle(5,1)"));
  }
  EXPECT_EQ(run(q).size(), 7u);
}

TEST(Resume, ADamagedPositionIsAnErrorAndNoCrash) {
  const Dataset d =
      data::zip({data::range(0, 30).shuffle({.buffer = 8, .seed = 2}).batch(2), data::range(0, 9)})
          .prefetch(2);
  Pipeline p = d.iterate();
  run(p, 4);
  const std::string position = p.save();
  for (size_t cut = 0; cut < position.size(); cut += 3) {
    Pipeline q = d.iterate();
    EXPECT_THROW(q.restore(std::string_view(position).substr(0, cut)), Error);
  }
  Random random(9);
  for (int i = 0; i < 2000; ++i) {
    std::string damaged = position;
    for (uint64_t k = 0; k < 1 + random.below(3); ++k)
      damaged[random.below(damaged.size())] = static_cast<char>(random.bits());
    Pipeline q = d.iterate();
    try {
      q.restore(damaged);
      run(q, 50);  // what looks sound must run
    } catch (const Error&) {
    }
  }
}

}  // namespace
}  // namespace sluice
