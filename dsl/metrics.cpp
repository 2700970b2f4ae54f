#include "dsl/metrics.h"

#include "dsl/call.h"
#include "dsl/ops/array.h"
#include "dsl/ops/math.h"
#include "dsl/ops/nn.h"

namespace sluice::dsl::metrics {

Tensor accuracy(const Operand& labels, const Operand& logits, const std::string& name, Loc loc) {
  Call c(graph_of({&labels, &logits}), name, "accuracy", loc);
  Tensor x = c.in(logits, "logits"), z = c.in(labels, "labels", DType::kInt32);
  Tensor best = argmax(x, -1, {}, z.dtype() == DType::kInt32 ? DType::kInt32 : DType::kInt64, loc);
  Tensor right = cast(equal(best, z, {}, loc), DType::kFloat, {}, loc);
  return reduce_mean(right, {}, {}, loc);
}

Tensor top_k_correct(const Operand& labels, const Operand& logits, int k, const std::string& name, Loc loc) {
  Call c(graph_of({&labels, &logits}), name, "top_k_correct", loc);
  Tensor hits = in_top_k(c.in(logits, "logits"), c.in(labels, "labels", DType::kInt32), k, {}, loc);
  return reduce_sum(cast(hits, DType::kFloat, {}, loc), {}, {}, loc);
}

}  // namespace sluice::dsl::metrics
