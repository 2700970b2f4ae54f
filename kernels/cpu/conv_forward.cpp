// Forward convolutions. Filters are packed per run, or once where nothing in the plan can change them.
//
//   x ──────────────┐                              bn(scale, offset, mean, variance)
//   filter ─► pack ─► conv ─► + bias ─► + addend ─► relu ─► y      folded: filter·a, bias = offset − mean·a
//
// "_FusedConv2D": inputs x, filter, then scale, offset, mean, variance (attr fused_batch_norm) or bias (attr
// fused_bias), then the addend (attr fused_add, only with fused_relu); attr fused_relu.
//
// An exact addition and ReLU run over a few images at a time, just after the convolution of these images,
// while their result is in the cache:  for each slice: conv ─► y ─► relu(y + addend).

#include <cmath>
#include <cstring>
#include <mutex>

#include "graph/support/check.h"
#include "kernels/cpu/conv.h"

namespace sluice::kernels::cpu {
namespace {

constexpr int64_t kSliceBytes = 2 << 20;  // of results: what the L2 caches of two cores hold

// Images a slice: the largest divisor of the batch whose results fit, at least one.
int64_t slice_images(const ConvProblem& p) {
  const int64_t image = p.oh * p.ow * p.oc * 4;
  int64_t n = std::min(p.n, std::max<int64_t>(1, kSliceBytes / image));
  while (p.n % n != 0) --n;
  return n;
}

// Filters packed once for plans that change no variable; keyed by where the bytes are and the versions of the
// variables, so an assignment between runs is seen.
class PackedCache {
 public:
  struct Entry {
    std::vector<std::pair<const void*, uint64_t>> key;
    runtime::Buffer packed, bias;
    Entry(size_t packed_bytes, size_t bias_bytes) : packed(packed_bytes), bias(bias_bytes) {}
  };

  /// Usable when every input of `inputs` is a constant or a variable and the plan writes none.
  PackedCache(const KernelSpec& spec, std::vector<int> inputs) : inputs_(std::move(inputs)) {
    usable_ = spec.forward_only;
    for (int i : inputs_) {
      const auto& variable =
          spec.variables.size() > static_cast<size_t>(i) ? spec.variables[static_cast<size_t>(i)] : nullptr;
      const bool constant = spec.constants.size() > static_cast<size_t>(i) &&
                            spec.constants[static_cast<size_t>(i)].has_value();
      usable_ = usable_ && (variable || constant);
      variables_.push_back(variable);
    }
  }
  bool usable() const { return usable_; }

  template <class Fill>
  std::shared_ptr<const Entry> get(const KernelRun& r, size_t packed_bytes, size_t bias_bytes,
                                   Fill&& fill) const {
    std::lock_guard lock(mutex_);
    bool fresh = entry_ != nullptr;
    for (size_t k = 0; fresh && k < inputs_.size(); ++k) fresh = entry_->key[k] == key(r, k);
    if (!fresh) {
      auto made = std::make_shared<Entry>(packed_bytes, bias_bytes);
      for (size_t k = 0; k < inputs_.size(); ++k) made->key.push_back(key(r, k));
      fill(static_cast<float*>(made->packed.data()), static_cast<float*>(made->bias.data()));
      entry_ = std::move(made);
    }
    return entry_;
  }

 private:
  std::pair<const void*, uint64_t> key(const KernelRun& r, size_t k) const {
    return {r.in_data(inputs_[k]), variables_[k] ? variables_[k]->version() : 0};
  }
  std::vector<int> inputs_;
  std::vector<std::shared_ptr<runtime::Variable>> variables_;
  bool usable_ = false;
  mutable std::mutex mutex_;                    // guards entry_
  mutable std::shared_ptr<const Entry> entry_;  // shared: a run may hold the former one
};

class ConvForward final : public Kernel {
 public:
  ConvForward(const KernelSpec& spec, std::unique_ptr<Primitive> primitive, const ConvProblem& problem,
              PostOps post, PostOps epilogue, bool batch_norm)
      : primitive_(std::move(primitive)),
        problem_(problem),
        view_(view_of(problem)),
        post_(post),
        epilogue_(epilogue),
        batch_norm_(batch_norm),
        cache_(spec, folded_inputs(post, batch_norm)) {
    const Layout image = image_layout(is_nchw(spec));
    input_layouts.resize(spec.inputs.size());
    input_layouts[0] = image;
    output_layouts = {image};
    addend_ = static_cast<int>(spec.inputs.size()) - 1;
    if (post_.add || epilogue_.add) input_layouts.back() = image;
    if (post_.add) may_share = {{addend_, 0}};
    slices_ = spec.outputs[0].dims[0] / problem.n;
    if (batch_norm_) {
      epsilon_ = spec.attr<float>("epsilon");
    }
    packed_bytes_ = align64(primitive_->weights().bytes);
    bias_bytes_ = align64(static_cast<size_t>(problem.oc) * 4);
    scratch_bytes = align64(primitive_->scratch_bytes()) + bias_bytes_;  // scale of a folded batch norm
    if (!cache_.usable()) scratch_bytes += packed_bytes_ + bias_bytes_;
  }

