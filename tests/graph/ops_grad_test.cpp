// Gradients of array ops make the nodes that TensorFlow makes, under its names.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <sstream>

#include "graph/grad.h"
#include "graph/scopes.h"
#include "tests/graph/ops_build.h"
#include "tests/graph/ops_grad_golden.h"

namespace sluice::graph {
namespace {

using Golden = std::map<std::string, std::string>;

const Golden& golden() {
  static const Golden cases = [] {
    Golden all;
    std::istringstream in(kGradientGolden);
    std::string line, name;
    while (std::getline(in, line)) {
      if (line.starts_with("@@ "))
        name = line.substr(3);
      else if (!line.empty())
        all[name] += line + "\n";
    }
    return all;
  }();
  return cases;
}

// Runs the node's gradient function in its scope and prints what it made.
class GradientNodes : public ::testing::Test, protected OpsGraph {
 protected:
  std::string made(Node& forward, std::optional<IndexedSlices> slices = {}) {
    std::vector<GradValue> dys;
    for (int i = 0; i < forward.num_outputs(); ++i) {
      const Shape s = forward.output_shape(i);
      const std::string name = cat("dy", i);
      if (slices)
        dys.emplace_back(*slices);
      else
        dys.emplace_back(in(s.known_rank() ? std::optional<Dims>(s.dims()) : std::nullopt, name.c_str()));
    }
    const int before = g.last_id();
    std::string prefix;
    {
      NameScope scope(g, forward.name() + "_grad");
      prefix = scope.scope();
      Grad grad(g, forward, std::move(dys));
      result = forward.def().grad(grad);
      EXPECT_EQ(static_cast<int>(result.size()), forward.num_inputs());
    }
    auto local = [&](const std::string& name) {
      return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
    };
    std::string text;
    for (const Node* n : g.nodes()) {
      if (n->id() <= before) continue;
      text += local(n->name()) + " = ";
      if (n->op() == "Const") {
        text += n->attr<Literal>("value").str(100) + "\n";
        continue;
      }
      text += n->op() + "(";
      for (int i = 0; i < n->num_inputs(); ++i) text += (i ? ", " : "") + local(n->input(i).name());
      text += ")\n";
    }
    return text;
  }
  IndexedSlices slices(Dims values, int64_t rows) {
    return {in(std::move(values), "values"), ints_in(Dims{rows}, "indices"), {}};
  }

