// Shape rules and gradients' shapes of neural-network and image ops.

#include "graph/grad.h"
#include "tests/graph/op_shapes.h"

namespace sluice::graph {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Ints = std::vector<int64_t>;

constexpr int64_t kAny = kUnknownDim;

AttrMap conv(Ints strides, const char* padding, const char* format = "NHWC", Ints dilations = {1, 1, 1, 1}) {
  return {{"strides", strides}, {"padding", padding}, {"data_format", format}, {"dilations", dilations}};
}
AttrMap with(AttrMap attrs, const char* name, AttrValue value) {
  attrs[name] = std::move(value);
  return attrs;
}
AttrMap pool(Ints ksize, Ints strides, const char* padding, const char* format = "NHWC") {
  return {{"ksize", ksize}, {"strides", strides}, {"padding", padding}, {"data_format", format}};
}
const Ints kOnes{1, 1, 1, 1};

class NnOps : public OpTest {
 protected:
  std::string second_shape(const std::string& op, const std::vector<Arg>& args, AttrMap attrs = {}) {
    return make(op, args, std::move(attrs)).output_shape(1).str();
  }
};

TEST_F(NnOps, Conv2dSizesFollowStridePaddingAndDilation) {
  const std::vector<Arg> args{Shape{2, 224, 224, 3}, Shape{7, 7, 3, 64}};
  EXPECT_EQ(shape("Conv2D", args, conv({1, 2, 2, 1}, "SAME")), "[2,112,112,64]");
  EXPECT_EQ(shape("Conv2D", args, conv({1, 2, 2, 1}, "VALID")), "[2,109,109,64]");
  EXPECT_EQ(
      shape("Conv2D", {Shape{1, 8, 8, 3}, Shape{3, 3, 3, 4}}, conv(kOnes, "VALID", "NHWC", {1, 2, 2, 1})),
      "[1,4,4,4]");
  EXPECT_EQ(shape("Conv2D", {Shape{2, 3, 224, 224}, Shape{7, 7, 3, 64}}, conv({1, 1, 2, 2}, "SAME", "NCHW")),
            "[2,64,112,112]");
}

TEST_F(NnOps, Conv2dKeepsUnknownSizesUnknown) {
  EXPECT_EQ(shape("Conv2D", {Shape{kAny, kAny, 5, 2}, Shape{3, 3, 2, 4}}, conv(kOnes, "SAME")), "[?,?,5,4]");
  EXPECT_EQ(shape("Conv2D", {Shape(), Shape{3, 3, 2, 4}}, conv(kOnes, "SAME")), "[?,?,?,4]");
  EXPECT_EQ(shape("Conv2D", {Shape{1, 5, 5, 2}, Shape()}, conv(kOnes, "SAME")), "[1,5,5,?]");
  EXPECT_EQ(shape("Conv2D", {Shape{1, 5, 5, 2}, Shape()}, conv(kOnes, "VALID")), "[1,?,?,?]");
}

TEST_F(NnOps, Conv2dExplicitPaddingIsPerSide) {
  const std::vector<Arg> args{Shape{1, 5, 5, 2}, Shape{3, 3, 2, 4}};
  const AttrMap attrs = conv(kOnes, "EXPLICIT");
  EXPECT_EQ(shape("Conv2D", args, with(attrs, "explicit_paddings", Ints{0, 0, 1, 0, 2, 3, 0, 0})),
            "[1,4,8,4]");
  EXPECT_THAT(refusal("Conv2D", args, with(attrs, "explicit_paddings", Ints{0, 0, 1})),
              HasSubstr("explicit_paddings attribute must contain 8 values, but got: 3"));
  EXPECT_THAT(refusal("Conv2D", args, with(attrs, "explicit_paddings", Ints{0, 0, -1, 0, 0, 0, 0, 0})),
              HasSubstr("All elements of explicit_paddings must be nonnegative"));
  EXPECT_THAT(refusal("Conv2D", args, with(attrs, "explicit_paddings", Ints{1, 0, 0, 0, 0, 0, 0, 0})),
              HasSubstr("Nonzero explicit padding in the batch or depth dimensions is not supported"));
  EXPECT_THAT(
      refusal("Conv2D", args, with(conv(kOnes, "SAME"), "explicit_paddings", Ints{0, 0, 1, 1, 1, 1, 0, 0})),
      HasSubstr("explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT"));
}

TEST_F(NnOps, Conv2dRefusesWhatTensorFlowRefuses) {
  const Shape x{1, 5, 5, 2}, f{3, 3, 2, 4};
  EXPECT_THAT(
      refusal("Conv2D", {x, f}, conv({1, 1, 1}, "SAME")),
      StartsWith("Conv2D on data format NHWC requires the stride attribute to contain 4 values, but got: 3"));
  EXPECT_THAT(refusal("Conv2D", {x, f}, conv(kOnes, "SAME", "NHWC", {1, 1})),
              StartsWith("Conv2D requires the dilation attribute to contain 4 values, but got: 2"));
  EXPECT_THAT(refusal("Conv2D", {Shape{1, 5, 5}, f}, conv(kOnes, "SAME")),
              HasSubstr("Shape must be rank 4 but is rank 3"));
  EXPECT_THAT(refusal("Conv2D", {Shape{1, 5, 5, 3}, f}, conv(kOnes, "SAME")),
              HasSubstr("Depth of input (3) is not a multiple of input depth of filter (2)"));
  EXPECT_THAT(refusal("Conv2D", {Shape{1, 5, 5, 6}, f}, conv(kOnes, "SAME")),
              HasSubstr("Depth of output (4) is not a multiple of the number of groups (3)"));
  EXPECT_THAT(refusal("Conv2D", {Shape{1, 2, 2, 2}, Shape{5, 5, 2, 4}}, conv(kOnes, "VALID")),
              HasSubstr("Negative dimension size caused by subtracting 5 from 2"));
  EXPECT_THAT(refusal("Conv2D", {x, f}, conv({1, 0, 1, 1}, "VALID")),
              HasSubstr("Stride must be > 0, but got 0"));
}

TEST_F(NnOps, ConvGradientOpsTakeTheirShapeFromTheSizes) {
  const Shape f{3, 3, 2, 4}, dy{1, 5, 5, 4};
  const AttrMap attrs = conv(kOnes, "SAME");
  EXPECT_EQ(shape("Conv2DBackpropInput", {ints({1, 5, 5, 2}), f, dy}, attrs), "[1,5,5,2]");
  EXPECT_EQ(shape("Conv2DBackpropInput", {ints({5, 3}), f, dy}, attrs), "[1,5,3,2]");
  EXPECT_EQ(shape("Conv2DBackpropInput", {Arg(Shape{4}, DType::kInt32), f, dy}, attrs), "[1,?,?,?]");
  EXPECT_EQ(shape("Conv2DBackpropFilter", {Shape{1, 5, 5, 2}, ints({3, 3, 2, 4}), dy}, attrs), "[3,3,2,4]");
  EXPECT_THAT(refusal("Conv2DBackpropFilter", {Shape{1, 5, 5, 2}, ints({3, 3, 2}), dy}, attrs),
              HasSubstr("Shape must be rank 4 but is rank 3"));
}

TEST_F(NnOps, DepthwiseConvMultipliesChannels) {
  EXPECT_EQ(shape("DepthwiseConv2dNative", {Shape{1, 9, 9, 2}, Shape{3, 3, 2, 4}},
                  conv(kOnes, "VALID", "NHWC", {1, 2, 2, 1})),
            "[1,5,5,8]");
  EXPECT_EQ(
      shape("DepthwiseConv2dNative", {Shape{1, 2, 5, 5}, Shape{3, 3, 2, 4}}, conv(kOnes, "SAME", "NCHW")),
      "[1,8,5,5]");
  EXPECT_THAT(refusal("DepthwiseConv2dNative", {Shape{1, 5, 5, 3}, Shape{3, 3, 2, 4}}, conv(kOnes, "SAME")),
              HasSubstr("Dimensions must be equal, but are 3 and 2"));
  EXPECT_THAT(refusal("DepthwiseConv2dNative", {Shape{1, 5, 5, 2}, Shape{3, 3, 2, 4}}, conv({1, 1}, "SAME")),
              StartsWith("DepthwiseConv2D requires the stride attribute to contain 4 values, but got: 2"));
}

TEST_F(NnOps, PoolingSlidesOverHeightAndWidth) {
  EXPECT_EQ(shape("MaxPool", {Shape{2, 8, 7, 3}}, pool({1, 3, 3, 1}, {1, 2, 2, 1}, "SAME")), "[2,4,4,3]");
  EXPECT_EQ(shape("AvgPool", {Shape{2, 8, 7, 3}}, pool({1, 3, 3, 1}, {1, 2, 2, 1}, "VALID")), "[2,3,3,3]");
  EXPECT_EQ(shape("MaxPool", {Shape{2, 3, 8, 8}}, pool({1, 1, 3, 3}, {1, 1, 2, 2}, "SAME", "NCHW")),
            "[2,3,4,4]");
  EXPECT_EQ(shape("MaxPool", {Shape{2, 2, 2, 4}}, pool({1, 1, 1, 2}, {1, 1, 1, 2}, "VALID")), "[2,2,2,2]");
  EXPECT_EQ(shape("MaxPool", {Shape()}, pool({1, 2, 2, 1}, {1, 2, 2, 1}, "VALID")), "[?,?,?,?]");
  EXPECT_EQ(
      shape("AvgPoolGrad", {ints({2, 8, 8, 3}), Shape{2, 4, 4, 3}}, pool({1, 2, 2, 1}, {1, 2, 2, 1}, "SAME")),
      "[2,8,8,3]");
  EXPECT_THAT(refusal("MaxPool", {Shape{1, 2, 2, 2}}, pool({1, 3, 3, 1}, kOnes, "VALID")),
              HasSubstr("Negative dimension size caused by subtracting 3 from 2"));
  EXPECT_THAT(refusal("MaxPool", {Shape{1, 2, 2, 2}}, pool({1, 3, 3, 1, 1}, kOnes, "VALID")),
              StartsWith("MaxPool requires the ksize attribute to contain 4 values, but got: 5"));
  EXPECT_THAT(refusal("MaxPool", {Shape{2, 2, 2}}, pool({1, 2, 2, 1}, kOnes, "VALID")),
              HasSubstr("Shape must be rank 4 but is rank 3"));
}

TEST_F(NnOps, BiasAddMergesTheChannelDimension) {
  EXPECT_EQ(shape("BiasAdd", {Shape{2, kAny}, Shape{3}}), "[2,3]");
  EXPECT_EQ(shape("BiasAdd", {Shape{2, kAny, 4, 4}, Shape{3}}, {{"data_format", "NCHW"}}), "[2,3,4,4]");
  EXPECT_EQ(shape("BiasAddGrad", {Shape{2, 3, 4, 5}}, {{"data_format", "NCHW"}}), "[3]");
  EXPECT_EQ(shape("BiasAddGrad", {Shape{2, 3}}), "[3]");
  EXPECT_THAT(refusal("BiasAdd", {Shape{2, 3}, Shape{4}}),
              HasSubstr("Dimensions must be equal, but are 3 and 4"));
  EXPECT_THAT(refusal("BiasAdd", {Shape{3}, Shape{3}}),
              HasSubstr("Shape must be at least rank 2 but is rank 1"));
  EXPECT_THAT(refusal("BiasAdd", {Shape{2, 3}, Shape{3}}, {{"data_format", "NCHW"}}),
              HasSubstr("Shape must be at least rank 3 but is rank 2"));
}

TEST_F(NnOps, BatchNormIgnoresFedStatisticsInTraining) {
  const std::vector<Arg> training{Shape{kAny, 3, 3, 4}, Shape{4}, Shape{4}, Shape{0}, Shape{0}};
  Node& n = make("FusedBatchNormV3", training);
  EXPECT_EQ(n.output_shape(0).str(), "[?,3,3,4]");
  for (int i = 1; i <= 4; ++i) EXPECT_EQ(n.output_shape(i).str(), "[4]");
  EXPECT_EQ(n.output_shape(5).str(), "[0]");
  EXPECT_THAT(refusal("FusedBatchNormV3", training, {{"is_training", false}}),
              HasSubstr("Dimensions must be equal, but are 4 and 0"));
  EXPECT_EQ(shape("FusedBatchNorm", {Shape{2, kAny, 3, 3}, Shape{4}, Shape{4}, Shape{4}, Shape{4}},
                  {{"is_training", false}, {"data_format", "NCHW"}}),
            "[2,4,3,3]");
  EXPECT_THAT(refusal("FusedBatchNormV2", {Shape{2, 3, 4}, Shape{4}, Shape{4}, Shape{0}, Shape{0}}),
              HasSubstr("Shape must be rank 4 but is rank 3"));
}

TEST_F(NnOps, CrossEntropiesGiveOneLossPerRow) {
  EXPECT_EQ(shape("SoftmaxCrossEntropyWithLogits", {Shape{2, 3}, Shape{1, 3}}), "[2]");
  EXPECT_EQ(second_shape("SoftmaxCrossEntropyWithLogits", {Shape(), Shape{kAny, 3}}), "[?,3]");
  EXPECT_EQ(shape("SparseSoftmaxCrossEntropyWithLogits", {Shape{kAny, 3}, Arg(Shape{2}, DType::kInt32)}),
            "[2]");
  EXPECT_THAT(refusal("SoftmaxCrossEntropyWithLogits", {Shape{2, 3}, Shape{2, 4}}),
              HasSubstr("Dimensions must be equal, but are 3 and 4"));
  EXPECT_THAT(refusal("SoftmaxCrossEntropyWithLogits", {Shape{3}, Shape{3}}),
              HasSubstr("Shape must be broadcasted with rank 2, but is rank 1"));
  EXPECT_THAT(refusal("SparseSoftmaxCrossEntropyWithLogits", {Shape{2, 3}, Arg(Shape{3}, DType::kInt32)}),
              HasSubstr("Dimensions must be equal, but are 2 and 3"));
  EXPECT_THAT(refusal("SparseSoftmaxCrossEntropyWithLogits", {Shape{2, 3}, Arg(Shape{2, 1}, DType::kInt32)}),
              HasSubstr("Shape must be rank 1 but is rank 2"));
}

TEST_F(NnOps, TopKReplacesTheLastDimension) {
  EXPECT_EQ(shape("TopKV2", {Shape{2, 3}, int_scalar(2)}), "[2,2]");
  EXPECT_EQ(second_shape("TopK", {Shape{2, 3}}, {{"k", 2}}), "[2,2]");
  EXPECT_EQ(shape("TopKV2", {Shape{2, 3}, Arg(Shape::scalar(), DType::kInt32)}), "[2,?]");
  EXPECT_THAT(refusal("TopKV2", {Shape{2, 3}, int_scalar(4)}),
              HasSubstr("input must have last dimension >= k = 4 but is 3"));
  EXPECT_THAT(refusal("TopKV2", {Shape{2, 3}, int_scalar(-1)}),
              HasSubstr("Dimension size, given by scalar input 1, must be non-negative but is -1"));
  EXPECT_THAT(refusal("TopKV2", {Shape{2, 3}, ints({1})}), HasSubstr("Input must be scalar but has rank 1"));
  EXPECT_THAT(refusal("InTopK", {Shape{2, 3}, Arg(Shape{3}, DType::kInt32)}, {{"k", 1}}),
              HasSubstr("Dimensions must be equal, but are 2 and 3"));
}

TEST_F(NnOps, SoftmaxNeedsAnAxis) {
  EXPECT_THAT(refusal("Softmax", {Shape::scalar()}),
              HasSubstr("Shape must be at least rank 1 but is rank 0"));
  EXPECT_EQ(shape("LogSoftmax", {Shape{2, kAny}}), "[2,?]");
}

TEST_F(NnOps, ResizingReadsTheSize) {
  EXPECT_EQ(shape("ResizeBilinear", {Shape{2, 3, 3, 1}, ints({5, 6})}), "[2,5,6,1]");
  EXPECT_EQ(shape("ResizeNearestNeighbor", {Shape{2, 3, 3, 1}, Arg(Shape{2}, DType::kInt32)}), "[2,?,?,1]");
  EXPECT_EQ(make("ResizeBilinear", {Arg(Shape{2, 3, 3, 1}, DType::kUint8), ints({5, 6})}).output_type(0),
            DType::kFloat);
  EXPECT_THAT(refusal("ResizeBilinear", {Shape{2, 3, 3}, ints({3, 3})}),
              HasSubstr("Shape must be rank 4 but is rank 3"));
  EXPECT_THAT(refusal("ResizeBilinear", {Shape{2, 3, 3, 1}, ints({3})}),
              HasSubstr("Dimension must be 2 but is 1"));
}

struct GradCase {
  std::string op;
  std::vector<Arg> args;
  AttrMap attrs = {};
  int none = 0;  // inputs that get no gradient, as bits
};

TEST_F(NnOps, EveryGradientAgreesWithItsInput) {
  const Shape img{2, 5, 5, 3}, out{2, 5, 5, 4}, filter{3, 3, 3, 4}, v{3};
  const AttrMap same = conv(kOnes, "SAME"), p = pool({1, 2, 2, 1}, {1, 2, 2, 1}, "SAME");
  const Arg sizes(ints({2, 5, 5, 3})), filter_sizes(ints({3, 3, 3, 4}));
  const std::vector<GradCase> cases{
      {"Relu", {img}},
      {"Relu6", {img}},
      {"LeakyRelu", {img}},
      {"Elu", {img}},
      {"Selu", {img}},
      {"Softplus", {img}},
      {"Softsign", {img}},
      {"ReluGrad", {img, img}},
      {"Relu6Grad", {img, img}},
      {"LeakyReluGrad", {img, img}},
      {"EluGrad", {img, img}},
      {"SeluGrad", {img, img}},
      {"SoftplusGrad", {img, img}},
      {"BiasAdd", {img, v}},
      {"BiasAdd", {Shape{2, 3, 5, 5}, v}, {{"data_format", "NCHW"}}},
      {"BiasAddV1", {img, v}},
      {"BiasAddGrad", {img}},
      {"BiasAddGrad", {Shape{2, 3, 5, 5}}, {{"data_format", "NCHW"}}},
      {"BiasAddGrad", {Shape{kAny, kAny}}},
      {"Softmax", {Shape{2, 3}}},
      {"LogSoftmax", {Shape{kAny, 3}}},
      {"TopKV2", {Shape{2, 3}, int_scalar(2)}, {}, 2},
      {"TopKV2", {Shape{kAny, kAny}, int_scalar(2)}, {}, 2},
      {"TopK", {Shape{3}}, {{"k", 2}}},
      {"Conv2D", {img, filter}, same},
      {"Conv2DBackpropInput", {sizes, filter, out}, same, 1},
      {"Conv2DBackpropFilter", {img, filter_sizes, out}, same, 2},
      {"DepthwiseConv2dNative", {img, filter}, same},
      {"DepthwiseConv2dNativeBackpropInput", {sizes, filter, Shape{2, 5, 5, 12}}, same, 1},
      {"DepthwiseConv2dNativeBackpropFilter", {img, filter_sizes, Shape{2, 5, 5, 12}}, same, 2},
      {"MaxPool", {img}, p},
      {"MaxPoolGrad", {img, Shape{2, 3, 3, 3}, Shape{2, 3, 3, 3}}, p},
      {"MaxPoolGradGrad", {img, Shape{2, 3, 3, 3}, img}, p},
      {"AvgPool", {img}, p},
      {"AvgPoolGrad", {sizes, Shape{2, 3, 3, 3}}, p, 1},
      {"LRN", {img}},
      {"FusedBatchNorm", {img, v, v, Shape{0}, Shape{0}}, {}, 0b11000},
      {"FusedBatchNormV2", {Arg(img, DType::kHalf), v, v, Shape{0}, Shape{0}}, {}, 0b11000},
      {"FusedBatchNormV3", {img, v, v, v, v}, {{"is_training", false}}, 0b11000},
      {"FusedBatchNormV3",
       {Shape{2, 3, 5, 5}, v, v, v, v},
       {{"is_training", false}, {"data_format", "NCHW"}},
       0b11000},
      {"FusedBatchNormGrad", {img, img, v, v, v}, {}, 0b11000},
      {"FusedBatchNormGradV2", {Arg(img, DType::kHalf), Arg(img, DType::kHalf), v, v, v}, {}, 0b11000},
      {"FusedBatchNormGradV3", {img, img, v, v, v, Shape{0}}, {{"is_training", false}}, 0b111000},
      {"FusedBatchNormGradV3",
       {Shape{2, 3, 5, 5}, Shape{2, 3, 5, 5}, v, v, v, Shape{0}},
       {{"data_format", "NCHW"}},
       0b111000},
      {"SoftmaxCrossEntropyWithLogits", {Shape{2, 3}, Shape{2, 3}}},
      {"SparseSoftmaxCrossEntropyWithLogits", {Shape{2, 3}, Arg(Shape{2}, DType::kInt32)}, {}, 2},
      {"L2Loss", {img}},
      {"ResizeBilinear", {img, ints({7, 7})}, {}, 2},
      {"ResizeNearestNeighbor", {img, ints({7, 7})}, {}, 2},
      {"ResizeNearestNeighbor", {Shape{2, kAny, kAny, 3}, ints({7, 7})}, {}, 2},
  };
  for (const GradCase& c : cases) {
    Node& n = make(c.op, c.args, c.attrs);
    std::vector<GradValue> dys;
    for (int i = 0; i < n.num_outputs(); ++i)
      dys.push_back(is_trainable(n.output_type(i))
                        ? GradValue(make_input(g, Arg(n.output_shape(i), n.output_type(i))))
                        : GradValue());
    Grad grad(g, n, dys);
    ASSERT_TRUE(n.def().grad) << c.op;
    const Gradients grads = n.def().grad(grad);
    ASSERT_EQ(grads.size(), c.args.size()) << c.op;
    for (int i = 0; i < n.num_inputs(); ++i) {
      const GradValue& d = grads[static_cast<size_t>(i)];
      EXPECT_EQ(d.none(), ((c.none >> i) & 1) != 0) << c.op << " input " << i;
      if (d.none()) continue;
      EXPECT_EQ(d.dense.dtype(), n.input(i).dtype()) << c.op << " input " << i;
      EXPECT_TRUE(d.dense.shape().compatible(n.input(i).shape()))
          << c.op << " input " << i << ": " << d.dense.shape().str() << " for " << n.input(i).shape().str();
    }
  }
}

TEST_F(NnOps, HintsOfLaterTensorFlowsAreDropped) {
  const AttrMap attrs{{"T", DType::kFloat}, {"transpose_a", false}, {"transpose_b", true}, {"grad_a", true}};
  Node& n = g.import_node({.name = "m",
                           .op = "MatMul",
                           .inputs = {make_input(g, Shape{2, 3}), make_input(g, Shape{4, 3})},
                           .attrs = attrs});
  EXPECT_EQ(n.find_attr("grad_a"), nullptr);
  EXPECT_EQ(n.output_shape(0).str(), "[2,4]");
}

TEST_F(NnOps, LaterAttrsThatMeanSomethingAreKept) {
  AttrMap attrs = pool({1, 2, 2, 1}, {1, 2, 2, 1}, "EXPLICIT");
  attrs["explicit_paddings"] = Ints{0, 0, 1, 1, 0, 0, 0, 0};
  EXPECT_EQ(shape("MaxPool", {Shape{1, 4, 4, 2}}, attrs), "[1,3,2,2]");
}

TEST_F(NnOps, ASecondDerivativeOfTheSparseLossIsPrevented) {
  Node& n = make("SparseSoftmaxCrossEntropyWithLogits", {Shape{2, 3}, Arg(Shape{2}, DType::kInt32)});
  Grad grad(g, n, {make_input(g, Shape{2}), GradValue()});
  n.def().grad(grad);
  Node* guard = g.find("PreventGradient");
  ASSERT_NE(guard, nullptr);
  EXPECT_EQ(guard->input(0), n.output(1));
  EXPECT_THAT(guard->attr<std::string>("message"),
              StartsWith("Currently there is no way to take the second derivative"));
}

}  // namespace
}  // namespace sluice::graph
