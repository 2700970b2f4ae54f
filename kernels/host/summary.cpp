// Summary ops: they make serialized Summary messages (graph-and-training §7.3).
//   Summary { repeated Value value = 1 }   Value { tag = 1, simple_value = 2, histo = 5 }
//   HistogramProto { min = 1, max = 2, num = 3, sum = 4, sum_squares = 5, bucket_limit = 6, bucket = 7 }

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "kernels/host/half.h"
#include "kernels/host/input_array.h"
#include "kernels/reference/register.h"
#include "runtime/io/wire.h"

namespace sluice::kernels {
namespace {

using runtime::io::WireField;
using runtime::io::WireReader;
using runtime::io::WireWriter;

double number_at(const KernelRun& r, int input, int64_t i) {
  const DType t = graph::base_dtype(r.in_dtype(input));
  if (t == DType::kHalf) return half_to_float(r.in<uint16_t>(input)[i]);
  if (t == DType::kBfloat16) return bfloat16_to_float(r.in<uint16_t>(input)[i]);
  double v = 0;
  for_numeric(r.in_dtype(input), [&]<class T>() { v = static_cast<double>(r.in<T>(input)[i]); });
  return v;
}

void scalar_summary(KernelRun& r) {
  const int64_t n = in_count(r, 0);
  SLUICE_REQUIRE(r.in_dims(0) == r.in_dims(1) || (n == 1 && in_count(r, 1) == 1), Code::kInvalidArgument,
                 "tags and values are not the same shape: ", dims_string(r.in_dims(0)),
                 " != ", dims_string(r.in_dims(1)));
  WireWriter summary;
  for (int64_t i = 0; i < n; ++i) {
    WireWriter value;
    value.bytes_field(1, r.in_array(0).string_values()[static_cast<size_t>(i)]);
    value.float_field(2, static_cast<float>(number_at(r, 1, i)));
    summary.bytes_field(1, value.str());
  }
  put_string(r, 0, summary.take());
}

// Right edges of the buckets: ±1e-12·1.1^k below 1e20, ±DBL_MAX, and 0.
const std::vector<double>& bucket_limits() {
  static const std::vector<double> limits = [] {
    std::vector<double> positive;
    for (double v = 1.0e-12; v < 1.0e20; v *= 1.1) positive.push_back(v);
    positive.push_back(std::numeric_limits<double>::max());
    std::vector<double> all;
    for (size_t k = positive.size(); k-- > 0;) all.push_back(-positive[k]);
    all.push_back(0.0);
    all.insert(all.end(), positive.begin(), positive.end());
    return all;
  }();
  return limits;
}

std::string histogram(const KernelRun& r, int input, const std::string& node) {
  const std::vector<double>& limits = bucket_limits();
  std::vector<double> counts(limits.size());
  double min = std::numeric_limits<double>::max(), max = -min, sum = 0, squares = 0;
  const int64_t n = in_count(r, input);
  for (int64_t i = 0; i < n; ++i) {
    const double v = number_at(r, input, i);
    SLUICE_REQUIRE(!std::isnan(v), Code::kInvalidArgument, "Nan in summary histogram for: ", node);
    SLUICE_REQUIRE(!std::isinf(v), Code::kInvalidArgument, "Infinity in summary histogram for: ", node);
    const auto at = std::upper_bound(limits.begin(), limits.end(), v) - limits.begin();
    counts[std::min(static_cast<size_t>(at), limits.size() - 1)] += 1;
    min = std::min(min, v);
    max = std::max(max, v);
    sum += v;
    squares += v * v;
  }
  // A run of empty buckets is written as one, with the run's last edge.
  std::vector<double> edges, filled;
  for (size_t k = 0; k < counts.size();) {
    double edge = limits[k];
    const double count = counts[k++];
    if (count <= 0)
      for (; k < counts.size() && counts[k] <= 0; ++k) edge = limits[k];
    edges.push_back(edge);
    filled.push_back(count);
  }
  WireWriter h;
  h.double_field(1, min);
  h.double_field(2, max);
  h.double_field(3, static_cast<double>(n));
  h.double_field(4, sum);
  h.double_field(5, squares);
  h.packed_doubles(6, edges);
  h.packed_doubles(7, filled);
  return h.take();
}

BoundFn histogram_summary(const KernelSpec& spec) {
  return [node = spec.node ? spec.node->name() : spec.op](KernelRun& r) {
    WireWriter value, summary;
    value.bytes_field(1, scalar_string(r, 0));
    value.bytes_field(5, histogram(r, 1, node));
    summary.bytes_field(1, value.str());
    put_string(r, 0, summary.take());
  };
}

// The tags of one Summary into `tags`; false when it is none.
bool note_tags(std::string_view summary, std::unordered_set<std::string>* tags) {
  WireReader in(summary);
  for (WireField f; in.next(&f);) {
    if (!f.is_bytes(1)) continue;
    WireReader value(f.bytes);
    for (WireField v; value.next(&v);)
      // An empty tag names nothing and may repeat.
      if (v.is_bytes(1) && !v.bytes.empty())
        SLUICE_REQUIRE(tags->insert(std::string(v.bytes)).second, Code::kInvalidArgument, "Duplicate tag ",
                       v.bytes, " found in summary inputs");
    if (!value.sound()) return false;
  }
  return in.sound();
}

// Joined messages are their joined bytes; each tag may come once.
void merge_summary(KernelRun& r) {
  std::string merged;
  std::unordered_set<std::string> tags;
  for (int i = 0; i < r.num_inputs(); ++i)
    for (const std::string& part : r.in_array(i).string_values()) {
      SLUICE_REQUIRE(note_tags(part, &tags), Code::kInvalidArgument,
                     "Could not parse one of the summary inputs");
      merged += part;
    }
  put_string(r, 0, std::move(merged));
}

}  // namespace

void register_host_summary(KernelRegistry& r) {
  add(r, "ScalarSummary", scalar_summary);
  add_bound(r, "HistogramSummary", histogram_summary);
  add(r, "MergeSummary", merge_summary);
}

}  // namespace sluice::kernels