  void run(KernelRun& r) const override {
    char* scratch = static_cast<char*>(r.scratch());
    char* library_scratch = scratch;
    float* scale = reinterpret_cast<float*>(scratch + align64(primitive_->scratch_bytes()));
    const float* packed;
    const float* bias = nullptr;
    std::shared_ptr<const PackedCache::Entry> held;
    auto fill = [&](float* to, float* folded_bias) { pack(r, to, folded_bias, scale); };
    if (cache_.usable()) {
      held = cache_.get(r, packed_bytes_, bias_bytes_, fill);
      packed = static_cast<const float*>(held->packed.data());
      bias = static_cast<const float*>(held->bias.data());
    } else {
      float* to = reinterpret_cast<float*>(reinterpret_cast<char*>(scale) + bias_bytes_);
      float* folded_bias = reinterpret_cast<float*>(reinterpret_cast<char*>(to) + packed_bytes_);
      fill(to, folded_bias);
      packed = to;
      bias = folded_bias;
    }
    if (post_.bias && !batch_norm_) bias = r.in<float>(2);
    if (post_.add && r.in_data(addend_) != r.out_data(0)) {
      const float* from = r.in<float>(addend_);
      float* to = r.out<float>(0);
      r.queue().parallel_for(r.out_spec(0).elements(), 1 << 16, [&](int64_t begin, int64_t end) {
        std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin) * 4);
      });
    }
    const int64_t in_step = problem_.n * problem_.ih * problem_.iw * problem_.ic;
    const int64_t out_step = problem_.n * problem_.oh * problem_.ow * problem_.oc;
    for (int64_t s = 0; s < slices_; ++s) {
      const float* x = r.in<float>(0) + s * in_step;
      float* y = r.out<float>(0) + s * out_step;
      if (post_.bias)
        primitive_->run({{Arg::kSrc, x}, {Arg::kWeights, packed}, {Arg::kBias, bias}, {Arg::kDst, y}},
                        library_scratch);
      else
        primitive_->run({{Arg::kSrc, x}, {Arg::kWeights, packed}, {Arg::kDst, y}}, library_scratch);
      if (epilogue_.relu)
        finish(r, y, epilogue_.add ? r.in<float>(addend_) + s * out_step : nullptr, out_step);
    }
  }

 private:
  static std::vector<int> folded_inputs(PostOps, bool batch_norm) {
    return batch_norm ? std::vector<int>{1, 2, 3, 4, 5} : std::vector<int>{1};
  }

  // Addition and ReLU over a slice that is still in the cache; NaN stays NaN.
  void finish(KernelRun& r, float* y, const float* addend, int64_t count) const {
    const VecFns& f = fns();
    constexpr int64_t kTile = 2048;  // both passes over it meet L1
    r.queue().parallel_for((count + kTile - 1) / kTile, 8, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const int64_t at = k * kTile, n = std::min(kTile, count - at);
        if (addend) f.f32_Add(y + at, y + at, addend + at, nullptr, n, 0);
        f.f32_Relu(y + at, y + at, nullptr, nullptr, n, 0);
      }
    });
  }

  void pack(KernelRun& r, float* to, float* folded_bias, float* scale) const {
    if (batch_norm_) {
      const float *gamma = r.in<float>(2), *beta = r.in<float>(3), *mean = r.in<float>(4),
                  *variance = r.in<float>(5);
      for (int64_t c = 0; c < problem_.oc; ++c) {
        scale[c] = gamma[c] / std::sqrt(variance[c] + epsilon_);
        folded_bias[c] = beta[c] - mean[c] * scale[c];
      }
    }
    pack_filter(primitive_->weights(), to, r.in<float>(1), view_, batch_norm_ ? scale : nullptr, fns(),
                r.queue());
  }

  std::unique_ptr<Primitive> primitive_;
  ConvProblem problem_;
  FilterView view_;
  PostOps post_, epilogue_;
  int64_t slices_ = 1;
  bool batch_norm_;
  float epsilon_ = 0;
  int addend_ = -1;
  size_t packed_bytes_ = 0, bias_bytes_ = 0;
  PackedCache cache_;
};

}  // namespace

KernelMake conv_forward(ConvKind kind, bool fused) {
  return [kind, fused](const KernelSpec& spec, Refusal& refusal) -> std::unique_ptr<Kernel> {
    ConvProblem p;
    if (!all_float(spec, refusal, {0, 1}) ||
        !conv_problem(spec, kind, spec.inputs[0].dims, spec.inputs[1].dims, spec.outputs[0].dims, p,
                      refusal.reason))
      return nullptr;
    PostOps post, epilogue;
    const bool batch_norm = fused && spec.attr_or<bool>("fused_batch_norm", false);
    if (fused) {
      post.bias = batch_norm || spec.attr_or<bool>("fused_bias", false);
      // The library's ReLU turns NaN into 0. Where that is not allowed, addition and ReLU are ours, slice by
      // slice.
      PostOps& last = spec.relaxed_nan ? post : epilogue;
      last.add = spec.attr_or<bool>("fused_add", false);
      last.relu = spec.attr_or<bool>("fused_relu", false);
      if (epilogue.relu) p.n = slice_images(p);
    }
    auto primitive = make_convolution(p, ConvPass::kForward, post, spec.threads, refusal.reason);
    if (!packable(primitive, refusal)) return nullptr;
    return std::make_unique<ConvForward>(spec, std::move(primitive), p, post, epilogue, batch_norm);
  };
}

}  // namespace sluice::kernels::cpu
