// PR curves as TensorBoard's plugin wants them: six rows of counts and ratios over the thresholds, in one
// tensor
// "<name>/pr_curves". Predictions fall into num_thresholds buckets; what lies at or above a threshold is a
// running sum from the end.
#include "dsl/call.h"
#include "dsl/ops/array.h"
#include "dsl/ops/math.h"
#include "dsl/require.h"
#include "dsl/summary.h"
#include "runtime/io/wire.h"

namespace sluice::dsl::summary {

namespace {

constexpr double kMinimumCount = 1e-7;  // keeps the ratios finite where nothing was predicted
constexpr const char* kPlugin = "pr_curves";

// Sum over the predictions at or above each threshold.
Tensor at_or_above(const Call& c, const Tensor& one_hot_buckets, const Tensor& weights, const char* name) {
  const Tensor buckets = reduce_sum(multiply(one_hot_buckets, weights, "mul", c.loc()), {0}, {}, c.loc());
  return c.inner("Cumsum", {buckets, c.i32(0, cat(name, "/axis"))}, {{"exclusive", false}, {"reverse", true}},
                 name);
}

Tensor first(const Tensor& x, Loc loc) {
  return gather(x, constant(x.graph(), 0, DType::kInt32), 0, {}, loc);
}

}  // namespace

Tensor pr_curve(const std::string& name, const Tensor& labels, const Tensor& predictions,
                const PrCurveOptions& o, Loc loc) {
  SLUICE_REQUIRE_AT(loc, labels.dtype() == DType::kBool, Code::kInvalidArgument, "Expected labels ",
                    labels.name(), " to have dtype bool, got ", labels.dtype());
  SLUICE_REQUIRE_AT(loc, o.num_thresholds > 1, Code::kInvalidArgument,
                    "pr_curve: num_thresholds is at least 2, not ", o.num_thresholds);
  const DType real = predictions.dtype();
  Call c(predictions.graph(), clean_tag(name), "pr_curve", loc);
  const Tensor clipped = minimum(maximum(predictions, 0.0, {}, loc), 1.0, {}, loc);
  const Tensor is_true = cast(labels, real, {}, loc);
  Tensor true_weight = is_true, false_weight = subtract(1.0, is_true, {}, loc);
  if (o.weights) {
    true_weight = multiply(true_weight, o.weights, {}, loc);
    false_weight = multiply(false_weight, o.weights, {}, loc);
  }
  const Tensor flat = reshape(clipped, {-1}, {}, loc);
  const Tensor bucket =
      cast(floor(multiply(flat, static_cast<double>(o.num_thresholds - 1), {}, loc), {}, loc), DType::kInt32,
           {}, loc);
  const Tensor in_bucket = one_hot(bucket, o.num_thresholds, {.dtype = real}, loc);
  const Tensor tp = at_or_above(c, in_bucket, reshape(true_weight, {-1, 1}, {}, loc), "tp");
  const Tensor fp = at_or_above(c, in_bucket, reshape(false_weight, {-1, 1}, {}, loc), "fp");
  const Tensor tn = subtract(first(fp, loc), fp, {}, loc), fn = subtract(first(tp, loc), tp, {}, loc);
  const auto ratio = [&](const Tensor& of) {
    return divide(tp, maximum(add(tp, of, {}, loc), kMinimumCount, {}, loc), {}, loc);
  };
  std::vector<Operand> rows;
  for (const Tensor& row : {tp, fp, tn, fn, ratio(fp), ratio(fn)})
    rows.push_back(cast(row, DType::kFloat, {}, loc));

  runtime::io::WireWriter content;  // PrCurvePluginData {version = 1, num_thresholds = 2}
  content.varint_field(2, static_cast<uint64_t>(o.num_thresholds));
  return tensor("pr_curves", stack(rows, 0, {}, loc),
                {.collections = o.collections,
                 .plugin = kPlugin,
                 .plugin_content = content.take(),
                 .display_name = o.display_name.empty() ? name : o.display_name,
                 .description = o.description},
                loc);
}

}  // namespace sluice::dsl::summary
