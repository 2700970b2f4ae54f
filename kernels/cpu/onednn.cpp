#include "kernels/cpu/onednn.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <dnnl.hpp>
#include <mutex>

#include "graph/support/check.h"
#include "runtime/cpu_features.h"

namespace sluice::kernels::cpu {
namespace {

using dnnl::memory;
using runtime::Isa;

// The library picks code by CPUID; SLUICE_MAX_ISA must bind it too, before its first primitive.
const dnnl::engine& engine() {
  static const dnnl::engine* the_engine = [] {
    if (runtime::cpu_isa() < runtime::hardware_isa())
      dnnl::set_max_cpu_isa(runtime::cpu_isa() == Isa::kAvx2 ? dnnl::cpu_isa::avx2 : dnnl::cpu_isa::sse41);
    return new dnnl::engine(dnnl::engine::kind::cpu,
                            0);  // lives as long as the process: primitives refer to it
  }();
  return *the_engine;
}

// Width of the calling thread's team while the library works: it cuts work and scratch by it.
class TeamWidth {
 public:
  explicit TeamWidth(int threads) : former_(omp_get_max_threads()) {
    if (former_ != threads) omp_set_num_threads(threads);
    threads_ = threads;
  }
  ~TeamWidth() {
    if (former_ != threads_) omp_set_num_threads(former_);
  }
  TeamWidth(const TeamWidth&) = delete;
  TeamWidth& operator=(const TeamWidth&) = delete;

 private:
  int former_, threads_;
};

int dnnl_arg(Arg arg) {
  switch (arg) {
    case Arg::kSrc:
      return DNNL_ARG_SRC;
    case Arg::kWeights:
      return DNNL_ARG_WEIGHTS;
    case Arg::kBias:
      return DNNL_ARG_BIAS;
    case Arg::kDst:
      return DNNL_ARG_DST;
    case Arg::kDiffSrc:
      return DNNL_ARG_DIFF_SRC;
    case Arg::kDiffWeights:
      return DNNL_ARG_DIFF_WEIGHTS;
    case Arg::kDiffDst:
      return DNNL_ARG_DIFF_DST;
  }
  return 0;
}

MemDesc describe(const memory::desc& md) {
  MemDesc d;
  const dnnl_memory_desc_t& c = md.data;
  const dnnl_blocking_desc_t& b = c.format_desc.blocking;
  SLUICE_CHECK(c.format_kind == dnnl_blocked && c.ndims <= 6 && b.inner_nblks <= 4 && c.extra.flags == 0,
               "the library chose a format outside the blocked family");
  d.ndims = c.ndims;
  for (int i = 0; i < c.ndims; ++i) {
    d.dims[i] = c.dims[i];
    d.padded[i] = c.padded_dims[i];
    d.strides[i] = b.strides[i];
  }
  d.num_blocks = b.inner_nblks;
  for (int i = 0; i < d.num_blocks; ++i) {
    d.block_dim[i] = static_cast<int>(b.inner_idxs[i]);
    d.block_size[i] = b.inner_blks[i];
  }
  d.bytes = md.get_size();
  return d;
}

}  // namespace

// Memory objects carry the data pointer, so each run takes a whole set for itself and returns it.
struct ArgSet {
  std::vector<dnnl_exec_arg_t> args;
  std::vector<dnnl::memory> owners;
  dnnl::stream stream;
};

struct Primitive::Impl {
  struct Operand {
    Arg arg;
    memory::desc desc;
  };
  dnnl::primitive primitive;
  std::vector<Operand> operands;
  memory::desc scratch;
  MemDesc weights;
  std::string implementation;
  int threads = 1;
  mutable std::mutex mutex;  // guards idle
  mutable std::vector<std::unique_ptr<ArgSet>> idle;

