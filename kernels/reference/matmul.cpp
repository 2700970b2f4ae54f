// MatMul and BatchMatMul. Products are summed in double whatever the element type, so the reference is as
// good as its rounding; integers wrap.

#include "kernels/reference/common.h"
#include "kernels/reference/register.h"
#include "kernels/scalar.h"

namespace sluice::kernels {
namespace {

struct Matrix {  // element strides of a possibly transposed operand
  int64_t row, col;
};

// c[m,n] = a[m,k] · b[k,n] for rows [begin, end).
template <class T>
void multiply_rows(const T* a, Matrix sa, const T* b, Matrix sb, T* c, int64_t n, int64_t k, int64_t begin,
                   int64_t end) {
  using Acc = std::conditional_t<std::is_same_v<T, float>, double, T>;
  constexpr int64_t kBlock = 64;
  for (int64_t i = begin; i < end; ++i)
    for (int64_t j0 = 0; j0 < n; j0 += kBlock) {
      const int64_t w = std::min(kBlock, n - j0);
      Acc acc[kBlock] = {};
      if (sb.col == 1) {
        for (int64_t p = 0; p < k; ++p) {
          const Acc x = static_cast<Acc>(a[i * sa.row + p * sa.col]);
          const T* row = b + p * sb.row + j0;
          for (int64_t j = 0; j < w; ++j)
            acc[j] = scalar::wrap_add(acc[j], scalar::wrap_mul(x, static_cast<Acc>(row[j])));
        }
      } else {
        for (int64_t j = 0; j < w; ++j) {
          const T* col = b + (j0 + j) * sb.col;
          Acc s = 0;
          for (int64_t p = 0; p < k; ++p)
            s = scalar::wrap_add(s, scalar::wrap_mul(static_cast<Acc>(a[i * sa.row + p * sa.col]),
                                                     static_cast<Acc>(col[p * sb.row])));
          acc[j] = s;
        }
      }
      for (int64_t j = 0; j < w; ++j) c[i * n + j0 + j] = static_cast<T>(acc[j]);
    }
}

struct Transposes {
  bool a, b;
};

void batch_multiply(KernelRun& r, Transposes t) {
  const Dims &a = r.in_dims(0), &b = r.in_dims(1), &c = r.out_dims(0);
  const size_t ra = a.size(), rb = b.size(), rc = c.size();
  SLUICE_REQUIRE(ra >= 2 && rb >= 2, Code::kInvalidArgument, "In[0] and In[1] must be matrices, got shapes ",
                 dims_string(a), " and ", dims_string(b));
  const int64_t m = t.a ? a[ra - 1] : a[ra - 2], k = t.a ? a[ra - 2] : a[ra - 1];
  const int64_t kb = t.b ? b[rb - 1] : b[rb - 2], n = t.b ? b[rb - 2] : b[rb - 1];
  SLUICE_REQUIRE(k == kb, Code::kInvalidArgument, "Matrix size-incompatible: In[0]: ", dims_string(a),
                 ", In[1]: ", dims_string(b));
  const Matrix sa = t.a ? Matrix{1, m} : Matrix{k, 1}, sb = t.b ? Matrix{1, k} : Matrix{n, 1};
  const Index stride_a = strides_of(a), stride_b = strides_of(b);
  int64_t batches = 1;
  for (size_t d = 0; d + 2 < rc; ++d) batches *= c[d];
  for_common(r.out_dtype(0), [&]<class T>() {
    for (int64_t batch = 0; batch < batches; ++batch) {
      int64_t rest = batch, at_a = 0, at_b = 0;
      for (size_t d = rc - 2; d-- > 0;) {
        const int64_t i = rest % c[d];
        rest /= c[d];
        auto move = [&](const Dims& dims, const Index& s, int64_t& at) {
          if (d + dims.size() < rc) return;
          const size_t q = d + dims.size() - rc;
          if (dims[q] != 1) at += i * s[q];
        };
        move(a, stride_a, at_a);
        move(b, stride_b, at_b);
      }
      const int64_t grain = std::max<int64_t>(1, 65536 / std::max<int64_t>(1, n * k));
      r.queue().parallel_for(m, grain, [&](int64_t begin, int64_t end) {
        multiply_rows(r.in<T>(0) + at_a, sa, r.in<T>(1) + at_b, sb, r.out<T>(0) + batch * m * n, n, k, begin,
                      end);
      });
    }
  });
}

BoundFn mat_mul(const KernelSpec& spec) {
  const Transposes t{spec.attr_or<bool>("transpose_a", false), spec.attr_or<bool>("transpose_b", false)};
  return [t](KernelRun& r) { batch_multiply(r, t); };
}

BoundFn batch_mat_mul(const KernelSpec& spec) {
  const Transposes t{spec.attr_or<bool>("adj_x", false), spec.attr_or<bool>("adj_y", false)};
  return [t](KernelRun& r) { batch_multiply(r, t); };
}

}  // namespace

void register_matmul(KernelRegistry& r) {
  add_bound(r, "MatMul", mat_mul);
  add_bound(r, "BatchMatMul", batch_mat_mul);
  add_bound(r, "BatchMatMulV2", batch_mat_mul);
}

}  // namespace sluice::kernels
