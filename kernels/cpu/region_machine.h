#pragma once
// Runs a loop region (runtime/region.h) tile by tile: a tile is a few KiB of every register, so that chains
// of ops go over memory once and the intermediate values live in L1. Each instruction is one call of a vector
// function over the tile; whole operands are read and written in place in memory, column operands are
// repeated once per run to a tile, row operands as their tile comes by.
//
//   memory   x ─┐  tile of R rows × cols (or one row × T columns)      y ─► memory
//               ▼                                                      ▲
//             [Mul r0 r1]─►slot─►[Add slot r2]─►slot─►[Relu slot]──────┘      r1, r2: columns, in L1 all
//             along
//                                                         └─►[sum over rows] ─► partial of this chunk ─► tree
//
// Work is cut into chunks that depend on the region alone; a reduction adds up inside a chunk, then over
// chunks in order, in double: the same bits at any width. Compiled once, then const, any thread.

#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/vec.h"
#include "runtime/region.h"
#include "runtime/work_queue.h"

namespace sluice::kernels::cpu {

class RegionMachine {
 public:
  /// Null and a reason when the region holds something that this backend has no function for.
  static std::unique_ptr<RegionMachine> compile(const runtime::RegionProgram& program, const VecFns& fns,
                                                int threads, std::string& why);

  /// Bytes a run needs besides its operands, 64-byte aligned; enough for `threads` workers.
  size_t scratch_bytes() const { return scratch_bytes_; }
  /// (input, output) pairs where the output may overwrite the input.
  const std::vector<std::pair<int, int>>& may_share() const { return may_share_; }
  void run(const void* const* inputs, void* const* outputs, void* scratch, runtime::WorkQueue& queue) const;

  /// True when the loop is elementwise over one row: whole and scalar operands, whole results.
  bool flat() const { return flat_; }
  /// Operands of one of several tensors that a flat loop goes over in one run.
  struct Tensor {
    const void* const* inputs;
    void* const* outputs;
    int64_t count;        // elements
    int64_t first_chunk;  // set by run
  };
  /// Over `n` tensors of any sizes, cut into chunks that depend on the sizes alone. They share the scalar
  /// operands, which are the first one's. Only where flat(); `n` > 0.
  void run(Tensor* tensors, int n, void* scratch, runtime::WorkQueue& queue) const;

 private:
  friend class RegionCompiler;
  RegionMachine() = default;

  struct Call {
    TileFn fn;
    int dst, a = -1, b = -1, c = -1;  // registers
    float imm;
  };
  /// A register that column or scalar values are spread from, to the tile buffer at `offset` of the scratch.
  struct Spread {
    int reg;
    size_t offset;
  };
  struct RegInfo {
    runtime::RegionExtent extent = runtime::RegionExtent::kWhole;
    int size = 4;       // bytes an element
    int input = -1;     // operand number
    int output = -1;    // whole output written directly
    int slot = -1;      // per-worker tile buffer
    size_t small = 0;   // shared scratch of column and scalar registers; per-worker offset of row registers
    size_t spread = 0;  // shared (column, scalar) or per-worker (row) tile buffer
    bool needs_spread = false;
    float value = 0;  // _Imm
    bool imm = false;
    runtime::DType dtype = runtime::DType::kFloat;
  };
  struct Reduction {
    int output, reg;
    runtime::RegionExtent extent;
    runtime::RegionReduce kind;
    double scale;
    size_t partial;  // shared scratch: floats [row chunks × cols] or doubles [chunks]
  };
  struct Copy {
    int output, reg;
    runtime::RegionExtent extent;
  };

  void prologue(const void* const* inputs, void* const* outputs, char* shared, void** pointers) const;
  void spread_column(int reg, const void* from, char* shared) const;
  void tile(int64_t row, int64_t rows, int64_t col, int64_t cols, const void* const* inputs,
            void* const* outputs, char* shared, char* own, void** pointers, int64_t row_chunk,
            double* scalar_sums) const;
  void finish(void* const* outputs, char* shared, runtime::WorkQueue& queue) const;

  const VecFns* fns_ = nullptr;
  int64_t rows_ = 0, cols_ = 0;
  int64_t tile_rows_ = 1, tile_cols_ = 0, tile_elements_ = 0;
  int64_t chunk_rows_ = 1, chunk_cols_ = 0, row_chunks_ = 0, col_chunks_ = 0;
  std::vector<RegInfo> regs_;
  std::vector<Call> scalar_calls_, col_calls_, row_calls_, whole_calls_;
  std::vector<Reduction> reductions_;
  std::vector<Copy> copies_;
  std::vector<std::pair<int, int>> may_share_;
  size_t shared_bytes_ = 0, worker_bytes_ = 0, scratch_bytes_ = 0;
  int threads_ = 1;
  bool flat_ = false;
};

/// True when a region may hold the op with operands of this dtype (of the value operands, for Select).
bool region_supports(std::string_view op, runtime::DType dtype);

/// The function for an op, or null. Vector code first, then the scalar loops of region_scalar.cpp.
TileFn find_tile_fn(const VecFns& fns, std::string_view op, runtime::DType operand, runtime::DType result);
/// Loops over kernels/scalar.h for what has no vector code: same semantics, one element at a time.
TileFn find_scalar_fn(std::string_view op, runtime::DType operand, runtime::DType result);

}  // namespace sluice::kernels::cpu
