// Readiness reports, ops by index, losses, regularizers, initialisers and streaming metrics as a program uses
// them. Values of losses, metrics and schedules against TensorFlow: tests/conformance/train_values.py.

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dsl/streaming_metrics.h"
#include "dsl/train/readiness.h"
#include "tests/passes/util.h"

namespace sluice::dsl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Readiness, NamesTheVariablesWithoutAValue) {
  Graph g;
  Variable a = get_variable(g, "a", {2}), b = get_variable(g, "b", {2}, {.use_resource = false});
  make_variable(g, Literal::scalar(1.0f), "local",
                {.trainable = false, .collections = {graph::keys::kLocalVariables}});
  Tensor report = train::report_uninitialized_variables(g), ready = train::ready_report(g);
  EXPECT_EQ(report.node().op(), "GatherV2");
  Session s(g);
  auto names = [&](const Tensor& t) { return s.run({t})[0].string_values(); };
  EXPECT_THAT(names(report), ElementsAre("a", "b", "local"));
  s.run({}, {}, {&a.initializer()});
  EXPECT_THAT(names(report), ElementsAre("b", "local"));
  EXPECT_THAT(names(ready), ElementsAre("b", "local"));
  s.run({}, {}, {&global_variables_initializer(g)});
  s.run({}, {}, {&local_variables_initializer(g)});
  EXPECT_THAT(names(report), IsEmpty());
  EXPECT_THAT(names(ready), IsEmpty());
}

TEST(Readiness, IsAnEmptyVectorWithoutVariables) {
  Graph g;
  Tensor report = train::report_uninitialized_variables(g);
  Session s(g);
  EXPECT_THAT(s.run({report})[0].string_values(), IsEmpty());
  EXPECT_EQ(report.shape(), Shape({0}));
}

