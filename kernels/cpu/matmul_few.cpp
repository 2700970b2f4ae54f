// Matrix products with few rows or few columns: a dense layer on a small batch and its data gradient. They
// wait for the large operand, not for arithmetic, so their sums can be made with care (vec_matmul.h); the
// library's run through a thousand terms at a time, which shows where few results hide nothing in a norm.
//
//   few rows:     c  = a · b       small = a (m rows), large = b
//   few columns:  cᵀ = bᵀ · aᵀ     small = bᵀ,         large = aᵀ
//
// Work is cut by the problem's size alone (blocks of columns, pieces of terms), never by the number of
// threads.

#include <algorithm>

#include "kernels/cpu/matmul.h"
#include "kernels/cpu/register.h"

namespace sluice::kernels::cpu {
namespace {

constexpr int64_t kMinTerms = 256;  // shorter sums are as good in the library
// Rows (or columns) of which the large operand's memory, not arithmetic, sets the pace. Up to kMatMulFewRows
// are taken where results are so few that their errors do not average out.
constexpr int64_t kFew = 8, kFewResults = 1024;
constexpr int64_t kPieceTerms = 512;     // at least, and pieces are multiples of it
constexpr int64_t kTasks = 16;           // wanted; pieces are made while there are fewer
constexpr int64_t kGrain = 1 << 16;      // multiplications worth waking a thread
constexpr int64_t kAccumulators = 4096;  // of one task: rows × columns

struct Operand {
  int64_t row = 0, term = 0, batch = 0;  // strides; a row of the large operand is a column of the product
};

class FewRows final : public Kernel {
 public:
  explicit FewRows(const MatMulProblem& p) : batch_(p.batch), terms_(p.k) {
    const Operand a{p.transpose_a ? 1 : p.k, p.transpose_a ? p.m : 1, p.shared_a ? 0 : p.m * p.k};
    const Operand b{p.transpose_b ? p.k : 1, p.transpose_b ? 1 : p.n, p.shared_b ? 0 : p.n * p.k};
    small_is_a_ = p.m <= p.n;
    small_ = small_is_a_ ? a : b;
    large_ = small_is_a_ ? b : a;
    rows_ = small_is_a_ ? p.m : p.n;
    cols_ = small_is_a_ ? p.n : p.m;
    out_row_ = small_is_a_ ? p.n : 1;
    out_col_ = small_is_a_ ? 1 : p.n;
    if (cols_ == 1 && large_.term == 1) large_.row = terms_;  // one column is a row, too
    // Long runs of memory where a term's columns lie together; rows are long by themselves.
    block_ = std::min({large_.row == 1 ? int64_t{256} : int64_t{64}, cols_, kAccumulators / rows_});
    auto tasks = [&] { return batch_ * ((cols_ + block_ - 1) / block_); };
    while (tasks() < kTasks && block_ > 64 && block_ * rows_ * terms_ > 2 * kGrain)
      block_ = (block_ / 2 + 63) / 64 * 64;
    blocks_ = (cols_ + block_ - 1) / block_;
    pieces_ = std::clamp<int64_t>(terms_ / kPieceTerms, 1, (kTasks + tasks() - 1) / tasks());
    piece_ = ((terms_ + pieces_ - 1) / pieces_ + kPieceTerms - 1) / kPieceTerms * kPieceTerms;
    pieces_ = (terms_ + piece_ - 1) / piece_;
    if (pieces_ > 1) scratch_bytes = static_cast<size_t>(pieces_ * batch_ * rows_ * cols_) * sizeof(double);
  }

