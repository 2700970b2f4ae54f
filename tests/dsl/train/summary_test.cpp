// summary::… : names, tags, families, collections, and what the values are when a session makes them.
#include "dsl/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dsl/dsl.h"

namespace sluice::dsl {
namespace {

using runtime::io::parse_summary;
using runtime::io::parse_summary_metadata;
using runtime::io::SummaryValue;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<SummaryValue> values_of(const Tensor& summary) {
  Session s(summary.graph());
  return parse_summary(s.run({summary})[0].string_values()[0]);
}

std::string tag_of(const Tensor& summary) { return values_of(summary)[0].tag; }

TEST(SummaryNames, ScopeGivesTheTagAndIsMadeUnique) {
  Graph g;
  const NameScope outer(g, "outer");
  const Tensor a = summary::scalar("loss", constant(g, 1.0)), b = summary::scalar("loss", constant(g, 2.0));
  EXPECT_EQ(a.name(), "outer/loss:0");
  EXPECT_EQ(tag_of(a), "outer/loss");
  EXPECT_EQ(tag_of(b), "outer/loss_1");
  EXPECT_EQ(a.node().input(0).node->name(), "outer/loss/tags");
}

TEST(SummaryNames, FamilyStandsInScopeAndTwiceInTheTag) {
  Graph g;
  const Tensor a = summary::scalar("loss", constant(g, 1.0), {.family = "fam"});
  EXPECT_EQ(a.name(), "fam/loss:0");
  EXPECT_EQ(tag_of(a), "fam/fam/loss");
}

TEST(SummaryNames, IllegalCharactersBecomeUnderscoresAndLeadingSlashesGo) {
  EXPECT_EQ(summary::clean_tag("a b:c"), "a_b_c");
  EXPECT_EQ(summary::clean_tag("//x/y-z.w_1"), "x/y-z.w_1");
  EXPECT_EQ(summary::clean_tag("///"), "");
  Graph g;
  EXPECT_EQ(tag_of(summary::scalar("w:0", constant(g, 1.0))), "w_0");
}

TEST(SummaryCollections, DefaultAndGiven) {
  Graph g;
  const Tensor a = summary::scalar("a", constant(g, 1.0));
  const Tensor b = summary::histogram("b", constant(g, 1.0), {.collections = {"mine", "yours"}});
  EXPECT_EQ(g.collections().elements(graph::keys::kSummaries).size(), 1u);
  EXPECT_EQ(g.collections().elements("mine").size(), 1u);
  EXPECT_EQ(g.collections().elements("yours").size(), 1u);
  summary::merge({a, b}, {.name = "all", .collections = {"merged"}});
  EXPECT_EQ(g.collections().elements("merged").size(), 1u);
  EXPECT_EQ(g.collections().elements(graph::keys::kSummaries).size(), 1u)
      << "a merge joins nothing by itself";
}

TEST(SummaryMerge, AllOfACollectionOrOfAScope) {
  Graph g;
  EXPECT_FALSE(static_cast<bool>(summary::merge_all(g)));
  summary::scalar("a", constant(g, 1.0));
  {
    const NameScope inner(g, "inner");
    summary::scalar("b", constant(g, 2.0));
  }
  EXPECT_EQ(values_of(summary::merge_all(g)).size(), 2u);
  const auto scoped = values_of(summary::merge_all(g, graph::keys::kSummaries, "inner"));
  ASSERT_EQ(scoped.size(), 1u);
  EXPECT_EQ(scoped[0].tag, "inner/b");
  EXPECT_THROW(summary::merge({}), Error);
}

TEST(SummaryKinds, ImageAudioTensorAndText) {
  Graph g;
  const Tensor pixels = constant(g, std::vector<float>{0, 1, 2, 3}, {1, 2, 2, 1});
  EXPECT_EQ(tag_of(summary::image("img", pixels, {.max_outputs = 1})), "img/image");
  const Tensor wave = constant(g, std::vector<float>{0, 0.5f, -0.5f}, {1, 3});
  const Tensor sound = summary::audio("aud", wave, 8000.0);
  EXPECT_EQ(sound.node().op(), "AudioSummaryV2");
  EXPECT_EQ(sound.node().input(2).node->name(), "aud/sample_rate");
  EXPECT_EQ(tag_of(sound), "aud/audio/0");
  auto v = values_of(summary::tensor(
      "t", pixels, {.plugin = "p", .plugin_content = "c", .display_name = "n", .description = "d"}));
  EXPECT_EQ(parse_summary_metadata(v[0].metadata),
            (runtime::io::SummaryMetadata{
                .plugin = "p", .plugin_content = "c", .display_name = "n", .description = "d"}));
  v = values_of(summary::text("words", constant(g, "hello")));
  EXPECT_EQ(parse_summary_metadata(v[0].metadata).plugin, "text");
  EXPECT_EQ(runtime::io::tensor_from_bytes(v[0].content).item<std::string>(), "hello");
  try {
    summary::text("numbers", pixels);
    ADD_FAILURE() << "numbers are no text";
  } catch (const Error& e) {
    EXPECT_THAT(e.message(), HasSubstr("to have dtype string, got float"));
  }
}

TEST(SummaryKinds, PrCurveCountsAtEveryThreshold) {
  Graph g;
  const Tensor labels = constant(g, Literal::vector<float>(std::vector<float>{1, 0, 1, 0}));
  const Tensor predictions = constant(g, std::vector<float>{0.9f, 0.6f, 0.4f, 1.7f});
  const Tensor curve =
      summary::pr_curve("pr", cast(labels, DType::kBool), predictions, {.num_thresholds = 3});
  const auto v = values_of(curve);
  EXPECT_EQ(v[0].tag, "pr/pr_curves");
  const auto m = parse_summary_metadata(v[0].metadata);
  EXPECT_EQ(m.plugin, "pr_curves");
  EXPECT_EQ(m.plugin_content, "\x10\x03");
  EXPECT_EQ(m.display_name, "pr");
  const Array rows = runtime::io::tensor_from_bytes(v[0].content);
  ASSERT_EQ(rows.dims(), (Dims{6, 3}));
  const auto x = rows.as<float>();
  const auto row = [&](int r) { return std::vector<float>(x.begin() + 3 * r, x.begin() + 3 * r + 3); };
  EXPECT_THAT(row(0), ElementsAre(2, 1, 0));  // true positives at 0, 0.5, 1
  EXPECT_THAT(row(1), ElementsAre(2, 2, 1));  // false positives; 1.7 counts as 1
  EXPECT_THAT(row(2), ElementsAre(0, 0, 1));  // true negatives
  EXPECT_THAT(row(3), ElementsAre(0, 1, 2));  // false negatives
  EXPECT_THAT(row(4), ElementsAre(0.5f, testing::FloatEq(1 / 3.0f), 0));
  EXPECT_THAT(row(5), ElementsAre(1, 0.5f, 0));
}

TEST(SummaryKinds, PrCurveWeighsAndRefuses) {
  Graph g;
  const Tensor labels = cast(constant(g, std::vector<float>{1, 0}), DType::kBool);
  const Tensor predictions = constant(g, std::vector<float>{0.9f, 0.6f}),
               w = constant(g, std::vector<float>{0, 4});
  const auto v = values_of(summary::pr_curve("pr", labels, predictions, {.num_thresholds = 2, .weights = w}));
  const Array rows = runtime::io::tensor_from_bytes(v[0].content);
  EXPECT_EQ(rows.as<float>()[0], 0);
  EXPECT_EQ(rows.as<float>()[2], 4);
  EXPECT_THROW(summary::pr_curve("pr", predictions, predictions), Error);
  EXPECT_THROW(summary::pr_curve("pr", labels, predictions, {.num_thresholds = 1}), Error);
}

TEST(SummaryKinds, GradientsOfATrainOp) {
  Graph g;
  const Variable w = get_variable(g, "w", {2}, {.initializer = zeros_initializer()});
  const Tensor loss = reduce_sum(square(subtract(w, 1.0)));
  train::GradientDescentOptimizer opt(0.1);
  train::create_train_op(loss, opt, {.summarize_gradients = true});
  const Tensor merged = summary::merge_all(g);
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  std::vector<std::string> tags;
  for (const SummaryValue& v : parse_summary(s.run({merged})[0].string_values()[0])) tags.push_back(v.tag);
  EXPECT_THAT(tags, testing::IsSupersetOf({HasSubstr("w_gradient"), HasSubstr("w_gradient_norm")}));
}

}  // namespace
}  // namespace sluice::dsl