TEST(BooleanMask, KeepsThePartsWhereItIsTrue) {
  Graph g;
  Tensor x = constant(g, std::vector<float>{1, 2, 3, 4, 5, 6}, {3, 2});
  Tensor rows = boolean_mask(x, constant(g, Literal::vector<bool>({true, false, true})));
  EXPECT_EQ(rows.shape(), Shape({-1, 2}));
  EXPECT_THAT(run(rows), ElementsAre(1, 2, 5, 6));
  const Tensor matrix = greater(x, 2.5);
  EXPECT_THAT(run(boolean_mask(x, matrix)), ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(run(boolean_mask(x, constant(g, Literal::vector<bool>({false, true})), 1)),
              ElementsAre(2, 4, 6));
  EXPECT_THAT(error_of([&] { boolean_mask(x, constant(g, Literal::scalar(true))); }),
              HasSubstr("mask cannot be scalar."));
  EXPECT_THAT(error_of([&] { boolean_mask(x, placeholder(g, DType::kBool)); }),
              HasSubstr("Number of mask dimensions must be specified"));
  EXPECT_THAT(error_of([&] { boolean_mask(x, constant(g, Literal::vector<bool>({true}))); }),
              HasSubstr("are incompatible"));
}

TEST(BooleanMask, ItsGradientReachesOnlyWhatItKept) {
  Graph g;
  Variable v = get_variable(g, "v", {3}, {.initializer = ones_initializer()});
  Tensor mask = placeholder(g, DType::kBool, {3}, "mask");
  Tensor loss = reduce_sum(multiply(boolean_mask(v, mask), 2.0));
  const GradValue d = gradients({loss}, {v.handle()})[0];
  const Output dense = d.is_slices() ? graph::densify(g, d.slices) : d.dense;
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  EXPECT_THAT(floats(s.run({dense}, {{mask, Array::from<bool>({3}, {true, false, true})}})[0]),
              ElementsAre(2, 0, 2));
}

TEST(IndexOps, ReadAndWriteRowsOfVariables) {
  for (const bool resource : {true, false}) {
    Graph g;
    Variable v = get_variable(g, "v", {3, 2}, {.initializer = ones_initializer(), .use_resource = resource});
    Tensor rows = constant(g, std::vector<int32_t>{2, 0, 2}),
           up = constant(g, std::vector<float>{1, 2, 3, 4, 5, 6}, {3, 2});
    Node& add = scatter_add(v, rows, up);
    Node& mul = scatter_mul(v, constant(g, std::vector<int32_t>{1}), 10.0);
    Node& nd = scatter_nd_update(v, constant(g, std::vector<int32_t>{0, 1}, {1, 2}),
                                 constant(g, std::vector<float>{-1}));
    Tensor read = gather(v, rows), cell = gather_nd(v, constant(g, std::vector<int32_t>{2, 1}, {1, 2}));
    EXPECT_EQ(add.op(), resource ? "ResourceScatterAdd" : "ScatterAdd");
    Session s(g);
    s.run({}, {}, {&global_variables_initializer(g)});
    s.run({}, {}, {&add});
    EXPECT_THAT(floats(s.run({v.snapshot()})[0]), ElementsAre(4, 5, 1, 1, 7, 9));
    s.run({}, {}, {&mul});
    s.run({}, {}, {&nd});
    EXPECT_THAT(floats(s.run({read})[0]), ElementsAre(7, 9, 4, -1, 7, 9));
    EXPECT_THAT(floats(s.run({cell})[0]), ElementsAre(9));
  }
}

TEST(IndexOps, ATableInPartsGivesTheRowsOfItsWhole) {
  Graph g;
  std::vector<double> values;
  for (int i = 0; i < 14; ++i) values.push_back(i);
  PartitionedVariable table = get_variable(g, "table", {7, 2}, fixed_size_partitioner(3),
                                           {.initializer = constant_initializer(values)});
  Tensor ids = placeholder(g, DType::kInt64, {2, 2}, "ids");
  Tensor rows = embedding_lookup(table, ids);
  std::vector<Output> handles;
  for (const Variable& part : table.parts()) handles.push_back(part.handle());
  for (const GradValue& d : gradients({reduce_sum(rows)}, handles)) EXPECT_TRUE(d.is_slices());
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  const Array got = s.run({rows}, {{ids, Array::from<int64_t>({2, 2}, {6, 0, 3, 2})}})[0];
  EXPECT_EQ(got.dims(), (Dims{2, 2, 2}));
  EXPECT_THAT(floats(got), ElementsAre(12, 13, 0, 1, 6, 7, 4, 5));
  Tensor mod =
      embedding_lookup(table, ids, PartitionStrategy::kMod);  // row id/3 of part id%3: parts start at 0, 3, 5
  EXPECT_THAT(floats(s.run({mod}, {{ids, Array::from<int64_t>({2, 2}, {0, 1, 2, 3})}})[0]),
              ElementsAre(0, 1, 6, 7, 10, 11, 2, 3));
}

TEST(IndexOps, UniqueAndSegments) {
  Graph g;
  UniqueResult u = unique_with_counts(constant(g, std::vector<int32_t>{5, 3, 5}));
  Tensor x = constant(g, std::vector<float>{1, 2, 3}), ids = constant(g, std::vector<int32_t>{0, 0, 2});
  Session s(g);
  const auto got = s.run({u.y, u.idx, u.count, segment_mean(x, ids), unsorted_segment_max(x, ids, 3)});
  EXPECT_THAT(got[0].as<int32_t>(), ElementsAre(5, 3));
  EXPECT_THAT(got[1].as<int32_t>(), ElementsAre(0, 1, 0));
  EXPECT_THAT(got[2].as<int32_t>(), ElementsAre(2, 1));
  EXPECT_THAT(floats(got[3]), ElementsAre(1.5f, 0, 3));
  EXPECT_EQ(floats(got[4])[0], 2);
}

TEST(TextOps, MakeAFileNameFromAStep) {
  Graph g;
  Tensor step = constant(g, 7);
  Tensor name = string_join({constant(g, "model"), as_string(step, {.width = 3, .fill = "0"})}, "-");
  Tensor base = regex_replace(name, "-[0-9]+$", "");
  Session s(g);
  const auto got = s.run({name, base, reduce_join(stack({name, base}), {.separator = ","})});
  EXPECT_THAT(got[0].string_values(), ElementsAre("model-007"));
  EXPECT_THAT(got[1].string_values(), ElementsAre("model"));
  EXPECT_THAT(got[2].string_values(), ElementsAre("model-007,model"));
}

TEST(Regularizers, SumAndApply) {
  Graph g;
  VariableOptions o{.initializer = constant_initializer(-2.0)};
  Variable a = get_variable(g, "a", {2}, o), b = get_variable(g, "b", {1}, o);
  const Regularizer r = l1_l2_regularizer(0.5, 0.25);
  Tensor both = apply_regularization(g, r, std::vector<Variable>{a, b});
  EXPECT_EQ(both.node().name(), "get_regularization_penalty");
  EXPECT_EQ(losses::get_regularization_losses(g).size(), 1u);
  EXPECT_THAT(error_of([&] { apply_regularization(g, r); }), HasSubstr("No weights to regularize."));
  EXPECT_FALSE(sum_regularizer({l1_regularizer(0), l2_regularizer(0)})(a));
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  EXPECT_FLOAT_EQ(floats(s.run({both})[0])[0], 0.5f * 6 + 0.25f * 12 / 2);
}

TEST(Initializers, BoundsFollowTheFans) {
  Graph g;
  g.set_seed(3);
  auto largest = [&](const Initializer& init, const Dims& shape) {
    Session s(g);
    float most = 0;
    for (float v : floats(s.run({init(g, shape, DType::kFloat, Loc::current())})[0]))
      most = std::max(most, std::fabs(v));
    return most;
  };
  const float lecun = largest(lecun_uniform_initializer(), {300, 10});
  EXPECT_LE(lecun, 0.1f);
  EXPECT_GT(lecun, 0.09f);
  EXPECT_LE(largest(lecun_normal_initializer(), {100, 10}), 0.1f / 0.8796f * 2);
  EXPECT_LE(largest(uniform_unit_scaling_initializer(2), {3, 100}), 2);
  EXPECT_LE(largest(xavier_initializer(), {100, 200}), std::sqrt(6.0f / 300));
  EXPECT_LE(largest(xavier_initializer(false), {100, 200}), 2 * std::sqrt(1.3f * 2 / 300));
  EXPECT_THAT(run(identity_initializer(2)(g, {2, 3}, DType::kFloat, Loc::current())),
              ElementsAre(2, 0, 0, 0, 2, 0));
  EXPECT_THAT(error_of([&] { identity_initializer()(g, {2}, DType::kFloat, Loc::current()); }),
              HasSubstr("Identity matrix initializer can only be used for 2D matrices."));
}

TEST(StreamingMetrics, KeepLocalVariablesAndCollections) {
  Graph g;
  Tensor labels = placeholder(g, DType::kInt64, {-1}, "labels"),
         guesses = placeholder(g, DType::kInt64, {-1}, "g");
  auto m = metrics::streaming_accuracy(
      labels, guesses, {.metrics_collections = {"values"}, .updates_collections = {"updates"}});
  auto again = metrics::streaming_accuracy(labels, guesses);
  std::vector<std::string> names;
  for (const Variable& v : get_variables(g, graph::keys::kMetricVariables)) names.push_back(v.name());
  EXPECT_THAT(names, ElementsAre("accuracy/total", "accuracy/count", "accuracy_1/total", "accuracy_1/count"));
  EXPECT_EQ(local_variables(g).size(), 4u);
  EXPECT_THAT(global_variables(g), IsEmpty());
  EXPECT_EQ(g.collections().elements("values").size(), 1u);
  EXPECT_EQ(g.collections().elements("updates").size(), 1u);
  Session s(g);
  s.run({}, {}, {&local_variables_initializer(g)});
  auto batch = [](std::vector<int64_t> v) {
    return Array::from<int64_t>({static_cast<int64_t>(v.size())}, std::span<const int64_t>(v));
  };
  EXPECT_EQ(floats(s.run({m.value})[0])[0], 0);
  EXPECT_FLOAT_EQ(floats(s.run({m.update}, {{labels, batch({1, 2})}, {guesses, batch({1, 0})}})[0])[0], 0.5f);
  EXPECT_FLOAT_EQ(floats(s.run({m.update}, {{labels, batch({3, 3, 3})}, {guesses, batch({3, 3, 3})}})[0])[0],
                  0.8f);
  EXPECT_FLOAT_EQ(floats(s.run({m.value})[0])[0], 0.8f);
  EXPECT_EQ(floats(s.run({again.value})[0])[0], 0);
}

TEST(StreamingMetrics, TopKAndConfusion) {
  Graph g;
  Tensor logits = constant(g, std::vector<float>{1, 3, 2, 9, 1, 5}, {2, 3});
  auto m = metrics::streaming_top_k(constant(g, std::vector<int32_t>{2, 1}), logits, 2);
  Tensor cm = metrics::confusion_matrix(constant(g, std::vector<int64_t>{0, 1, 1}),
                                        constant(g, std::vector<int64_t>{0, 0, 1}), 2);
  Session s(g);
  s.run({}, {}, {&local_variables_initializer(g)});
  EXPECT_FLOAT_EQ(floats(s.run({m.update})[0])[0], 0.5f);
  EXPECT_THAT(s.run({cm})[0].as<int32_t>(), ElementsAre(1, 0, 1, 1));
}

TEST(Losses, JoinTheirCollectionAndRefuseWrongWeights) {
  Graph g;
  Tensor p = constant(g, std::vector<float>{1, 2, 4, 4}, {2, 2}),
         z = constant(g, std::vector<float>{0, 0, 4, 2}, {2, 2});
  losses::huber_loss(z, p);
  losses::cosine_distance(z, p, 1);
  Tensor pairwise = losses::mean_pairwise_squared_error(z, p);
  EXPECT_EQ(losses::get_losses(g).size(), 3u);
  // Errors (1, 2) and (0, 2): differences of 1 and 2, each counted for both orders of the pair.
  EXPECT_NEAR(run(pairwise)[0], 1 + 4, 1e-5);
  EXPECT_THAT(error_of([&] {
                losses::huber_loss(z, p, {.weights = Operand(constant(g, std::vector<float>{1, 2, 3}))});
              }),
              HasSubstr("weights can not be broadcast to values"));
}

}  // namespace
}  // namespace sluice::dsl
