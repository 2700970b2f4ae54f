#pragma once
// Losses (tf.losses, graph-and-training §5.5): each weighs, reduces, joins the LOSSES collection, and returns
// a tensor. Every division gives 0 for 0/0. The builder's thread.

#include <optional>
#include <string>
#include <vector>

#include "dsl/tensor.h"

namespace sluice::dsl::losses {

enum class Reduction {
  kNone,                 // one loss an element
  kSum,                  // the weighted sum
  kMean,                 // / sum of the weights
  kSumByNonzeroWeights,  // / number of elements with a weight that is not 0
  kSumOverBatchSize,     // / number of elements
};

struct LossOptions {
  std::optional<Operand> weights = {};  // 1; a scalar or broadcastable to the losses
  std::string scope = {};
  std::string collection = graph::keys::kLosses;  // "": none
  Reduction reduction = Reduction::kSumByNonzeroWeights;
};

Tensor compute_weighted_loss(const Operand& losses, const LossOptions& o = {}, Loc loc = Loc::current());
Tensor absolute_difference(const Operand& labels, const Operand& predictions, const LossOptions& o = {},
                           Loc loc = Loc::current());
/// 1 - sum(labels·predictions) over `axis`, which is kept with length 1; both are taken to have norm 1.
Tensor cosine_distance(const Operand& labels, const Operand& predictions, int axis, const LossOptions& o = {},
                       Loc loc = Loc::current());
Tensor hinge_loss(const Operand& labels, const Operand& logits, const LossOptions& o = {},
                  Loc loc = Loc::current());
/// e²/2 where |e| <= delta, else delta·|e| - delta²/2, with e = predictions - labels.
Tensor huber_loss(const Operand& labels, const Operand& predictions, const LossOptions& o = {},
                  double delta = 1.0, Loc loc = Loc::current());
/// -z·log(p + epsilon) - (1 - z)·log(1 - p + epsilon).
Tensor log_loss(const Operand& labels, const Operand& predictions, const LossOptions& o = {},
                double epsilon = 1e-7, Loc loc = Loc::current());
/// The mean over a row's pairs of elements of (difference of errors)², summed over the rows (the reduction of
/// `o` is not looked at). The rank must be known.
Tensor mean_pairwise_squared_error(const Operand& labels, const Operand& predictions,
                                   const LossOptions& o = {}, Loc loc = Loc::current());
Tensor mean_squared_error(const Operand& labels, const Operand& predictions, const LossOptions& o = {},
                          Loc loc = Loc::current());
Tensor sigmoid_cross_entropy(const Operand& labels, const Operand& logits, const LossOptions& o = {},
                             double label_smoothing = 0, Loc loc = Loc::current());
Tensor softmax_cross_entropy(const Operand& onehot_labels, const Operand& logits, const LossOptions& o = {},
                             double label_smoothing = 0, Loc loc = Loc::current());
/// labels are class numbers; [batch, 1] is taken as [batch].
Tensor sparse_softmax_cross_entropy(const Operand& labels, const Operand& logits, const LossOptions& o = {},
                                    Loc loc = Loc::current());

void add_loss(const Tensor& loss, const std::string& collection = graph::keys::kLosses);
std::vector<Tensor> get_losses(Graph& g, const std::string& scope = {},
                               const std::string& collection = graph::keys::kLosses);
std::vector<Tensor> get_regularization_losses(Graph& g, const std::string& scope = {});
/// Their sum; the constant 0 where there are none.
Tensor get_regularization_loss(Graph& g, const std::string& scope = {}, const std::string& name = {},
                               Loc loc = Loc::current());
/// Sum of LOSSES and, unless told otherwise, of REGULARIZATION_LOSSES; InvalidArgument when there are none.
Tensor get_total_loss(Graph& g, bool add_regularization_losses = true, const std::string& name = {},
                      Loc loc = Loc::current());

}  // namespace sluice::dsl::losses
