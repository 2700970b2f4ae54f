#include "kernels/cpu/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cpu/common.h"
#include "kernels/cpu/region_machine.h"
#include "kernels/cpu/register.h"
#include "runtime/region_writer.h"

namespace sluice::kernels::cpu {
namespace {

using runtime::batch_norm_apply;
using runtime::batch_norm_grad_apply;
using runtime::batch_norm_grad_inference;
using runtime::batch_norm_grad_sums;

int64_t stats_chunk_rows(int64_t cols) {
  return std::clamp<int64_t>(16384 / std::max<int64_t>(1, cols), 32, 256);
}

}  // namespace

size_t column_stats_scratch(int64_t rows, int64_t cols) {
  const int64_t chunk = stats_chunk_rows(cols);
  return static_cast<size_t>((rows + chunk - 1) / chunk) * static_cast<size_t>(cols) * 2 * 4;
}

void column_stats(const float* x, int64_t rows, int64_t cols, float* mean, float* variance, float* unbiased,
                  void* scratch, runtime::WorkQueue& queue) {
  const VecFns& f = fns();
  const int64_t chunk = stats_chunk_rows(cols), chunks = (rows + chunk - 1) / chunk;
  float* partial = static_cast<float*>(scratch);  // [chunk][sum, sum of squares][column]
  queue.parallel_for(chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      float* s = partial + k * 2 * cols;
      f.col_moments(s, s + cols, x + k * chunk * cols, std::min(chunk, rows - k * chunk), cols);
    }
  });
  queue.parallel_for(cols, 64, [&](int64_t begin, int64_t end) {
    double mean_so_far[64] = {}, squares[64] = {};
    double n = 0;
    const int64_t width = end - begin;
    for (int64_t k = 0; k < chunks; ++k) {
      const double m = static_cast<double>(std::min(chunk, rows - k * chunk));
      const float* s = partial + k * 2 * cols + begin;
      const float* first = x + k * chunk * cols + begin;
      for (int64_t c = 0; c < width; ++c) {
        const double shifted = static_cast<double>(s[c]);
        const double chunk_mean = static_cast<double>(first[c]) + shifted / m;
        const double chunk_squares = static_cast<double>(s[cols + c]) - shifted * shifted / m;
        const double d = chunk_mean - mean_so_far[c];
        mean_so_far[c] += d * m / (n + m);
        squares[c] += chunk_squares + d * d * n * m / (n + m);
      }
      n += m;
    }
    for (int64_t c = 0; c < width; ++c) {
      const double nan = std::numeric_limits<double>::quiet_NaN();
      // A chunk's squares are non-negative but for rounding. The comparison keeps NaN.
      const double v = n > 0 ? (squares[c] < 0 ? 0.0 : squares[c] / n) : nan;
      mean[begin + c] = static_cast<float>(n > 0 ? mean_so_far[c] : nan);
      variance[begin + c] = static_cast<float>(v);
      if (unbiased) unbiased[begin + c] = static_cast<float>(v * n / std::max(n - 1, 1.0));
    }
  });
}

namespace {

struct BatchNormShape {
  int64_t rows = 0, cols = 0;
};
BatchNormShape shape_of(const Dims& x, bool nchw) {
  const int64_t cols = x[nchw ? 1 : 3], all = graph::num_elements(x);
  return {cols > 0 ? all / cols : 0, cols};
}

bool accept(const KernelSpec& spec, Refusal& refusal, std::vector<int> inputs) {
  if (!all_float(spec, refusal, std::move(inputs))) return false;
  if (spec.inputs[0].dims.size() != 4) {
    refusal.reason = "not an image";
    return false;
  }
  if (spec.attr_or<float>("exponential_avg_factor", 1.f) != 1.f) {
    refusal.reason = "a moving average inside the op";
    return false;
  }
  return true;
}

// FusedBatchNorm, V2, V3: what is left of them where the plan did not take them apart.
class BatchNorm final : public Kernel {
 public:
  BatchNorm(const KernelSpec& spec, std::unique_ptr<RegionMachine> apply, BatchNormShape s, bool training)
      : apply_(std::move(apply)), s_(s), training_(training) {
    const Layout image = image_layout(is_nchw(spec));
    input_layouts.resize(spec.inputs.size());
    output_layouts.resize(spec.outputs.size());
    input_layouts[0] = output_layouts[0] = image;
    stats_bytes_ = align64(column_stats_scratch(s.rows, s.cols));
    scratch_bytes = stats_bytes_ + apply_->scratch_bytes();
    // A layer's x is an activation that training needs again; only where it is not may y take its place.
    may_share = {{0, 0}};
  }
  void run(KernelRun& r) const override {
    const float *mean = r.in<float>(3), *variance = r.in<float>(4);
    const size_t bytes = static_cast<size_t>(s_.cols) * 4;
    if (training_) {
      column_stats(r.in<float>(0), s_.rows, s_.cols, r.out<float>(3), r.out<float>(4), r.out<float>(2),
                   r.scratch(), r.queue());
      std::memcpy(r.out<float>(1), r.out<float>(3), bytes);
      mean = r.out<float>(3), variance = r.out<float>(4);
    } else {
      for (int o : {1, 3}) std::memcpy(r.out<float>(o), mean, bytes);
      for (int o : {2, 4}) std::memcpy(r.out<float>(o), variance, bytes);
    }
    if (r.num_outputs() > 5 && r.out_spec(5).bytes() > 0)
      std::memset(r.out_data(5), 0, r.out_spec(5).bytes());
    const void* in[] = {r.in_data(0), r.in_data(1), r.in_data(2), mean, variance};
    void* out[] = {r.out_data(0)};
    apply_->run(in, out, static_cast<char*>(r.scratch()) + stats_bytes_, r.queue());
  }

