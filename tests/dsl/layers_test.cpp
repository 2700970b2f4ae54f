#include "dsl/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/passes/util.h"

namespace sluice::dsl {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::FloatNear;
using ::testing::HasSubstr;

class LayersTest : public ::testing::Test {
 protected:
  Graph g;
  Tensor x = placeholder(g, DType::kFloat, {-1, 8, 8, 3}, "x");
  std::vector<std::string> variables() {
    std::vector<std::string> out;
    for (const Variable& v : global_variables(g)) out.push_back(v.name());
    return out;
  }
  std::vector<std::string> trainable() {
    std::vector<std::string> out;
    for (const Variable& v : trainable_variables(g)) out.push_back(v.name());
    return out;
  }
};

TEST_F(LayersTest, NamesAreThoseOfTfLayers) {
  Tensor h = layers::conv2d(x, 4, {3, 3}, {.activation = layers::kRelu});
  EXPECT_EQ(h.node().name(), "conv2d/Relu");
  EXPECT_EQ(h.shape(), Shape({-1, 6, 6, 4}));
  h = layers::conv2d(h, 4, {3, 3}, {.padding = "SAME", .use_bias = false});
  h = layers::batch_normalization(h, {.training = true});
  h = layers::max_pooling2d(h, {2, 2}, {2, 2});
  EXPECT_EQ(h.node().name(), "max_pooling2d/MaxPool");
  h = layers::dense(layers::flatten(h), 5);
  EXPECT_EQ(h.node().name(), "dense/BiasAdd");
  EXPECT_EQ(h.shape(), Shape({-1, 5}));
  EXPECT_THAT(variables(),
              ElementsAre("conv2d/kernel", "conv2d/bias", "conv2d_1/kernel", "batch_normalization/gamma",
                          "batch_normalization/beta", "batch_normalization/moving_mean",
                          "batch_normalization/moving_variance", "dense/kernel", "dense/bias"));
  EXPECT_EQ(trainable().size(), 7u);
  std::vector<std::string> updates;
  for (auto& e : g.collections().elements(graph::keys::kUpdateOps)) updates.push_back(e.node->name());
  EXPECT_THAT(updates, ElementsAre("batch_normalization/AssignMovingAvg/AssignSubVariableOp",
                                   "batch_normalization/AssignMovingAvg_1/AssignSubVariableOp"));
}

TEST_F(LayersTest, NamesOfContrib) {
  layers::conv2d(x, 4, {3, 3}, {.naming = layers::Naming::kContrib});
  layers::batch_normalization(x, {.training = true, .scale = false, .naming = layers::Naming::kContrib});
  layers::dense(layers::flatten(x), 5, {.name = "fc", .naming = layers::Naming::kContrib});
  EXPECT_THAT(variables(),
              ElementsAre("Conv/weights", "Conv/biases", "BatchNorm/beta", "BatchNorm/moving_mean",
                          "BatchNorm/moving_variance", "fc/weights", "fc/biases"));
  EXPECT_EQ(g.collections().variables(graph::keys::kModelVariables).size(), variables().size());
}

TEST_F(LayersTest, AReusedLayerSharesAndRegularisesOnce) {  // case K01
  Tensor one = constant(g, std::vector<float>{1}, {1, 1});
  layers::DenseOptions o{.use_bias = false,
                         .kernel_initializer = constant_initializer(2.0),
                         .kernel_regularizer = l2_regularizer(0.5),
                         .name = "d"};
  layers::dense(one, 1, o);
  EXPECT_THAT(error_of([&] { layers::dense(one, 1, o); }), HasSubstr("Variable d/kernel already exists"));
  o.reuse = Reuse::kTrue;
  layers::dense(one, 1, o);
  EXPECT_THAT(variables(), ElementsAre("d/kernel"));
  EXPECT_EQ(losses::get_regularization_losses(g).size(), 1u);
  Tensor total = losses::get_regularization_loss(g);
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  EXPECT_THAT(floats(s.run({total})[0]), ElementsAre(1.0f));
}

TEST_F(LayersTest, FusedBatchNormKeepsTheUnbiasedVariance) {  // case G19
  Tensor v = constant(g, std::vector<float>{2, 4, 6, 8}, {4, 1, 1, 1});
  layers::batch_normalization(v, {.training = true, .momentum = 0.5, .epsilon = 1e-3, .name = "bn"});
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  std::vector<Node*> updates;
  for (auto& e : g.collections().elements(graph::keys::kUpdateOps)) updates.push_back(e.node);
  auto y = s.run({g.output("bn/FusedBatchNormV3:0")}, {}, updates);
  EXPECT_THAT(floats(y[0])[0], FloatNear(-3 / std::sqrt(5.001f), 1e-4f));  // the biased one normalises
  EXPECT_THAT(floats(s.run({g.output("bn/moving_variance/Read/ReadVariableOp:0")})[0]),
              ElementsAre(FloatNear(3.833333f, 1e-5f)));
}

TEST_F(LayersTest, OneValueAChannelDoesNotPoisonTheAverages) {  // case G18
  Tensor v = constant(g, std::vector<float>{5, -2, 7}, {1, 1, 1, 3});
  Tensor y = layers::batch_normalization(
      v, {.training = true, .momentum = 0.9, .beta_initializer = constant_initializer(0.25), .name = "bn"});
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  std::vector<Node*> updates;
  for (auto& e : g.collections().elements(graph::keys::kUpdateOps)) updates.push_back(e.node);
  EXPECT_THAT(floats(s.run({y}, {}, updates)[0]), ::testing::Each(0.25f));
  auto at = [&](const char* name) {
    return floats(s.run({g.output(cat("bn/", name, "/Read/ReadVariableOp:0"))})[0]);
  };
  EXPECT_THAT(at("moving_mean"), ElementsAre(FloatEq(.5f), FloatEq(-.2f), FloatEq(.7f)));
  EXPECT_THAT(at("moving_variance"), ::testing::Each(FloatEq(0.9f)));
}

TEST_F(LayersTest, InferenceUsesTheMovingStatistics) {
  Tensor v = constant(g, std::vector<float>{3}, {1, 1, 1, 1});
  Tensor y = layers::batch_normalization(v, {.epsilon = 0.0,
                                             .moving_mean_initializer = constant_initializer(1.0),
                                             .moving_variance_initializer = constant_initializer(4.0)});
  Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  EXPECT_THAT(floats(s.run({y})[0]), ElementsAre(FloatNear(1.0f, 1e-5f)));
  EXPECT_TRUE(g.collections().empty(graph::keys::kUpdateOps));
}

TEST_F(LayersTest, UnknownChannelsAreRefusedWithTheName) {
  Tensor u = placeholder(g, DType::kFloat, {2, 8, 8, -1}, "u");
  EXPECT_THAT(error_of([&] { layers::conv2d(u, 4, {3, 3}); }), HasSubstr("u:0"));
}

TEST_F(LayersTest, DropoutActsOnlyWhileTraining) {
  EXPECT_EQ(layers::dropout(x).node().name(), "dropout/Identity");
  Tensor on = layers::dropout(x, 0.5, {.training = true, .seed = 1});
  EXPECT_EQ(on.node().name(), "dropout_1/dropout");
}

TEST_F(LayersTest, DenseActsOnTheLastDimension) {
  Tensor t = placeholder(g, DType::kFloat, {-1, 7, 3}, "t");
  EXPECT_EQ(layers::dense(t, 5).shape(), Shape({-1, 7, 5}));
}

}  // namespace
}  // namespace sluice::dsl
