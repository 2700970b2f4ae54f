#pragma once
// Measures over many batches (tf.metrics): each keeps its counts in local variables, which join
// LOCAL_VARIABLES and METRIC_VARIABLES and start at 0 with local_variables_initializer. `update` takes one
// batch in and gives the new value; `value` is the measure so far (0 before the first batch). Names are
// TensorFlow's
// ("accuracy/total", "accuracy/count"). The builder's thread.
//
//   auto accuracy = metrics::streaming_accuracy(labels, argmax(logits, 1));
//   for (batches) session.run({accuracy.update});
//   float share = session.run({accuracy.value})[0].item<float>();

#include <optional>
#include <string>
#include <vector>

#include "dsl/tensor.h"

namespace sluice::dsl::metrics {

struct StreamingMetric {
  Tensor value, update;
};

struct MetricOptions {
  std::optional<Operand> weights = {};  // 1; a scalar, or broadcastable to the values
  std::vector<std::string> metrics_collections = {}, updates_collections = {};
  std::string name = {};
};

/// Weighted mean of all values.
StreamingMetric streaming_mean(const Operand& values, const MetricOptions& o = {}, Loc loc = Loc::current());
/// Element by element: the mean of each place over the batches.
StreamingMetric streaming_mean_tensor(const Operand& values, const MetricOptions& o = {},
                                      Loc loc = Loc::current());
/// Share of predictions that equal their labels.
StreamingMetric streaming_accuracy(const Operand& labels, const Operand& predictions,
                                   const MetricOptions& o = {}, Loc loc = Loc::current());
/// Share of rows whose label is among the k largest logits.
StreamingMetric streaming_top_k(const Operand& labels, const Operand& logits, int k,
                                const MetricOptions& o = {}, Loc loc = Loc::current());
StreamingMetric streaming_mean_absolute_error(const Operand& labels, const Operand& predictions,
                                              const MetricOptions& o = {}, Loc loc = Loc::current());
StreamingMetric streaming_mean_squared_error(const Operand& labels, const Operand& predictions,
                                             const MetricOptions& o = {}, Loc loc = Loc::current());
StreamingMetric streaming_root_mean_squared_error(const Operand& labels, const Operand& predictions,
                                                  const MetricOptions& o = {}, Loc loc = Loc::current());

/// Weighted counts; labels and predictions are taken as bools.
StreamingMetric streaming_true_positives(const Operand& labels, const Operand& predictions,
                                         const MetricOptions& o = {}, Loc loc = Loc::current());
StreamingMetric streaming_false_positives(const Operand& labels, const Operand& predictions,
                                          const MetricOptions& o = {}, Loc loc = Loc::current());
StreamingMetric streaming_true_negatives(const Operand& labels, const Operand& predictions,
                                         const MetricOptions& o = {}, Loc loc = Loc::current());
StreamingMetric streaming_false_negatives(const Operand& labels, const Operand& predictions,
                                          const MetricOptions& o = {}, Loc loc = Loc::current());
/// True positives / predicted positives (0 where nothing is predicted).
StreamingMetric streaming_precision(const Operand& labels, const Operand& predictions,
                                    const MetricOptions& o = {}, Loc loc = Loc::current());
/// True positives / positives.
StreamingMetric streaming_recall(const Operand& labels, const Operand& predictions,
                                 const MetricOptions& o = {}, Loc loc = Loc::current());

enum class Curve { kRoc, kPrecisionRecall };
enum class Summation { kTrapezoidal, kCarefulInterpolation, kMinoring, kMajoring };
struct AucOptions {
  MetricOptions metric = {};
  int num_thresholds = 200;  // >= 2; spread over [0, 1]
  Curve curve = Curve::kRoc;
  Summation summation = Summation::kTrapezoidal;
};
/// Area under the curve of predictions in [0, 1]; InvalidArgument for fewer than 2 thresholds.
StreamingMetric streaming_auc(const Operand& labels, const Operand& predictions, const AucOptions& o = {},
                              Loc loc = Loc::current());

/// Mean over the classes that appear of |A ∩ B| / |A ∪ B|; update gives the confusion matrix so far.
StreamingMetric streaming_mean_iou(const Operand& labels, const Operand& predictions, int num_classes,
                                   const MetricOptions& o = {}, Loc loc = Loc::current());
/// matrix[label, prediction] = (weighted) count, [num_classes, num_classes].
Tensor confusion_matrix(const Operand& labels, const Operand& predictions, int num_classes,
                        const std::optional<Operand>& weights = {}, DType dtype = DType::kInt32,
                        const std::string& name = {}, Loc loc = Loc::current());

}  // namespace sluice::dsl::metrics