  void run(KernelRun& r) const override {
    const float *small = r.in<float>(small_is_a_ ? 0 : 1), *large = r.in<float>(small_is_a_ ? 1 : 0);
    float* out = r.out<float>(0);
    double* parts = static_cast<double*>(r.scratch());
    const VecFns& f = fns();
    const int64_t work = rows_ * block_ * std::min(terms_, piece_);
    r.queue().parallel_for(
        pieces_ * batch_ * blocks_, std::max<int64_t>(1, kGrain / work), [&](int64_t begin, int64_t end) {
          double acc[kAccumulators];
          for (int64_t t = begin; t < end; ++t) {
            const int64_t j = t % blocks_ * block_, b = t / blocks_ % batch_, piece = t / blocks_ / batch_;
            const int64_t p = piece * piece_, cols = std::min(block_, cols_ - j);
            std::fill_n(acc, rows_ * cols, 0.0);
            f.mat_mul_few(acc, small + b * small_.batch + p * small_.term, small_.row, small_.term, rows_,
                          large + b * large_.batch + p * large_.term + j * large_.row, large_.term,
                          large_.row, std::min(piece_, terms_ - p), cols);
            for (int64_t i = 0; i < rows_; ++i)
              for (int64_t k = 0; k < cols; ++k) {
                const int64_t at = b * rows_ * cols_ + i * out_row_ + (j + k) * out_col_;
                if (pieces_ > 1)
                  parts[piece * batch_ * rows_ * cols_ + at] = acc[i * cols + k];
                else
                  out[at] = static_cast<float>(acc[i * cols + k]);
              }
          }
        });
    if (pieces_ == 1) return;
    const int64_t results = batch_ * rows_ * cols_;
    r.queue().parallel_for(results, kGrain / pieces_, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        double sum = parts[i];
        for (int64_t piece = 1; piece < pieces_; ++piece) sum += parts[piece * results + i];
        out[i] = static_cast<float>(sum);
      }
    });
  }

 private:
  int64_t batch_, terms_, rows_, cols_, out_row_, out_col_;
  bool small_is_a_;
  Operand small_, large_;
  int64_t block_, blocks_;  // columns of one task; blocks of one product
  int64_t piece_, pieces_;  // terms of one task; pieces of one sum, added in their order
};

std::unique_ptr<Kernel> make_few(const KernelSpec& spec, Refusal& refusal) {
  MatMulProblem p;
  if (!matmul_problem(spec, p, refusal)) return nullptr;
  const int64_t few = std::min(p.m, p.n);
  if (p.k < kMinTerms || (few > kFew && (few > kMatMulFewRows || p.m * p.n > kFewResults))) {
    refusal.reason = cat("more than ", kFew, " rows and columns, or fewer than ", kMinTerms,
                         " terms: the library is faster, and its errors average out");
    return nullptr;
  }
  return std::make_unique<FewRows>(p);
}

}  // namespace

bool matmul_problem(const KernelSpec& spec, MatMulProblem& p, Refusal& refusal) {
  if (!all_float(spec, refusal, {0, 1})) return false;
  const Dims &a = spec.inputs[0].dims, &b = spec.inputs[1].dims, &c = spec.outputs[0].dims;
  const bool batched = spec.find_attr("adj_x") != nullptr;
  p.transpose_a = spec.attr_or<bool>(batched ? "adj_x" : "transpose_a", false);
  p.transpose_b = spec.attr_or<bool>(batched ? "adj_y" : "transpose_b", false);
  auto batch_of = [](const Dims& d) { return graph::num_elements(Dims(d.begin(), d.end() - 2)); };
  p.batch = batch_of(c);
  p.m = c[c.size() - 2], p.n = c.back(), p.k = p.transpose_a ? a[a.size() - 2] : a.back();
  if (p.batch == 0 || p.m == 0 || p.n == 0 || p.k == 0) {
    refusal.reason = "an empty operand";
    return false;
  }
  p.shared_a = batch_of(a) == 1 && p.batch > 1;
  p.shared_b = batch_of(b) == 1 && p.batch > 1;
  if ((!p.shared_a && batch_of(a) != p.batch) || (!p.shared_b && batch_of(b) != p.batch)) {
    refusal.reason = "batch dims that broadcast in part";
    return false;
  }
  return true;
}

void register_matmul_few(KernelRegistry& r) {
  for (const char* op : {"MatMul", "BatchMatMul", "BatchMatMulV2"})
    r.add({.op = op, .name = "few_rows", .make = make_few, .priority = kLibraryPriority + 1});
}

}  // namespace sluice::kernels::cpu
