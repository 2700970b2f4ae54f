#include "dsl/streaming_metrics.h"

#include "dsl/call.h"
#include "dsl/ops/array.h"
#include "dsl/ops/index.h"
#include "dsl/ops/math.h"
#include "dsl/ops/nn.h"
#include "dsl/require.h"
#include "dsl/variable.h"

namespace sluice::dsl::metrics {

using graph::ControlDependencies;
using graph::GraphElement;
using graph::NameScope;

namespace {

Variable metric_variable(Graph& g, const Dims& shape, DType dtype, const std::string& name, Loc loc) {
  VariableOptions o;
  o.trainable = false;
  o.collections = {graph::keys::kLocalVariables, graph::keys::kMetricVariables};
  return make_variable(g, Literal::zeros(dtype, shape), name, o, loc);
}

StreamingMetric collected(StreamingMetric m, const MetricOptions& o) {
  auto add = [](const Tensor& t, const std::vector<std::string>& keys) {
    for (const std::string& key : keys)
      t.graph().collections().add(key, GraphElement{&t.node(), t.output().index});
  };
  add(m.value, o.metrics_collections);
  add(m.update, o.updates_collections);
  return m;
}

// The weights as floats, broadcast to `values`; [n] and [n, 1] are taken as equal.
Tensor broadcast_weights(const Operand& weights, const Tensor& values, Loc loc) {
  Tensor w = cast(weights.tensor(values.graph(), "weights", DType::kFloat, loc), DType::kFloat, {}, loc);
  const Shape &ws = w.shape(), &vs = values.shape();
  if (ws.known_rank() && vs.known_rank() && ws.rank() > 0) {
    if (ws.rank() == vs.rank() + 1 && ws.dim(-1) == 1) w = squeeze(w, {-1}, {}, loc);
    if (ws.rank() + 1 == vs.rank()) w = expand_dims(w, -1, {}, loc);
    const Shape now = w.shape();
    bool fits = now.rank() == vs.rank();
    for (int d = 0; fits && d < now.rank(); ++d)
      fits = now.dim(d) < 0 || now.dim(d) == 1 || vs.dim(d) < 0 || now.dim(d) == vs.dim(d);
    SLUICE_REQUIRE_AT(loc, fits, Code::kInvalidArgument,
                      "weights can not be broadcast to values. values.shape=", vs, ". weights.shape=", ws,
                      ".");
  }
  return multiply(w, ones_like(values, "broadcast_weights/ones_like", loc), "broadcast_weights", loc);
}

// Labels and predictions where one has a last dimension of 1 more than the other.
void squeeze_together(Tensor& labels, Tensor& predictions, Loc loc) {
  const Shape &l = labels.shape(), &p = predictions.shape();
  if (!l.known_rank() || !p.known_rank()) return;
  if (l.rank() == p.rank() + 1 && l.dim(-1) == 1) labels = squeeze(labels, {-1}, {}, loc);
  if (p.rank() == l.rank() + 1 && p.dim(-1) == 1) predictions = squeeze(predictions, {-1}, {}, loc);
  SLUICE_REQUIRE_AT(loc, labels.shape().compatible(predictions.shape()), Code::kInvalidArgument, "Shapes ",
                    predictions.shape(), " and ", labels.shape(), " are incompatible");
}

Tensor as_bool(const Tensor& t, Loc loc) {
  if (t.dtype() == DType::kBool) return t;
  return not_equal(t, zeros_like(t, {}, loc), {}, loc);
}

// The scope's mean of float values, in the open scope.
StreamingMetric mean_of(const Tensor& raw, const MetricOptions& o, Loc loc) {
  Graph& g = raw.graph();
  Tensor values = cast(raw, DType::kFloat, {}, loc);
  Variable total = metric_variable(g, {}, DType::kFloat, "total", loc);
  Variable count = metric_variable(g, {}, DType::kFloat, "count", loc);
  Tensor number;
  if (o.weights) {
    const Tensor w = broadcast_weights(*o.weights, values, loc);
    values = multiply(values, w, "mul", loc);
    number = reduce_sum(w, {}, {}, loc);
  } else {
    number = cast(size(values, {}, loc), DType::kFloat, {}, loc);
  }
  const Tensor new_total = assign_add(total, reduce_sum(values, {}, {}, loc), {}, loc);
  Tensor new_count;
  {
    ControlDependencies after(g, {&values.node()});
    new_count = assign_add(count, number, {}, loc);
  }
  return {div_no_nan(total, count, "value", loc), div_no_nan(new_total, new_count, "update_op", loc)};
}

struct Pair {
  Tensor labels, predictions;
};

Pair bools(const Call& c, const Operand& labels, const Operand& predictions) {
  Tensor z = c.in(labels, "labels", DType::kBool), p = c.in(predictions, "predictions", DType::kBool);
  z = as_bool(z, c.loc());
  p = as_bool(p, c.loc());
  squeeze_together(z, p, c.loc());
  return {z, p};
}

// How often a condition holds, in the open scope.
StreamingMetric count_of(const Tensor& condition, const std::optional<Operand>& weights, Loc loc) {
  Graph& g = condition.graph();
  Variable count = metric_variable(g, {}, DType::kFloat, "count", loc);
  Tensor values = cast(condition, DType::kFloat, {}, loc);
  if (weights) values = multiply(values, broadcast_weights(*weights, values, loc), "mul", loc);
  return {identity(count, {}, loc), assign_add(count, reduce_sum(values, {}, {}, loc), {}, loc)};
}

using Condition = Tensor (*)(const Pair&, Loc);
Tensor hit(const Pair& p, Loc loc) { return logical_and(p.labels, p.predictions, {}, loc); }
Tensor false_alarm(const Pair& p, Loc loc) {
  return logical_and(logical_not(p.labels, {}, loc), p.predictions, {}, loc);
}
Tensor rejection(const Pair& p, Loc loc) {
  return logical_and(logical_not(p.labels, {}, loc), logical_not(p.predictions, {}, loc), {}, loc);
}
Tensor miss(const Pair& p, Loc loc) {
  return logical_and(p.labels, logical_not(p.predictions, {}, loc), {}, loc);
}

StreamingMetric condition_metric(const char* name, Condition condition, const Operand& labels,
                                 const Operand& predictions, const MetricOptions& o, Loc loc) {
  Call c(graph_of({&labels, &predictions}), o.name, name, loc);
  return collected(count_of(condition(bools(c, labels, predictions), loc), o.weights, loc), o);
}

// hits / (hits + others), 0 where both are 0.
StreamingMetric share_metric(const char* name, const char* other_name, Condition other, const Operand& labels,
                             const Operand& predictions, const MetricOptions& o, Loc loc) {
  Graph& g = graph_of({&labels, &predictions});
  Call c(g, o.name, name, loc);
  const Pair p = bools(c, labels, predictions);
  StreamingMetric hits, others;
  {
    NameScope scope(g, "true_positives");
    hits = count_of(hit(p, loc), o.weights, loc);
  }
  {
    NameScope scope(g, other_name);
    others = count_of(other(p, loc), o.weights, loc);
  }
  auto share = [&](const Tensor& a, const Tensor& b, const char* what) {
    return div_no_nan(a, add(a, b, "add", loc), what, loc);
  };
  return collected({share(hits.value, others.value, "value"), share(hits.update, others.update, "update_op")},
                   o);
}

}  // namespace

StreamingMetric streaming_mean(const Operand& values, const MetricOptions& o, Loc loc) {
  Call c(graph_of({&values}), o.name, "mean", loc);
  return collected(mean_of(c.in(values, "values"), o, loc), o);
}

StreamingMetric streaming_mean_tensor(const Operand& values, const MetricOptions& o, Loc loc) {
  Graph& g = graph_of({&values});
  Call c(g, o.name, "mean", loc);
  Tensor x = cast(c.in(values, "values"), DType::kFloat, {}, loc);
  SLUICE_REQUIRE_AT(loc, x.shape().fully_known(), Code::kInvalidArgument,
                    "streaming_mean_tensor needs a known shape, got ", x.shape());
  Variable total = metric_variable(g, x.shape().dims(), DType::kFloat, "total_tensor", loc);
  Variable count = metric_variable(g, x.shape().dims(), DType::kFloat, "count_tensor", loc);
  Tensor number = ones_like(x, {}, loc);
  if (o.weights) {
    const Tensor w = broadcast_weights(*o.weights, x, loc);
    x = multiply(x, w, "mul", loc);
    number = multiply(number, w, "mul", loc);
  }
  const Tensor new_total = assign_add(total, x, {}, loc), new_count = assign_add(count, number, {}, loc);
  return collected(
      {div_no_nan(total, count, "value", loc), div_no_nan(new_total, new_count, "update_op", loc)}, o);
}

StreamingMetric streaming_accuracy(const Operand& labels, const Operand& predictions, const MetricOptions& o,
                                   Loc loc) {
  Call c(graph_of({&labels, &predictions}), o.name, "accuracy", loc);
  Tensor p = c.in(predictions, "predictions"), z = c.in(labels, "labels", p.dtype());
  squeeze_together(z, p, loc);
  if (z.dtype() != p.dtype()) p = cast(p, z.dtype(), {}, loc);
  return collected(mean_of(equal(p, z, {}, loc), o, loc), o);
}

StreamingMetric streaming_top_k(const Operand& labels, const Operand& logits, int k, const MetricOptions& o,
                                Loc loc) {
  Call c(graph_of({&labels, &logits}), o.name, "top_k", loc);
  Tensor x = c.in(logits, "logits"), z = c.in(labels, "labels", DType::kInt32);
  return collected(mean_of(in_top_k(x, z, k, {}, loc), o, loc), o);
}

StreamingMetric streaming_mean_absolute_error(const Operand& labels, const Operand& predictions,
                                              const MetricOptions& o, Loc loc) {
  Call c(graph_of({&labels, &predictions}), o.name, "mean_absolute_error", loc);
  Tensor p = c.in(predictions, "predictions"), z = cast(c.in(labels, "labels"), p.dtype(), {}, loc);
  squeeze_together(z, p, loc);
  return collected(mean_of(abs(subtract(p, z, "sub", loc), {}, loc), o, loc), o);
}

StreamingMetric streaming_mean_squared_error(const Operand& labels, const Operand& predictions,
                                             const MetricOptions& o, Loc loc) {
  Call c(graph_of({&labels, &predictions}), o.name, "mean_squared_error", loc);
  Tensor p = c.in(predictions, "predictions"), z = cast(c.in(labels, "labels"), p.dtype(), {}, loc);
  squeeze_together(z, p, loc);
  return collected(mean_of(squared_difference(p, z, {}, loc), o, loc), o);
}

StreamingMetric streaming_root_mean_squared_error(const Operand& labels, const Operand& predictions,
                                                  const MetricOptions& o, Loc loc) {
  Call c(graph_of({&labels, &predictions}), o.name, "root_mean_squared_error", loc);
  Tensor p = c.in(predictions, "predictions"), z = cast(c.in(labels, "labels"), p.dtype(), {}, loc);
  squeeze_together(z, p, loc);
  const StreamingMetric mse = mean_of(squared_difference(p, z, {}, loc), o, loc);
  return collected({sqrt(mse.value, {}, loc), sqrt(mse.update, {}, loc)}, o);
}

StreamingMetric streaming_true_positives(const Operand& labels, const Operand& predictions,
                                         const MetricOptions& o, Loc loc) {
  return condition_metric("true_positives", hit, labels, predictions, o, loc);
}
StreamingMetric streaming_false_positives(const Operand& labels, const Operand& predictions,
                                          const MetricOptions& o, Loc loc) {
  return condition_metric("false_positives", false_alarm, labels, predictions, o, loc);
}
StreamingMetric streaming_true_negatives(const Operand& labels, const Operand& predictions,
                                         const MetricOptions& o, Loc loc) {
  return condition_metric("true_negatives", rejection, labels, predictions, o, loc);
}
StreamingMetric streaming_false_negatives(const Operand& labels, const Operand& predictions,
                                          const MetricOptions& o, Loc loc) {
  return condition_metric("false_negatives", miss, labels, predictions, o, loc);
}
StreamingMetric streaming_precision(const Operand& labels, const Operand& predictions, const MetricOptions& o,
                                    Loc loc) {
  return share_metric("precision", "false_positives", false_alarm, labels, predictions, o, loc);
}
StreamingMetric streaming_recall(const Operand& labels, const Operand& predictions, const MetricOptions& o,
                                 Loc loc) {
  return share_metric("recall", "false_negatives", miss, labels, predictions, o, loc);
}

namespace {

// Counts at each threshold, [n].
struct Counts {
  Tensor tp, fn, tn, fp;
};

class AreaUnderCurve {
 public:
  AreaUnderCurve(const AucOptions& o, Loc loc) : n_(o.num_thresholds), o_(o), loc_(loc) {}

