#include "dsl/losses.h"

#include "dsl/call.h"
#include "dsl/ops/array.h"
#include "dsl/ops/math.h"
#include "dsl/ops/nn.h"
#include "dsl/require.h"

namespace sluice::dsl::losses {

namespace {

void check_weights(const Operand& weights, const Shape& values) {
  Shape w = weights.shape();
  if (!w.known_rank() || !values.known_rank() || w.rank() == 0) return;
  bool fits = w.rank() == values.rank();
  for (int i = 0; fits && i < w.rank(); ++i) {
    fits = w.dim(i) < 0 || w.dim(i) == 1 || values.dim(i) < 0 || w.dim(i) == values.dim(i);
  }
  SLUICE_REQUIRE(fits, Code::kInvalidArgument,
                 "weights can not be broadcast to values. values.rank=", values.rank(),
                 ". weights.rank=", w.rank(), ". values.shape=", values, ". weights.shape=", w, ".");
}

// 1 for each element of `losses` whose weight is not 0, else 0.
Tensor present_elements(const Tensor& losses, const Tensor& weights, Loc loc) {
  Tensor none = zeros_like(weights, {}, loc), one = ones_like(weights, {}, loc);
  Tensor present = where(equal(weights, 0.0, {}, loc), none, one, {}, loc);
  return multiply(present, ones_like(losses, "broadcast_weights/ones_like", loc), "broadcast_weights", loc);
}

// Elements of `losses` whose weight is not 0.
Tensor num_present(const Tensor& losses, const Tensor& weights, Loc loc) {
  Call c(losses.graph(), {}, "num_present", loc);
  return reduce_sum(present_elements(losses, weights, loc), {}, {}, loc);
}

Tensor safe_mean(const Tensor& sum, const Tensor& count, Loc loc) {
  return div_no_nan(sum, count, "value", loc);
}

std::string scope_or(const LossOptions& o, const char* fallback) {
  return o.scope.empty() ? fallback : o.scope;
}

// compute_weighted_loss inside the open scope.
Tensor weighted(const Tensor& raw, const LossOptions& o, Loc loc) {
  DType given = raw.dtype();
  Tensor losses = cast(raw, DType::kFloat, {}, loc);
  const Operand weight = o.weights.value_or(Operand(1.0, loc));
  check_weights(weight, losses.shape());
  Tensor w = cast(weight.tensor(losses.graph(), "Const", DType::kFloat, loc), DType::kFloat, {}, loc);
  Tensor loss = multiply(losses, w, {}, loc);
  if (o.reduction != Reduction::kNone) {
    Tensor sum = reduce_sum(loss, {}, {}, loc);
    switch (o.reduction) {
      case Reduction::kSum:
        loss = sum;
        break;
      case Reduction::kMean:
        loss = safe_mean(sum, reduce_sum(multiply(ones_like(losses, {}, loc), w, {}, loc), {}, {}, loc), loc);
        break;
      case Reduction::kSumOverBatchSize:
        loss = safe_mean(sum, cast(size(losses, "num_elements", loc), DType::kFloat, {}, loc), loc);
        break;
      default:
        loss = safe_mean(sum, num_present(losses, w, loc), loc);
    }
  }
  loss = cast(loss, given, {}, loc);
  if (!o.collection.empty()) add_loss(loss, o.collection);
  return loss;
}

void check_same_shape(const Tensor& labels, const Tensor& predictions, const char* what) {
  SLUICE_REQUIRE(labels.shape().compatible(predictions.shape()), Code::kInvalidArgument, what,
                 ": Shapes of labels (", labels.name(), ", ", labels.shape(), ") and predictions (",
                 predictions.name(), ", ", predictions.shape(), ") must be equal");
}

struct Pair {
  Tensor labels, predictions;
};

Pair both_float(const Call& c, const Operand& labels, const Operand& predictions, const char* what) {
  Tensor p = cast(c.in(predictions, "predictions"), DType::kFloat, {}, c.loc());
  Tensor z = cast(c.in(labels, "labels"), DType::kFloat, {}, c.loc());
  check_same_shape(z, p, what);
  return {z, p};
}

}  // namespace

Tensor compute_weighted_loss(const Operand& losses, const LossOptions& o, Loc loc) {
  Call c(graph_of({&losses}), scope_or(o, "weighted_loss"), "weighted_loss", loc);
  return weighted(c.in(losses, "losses"), o, loc);
}

Tensor absolute_difference(const Operand& labels, const Operand& predictions, const LossOptions& o, Loc loc) {
  Call c(graph_of({&labels, &predictions}), o.scope, "absolute_difference", loc);
  Pair p = both_float(c, labels, predictions, "absolute_difference");
  return weighted(abs(subtract(p.predictions, p.labels, {}, loc), {}, loc), o, loc);
}

Tensor cosine_distance(const Operand& labels, const Operand& predictions, int axis, const LossOptions& o,
                       Loc loc) {
  Call c(graph_of({&labels, &predictions}), o.scope, "cosine_distance_loss", loc);
  Pair p = both_float(c, labels, predictions, "cosine_distance");
  Tensor radial = multiply(p.predictions, p.labels, {}, loc);
  Tensor sum = reduce_sum(radial, {static_cast<int64_t>(axis)}, {.keepdims = true}, loc);
  return weighted(subtract(1.0, sum, "sub", loc), o, loc);
}

Tensor hinge_loss(const Operand& labels, const Operand& logits, const LossOptions& o, Loc loc) {
  Call c(graph_of({&labels, &logits}), o.scope, "hinge_loss", loc);
  Pair p = both_float(c, labels, logits, "hinge_loss");
  Tensor sign = subtract(multiply(2.0, p.labels, "mul", loc), 1.0, "sub", loc);
  return weighted(relu(subtract(1.0, multiply(sign, p.predictions, {}, loc), {}, loc), {}, loc), o, loc);
}

Tensor huber_loss(const Operand& labels, const Operand& predictions, const LossOptions& o, double delta,
                  Loc loc) {
  Call c(graph_of({&labels, &predictions}), o.scope, "huber_loss", loc);
  Pair p = both_float(c, labels, predictions, "huber_loss");
  Tensor error = abs(subtract(p.predictions, p.labels, {}, loc), {}, loc);
  Tensor inside = minimum(error, delta, {}, loc), beyond = subtract(error, inside, {}, loc);
  Tensor square = multiply(multiply(inside, inside, {}, loc), 0.5, {}, loc);
  return weighted(add(square, multiply(beyond, delta, {}, loc), {}, loc), o, loc);
}

Tensor log_loss(const Operand& labels, const Operand& predictions, const LossOptions& o, double epsilon,
                Loc loc) {
  Call c(graph_of({&labels, &predictions}), o.scope, "log_loss", loc);
  Pair p = both_float(c, labels, predictions, "log_loss");
  Tensor hit = multiply(p.labels, log(add(p.predictions, epsilon, "add", loc), {}, loc), {}, loc);
  Tensor rest = add(subtract(1.0, p.predictions, "sub", loc), epsilon, "add", loc);
  Tensor miss = multiply(subtract(1.0, p.labels, "sub", loc), log(rest, {}, loc), {}, loc);
  return weighted(subtract(negative(hit, {}, loc), miss, "sub", loc), o, loc);
}

Tensor mean_pairwise_squared_error(const Operand& labels, const Operand& predictions, const LossOptions& o,
                                   Loc loc) {
  Call c(graph_of({&labels, &predictions}), o.scope, "mean_pairwise_squared_error", loc);
  Pair p = both_float(c, labels, predictions, "mean_pairwise_squared_error");
  Tensor error = subtract(p.predictions, p.labels, {}, loc);
  SLUICE_REQUIRE_AT(loc, error.shape().known_rank() && error.shape().rank() >= 1, Code::kInvalidArgument,
                    "mean_pairwise_squared_error needs rows of a known rank, got ", error.shape());
  Operand weights = o.weights.value_or(Operand(1.0, loc));
  check_weights(weights, error.shape());
  Tensor w = cast(weights.tensor(c.graph(), "weights", DType::kFloat, loc), DType::kFloat, {}, loc);
  std::vector<int64_t> inner;
  for (int d = 1; d < error.shape().rank(); ++d) inner.push_back(d);
  auto row_sum = [&](const Tensor& t) { return reduce_sum(t, inner, {.keepdims = true}, loc); };
  Tensor present = row_sum(present_elements(error, w, loc));
  Tensor others = maximum(subtract(present, 1.0, {}, loc), 0.0, {}, loc);
  Tensor squares = div_no_nan(row_sum(square(error, {}, loc)), others, "value", loc);
  Tensor pairs = maximum(multiply(present, subtract(present, 1.0, {}, loc), {}, loc), 0.0, {}, loc);
  Tensor products = div_no_nan(square(row_sum(error), {}, loc), pairs, "value", loc);
  Tensor rows = multiply(subtract(multiply(squares, 2.0, {}, loc), multiply(products, 2.0, {}, loc), {}, loc),
                         w, {}, loc);
  Tensor loss = reduce_sum(rows, {}, {}, loc);
  Tensor any = greater(reduce_sum(present, {}, {}, loc), 0.0, {}, loc);
  loss = where(any, loss, zeros_like(loss, {}, loc), "value", loc);
  if (!o.collection.empty()) add_loss(loss, o.collection);
  return loss;
}

Tensor mean_squared_error(const Operand& labels, const Operand& predictions, const LossOptions& o, Loc loc) {
  Call c(graph_of({&labels, &predictions}), o.scope, "mean_squared_error", loc);
  Pair p = both_float(c, labels, predictions, "mean_squared_error");
  return weighted(squared_difference(p.predictions, p.labels, {}, loc), o, loc);
}

Tensor sigmoid_cross_entropy(const Operand& labels, const Operand& logits, const LossOptions& o,
                             double label_smoothing, Loc loc) {
  Call c(graph_of({&labels, &logits}), o.scope, "sigmoid_cross_entropy_loss", loc);
  Tensor x = c.in(logits, "logits");
  Tensor z = cast(c.in(labels, "labels", x.dtype()), x.dtype(), {}, loc);
  check_same_shape(z, x, "sigmoid_cross_entropy");
  if (label_smoothing > 0) {
    z = add(multiply(z, 1.0 - label_smoothing, "mul", loc), 0.5 * label_smoothing, "add", loc);
  }
  return weighted(sigmoid_cross_entropy_with_logits(z, x, "xentropy", loc), o, loc);
}

Tensor softmax_cross_entropy(const Operand& onehot_labels, const Operand& logits, const LossOptions& o,
                             double label_smoothing, Loc loc) {
  Call c(graph_of({&onehot_labels, &logits}), o.scope, "softmax_cross_entropy_loss", loc);
  Tensor x = c.in(logits, "logits");
  Tensor z = cast(c.in(onehot_labels, "labels", x.dtype()), x.dtype(), {}, loc);
  check_same_shape(z, x, "softmax_cross_entropy");
  if (label_smoothing > 0) {
    int64_t classes = x.shape().known_rank() && x.shape().rank() > 0 ? x.shape().dim(-1) : -1;
    SLUICE_REQUIRE_AT(
        loc, classes > 0, Code::kInvalidArgument,
        "softmax_cross_entropy: label smoothing needs a known number of classes, got logits of ", x.shape());
    double part = label_smoothing / static_cast<double>(classes);
    z = add(multiply(z, 1.0 - label_smoothing, "mul", loc), part, "add", loc);
  }
  z = stop_gradient(z, "labels_stop_gradient", loc);
  return weighted(softmax_cross_entropy_with_logits(z, x, "xentropy", loc), o, loc);
}

Tensor sparse_softmax_cross_entropy(const Operand& labels, const Operand& logits, const LossOptions& o,
                                    Loc loc) {
  Call c(graph_of({&labels, &logits}), o.scope, "sparse_softmax_cross_entropy_loss", loc);
  Tensor x = c.in(logits, "logits"), z = c.in(labels, "labels", DType::kInt32);
  if (z.shape().known_rank() && x.shape().known_rank() && z.shape().rank() == x.shape().rank() &&
      z.shape().rank() > 0 && z.shape().dim(-1) == 1) {
    z = squeeze(z, {-1}, {}, loc);
  }
  return weighted(sparse_softmax_cross_entropy_with_logits(z, x, "xentropy", loc), o, loc);
}

void add_loss(const Tensor& loss, const std::string& collection) {
  loss.graph().check_not_finalized();
  loss.graph().collections().add(collection, graph::GraphElement{&loss.node(), loss.output().index});
}

std::vector<Tensor> get_losses(Graph& g, const std::string& scope, const std::string& collection) {
  std::vector<Tensor> out;
  for (const graph::GraphElement& e : g.collections().elements(collection, scope)) {
    out.push_back(Output{e.node, e.index < 0 ? 0 : e.index});
  }
  return out;
}

std::vector<Tensor> get_regularization_losses(Graph& g, const std::string& scope) {
  return get_losses(g, scope, graph::keys::kRegularizationLosses);
}

Tensor get_regularization_loss(Graph& g, const std::string& scope, const std::string& name, Loc loc) {
  std::vector<Tensor> all = get_regularization_losses(g, scope);
  if (all.empty()) return constant(g, 0.0, DType::kFloat, {}, loc);
  return add_n(all, name.empty() ? "total_regularization_loss" : name, loc);
}

Tensor get_total_loss(Graph& g, bool add_regularization_losses, const std::string& name, Loc loc) {
  std::vector<Tensor> all = get_losses(g);
  if (add_regularization_losses) {
    for (const Tensor& t : get_regularization_losses(g)) all.push_back(t);
  }
  SLUICE_REQUIRE_AT(
      loc, !all.empty(), Code::kInvalidArgument,
      "get_total_loss: inputs must be a list of at least one Tensor with the same dtype and shape; the "
      "collections LOSSES and REGULARIZATION_LOSSES are empty");
  return add_n(all, name.empty() ? "total_loss" : name, loc);
}

}  // namespace sluice::dsl::losses