  std::unique_ptr<ArgSet> take() const {
    {
      std::lock_guard lock(mutex);
      if (!idle.empty()) {
        std::unique_ptr<ArgSet> set = std::move(idle.back());
        idle.pop_back();
        return set;
      }
    }
    auto set = std::make_unique<ArgSet>();
    set->stream = dnnl::stream(engine());
    for (const Operand& o : operands) {
      set->owners.emplace_back(o.desc, engine(), static_cast<void*>(DNNL_MEMORY_NONE));
      set->args.push_back({dnnl_arg(o.arg), set->owners.back().get()});
    }
    set->owners.emplace_back(scratch, engine(), static_cast<void*>(DNNL_MEMORY_NONE));
    set->args.push_back({DNNL_ARG_SCRATCHPAD, set->owners.back().get()});
    return set;
  }
  void give(std::unique_ptr<ArgSet> set) const {
    std::lock_guard lock(mutex);
    idle.push_back(std::move(set));
  }
};

Primitive::Primitive(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {
  impl_->give(impl_->take());  // the first run allocates nothing
}
Primitive::~Primitive() = default;
size_t Primitive::scratch_bytes() const { return impl_->scratch.get_size(); }
const MemDesc& Primitive::weights() const { return impl_->weights; }
const std::string& Primitive::implementation() const { return impl_->implementation; }

void Primitive::run(std::initializer_list<Binding> bindings, void* scratch) const {
  std::unique_ptr<ArgSet> set = impl_->take();
  SLUICE_CHECK(bindings.size() == impl_->operands.size(), impl_->implementation, " takes ",
               impl_->operands.size(), " operands, got ", bindings.size());
  dnnl_status_t status = dnnl_success;
  for (const Binding& b : bindings) {
    size_t i = 0;
    while (i < impl_->operands.size() && impl_->operands[i].arg != b.arg) ++i;
    SLUICE_CHECK(i < impl_->operands.size(), impl_->implementation, " has no such operand");
    status = dnnl_memory_set_data_handle(set->args[i].memory, const_cast<void*>(b.data));
    SLUICE_CHECK(status == dnnl_success, "dnnl_memory_set_data_handle: ", static_cast<int>(status));
  }
  if (scratch_bytes() > 0) dnnl_memory_set_data_handle(set->args.back().memory, scratch);
  {
    TeamWidth width(impl_->threads);
    status = dnnl_primitive_execute(impl_->primitive.get(), set->stream.get(),
                                    static_cast<int>(set->args.size()), set->args.data());
  }
  impl_->give(std::move(set));
  SLUICE_CHECK(status == dnnl_success, "dnnl_primitive_execute (", impl_->implementation,
               "): ", static_cast<int>(status));
}

namespace {

// A primitive from its descriptor, or null and a reason; `reference_ok` false refuses the library's own
// loops.
template <class Made, class PrimitiveDesc>
std::unique_ptr<Primitive> finish(const PrimitiveDesc& pd, std::vector<Primitive::Impl::Operand> operands,
                                  int threads, std::string& why, const memory::desc* weights = nullptr) {
  auto impl = std::make_unique<Primitive::Impl>();
  impl->implementation = pd.impl_info_str();
  if (impl->implementation.find("ref") != std::string::npos) {
    why = cat("the library has only '", impl->implementation, "' for it");
    return nullptr;
  }
  impl->operands = std::move(operands);
  impl->scratch = pd.scratchpad_desc();
  impl->threads = threads;
  if (weights) impl->weights = describe(*weights);
  impl->primitive = Made(pd);
  return std::make_unique<Primitive>(std::move(impl));
}

memory::desc channels_last_desc(int64_t n, int64_t c, int64_t h, int64_t w) {
  return memory::desc({n, c, h, w}, memory::data_type::f32, memory::format_tag::nhwc);
}

}  // namespace

std::unique_ptr<Primitive> make_convolution(const ConvProblem& p, ConvPass pass, PostOps post, int threads,
                                            std::string& why) {
  using dnnl::algorithm;
  TeamWidth width(threads);
  try {
    const auto f32 = memory::data_type::f32;
    memory::desc src = channels_last_desc(p.n, p.ic, p.ih, p.iw);
    memory::desc dst = channels_last_desc(p.n, p.oc, p.oh, p.ow);
    memory::dims weight_dims = p.groups > 1
                                   ? memory::dims{p.groups, p.oc / p.groups, p.ic / p.groups, p.kh, p.kw}
                                   : memory::dims{p.oc, p.ic, p.kh, p.kw};
    memory::desc weights(weight_dims, f32, memory::format_tag::any);
    memory::dims strides{p.stride_h, p.stride_w}, dilates{p.dilation_h - 1, p.dilation_w - 1};
    memory::dims before{p.pad_top, p.pad_left}, after{p.pad_bottom, p.pad_right};
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const auto alg = algorithm::convolution_direct;
    using Forward = dnnl::convolution_forward;
    auto forward_desc = [&](bool bias) {
      memory::desc b({p.oc}, f32, memory::format_tag::x);
      return bias ? Forward::desc(dnnl::prop_kind::forward_training, alg, src, weights, b, dst, strides,
                                  dilates, before, after)
                  : Forward::desc(dnnl::prop_kind::forward_training, alg, src, weights, dst, strides, dilates,
                                  before, after);
    };
    if (pass == ConvPass::kForward) {
      dnnl::post_ops ops;
      if (post.add) ops.append_sum(1.f);
      if (post.relu) ops.append_eltwise(1.f, algorithm::eltwise_relu, 0.f, 0.f);
      attr.set_post_ops(ops);
      Forward::primitive_desc pd(forward_desc(post.bias), attr, engine());
      memory::desc w = pd.weights_desc();
      std::vector<Primitive::Impl::Operand> operands{{Arg::kSrc, src}, {Arg::kWeights, w}, {Arg::kDst, dst}};
      if (post.bias) operands.push_back({Arg::kBias, pd.bias_desc()});
      return finish<Forward>(pd, std::move(operands), threads, why, &w);
    }
    Forward::primitive_desc hint(forward_desc(false), attr, engine());
    if (pass == ConvPass::kBackwardInput) {
      using Data = dnnl::convolution_backward_data;
      Data::primitive_desc pd(Data::desc(alg, src, weights, dst, strides, dilates, before, after), attr,
                              engine(), hint);
      memory::desc w = pd.weights_desc();
      return finish<Data>(pd, {{Arg::kDiffDst, dst}, {Arg::kWeights, w}, {Arg::kDiffSrc, src}}, threads, why,
                          &w);
    }
    using Filter = dnnl::convolution_backward_weights;
    Filter::primitive_desc pd(Filter::desc(alg, src, weights, dst, strides, dilates, before, after), attr,
                              engine(), hint);
    memory::desc w = pd.diff_weights_desc();
    return finish<Filter>(pd, {{Arg::kSrc, src}, {Arg::kDiffDst, dst}, {Arg::kDiffWeights, w}}, threads, why,
                          &w);
  } catch (const dnnl::error& e) {
    why = cat("the library refuses it: ", e.what());
    return nullptr;
  }
}

std::unique_ptr<Primitive> make_matmul(const MatMulProblem& p, bool bias, int threads, std::string& why) {
  TeamWidth width(threads);
  try {
    const auto f32 = memory::data_type::f32;
    auto matrix = [&](int64_t rows, int64_t cols, bool transposed, bool shared) {
      return memory::desc(
          {shared ? 1 : p.batch, rows, cols}, f32,
          transposed ? memory::dims{rows * cols, 1, rows} : memory::dims{rows * cols, cols, 1});
    };
    // Plain rank 2 where there is no batch: the library has more code for it.
    auto flat = [&](int64_t rows, int64_t cols, bool transposed) {
      return memory::desc({rows, cols}, f32, transposed ? memory::dims{1, rows} : memory::dims{cols, 1});
    };
    bool rank2 = p.batch == 1;
    memory::desc a = rank2 ? flat(p.m, p.k, p.transpose_a) : matrix(p.m, p.k, p.transpose_a, p.shared_a);
    memory::desc b = rank2 ? flat(p.k, p.n, p.transpose_b) : matrix(p.k, p.n, p.transpose_b, p.shared_b);
    memory::desc c = rank2 ? flat(p.m, p.n, false) : matrix(p.m, p.n, false, false);
    memory::desc bias_desc = rank2 ? memory::desc({1, p.n}, f32, memory::dims{p.n, 1})
                                   : memory::desc({1, 1, p.n}, f32, memory::dims{p.n, p.n, 1});
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    using dnnl::matmul;
    matmul::desc desc = bias ? matmul::desc(a, b, bias_desc, c) : matmul::desc(a, b, c);
    matmul::primitive_desc pd(desc, attr, engine());
    std::vector<Primitive::Impl::Operand> operands{{Arg::kSrc, a}, {Arg::kWeights, b}, {Arg::kDst, c}};
    if (bias) operands.push_back({Arg::kBias, bias_desc});
    return finish<matmul>(pd, std::move(operands), threads, why);
  } catch (const dnnl::error& e) {
    why = cat("the library refuses it: ", e.what());
    return nullptr;
  }
}

std::unique_ptr<Primitive> make_lrn(int64_t n, int64_t h, int64_t w, int64_t c, int size, float alpha,
                                    float beta, float k, int threads, std::string& why) {
  TeamWidth width(threads);
  try {
    memory::desc data = channels_last_desc(n, c, h, w);
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    using Lrn = dnnl::lrn_forward;
    Lrn::desc desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::lrn_across_channels, data, size,
                   alpha, beta, k);
    Lrn::primitive_desc pd(desc, attr, engine());
    return finish<Lrn>(pd, {{Arg::kSrc, data}, {Arg::kDst, data}}, threads, why);
  } catch (const dnnl::error& e) {
    why = cat("the library refuses it: ", e.what());
    return nullptr;
  }
}

}  // namespace sluice::kernels::cpu