  Tensor area(const Counts& c, const char* name) const {
    constexpr double kEpsilon = 1e-6;
    if (o_.curve == Curve::kPrecisionRecall && o_.summation == Summation::kCarefulInterpolation)
      return interpolated(c, name);
    const Tensor recall = ratio(plus(c.tp, kEpsilon), plus(plus(c.tp, c.fn), kEpsilon));
    Tensor x, y;
    if (o_.curve == Curve::kRoc) {
      x = ratio(c.fp, plus(plus(c.fp, c.tn), kEpsilon));
      y = recall;
    } else {
      x = recall;
      y = ratio(plus(c.tp, kEpsilon), plus(plus(c.tp, c.fp), kEpsilon));
    }
    const Tensor width = subtract(head(x), tail(x), "sub", loc_);
    Tensor height;
    switch (o_.summation) {
      case Summation::kMinoring:
        height = minimum(head(y), tail(y), {}, loc_);
        break;
      case Summation::kMajoring:
        height = maximum(head(y), tail(y), {}, loc_);
        break;
      default:
        height = divide(plus(head(y), tail(y)), 2.0, {}, loc_);
    }
    return reduce_sum(multiply(width, height, "mul", loc_), {}, {.name = name}, loc_);
  }

 private:
  // Davis and Goadrich: between two points true positives grow in line with predicted positives.
  Tensor interpolated(const Counts& c, const char* name) const {
    const Tensor dtp = subtract(head(c.tp), tail(c.tp), "sub", loc_), p = plus(c.tp, c.fp);
    const Tensor dp = maximum(subtract(head(p), tail(p), "sub", loc_), 0.0, {}, loc_);
    const Tensor slope = div_no_nan(dtp, dp, "prec_slope", loc_);
    const Tensor intercept = subtract(tail(c.tp), multiply(slope, tail(p), "mul", loc_), "sub", loc_);
    const Tensor both =
        logical_and(greater(head(p), 0.0, {}, loc_), greater(tail(p), 0.0, {}, loc_), {}, loc_);
    const Tensor growth = div_no_nan(head(p), maximum(tail(p), 0.0, {}, loc_), "recall_relative_ratio", loc_);
    const Tensor safe = where(both, growth, ones_like(tail(p), {}, loc_), {}, loc_);
    const Tensor gained =
        multiply(slope, plus(dtp, multiply(intercept, log(safe, {}, loc_), "mul", loc_)), "mul", loc_);
    const Tensor positives = maximum(plus(tail(c.tp), tail(c.fn)), 0.0, {}, loc_);
    return reduce_sum(div_no_nan(gained, positives, "pr_auc_increment", loc_), {}, {.name = name}, loc_);
  }