 private:
  std::unique_ptr<RegionMachine> apply_;
  BatchNormShape s_;
  bool training_;
  size_t stats_bytes_ = 0;
};

class BatchNormGrad final : public Kernel {
 public:
  BatchNormGrad(const KernelSpec& spec, std::unique_ptr<RegionMachine> sums,
                std::unique_ptr<RegionMachine> apply, BatchNormShape s, bool training)
      : sums_(std::move(sums)), apply_(std::move(apply)), s_(s), training_(training) {
    const Layout image = image_layout(is_nchw(spec));
    input_layouts.resize(spec.inputs.size());
    output_layouts.resize(spec.outputs.size());
    input_layouts[0] = input_layouts[1] = output_layouts[0] = image;
    column_bytes_ = align64(static_cast<size_t>(s.cols) * 4);
    scratch_bytes = column_bytes_ + std::max(sums_->scratch_bytes(), apply_->scratch_bytes());
    may_share = {{0, 0}};
  }
  void run(KernelRun& r) const override {
    const void *dy = r.in_data(0), *x = r.in_data(1), *scale = r.in_data(2), *mean = r.in_data(3),
               *variance = r.in_data(4);
    void* product_sum = r.scratch();
    void* machine = static_cast<char*>(r.scratch()) + column_bytes_;
    {
      const void* in[] = {dy, x, mean};
      void* out[] = {r.out_data(2), product_sum};
      sums_->run(in, out, machine, r.queue());
    }
    void* out[] = {r.out_data(0), r.out_data(1)};
    if (training_) {
      const void* in[] = {dy, x, scale, mean, variance, r.out_data(2), product_sum};
      apply_->run(in, out, machine, r.queue());
    } else {
      const void* in[] = {dy, scale, variance, product_sum};
      apply_->run(in, out, machine, r.queue());
    }
    for (int o = 3; o < r.num_outputs(); ++o)
      if (r.out_spec(o).bytes() > 0) std::memset(r.out_data(o), 0, r.out_spec(o).bytes());
  }

 private:
  std::unique_ptr<RegionMachine> sums_, apply_;
  BatchNormShape s_;
  bool training_;
  size_t column_bytes_ = 0;
};

// Statistics alone: x → mean, biased variance, unbiased variance. Attr data_format.
class BatchNormStats final : public Kernel {
 public:
  BatchNormStats(const KernelSpec& spec, BatchNormShape s) : s_(s) {
    input_layouts = {image_layout(is_nchw(spec))};
    output_layouts.resize(spec.outputs.size());
    scratch_bytes = column_stats_scratch(s.rows, s.cols);
  }
  void run(KernelRun& r) const override {
    column_stats(r.in<float>(0), s_.rows, s_.cols, r.out<float>(0), r.out<float>(1),
                 r.num_outputs() > 2 ? r.out<float>(2) : nullptr, r.scratch(), r.queue());
  }

 private:
  BatchNormShape s_;
};

std::unique_ptr<Kernel> make_batch_norm(const KernelSpec& spec, Refusal& refusal) {
  const bool training = spec.attr_or<bool>("is_training", true);
  if (!accept(spec, refusal, {0, 1, 2})) return nullptr;
  const BatchNormShape s = shape_of(spec.inputs[0].dims, is_nchw(spec));
  auto apply = RegionMachine::compile(batch_norm_apply(s.rows, s.cols, spec.attr<float>("epsilon")), fns(),
                                      spec.threads, refusal.reason);
  if (!apply) return nullptr;
  return std::make_unique<BatchNorm>(spec, std::move(apply), s, training);
}

std::unique_ptr<Kernel> make_batch_norm_grad(const KernelSpec& spec, Refusal& refusal) {
  const bool training = spec.attr_or<bool>("is_training", true);
  if (!accept(spec, refusal, {0, 1, 2, 3, 4})) return nullptr;
  const BatchNormShape s = shape_of(spec.inputs[0].dims, is_nchw(spec));
  const float epsilon = spec.attr<float>("epsilon");
  auto sums =
      RegionMachine::compile(batch_norm_grad_sums(s.rows, s.cols), fns(), spec.threads, refusal.reason);
  auto apply = RegionMachine::compile(training ? batch_norm_grad_apply(s.rows, s.cols, epsilon)
                                               : batch_norm_grad_inference(s.rows, s.cols, epsilon),
                                      fns(), spec.threads, refusal.reason);
  if (!sums || !apply) return nullptr;
  return std::make_unique<BatchNormGrad>(spec, std::move(sums), std::move(apply), s, training);
}

std::unique_ptr<Kernel> make_stats(const KernelSpec& spec, Refusal& refusal) {
  if (!all_float(spec, refusal, {0})) return nullptr;
  return std::make_unique<BatchNormStats>(spec, shape_of(spec.inputs[0].dims, is_nchw(spec)));
}

}  // namespace

void register_batch_norm(KernelRegistry& r) {
  for (const char* op : {"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"})
    r.add({.op = op, .name = "vector", .make = make_batch_norm, .priority = kVectorPriority});
  for (const char* op : {"FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"})
    r.add({.op = op, .name = "vector", .make = make_batch_norm_grad, .priority = kVectorPriority});
  r.add({.op = "_BatchNormStats", .name = "vector", .make = make_stats, .priority = kVectorPriority});
}

}  // namespace sluice::kernels::cpu
