#include "kernels/reference/common.h"

#include <cstring>

namespace sluice::kernels {
namespace {

class BoundKernel : public runtime::Kernel {
 public:
  explicit BoundKernel(BoundFn fn) : fn_(std::move(fn)) {}
  void run(KernelRun& r) const override { fn_(r); }

 private:
  BoundFn fn_;
};

}  // namespace

void add(KernelRegistry& r, const char* op, runtime::KernelFn fn, Share share) {
  r.add({.op = op, .name = "reference", .make = runtime::plain(fn, std::move(share)), .reference = true});
}

void add_bound(KernelRegistry& r, const char* op, BindFn bind, Share share) {
  auto make = [bind, share = std::move(share)](const KernelSpec& spec,
                                               runtime::Refusal&) -> std::unique_ptr<runtime::Kernel> {
    auto kernel = bound_kernel(bind(spec));
    kernel->may_share = share;
    return kernel;
  };
  r.add({.op = op, .name = "reference", .make = std::move(make), .reference = true});
}

std::unique_ptr<runtime::Kernel> bound_kernel(BoundFn fn) {
  return std::make_unique<BoundKernel>(std::move(fn));
}

void unsupported_dtype(DType t) {
  throw_error(Code::kUnimplemented, cat("There is no kernel for elements of type ", t,
                                        "; cast the value to a supported type first"));
}

void* result(const KernelRun& r, int i, Dims dims) {
  if (!r.out_is_array(i)) {
    SLUICE_REQUIRE(graph::num_elements(dims) == out_count(r, i), Code::kInvalidArgument,
                   "The result has shape ", dims_string(dims), " where ", dims_string(r.out_dims(i)),
                   " was planned");
    return r.out_data(i);
  }
  r.out_array(i) = Array(graph::base_dtype(r.out_dtype(i)), std::move(dims));
  return r.out_array(i).data();
}

void copy_value(const KernelRun& r, int in, int out) {
  const DType t = graph::base_dtype(r.in_dtype(in));
  if (t == DType::kString) {
    r.out_array(out) = r.in_array(in).reshaped(r.in_dims(in));
    return;
  }
  const size_t bytes = r.in_spec(in).bytes();
  void* to = r.out_is_array(out) ? result(r, out, r.in_dims(in)) : r.out_data(out);
  if (bytes > 0 && to != r.in_data(in)) std::memcpy(to, r.in_data(in), bytes);
}

int64_t int_at(const KernelRun& r, int input, int64_t k) {
  switch (graph::base_dtype(r.in_dtype(input))) {
    case DType::kInt32:
      return r.in<int32_t>(input)[k];
    case DType::kInt64:
      return r.in<int64_t>(input)[k];
    case DType::kInt16:
      return r.in<int16_t>(input)[k];
    case DType::kInt8:
      return r.in<int8_t>(input)[k];
    case DType::kUint8:
      return r.in<uint8_t>(input)[k];
    default:
      unsupported_dtype(r.in_dtype(input));
  }
}

double real_at(const KernelRun& r, int input, int64_t k) {
  switch (graph::base_dtype(r.in_dtype(input))) {
    case DType::kFloat:
      return r.in<float>(input)[k];
    case DType::kDouble:
      return r.in<double>(input)[k];
    default:
      unsupported_dtype(r.in_dtype(input));
  }
}

int resolve_axis(int64_t axis, int rank, const char* what) {
  SLUICE_REQUIRE(axis >= -rank && axis < rank, Code::kInvalidArgument, "Expected ", what, " in the range [",
                 -rank, ", ", rank, "), but got ", axis);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

void check_rank(size_t rank) {
  SLUICE_REQUIRE(rank <= kMaxRank, Code::kUnimplemented, "Values of more than ", kMaxRank,
                 " dimensions are not supported, got rank ", rank);
}

Index strides_of(std::span<const int64_t> dims) {
  check_rank(dims.size());
  Index s{};
  int64_t n = 1;
  for (size_t d = dims.size(); d-- > 0;) {
    s[d] = n;
    n *= dims[d];
  }
  return s;
}

}  // namespace sluice::kernels