  Tensor plus(const Operand& a, const Operand& b) const { return add(a, b, "add", loc_); }
  Tensor ratio(const Tensor& a, const Tensor& b) const { return divide(a, b, {}, loc_); }
  Tensor head(const Tensor& t) const { return slice(t, {0}, {n_ - 1}, {}, loc_); }
  Tensor tail(const Tensor& t) const { return slice(t, {1}, {n_ - 1}, {}, loc_); }

  int64_t n_;
  const AucOptions& o_;
  Loc loc_;
};

}  // namespace

StreamingMetric streaming_auc(const Operand& labels, const Operand& predictions, const AucOptions& o,
                              Loc loc) {
  constexpr double kOutside = 1e-7;
  SLUICE_REQUIRE_AT(loc, o.num_thresholds >= 2, Code::kInvalidArgument,
                    "auc needs at least 2 thresholds, got ", o.num_thresholds);
  Graph& g = graph_of({&labels, &predictions});
  Call c(g, o.metric.name, "auc", loc);
  Tensor p = cast(c.in(predictions, "predictions"), DType::kFloat, {}, loc),
         z = as_bool(c.in(labels, "labels", DType::kBool), loc);
  squeeze_together(z, p, loc);
  std::vector<float> thresholds{static_cast<float>(-kOutside)};
  for (int i = 1; i + 1 < o.num_thresholds; ++i)
    thresholds.push_back(static_cast<float>(i * 1.0 / (o.num_thresholds - 1)));
  thresholds.push_back(static_cast<float>(1.0 + kOutside));
  const int64_t n = o.num_thresholds;
  // [thresholds, examples]
  const Tensor limit = constant(g, thresholds, {n, 1}, "thresholds", loc);
  const Pair pair{reshape(z, {1, -1}, {}, loc), greater(reshape(p, {1, -1}, {}, loc), limit, {}, loc)};
  std::optional<Tensor> weight;
  if (o.metric.weights) weight = reshape(broadcast_weights(*o.metric.weights, p, loc), {1, -1}, {}, loc);
  auto counted = [&](Condition condition, const char* name) {
    Variable count = metric_variable(g, {n}, DType::kFloat, name, loc);
    Tensor here = cast(condition(pair, loc), DType::kFloat, {}, loc);
    if (weight) here = multiply(here, *weight, "mul", loc);
    return std::pair(count, assign_add(count, reduce_sum(here, 1, {}, loc), {}, loc));
  };
  const auto tp = counted(hit, "true_positives"), fn = counted(miss, "false_negatives"),
             tn = counted(rejection, "true_negatives"), fp = counted(false_alarm, "false_positives");
  const AreaUnderCurve curve(o, loc);
  auto read = [&](const Variable& v) { return v.value(loc); };
  const Tensor value = curve.area({read(tp.first), read(fn.first), read(tn.first), read(fp.first)}, "value");
  return collected({value, curve.area({tp.second, fn.second, tn.second, fp.second}, "update_op")}, o.metric);
}

Tensor confusion_matrix(const Operand& labels, const Operand& predictions, int num_classes,
                        const std::optional<Operand>& weights, DType dtype, const std::string& name,
                        Loc loc) {
  Graph& g = graph_of({&labels, &predictions});
  Call c(g, name, "confusion_matrix", loc);
  Tensor z = cast(c.in(labels, "labels", DType::kInt64), DType::kInt64, {}, loc);
  Tensor p = cast(c.in(predictions, "predictions", DType::kInt64), DType::kInt64, {}, loc);
  squeeze_together(z, p, loc);
  Tensor counts = weights ? cast(weights->tensor(g, "weights", DType::kFloat, loc), dtype, {}, loc)
                          : cast(ones_like(p, {}, loc), dtype, {}, loc);
  return scatter_nd(stack({z, p}, 1, {}, loc), counts, {num_classes, num_classes}, {}, loc);
}

StreamingMetric streaming_mean_iou(const Operand& labels, const Operand& predictions, int num_classes,
                                   const MetricOptions& o, Loc loc) {
  Graph& g = graph_of({&labels, &predictions});
  Call c(g, o.name, "mean_iou", loc);
  Tensor z = cast(c.in(labels, "labels", DType::kInt64), DType::kInt64, {}, loc);
  Tensor p = cast(c.in(predictions, "predictions", DType::kInt64), DType::kInt64, {}, loc);
  squeeze_together(z, p, loc);
  Variable total =
      metric_variable(g, {num_classes, num_classes}, DType::kDouble, "total_confusion_matrix", loc);
  std::optional<Operand> weights;
  if (o.weights) {
    const Tensor w = broadcast_weights(*o.weights, cast(p, DType::kFloat, {}, loc), loc);
    weights = Operand(reshape(w, {-1}, {}, loc), loc);
  }
  const Tensor now = confusion_matrix(reshape(z, {-1}, {}, loc), reshape(p, {-1}, {}, loc), num_classes,
                                      weights, DType::kDouble, {}, loc);
  const Tensor update = assign_add(total, now, "update_op", loc);
  std::vector<double> eye(static_cast<size_t>(num_classes) * static_cast<size_t>(num_classes));
  for (int i = 0; i < num_classes; ++i)
    eye[static_cast<size_t>(i) * static_cast<size_t>(num_classes + 1)] = 1;
  const Tensor matrix = total.value(loc), one = constant(g, eye, {num_classes, num_classes}, "eye", loc);
  auto as_float = [&](const Tensor& t) { return cast(t, DType::kFloat, {}, loc); };
  const Tensor row = as_float(reduce_sum(matrix, 0, {}, loc)),
               column = as_float(reduce_sum(matrix, 1, {}, loc)),
               diagonal = as_float(reduce_sum(multiply(matrix, one, "mul", loc), 1, {}, loc));
  const Tensor either = subtract(add(row, column, "add", loc), diagonal, "sub", loc);
  const Tensor valid =
      reduce_sum(as_float(not_equal(either, zeros_like(either, {}, loc), {}, loc)), {}, {}, loc);
  const Tensor sum = reduce_sum(div_no_nan(diagonal, either, {}, loc), {}, {.name = "mean_iou"}, loc);
  return collected({div_no_nan(sum, valid, "value", loc), update}, o);
}

}  // namespace sluice::dsl::metrics
