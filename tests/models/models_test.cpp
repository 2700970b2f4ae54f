// Every network against model-zoo's tables: parameters, tensors, moving statistics, layer shapes, names.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "dsl/models/registry.h"
#include "dsl/ops/array.h"
#include "dsl/variable.h"

namespace sluice::dsl::models {
namespace {

using testing::ElementsAre;
using Dims3 = std::vector<int64_t>;

struct Built {
  Graph graph;
  Tensor logits;
  std::vector<LayerRecord> layers;

  Built(const std::string& name, const NetOptions& options = {}, int channels = 3, int classes = 1001) {
    const ModelSpec* spec = find_model(name);
    EXPECT_NE(spec, nullptr) << name;
    Tensor images =
        placeholder(graph, DType::kFloat, {2, spec->image_size, spec->image_size, channels}, "images");
    VariableScope tower(graph, "v");
    VariableScope network(graph, "cg");
    ConvNetBuilder net(graph, images, options);
    spec->build(net);
    logits = net.affine(classes, {.relu = false});
    layers = net.layers();
  }
};

int64_t elements(const std::vector<Variable>& variables) {
  int64_t n = 0;
  for (const Variable& v : variables) n += *v.shape().elements();
  return n;
}

struct Size {
  const char* model;
  int64_t parameters, tensors, statistics, without_batch_norm;
};

// model-zoo §2.
const Size kSizes[] = {
    {"trivial", 4263877, 6, 0, 4263877},
    {"lenet", 2173353, 8, 0, 2173353},
    {"alexnet", 61842345, 16, 0, 61842345},
    {"vgg11", 132867433, 22, 0, 132867433},
    {"vgg16", 138361641, 32, 0, 138361641},
    {"vgg19", 143671337, 38, 0, 143671337},
    {"inception3", 23819401, 190, 34432, 23802185},
    {"resnet50", 25559081, 161, 53120, 25505961},
    {"resnet50_v1.5", 25559081, 161, 53120, 25505961},
    {"resnet50_v2", 25536361, 138, 45568, 25505961},
    {"resnet101", 44551209, 314, 105344, 44445865},
    {"resnet101_v2", 44511081, 274, 97792, 44445865},
    {"resnet152", 60194857, 467, 151424, 60043433},
    {"resnet152_v2", 60139369, 410, 143872, 60043433},
};

TEST(Models, TheTableCoversTheRegistry) {
  ASSERT_EQ(std::size(kSizes), all_models().size());
  for (const Size& s : kSizes) EXPECT_NE(find_model(s.model), nullptr) << s.model;
  EXPECT_EQ(find_model("resnet51"), nullptr);
}

TEST(Models, ParameterCounts) {
  for (const Size& s : kSizes) {
    Built m(s.model);
    const std::vector<Variable> trainable = trainable_variables(m.graph);
    std::vector<Variable> decayed;
    for (const Variable& v : trainable)
      if (v.name().find("batchnorm") == std::string::npos) decayed.push_back(v);
    EXPECT_EQ(elements(trainable), s.parameters) << s.model;
    EXPECT_EQ(static_cast<int64_t>(trainable.size()), s.tensors) << s.model;
    EXPECT_EQ(elements(global_variables(m.graph)) - s.parameters, s.statistics) << s.model;
    EXPECT_EQ(elements(decayed), s.without_batch_norm) << s.model;
    EXPECT_EQ(m.logits.shape(), (Shape{2, 1001})) << s.model;
  }
}

TEST(Models, FormatsAndModesHaveTheSameVariables) {
  for (const char* name : {"lenet", "resnet50_v2", "inception3"}) {
    std::vector<std::string> names[3];
    const NetOptions options[3] = {{}, {.training = false}, {.format = DataFormat::kNchw}};
    std::vector<LayerRecord> layers[3];
    for (int i = 0; i < 3; ++i) {
      Built m(name, options[i]);
      for (const Variable& v : global_variables(m.graph)) names[i].push_back(v.name() + v.shape().str());
      layers[i] = m.layers;
    }
    EXPECT_EQ(names[0], names[1]) << name;
    EXPECT_EQ(names[0], names[2]) << name;
    for (size_t i = 0; i < layers[0].size(); ++i)
      EXPECT_EQ(layers[0][i].dims, layers[2][i].dims) << layers[0][i].name;
  }
}

std::vector<std::pair<std::string, Dims3>> shapes(const Built& m) {
  std::vector<std::pair<std::string, Dims3>> all;
  for (const LayerRecord& l : m.layers) all.emplace_back(l.name, l.dims);
  return all;
}

TEST(LayerShapes, Lenet) {
  EXPECT_THAT(shapes(Built("lenet")),
              ElementsAre(std::pair{"conv0", Dims3{28, 28, 32}}, std::pair{"mpool0", Dims3{14, 14, 32}},
                          std::pair{"conv1", Dims3{14, 14, 64}}, std::pair{"mpool1", Dims3{7, 7, 64}},
                          std::pair{"reshape", Dims3{3136}}, std::pair{"affine0", Dims3{512}},
                          std::pair{"affine1", Dims3{1001}}));
}

TEST(LayerShapes, Trivial) {
  EXPECT_THAT(shapes(Built("trivial")),
              ElementsAre(std::pair{"reshape", Dims3{154587}}, std::pair{"affine0", Dims3{1}},
                          std::pair{"affine1", Dims3{4096}}, std::pair{"affine2", Dims3{1001}}));
}

TEST(LayerShapes, Alexnet) {
  EXPECT_THAT(shapes(Built("alexnet")),
              ElementsAre(std::pair{"conv0", Dims3{55, 55, 64}}, std::pair{"mpool0", Dims3{27, 27, 64}},
                          std::pair{"conv1", Dims3{27, 27, 192}}, std::pair{"mpool1", Dims3{13, 13, 192}},
                          std::pair{"conv2", Dims3{13, 13, 384}}, std::pair{"conv3", Dims3{13, 13, 384}},
                          std::pair{"conv4", Dims3{13, 13, 256}}, std::pair{"mpool2", Dims3{6, 6, 256}},
                          std::pair{"reshape", Dims3{9216}}, std::pair{"affine0", Dims3{4096}},
                          std::pair{"dropout0", Dims3{4096}}, std::pair{"affine1", Dims3{4096}},
                          std::pair{"dropout1", Dims3{4096}}, std::pair{"affine2", Dims3{1001}}));
}

TEST(LayerShapes, Vgg) {
  const std::map<std::string, std::vector<int>> kRepetitions = {
      {"vgg11", {1, 1, 2, 2, 2}}, {"vgg16", {2, 2, 3, 3, 3}}, {"vgg19", {2, 2, 4, 4, 4}}};
  for (const auto& [name, repetitions] : kRepetitions) {
    std::vector<Dims3> want;
    int64_t size = 224;
    const int64_t widths[] = {64, 128, 256, 512, 512};
    for (size_t g = 0; g < 5; ++g) {
      for (int i = 0; i < repetitions[g]; ++i) want.push_back({size, size, widths[g]});
      size /= 2;
      want.push_back({size, size, widths[g]});
    }
    for (int64_t d : {25088, 4096, 4096, 4096, 4096, 1001}) want.push_back({d});
    Built m(name);
    ASSERT_EQ(m.layers.size(), want.size()) << name;
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_EQ(m.layers[i].dims, want[i]) << name << " " << m.layers[i].name;
  }
}

TEST(LayerShapes, Inception3) {
  Built m("inception3");
  std::vector<Dims3> stem, modules;
  for (const LayerRecord& l : m.layers) {
    if (l.name.starts_with("incept_v3")) modules.push_back(l.dims);
    if (modules.empty() && stem.size() < 7) stem.push_back(l.dims);
  }
  EXPECT_THAT(stem,
              ElementsAre(Dims3{149, 149, 32}, Dims3{147, 147, 32}, Dims3{147, 147, 64}, Dims3{73, 73, 64},
                          Dims3{73, 73, 80}, Dims3{71, 71, 192}, Dims3{35, 35, 192}));
  EXPECT_THAT(modules,
              ElementsAre(Dims3{35, 35, 256}, Dims3{35, 35, 288}, Dims3{35, 35, 288}, Dims3{17, 17, 768},
                          Dims3{17, 17, 768}, Dims3{17, 17, 768}, Dims3{17, 17, 768}, Dims3{17, 17, 768},
                          Dims3{8, 8, 1280}, Dims3{8, 8, 2048}, Dims3{8, 8, 2048}));
  EXPECT_EQ(m.layers[m.layers.size() - 2].dims, Dims3{2048});
}

// Parameters whose names stand in the scope `prefix`.
int64_t parameters_under(Graph& g, const std::string& prefix) {
  int64_t n = 0;
  for (const Variable& v : trainable_variables(g))
    if (v.name().starts_with(prefix)) n += *v.shape().elements();
  return n;
}

TEST(LayerShapes, Inception3ModuleParameters) {
  Built m("inception3");
  Graph& g = m.graph;
  // The three modules of a kind share a scope name.
  EXPECT_EQ(parameters_under(g, "v/cg/incept_v3_a0/"), 255440 + 276976 + 284656);
  EXPECT_EQ(parameters_under(g, "v/cg/incept_v3_b0/"), 1152640);
  EXPECT_EQ(parameters_under(g, "v/cg/incept_v3_c0/"), 1295872 + 1689280 * 2 + 2140032);
  EXPECT_EQ(parameters_under(g, "v/cg/incept_v3_d0/"), 1697024);
  EXPECT_EQ(parameters_under(g, "v/cg/incept_v3_e0/"), 5041344 + 6073536);
  EXPECT_EQ(parameters_under(g, "v/cg/conv"), 172272);
}

TEST(LayerShapes, ResnetUnits) {
  struct Unit {
    int64_t size, depth, v1_first, v1_rest, v2_first, v2_rest;
  };
  const Unit kUnits[] = {{56, 256, 75008, 70400, 74048, 70144},
                         {28, 512, 379392, 280064, 377600, 279552},
                         {14, 1024, 1512448, 1117184, 1508864, 1116160},
                         {7, 2048, 6039552, 4462592, 6032384, 4460544}};
  const int kCounts[] = {3, 4, 6, 3};
  for (const char* name : {"resnet50", "resnet50_v1.5", "resnet50_v2"}) {
    const bool v2 = std::string(name) == "resnet50_v2";
    const std::string scope = v2                                ? "resnet_v2"
                              : std::string(name) == "resnet50" ? "resnet_v1"
                                                                : "resnet_v1.5";
    Built m(name);
    EXPECT_EQ(m.layers[0].dims, (Dims3{112, 112, 64})) << name;
    EXPECT_EQ(m.layers[1].dims, (Dims3{56, 56, 64})) << name;
    EXPECT_EQ(parameters_under(m.graph, "v/cg/conv0/"), 9536) << name;
    int unit = 0;
    size_t layer = 2;
    int64_t pre_norms = 0;
    for (size_t stage = 0; stage < 4; ++stage) {
      const Unit& u = kUnits[stage];
      for (int i = 0; i < kCounts[stage]; ++i, ++unit) {
        const int64_t input = i > 0 ? u.depth : stage == 0 ? 64 : u.depth / 2;
        // Version 2's first batch norm (beta only) stands before the unit's scope.
        const int64_t outside = v2 ? input : 0;
        pre_norms += outside;
        const int64_t want = v2 ? (i == 0 ? u.v2_first : u.v2_rest) : (i == 0 ? u.v1_first : u.v1_rest);
        EXPECT_EQ(parameters_under(m.graph, cat("v/cg/", scope, unit, "/")) + outside, want) << name << unit;
        layer += i == 0 ? 4 : 3;
        EXPECT_EQ(m.layers[layer - 1].dims, (Dims3{u.size, u.size, u.depth})) << name << unit;
      }
    }
    EXPECT_EQ(unit, 16);
    if (v2) {
      EXPECT_EQ(parameters_under(m.graph, "v/cg/batchnorm"), pre_norms + 2048);
    }
  }
}

TEST(VariableNames, AreTheBenchmarks) {
  Built m("resnet50");
  std::vector<std::string> names;
  for (const Variable& v : global_variables(m.graph)) names.push_back(v.name());
  for (const char* name :
       {"v/cg/conv0/conv2d/kernel", "v/cg/conv0/batchnorm0/beta", "v/cg/conv0/batchnorm0/gamma",
        "v/cg/conv0/batchnorm0/moving_mean", "v/cg/conv0/batchnorm0/moving_variance",
        "v/cg/resnet_v10/conv1/conv2d/kernel", "v/cg/resnet_v13/conv12/conv2d/kernel", "v/cg/affine0/weights",
        "v/cg/affine0/biases"})
    EXPECT_THAT(names, testing::Contains(name));
  Built lenet("lenet");
  EXPECT_EQ(trainable_variables(lenet.graph)[1].name(), "v/cg/conv0/biases");
  Built inception("inception3");
  names.clear();
  for (const Variable& v : trainable_variables(inception.graph)) names.push_back(v.name());
  EXPECT_THAT(names, testing::Contains("v/cg/incept_v3_a0/conv5/conv2d/kernel"));
}

TEST(Schedule, GoldenValues) {
  const LearningSchedule s = find_model("resnet50")->schedule(1281167, 256);
  EXPECT_EQ(s.at(0), 0);
  EXPECT_DOUBLE_EQ(s.at(150136), .128);
  EXPECT_DOUBLE_EQ(s.at(150137), .0128);
  EXPECT_DOUBLE_EQ(s.at(300273), .0128);
  EXPECT_DOUBLE_EQ(s.at(300274), .00128);
  EXPECT_DOUBLE_EQ(s.at(10000000), 1.28e-5);
  EXPECT_DOUBLE_EQ(find_model("resnet50")->schedule(1281167, 128).at(100000), .064);
  EXPECT_DOUBLE_EQ(find_model("lenet")->schedule(60000, 32).at(12345), .005);
}

}  // namespace
}  // namespace sluice::dsl::models
