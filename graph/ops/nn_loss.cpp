// Losses and accuracy.

#include "graph/infer.h"
#include "graph/ops/grad_helpers.h"
#include "graph/ops/register.h"
#include "graph/ops/type_sets.h"

namespace sluice::graph::ops {
namespace {

// vec[:, None] * mat
Output scale_rows(Grad& g, Output vec, Output mat) {
  const Output column = expand_dims(g, vec, -1);
  return mul(g, column, mat);
}

// (v − Σ v·softmax)·softmax by rows: softmax's derivative applied to a gradient of the backprop output.
Output second_order(Grad& g, Output logits, Output v) {
  const Output softmax = g.op("Softmax", {logits});
  const Output row = expand_dims(g, v, 1), column = expand_dims(g, softmax, 2);
  const Output dots = g.op("BatchMatMulV2", {row, column}, {}, "MatMul");
  const Output total = g.op("Squeeze", {dots}, {{"squeeze_dims", std::vector<int64_t>{1}}});
  return mul(g, sub(g, v, total), softmax);
}

Gradients softmax_cross_entropy_grad(Grad& g) {
  const Output logits = g.x(0);
  const bool loss = !g.raw_dy(0).none();
  GradValue by_logits, by_labels;
  if (loss) by_logits = scale_rows(g, g.dy(0), g.y(1));
  if (g.has_dy(1)) {
    const Output more = second_order(g, logits, g.dy(1));
    by_logits = loss ? add(g, by_logits.dense, more) : more;
  }
  if (loss) {
    const Output minus_log = neg(g, g.op("LogSoftmax", {logits}));
    by_labels = scale_rows(g, g.dy(0), minus_log);
  }
  return {by_logits, by_labels};
}

// The fused kernel's second output already is the gradient; asking for its own gradient is refused in words.
Gradients sparse_softmax_cross_entropy_grad(Grad& g) {
  if (g.raw_dy(0).none()) return no_gradient(g);
  const Output once =
      g.op("PreventGradient", {g.y(1)},
           {{"message",
             "Currently there is no way to take the second derivative of "
             "sparse_softmax_cross_entropy_with_logits due to the fused implementation's interaction with "
             "tf.gradients()"}});
  return {scale_rows(g, g.dy(0), once), GradValue()};
}

void cross_entropy_shape(InferContext& c) {
  const Shape &a = c.input(0), &b = c.input(1);
  Shape all = a.known_rank() && b.known_rank() ? broadcast(c, a, b) : (a.known_rank() ? a : b);
  if (all.known_rank() && all.rank() != 2)
    c.fail(cat("Shape must be broadcasted with rank 2, but is rank ", all.rank()));
  if (!all.known_rank()) all = Shape::of_rank(2);
  c.set_output(0, Shape{all.dim(0)});
  c.set_output(1, all);
}

void sparse_cross_entropy_shape(InferContext& c) {
  Shape logits = c.with_rank(0, 2);
  const Shape labels = c.with_rank(1, 1);
  logits.set_dim(0, c.merge_dim(logits.dim(0), labels.dim(0)));
  c.set_output(0, Shape{logits.dim(0)});
  c.set_output(1, logits);
}

void in_top_k_shape(InferContext& c) {
  const Shape predictions = c.with_rank(0, 2), targets = c.with_rank(1, 1);
  if (c.num_inputs() == 3) c.with_rank(2, 0);
  c.set_output(0, Shape{c.merge_dim(predictions.dim(0), targets.dim(0))});
}

}  // namespace

void register_nn_loss(OpRegistry& r) {
  r.add({.name = "SoftmaxCrossEntropyWithLogits",
         .inputs = {"features: T", "labels: T"},
         .outputs = {"loss: T", "backprop: T"},
         .attrs = {kFloatTypes},
         .doc = "-sum(labels * log_softmax(features)) by rows, and softmax(features) - labels.",
         .infer = cross_entropy_shape,
         .grad = softmax_cross_entropy_grad});
  r.add({.name = "SparseSoftmaxCrossEntropyWithLogits",
         .inputs = {"features: T", "labels: Tlabels"},
         .outputs = {"loss: T", "backprop: T"},
         .attrs = {kFloatTypes, "Tlabels: {int32, int64} = int64"},
         .doc = "-log_softmax(features)[label] by rows, and its gradient by the features.",
         .infer = sparse_cross_entropy_shape,
         .grad = sparse_softmax_cross_entropy_grad});
  r.add({.name = "L2Loss",
         .inputs = {"t: T"},
         .outputs = {"output: T"},
         .attrs = {kFloatTypes},
         .doc = "Half the sum of squares.",
         .infer = scalar_output,
         .grad = [](Grad& g) { return Gradients{mul(g, g.x(), g.dy())}; }});
  r.add({.name = "InTopK",
         .inputs = {"predictions: float", "targets: T"},
         .outputs = {"precision: bool"},
         .attrs = {"k: int", "T: {int32, int64} = int32"},
         .doc = "Whether the target is among the k best predictions of its row; ties count as in.",
         .traits = kNotDifferentiable,
         .infer = in_top_k_shape});
  r.add({.name = "InTopKV2",
         .inputs = {"predictions: float", "targets: T", "k: T"},
         .outputs = {"precision: bool"},
         .attrs = {"T: {int32, int64} = int32"},
         .doc = "Whether the target is among the k best predictions of its row; ties count as in.",
         .traits = kNotDifferentiable,
         .infer = in_top_k_shape});
}

}  // namespace sluice::graph::ops