  Gradients result;
};

TEST_F(GradientNodes, Transpose) {
  Node& y = add("Transpose", {in(Dims{4, 6}), vec({1, 0}, "Transpose/perm")});
  EXPECT_EQ(made(y), golden().at("Transpose"));
}

TEST_F(GradientNodes, SlicePadsTheGradientBack) {
  Node& y = add("Slice", {in(Dims{-1, -1}), vec({1, 1}, "Slice/begin"), vec({2, 2}, "Slice/size")});
  EXPECT_EQ(made(y), golden().at("Slice"));
}

TEST_F(GradientNodes, StridedSliceOfUnknownShape) {
  Node& y = add("StridedSlice", {in(Dims{-1, -1}), vec({1, 0}), vec({3, 0}), vec({1, 2})},
                {{"begin_mask", 2}, {"end_mask", 2}});
  EXPECT_EQ(made(y), golden().at("StridedSlice"));
}

TEST_F(GradientNodes, StridedSliceOfKnownShape) {
  Node& y = add("StridedSlice", {in(Dims{4, 6}), vec({1, 0}), vec({3, 0}), vec({1, 2})},
                {{"begin_mask", 2}, {"end_mask", 2}});
  EXPECT_EQ(y.output().shape(), (Shape{2, 3}));
  EXPECT_EQ(made(y), golden().at("StridedSliceKnown"));
  EXPECT_EQ(result[0].dense.shape(), (Shape{4, 6}));
}

TEST_F(GradientNodes, PadSlicesTheGradient) {
  Node& y = add("Pad", {in(Dims{-1, -1}), matrix({2, 2}, {1, 1, 0, 2}, "Pad/paddings")});
  EXPECT_EQ(made(y), golden().at("Pad"));
}

TEST_F(GradientNodes, TileSumsTheCopies) {
  Node& y = add("Tile", {in(Dims{-1, -1}), vec({2, 3}, "Tile/multiples")});
  EXPECT_EQ(made(y), golden().at("Tile"));
}

TEST_F(GradientNodes, TileOfSlicesAddsUpRows) {
  Node& y = add("Tile", {in(Dims{10, 3}), vec({2, 3}, "Tile/multiples")});
  EXPECT_EQ(made(y, slices({2, 9}, 2)), golden().at("TileSlices"));
  EXPECT_EQ(result[0].dense.shape(), (Shape{10, 3}));
}

TEST_F(GradientNodes, BroadcastToSumsWhatWasBroadcast) {
  Node& y = add("BroadcastTo", {in(Dims{-1, -1}), vec({4, 6}, "BroadcastTo/shape")});
  EXPECT_EQ(made(y), golden().at("BroadcastTo"));
}

TEST_F(GradientNodes, ConcatOfKnownShapes) {
  Node& y = add("ConcatV2", {in(Dims{2, 3}, "x0"), in(Dims{2, 4}, "x1"), scalar(1, "ConcatV2/axis")});
  EXPECT_EQ(made(y), golden().at("ConcatKnown"));
  EXPECT_EQ(result[1].dense.shape(), (Shape{2, 4}));
}

TEST_F(GradientNodes, ConcatOfUnknownShapes) {
  Node& y = add("ConcatV2", {in(Dims{-1, 3}, "x0"), in(Dims{-1, 4}, "x1"), scalar(1, "ConcatV2/axis")});
  EXPECT_EQ(made(y), golden().at("Concat"));
}

TEST_F(GradientNodes, ConcatOfMoreThanSixteenSplits) {
  std::vector<Output> values;
  for (int i = 0; i < 17; ++i) values.push_back(in(Dims{2, 3}, cat("x", i).c_str()));
  values.push_back(scalar(1, "ConcatV2/axis"));
  EXPECT_EQ(made(add("ConcatV2", std::move(values))), golden().at("ConcatMany"));
}

TEST_F(GradientNodes, ConcatKeepsSlicesSparse) {
  Node& rows = add("ConcatV2", {in(Dims{10, 3}, "x0"), in(Dims{5, 3}, "x1"), scalar(0, "ConcatV2/axis")});
  EXPECT_EQ(made(rows, slices({2, 3}, 2)), golden().at("ConcatSlicesByRow"));
  EXPECT_TRUE(result[0].is_slices() && result[1].is_slices() && result[2].none());
}

TEST_F(GradientNodes, ConcatCutsTheColumnsOfSlices) {
  Node& y = add("ConcatV2", {in(Dims{10, 3}, "x0"), in(Dims{10, 2}, "x1"), scalar(-1, "ConcatV2/axis")});
  EXPECT_EQ(made(y, slices({2, 5}, 2)), golden().at("ConcatSlicesByColumn"));
  EXPECT_EQ(result[1].slices.values.shape(), (Shape{2, 2}));
}

TEST_F(GradientNodes, PackAndSplit) {
  EXPECT_EQ(made(add("Pack", {in(Dims{2, 3}, "x0"), in(Dims{2, 3}, "x1")}, {{"axis", 1}})),
            golden().at("Pack"));
}

TEST_F(GradientNodes, SplitVJoinsTheParts) {
  Node& y = add("SplitV", {in(Dims{4, 6}), vec({2, 4}, "SplitV/size_splits"), scalar(1, "SplitV/split_dim")},
                {{"num_split", 2}});
  EXPECT_EQ(made(y), golden().at("SplitV"));
}

TEST_F(GradientNodes, GatherOfRowsIsSparse) {
  Node& y = add("GatherV2", {in(Dims{-1, 3}), ints_in(Dims{2, 2}), scalar(0, "GatherV2/axis")});
  EXPECT_EQ(made(y), golden().at("GatherRows"));
  EXPECT_TRUE(result[0].is_slices());
  EXPECT_EQ(result[0].slices.values.shape(), (Shape{4, 3}));
}

TEST_F(GradientNodes, GatherAlongAnotherAxisIsDense) {
  Node& y = add("GatherV2", {in(Dims{-1, -1, 3}), ints_in(Dims{-1}), scalar(-1, "GatherV2/axis")});
  EXPECT_EQ(made(y), golden().at("GatherAxis"));
}

TEST_F(GradientNodes, GatherWithBatchDims) {
  Node& y = add("GatherV2", {in(Dims{4, 5, 3}), ints_in(Dims{4, 2}), scalar(1, "GatherV2/axis")},
                {{"batch_dims", 1}});
  EXPECT_EQ(y.output().shape(), (Shape{4, 2, 3}));
  EXPECT_EQ(made(y), golden().at("GatherBatch"));
  EXPECT_EQ(result[0].dense.shape(), (Shape{4, 5, 3}));
}

TEST_F(GradientNodes, GatherNd) {
  Node& y = add("GatherNd", {in(Dims{4, 5, 3}), ints_in(Dims{4, 2})});
  EXPECT_EQ(made(y), golden().at("GatherNd"));
}

TEST_F(GradientNodes, GatherNdOfRowsIsSparse) {
  Node& y = add("GatherNd", {in(Dims{4, 5, 3}), ints_in(Dims{4, 1})});
  EXPECT_EQ(made(y), golden().at("GatherNdRows"));
  EXPECT_TRUE(result[0].is_slices());
}

TEST_F(GradientNodes, FillSumsOverEverything) {
  Node& y = add("Fill", {ints_in(Dims{-1}, "dims"), in(Dims{}, "v")});
  EXPECT_EQ(made(y), golden().at("FillUnknown"));
}

TEST_F(GradientNodes, DynamicStitchGathers) {
  Node& y = add("DynamicStitch",
                {ints_in(Dims{2}, "i"), ints_in(Dims{3}, "j"), in(Dims{2, 3}, "a"), in(Dims{3, 3}, "b")});
  EXPECT_EQ(made(y), golden().at("DynamicStitch"));
}

TEST_F(GradientNodes, ResourceGatherIsSparse) {
  const Output v =
      g.add({.op = "VarHandleOp", .name = "v", .attrs = {{"dtype", DType::kFloat}, {"shape", Shape{10, 3}}}})
          .output();
  Node& y = g.add({.op = "ResourceGather",
                   .name = "Gather",
                   .inputs = {v, ints_in(Dims{4})},
                   .attrs = {{"dtype", DType::kFloat}}});
  EXPECT_EQ(y.output().shape(), (Shape{4, 3}));
  EXPECT_EQ(made(y), golden().at("ResourceGather"));
}

TEST_F(GradientNodes, CheckNumericsChecksTheGradientToo) {
  Node& y = add("CheckNumerics", {in(Dims{2})}, {{"message", "loss"}});
  EXPECT_EQ(made(y), "CheckNumerics = CheckNumerics(dy0:0)\n");
  EXPECT_EQ(result[0].dense.node->attr<std::string>("message"),
            "Not a number (NaN) or infinity (Inf) values detected in gradient. loss");
}

TEST_F(GradientNodes, PassersPassSlicesOn) {
  for (const char* name : {"Identity", "PlaceholderWithDefault"}) {
    const Output x = in(Dims{10, 3});
    AttrMap attrs;
    if (name[0] == 'P') attrs = {{"shape", Shape{10, 3}}};
    Node& y = add(name, {x}, std::move(attrs));
    EXPECT_EQ(made(y, slices({2, 3}, 2)), "");
    EXPECT_TRUE(result[0].is_slices()) << name;
  }
}

TEST_F(GradientNodes, PreventGradientSaysWhy) {
  Node& y = add("PreventGradient", {in(Dims{2})}, {{"message", "no second derivative"}});
  try {
    made(y);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "Gradient explicitly disabled. Reason: no second derivative");
  }
}

TEST_F(GradientNodes, MissingPartsOfASplitAreZeros) {
  Node& y = add("Unpack", {in(Dims{2, 3})}, {{"num", 2}});
  Grad grad(g, y, {GradValue(), GradValue(in(Dims{3}, "dy"))});
  const Gradients r = y.def().grad(grad);
  const Node& stack = *r[0].dense.node;
  EXPECT_EQ(stack.op(), "Pack");
  EXPECT_EQ(stack.input(0).shape(), (Shape{3}));
  EXPECT_EQ(stack.input(1).name(), "dy:0");
}

TEST_F(GradientNodes, SegmentSumDropsNegativeIds) {
  Node& y = add("UnsortedSegmentSum", {in(Dims{5, 3}), ints_in(Dims{5}), scalar(4)});
  EXPECT_EQ(y.output().shape(), (Shape{4, 3}));
  made(y);
  EXPECT_EQ(result[0].dense.node->op(), "Select");
  EXPECT_EQ(result[0].dense.shape(), (Shape{5, 3}));
}

TEST_F(GradientNodes, DynamicPartitionStitchesBack) {
  Node& y = add("DynamicPartition", {in(Dims{5, 3}), ints_in(Dims{5})}, {{"num_partitions", 2}});
  EXPECT_EQ(y.output(0).shape(), (Shape{-1, 3}));
  made(y);
  EXPECT_EQ(result[0].dense.shape(), (Shape{5, 3}));
}

}  // namespace
}  // namespace sluice::graph
