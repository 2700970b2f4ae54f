#include "kernels/cpu/region_machine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "graph/support/check.h"

namespace sluice::kernels::cpu {

using runtime::DType;
using runtime::RegionExtent;
using runtime::RegionInst;
using runtime::RegionProgram;
using runtime::RegionReduce;

namespace {

constexpr int kMaxRegisters = 256;
constexpr int64_t kTileBudget = 24 * 1024;          // bytes of all slots of a worker: most of an L1 of 32 KiB
constexpr int64_t kMaxTile = 1024, kMinTile = 128;  // elements
constexpr int64_t kChunk = 32 * 1024;  // elements: big enough to amortise a hand-off, small enough to balance
constexpr int64_t kMaxChunkRows = 256;  // bounds the float additions in a row before doubles take over

size_t align64(size_t n) { return (n + 63) / 64 * 64; }
int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

RegionExtent join(RegionExtent a, RegionExtent b) {
  if (a == b || b == RegionExtent::kScalar) return a;
  if (a == RegionExtent::kScalar) return b;
  return RegionExtent::kWhole;  // row with column, or whole with anything
}

int size_of(DType t) { return t == DType::kBool ? 1 : 4; }

float identity(RegionReduce kind) {
  switch (kind) {
    case RegionReduce::kMax:
      return -INFINITY;
    case RegionReduce::kMin:
      return INFINITY;
    case RegionReduce::kProd:
      return 1.f;
    default:
      return 0.f;
  }
}

double combine(RegionReduce kind, double a, double b) {
  switch (kind) {
    case RegionReduce::kMax:
      return b > a || b != b ? b : a;
    case RegionReduce::kMin:
      return b < a || b != b ? b : a;
    case RegionReduce::kProd:
      return a * b;
    default:
      return a + b;
  }
}

// n copies of one element of 1 or 4 bytes.
void fill(void* to, const void* element, int size, int64_t n) {
  if (size == 1) {
    std::memset(to, *static_cast<const unsigned char*>(element), static_cast<size_t>(n));
  } else {
    uint32_t v;
    std::memcpy(&v, element, 4);
    std::fill_n(static_cast<uint32_t*>(to), n, v);
  }
}

}  // namespace

/// Builds a machine in stages; separate so that the machine itself stays const.
class RegionCompiler {
 public:
  RegionCompiler(const RegionProgram& program, const VecFns& fns, int threads, std::string& why)
      : p_(program), why_(why), m_(new RegionMachine) {
    m_->fns_ = &fns;
    m_->threads_ = std::max(1, threads);
  }

  std::unique_ptr<RegionMachine> compile() {
    if (!registers() || !instructions()) return nullptr;
    fuse_products();
    if (!outputs()) return nullptr;
    shape();
    place();
    sharing();
    m_->flat_ = m_->rows_ == 1 && m_->reductions_.empty() &&
                std::all_of(m_->regs_.begin(), m_->regs_.end(),
                            [](const auto& r) {
                              return r.extent == RegionExtent::kWhole || r.extent == RegionExtent::kScalar;
                            }) &&
                std::all_of(p_.outputs.begin(), p_.outputs.end(),
                            [](const auto& o) { return o.extent == RegionExtent::kWhole; });
    return std::move(m_);
  }

 private:
  struct Draft {
    TileFn fn;
    std::array<int, 3> args;
    int num_args;
    int dst;
    float imm;
    std::string op;
    bool dead = false;
  };

  bool refuse(std::string reason) {
    why_ = std::move(reason);
    return false;
  }

  int new_reg(DType dtype, RegionExtent extent) {
    RegionMachine::RegInfo r;
    r.dtype = dtype;
    r.size = size_of(dtype);
    r.extent = extent;
    m_->regs_.push_back(r);
    return static_cast<int>(m_->regs_.size()) - 1;
  }

  bool registers() {
    m_->rows_ = p_.rows;
    m_->cols_ = p_.cols;
    bool flat = true;  // nothing distinguishes rows from columns: one long row
    for (const auto& in : p_.inputs)
      flat = flat && (in.extent == RegionExtent::kWhole || in.extent == RegionExtent::kScalar);
    for (const auto& out : p_.outputs)
      flat = flat && (out.extent == RegionExtent::kWhole || out.extent == RegionExtent::kScalar);
    if (flat) {
      m_->cols_ = p_.rows * p_.cols;
      m_->rows_ = 1;
    }
    for (size_t i = 0; i < p_.inputs.size(); ++i) {
      const auto& in = p_.inputs[i];
      if (in.dtype != DType::kFloat && in.dtype != DType::kInt32 && in.dtype != DType::kBool)
        return refuse(cat("operand ", i, " is ", in.dtype, "; regions hold float, int32 and bool"));
      map_.push_back(new_reg(in.dtype, in.extent));
      m_->regs_.back().input = static_cast<int>(i);
    }
    return true;
  }

  bool emit(const std::string& op, std::vector<int> args, DType result, float imm, int dst) {
    DType operand = args.empty() ? result : m_->regs_[static_cast<size_t>(args.back())].dtype;
    TileFn fn = find_tile_fn(*m_->fns_, op, operand, result);
    if (!fn) return refuse(cat("no region function for ", op, " on ", operand));
    Draft d{fn, {-1, -1, -1}, static_cast<int>(args.size()), dst, imm, op};
    std::copy(args.begin(), args.end(), d.args.begin());
    drafts_.push_back(d);
    return true;
  }

  RegionExtent extent_of(const std::vector<int>& args) const {
    RegionExtent e = RegionExtent::kScalar;
    for (int a : args) e = join(e, m_->regs_[static_cast<size_t>(a)].extent);
    return e;
  }

  bool instructions() {
    for (const RegionInst& inst : p_.insts) {
      if (inst.dtype != DType::kFloat && inst.dtype != DType::kInt32 && inst.dtype != DType::kBool)
        return refuse(cat(inst.op, " gives ", inst.dtype, "; regions hold float, int32 and bool"));
      std::vector<int> args;
      for (int a : inst.args) args.push_back(map_[static_cast<size_t>(a)]);
      if (inst.op == "_Imm") {
        if (inst.dtype == DType::kBool) return refuse("a bool immediate");
        int r = new_reg(inst.dtype, RegionExtent::kScalar);
        m_->regs_.back().imm = true;
        float v = static_cast<float>(inst.imm);
        if (inst.dtype == DType::kInt32) {
          int32_t i = static_cast<int32_t>(inst.imm);
          std::memcpy(&v, &i, 4);
        }
        m_->regs_.back().value = v;
        map_.push_back(r);
        continue;
      }
      if (inst.op == "AddN" || inst.op == "AddN2") {
        int sum = args[0];
        for (size_t k = 1; k < args.size(); ++k) {
          int r = new_reg(inst.dtype, extent_of({sum, args[k]}));
          if (!emit("Add", {sum, args[k]}, inst.dtype, 0, r)) return false;
          sum = r;
        }
        map_.push_back(sum);
        continue;
      }
      if (inst.op == "Identity") {
        map_.push_back(args[0]);
        continue;
      }
      if (args.size() > 3) return refuse(cat(inst.op, " has ", args.size(), " operands"));
      int r = new_reg(inst.dtype, extent_of(args));
      if (!emit(inst.op, args, inst.dtype, inst.alpha, r)) return false;
      map_.push_back(r);
    }
    if (m_->regs_.size() > kMaxRegisters) return refuse(cat(m_->regs_.size(), " registers are too many"));
    return true;
  }

  // a·b whose only reader adds or subtracts becomes one instruction: half the tile traffic, one rounding with
  // FMA.
  void fuse_products() {
    std::vector<int> readers(m_->regs_.size()), def(m_->regs_.size(), -1);
    for (size_t i = 0; i < drafts_.size(); ++i) {
      def[static_cast<size_t>(drafts_[i].dst)] = static_cast<int>(i);
      for (int k = 0; k < drafts_[i].num_args; ++k) ++readers[static_cast<size_t>(drafts_[i].args[k])];
    }
    for (const auto& out : p_.outputs) readers[static_cast<size_t>(map_[static_cast<size_t>(out.reg)])] += 2;
    auto product = [&](int reg, RegionExtent extent) -> Draft* {
      int d = def[static_cast<size_t>(reg)];
      if (d < 0 || readers[static_cast<size_t>(reg)] != 1) return nullptr;
      Draft& draft = drafts_[static_cast<size_t>(d)];
      if (draft.op != "Mul" || draft.dead || m_->regs_[static_cast<size_t>(reg)].extent != extent)
        return nullptr;
      return &draft;
    };
    for (Draft& d : drafts_) {
      const auto& info = m_->regs_[static_cast<size_t>(d.dst)];
      bool add = d.op == "Add" || d.op == "AddV2", sub = d.op == "Sub";
      if (!(add || sub) || info.dtype != DType::kFloat) continue;
      int x = d.args[0], y = d.args[1];
      if (x == y) continue;
      if (Draft* mul = product(x, info.extent)) {
        d.args = {mul->args[0], mul->args[1], y};
        d.fn = add ? m_->fns_->f32_MulAdd : m_->fns_->f32_MulSub;
        mul->dead = true;
      } else if (Draft* second = product(y, info.extent)) {
        d.args = {second->args[0], second->args[1], x};
        d.fn = add ? m_->fns_->f32_MulAdd : m_->fns_->f32_NegMulAdd;
        second->dead = true;
      } else {
        continue;
      }
      d.num_args = 3;
      d.op = "MulAdd";
    }
    std::erase_if(drafts_, [](const Draft& d) { return d.dead; });
    // Nothing nobody reads.
    std::vector<char> wanted(m_->regs_.size(), 0);
    for (const auto& out : p_.outputs) wanted[static_cast<size_t>(map_[static_cast<size_t>(out.reg)])] = 1;
    for (size_t i = drafts_.size(); i-- > 0;) {
      drafts_[i].dead = !wanted[static_cast<size_t>(drafts_[i].dst)];
      if (!drafts_[i].dead)
        for (int k = 0; k < drafts_[i].num_args; ++k) wanted[static_cast<size_t>(drafts_[i].args[k])] = 1;
    }
    std::erase_if(drafts_, [](const Draft& d) { return d.dead; });
  }

  bool outputs() {
    for (size_t o = 0; o < p_.outputs.size(); ++o) {
      const auto& out = p_.outputs[o];
      int reg = map_[static_cast<size_t>(out.reg)];
      RegionMachine::RegInfo& info = m_->regs_[static_cast<size_t>(reg)];
      if (info.dtype != out.dtype) return refuse(cat("output ", o, " would need a cast to ", out.dtype));
      if (out.reduce == RegionReduce::kNone) {
        if (out.extent != RegionExtent::kWhole && out.extent != info.extent)
          return refuse(cat("output ", o, " has not the extent of its register"));
        if (out.scale != 1.0) return refuse(cat("output ", o, " is scaled without a reduction"));
        bool direct = out.extent == RegionExtent::kWhole && info.extent == RegionExtent::kWhole &&
                      info.input < 0 && info.output < 0;
        if (direct)
          info.output = static_cast<int>(o);
        else
          m_->copies_.push_back({static_cast<int>(o), reg, out.extent});
        if (out.extent == RegionExtent::kWhole && info.extent != RegionExtent::kWhole)
          info.needs_spread = true;
      } else {
        if (info.dtype != DType::kFloat) return refuse("a reduction of something else than float");
        if (info.extent != RegionExtent::kWhole || out.extent == RegionExtent::kWhole)
          return refuse(cat("output ", o, " reduces a value that is not whole"));
        m_->reductions_.push_back({static_cast<int>(o), reg, out.extent, out.reduce, out.scale, 0});
      }
    }
    return true;
  }

  // Which registers are evaluated where, tile and chunk sizes.
  void shape() {
    auto& regs = m_->regs_;
    for (const Draft& d : drafts_) {
      RegionExtent extent = regs[static_cast<size_t>(d.dst)].extent;
      for (int k = 0; k < d.num_args; ++k)
        if (regs[static_cast<size_t>(d.args[static_cast<size_t>(k)])].extent != extent)
          regs[static_cast<size_t>(d.args[static_cast<size_t>(k)])].needs_spread = true;
      RegionMachine::Call call{d.fn, d.dst, d.args[0], d.args[1], d.args[2], d.imm};
      switch (extent) {
        case RegionExtent::kScalar:
          m_->scalar_calls_.push_back(call);
          break;
        case RegionExtent::kCol:
          m_->col_calls_.push_back(call);
          break;
        case RegionExtent::kRow:
          m_->row_calls_.push_back(call);
          break;
        case RegionExtent::kWhole:
          m_->whole_calls_.push_back(call);
          break;
      }
    }
    assign_slots();
    int64_t buffers = std::max<int64_t>(1, num_slots_);
    for (const auto& r : regs)
      buffers += r.needs_spread || (r.input >= 0 && r.extent == RegionExtent::kWhole) || r.output >= 0;
    int64_t tile = std::clamp(kTileBudget / 4 / buffers / 32 * 32, kMinTile, kMaxTile);
    int64_t rows = std::max<int64_t>(m_->rows_, 1), cols = std::max<int64_t>(m_->cols_, 1);
    if (cols <= tile) {
      m_->tile_rows_ = std::min(rows, std::max<int64_t>(1, tile / cols));
      m_->tile_cols_ = cols;
    } else {
      m_->tile_rows_ = 1;
      // Equal pieces, so that the last is not a stub.
      int64_t pieces = ceil_div(cols, tile);
      m_->tile_cols_ = rows == 1 ? tile : std::min(cols, (ceil_div(cols, pieces) + 15) / 16 * 16);
    }
    m_->tile_elements_ = (m_->tile_rows_ * m_->tile_cols_ + 15) / 16 * 16;
    bool row_reduction = std::any_of(m_->reductions_.begin(), m_->reductions_.end(),
                                     [](const auto& r) { return r.extent == RegionExtent::kRow; });
    m_->chunk_cols_ = cols;
    if (cols > kChunk && !row_reduction) m_->chunk_cols_ = kChunk / m_->tile_cols_ * m_->tile_cols_;
    int64_t chunk_rows = std::max<int64_t>(1, kChunk / m_->chunk_cols_);
    if (!m_->reductions_.empty())
      chunk_rows = std::clamp<int64_t>(chunk_rows, std::min<int64_t>(32, rows), kMaxChunkRows);
    m_->chunk_rows_ = ceil_div(chunk_rows, m_->tile_rows_) * m_->tile_rows_;
    m_->row_chunks_ = ceil_div(m_->rows_, m_->chunk_rows_);
    m_->col_chunks_ = m_->cols_ > 0 ? ceil_div(m_->cols_, m_->chunk_cols_) : 0;
  }

  // Tile buffers of whole registers that are neither operands nor written straight to memory; reused after
  // the last reader.
  void assign_slots() {
    auto& regs = m_->regs_;
    std::vector<int> last(regs.size(), -1);
    for (size_t i = 0; i < m_->whole_calls_.size(); ++i)
      for (int a : {m_->whole_calls_[i].a, m_->whole_calls_[i].b, m_->whole_calls_[i].c})
        if (a >= 0) last[static_cast<size_t>(a)] = static_cast<int>(i);
    const int forever = static_cast<int>(m_->whole_calls_.size());
    for (const auto& r : m_->reductions_) last[static_cast<size_t>(r.reg)] = forever;
    for (const auto& c : m_->copies_) last[static_cast<size_t>(c.reg)] = forever;
    std::vector<int> free_slots;
    for (size_t i = 0; i < m_->whole_calls_.size(); ++i) {
      const auto& call = m_->whole_calls_[i];
      auto& info = regs[static_cast<size_t>(call.dst)];
      // Operands that end here give their slot to the result: the functions work in place. Not so where sizes
      // differ: a byte written must not fall on a float still to be read.
      std::vector<int> freed;
      for (int a : {call.a, call.b, call.c}) {
        if (a < 0) continue;
        auto& arg = regs[static_cast<size_t>(a)];
        if (arg.slot < 0 || last[static_cast<size_t>(a)] != static_cast<int>(i)) continue;
        last[static_cast<size_t>(a)] = -2;
        if (arg.size == info.size)
          free_slots.push_back(arg.slot);
        else
          freed.push_back(arg.slot);
      }
      if (info.output < 0) {
        if (free_slots.empty()) free_slots.push_back(num_slots_++);
        info.slot = free_slots.back();
        free_slots.pop_back();
      }
      free_slots.insert(free_slots.end(), freed.begin(), freed.end());
    }
  }

  void place() {
    auto& m = *m_;
    const size_t tile_bytes = align64(static_cast<size_t>(m.tile_elements_) * 4);
    size_t shared = 0, own = 0;
    auto take = [](size_t& at, size_t bytes) {
      size_t here = at;
      at += align64(bytes);
      return here;
    };
    for (auto& r : m.regs_) {
      switch (r.extent) {
        case RegionExtent::kScalar:
          r.small = take(shared, 4);
          if (r.needs_spread) r.spread = take(shared, tile_bytes);
          break;
        case RegionExtent::kCol:
          if (r.input < 0) r.small = take(shared, static_cast<size_t>(m.cols_) * 4);
          if (r.needs_spread && m.tile_rows_ > 1) r.spread = take(shared, tile_bytes);
          break;
        case RegionExtent::kRow:
          if (r.input < 0) r.small = take(own, static_cast<size_t>(m.tile_rows_) * 4);
          if (r.needs_spread) r.spread = take(own, tile_bytes);
          break;
        case RegionExtent::kWhole:
          break;
      }
    }
    for (auto& r : m.reductions_) {
      if (r.extent == RegionExtent::kCol)
        r.partial = take(shared, static_cast<size_t>(m.row_chunks_) * static_cast<size_t>(m.cols_) * 4);
      else if (r.extent == RegionExtent::kScalar)
        r.partial = take(shared, static_cast<size_t>(m.row_chunks_ * m.col_chunks_) * 8);
    }
    slots_at_ = own;
    own += static_cast<size_t>(num_slots_) * tile_bytes;
    for (auto& r : m.regs_)
      if (r.slot >= 0) r.spread = slots_at_ + static_cast<size_t>(r.slot) * tile_bytes;
    m.shared_bytes_ = align64(shared);
    m.worker_bytes_ = align64(own);
    m.scratch_bytes_ = m.shared_bytes_ + static_cast<size_t>(m.threads_) * m.worker_bytes_;
  }

  // Output o may lie on input i when nothing reads i after o's tile has been written.
  void sharing() {
    auto& m = *m_;
    for (const auto& in : m.regs_) {
      if (in.input < 0 || in.extent != RegionExtent::kWhole) continue;
      size_t reg = static_cast<size_t>(&in - m.regs_.data());
      int last_use = -1;
      for (size_t i = 0; i < m.whole_calls_.size(); ++i)
        for (int a : {m.whole_calls_[i].a, m.whole_calls_[i].b, m.whole_calls_[i].c})
          if (a == static_cast<int>(reg)) last_use = static_cast<int>(i);
      bool late = std::any_of(m.reductions_.begin(), m.reductions_.end(),
                              [&](const auto& r) { return r.reg == static_cast<int>(reg); }) ||
                  std::any_of(m.copies_.begin(), m.copies_.end(),
                              [&](const auto& c) { return c.reg == static_cast<int>(reg); });
      if (late) continue;
      for (size_t i = 0; i < m.whole_calls_.size(); ++i) {
        const auto& dst = m.regs_[static_cast<size_t>(m.whole_calls_[i].dst)];
        if (dst.output >= 0 && static_cast<int>(i) >= last_use && dst.size == in.size)
          m.may_share_.emplace_back(in.input, dst.output);
      }
    }
  }

  const RegionProgram& p_;
  std::string& why_;
  std::unique_ptr<RegionMachine> m_;
  std::vector<int> map_;  // the program's registers → ours
  std::vector<Draft> drafts_;
  int num_slots_ = 0;
  size_t slots_at_ = 0;
};

std::unique_ptr<RegionMachine> RegionMachine::compile(const RegionProgram& program, const VecFns& fns,
                                                      int threads, std::string& why) {
  return RegionCompiler(program, fns, threads, why).compile();
}

void RegionMachine::spread_column(int reg, const void* from, char* shared) const {
  const RegInfo& r = regs_[static_cast<size_t>(reg)];
  const size_t row_bytes = static_cast<size_t>(cols_) * static_cast<size_t>(r.size);
  for (int64_t k = 0; k < tile_rows_; ++k)
    std::memcpy(shared + r.spread + static_cast<size_t>(k) * row_bytes, from, row_bytes);
}

// Scalars and columns: once per run, on the calling thread.
void RegionMachine::prologue(const void* const* inputs, void* const* outputs, char* shared,
                             void** pointers) const {
  auto run_calls = [&](const std::vector<Call>& calls, int64_t n, RegionExtent level) {
    for (const Call& call : calls) {
      for (int64_t at = 0; at < n; at += tile_elements_) {
        const int64_t len = std::min(tile_elements_, n - at);
        auto operand = [&](int reg) -> void* {
          if (reg < 0) return nullptr;
          const RegInfo& r = regs_[static_cast<size_t>(reg)];
          if (r.extent == RegionExtent::kScalar && level != RegionExtent::kScalar) return shared + r.spread;
          return static_cast<char*>(pointers[reg]) + at * r.size;
        };
        call.fn(operand(call.dst), operand(call.a), operand(call.b), operand(call.c), len, call.imm);
      }
      if (level != RegionExtent::kScalar) continue;
      const RegInfo& r = regs_[static_cast<size_t>(call.dst)];
      if (r.needs_spread) fill(shared + r.spread, pointers[call.dst], r.size, tile_elements_);
    }
  };
  for (size_t i = 0; i < regs_.size(); ++i) {
    const RegInfo& r = regs_[i];
    pointers[i] = nullptr;
    if (r.extent == RegionExtent::kScalar) {
      pointers[i] = shared + r.small;
      if (r.imm) std::memcpy(pointers[i], &r.value, 4);
      if (r.input >= 0) pointers[i] = const_cast<void*>(inputs[r.input]);
      if (r.needs_spread && (r.imm || r.input >= 0))
        fill(shared + r.spread, pointers[i], r.size, tile_elements_);
    } else if (r.extent == RegionExtent::kCol) {
      pointers[i] = r.input >= 0 ? const_cast<void*>(inputs[r.input]) : shared + r.small;
    }
  }
  run_calls(scalar_calls_, 1, RegionExtent::kScalar);
  run_calls(col_calls_, cols_, RegionExtent::kCol);
  if (tile_rows_ > 1)
    for (size_t i = 0; i < regs_.size(); ++i)
      if (regs_[i].extent == RegionExtent::kCol && regs_[i].needs_spread)
        spread_column(static_cast<int>(i), pointers[i], shared);
  for (const Copy& c : copies_) {
    const RegInfo& r = regs_[static_cast<size_t>(c.reg)];
    if (c.extent == RegionExtent::kScalar)
      std::memcpy(outputs[c.output], pointers[c.reg], static_cast<size_t>(r.size));
    else if (c.extent == RegionExtent::kCol)
      std::memcpy(outputs[c.output], pointers[c.reg],
                  static_cast<size_t>(cols_) * static_cast<size_t>(r.size));
  }
}

void RegionMachine::tile(int64_t row, int64_t rows, int64_t col, int64_t cols, const void* const* inputs,
                         void* const* outputs, char* shared, char* own, void** pointers, int64_t row_chunk,
                         double* scalar_sums) const {
  const int64_t n = rows * cols;
  const int64_t at = row * cols_ + col;
  for (size_t i = 0; i < regs_.size(); ++i) {
    const RegInfo& r = regs_[i];
    switch (r.extent) {
      case RegionExtent::kScalar:
        pointers[i] = shared + r.spread;
        break;
      case RegionExtent::kCol: {
        if (tile_rows_ > 1) {
          pointers[i] = shared + r.spread;
        } else {
          const char* base = r.input >= 0 ? static_cast<const char*>(inputs[r.input]) : shared + r.small;
          pointers[i] = const_cast<char*>(base + col * r.size);
        }
        break;
      }
      case RegionExtent::kRow:
        pointers[i] = r.input >= 0
                          ? const_cast<char*>(static_cast<const char*>(inputs[r.input]) + row * r.size)
                          : own + r.small;
        break;
      case RegionExtent::kWhole:
        if (r.input >= 0)
          pointers[i] = const_cast<char*>(static_cast<const char*>(inputs[r.input]) + at * r.size);
        else if (r.output >= 0)
          pointers[i] = static_cast<char*>(outputs[r.output]) + at * r.size;
        else
          pointers[i] = own + r.spread;
        break;
    }
  }
  auto at_reg = [&](int reg) -> void* { return reg < 0 ? nullptr : pointers[reg]; };
  for (const Call& c : row_calls_) c.fn(at_reg(c.dst), at_reg(c.a), at_reg(c.b), at_reg(c.c), rows, c.imm);
  for (const Copy& c : copies_)
    if (c.extent == RegionExtent::kRow && col == 0) {
      const int size = regs_[static_cast<size_t>(c.reg)].size;
      std::memcpy(static_cast<char*>(outputs[c.output]) + row * size, pointers[c.reg],
                  static_cast<size_t>(rows * size));
    }
  for (size_t i = 0; i < regs_.size(); ++i) {
    const RegInfo& r = regs_[i];
    if (r.extent != RegionExtent::kRow || !r.needs_spread) continue;
    const char* values = static_cast<const char*>(pointers[i]);
    for (int64_t k = 0; k < rows; ++k)
      fill(own + r.spread + k * cols * r.size, values + k * r.size, r.size, cols);
    pointers[i] = own + r.spread;
  }
  for (const Call& c : whole_calls_) c.fn(at_reg(c.dst), at_reg(c.a), at_reg(c.b), at_reg(c.c), n, c.imm);
  for (const Copy& c : copies_) {
    if (c.extent != RegionExtent::kWhole) continue;
    const int size = regs_[static_cast<size_t>(c.reg)].size;
    std::memmove(static_cast<char*>(outputs[c.output]) + at * size, pointers[c.reg],
                 static_cast<size_t>(n * size));
  }
  for (size_t k = 0; k < reductions_.size(); ++k) {
    const Reduction& r = reductions_[k];
    const float* x = static_cast<const float*>(pointers[r.reg]);
    auto flat = [&](const float* p, int64_t len) {
      switch (r.kind) {
        case RegionReduce::kMax:
          return fns_->max(p, len);
        case RegionReduce::kMin:
          return fns_->min(p, len);
        case RegionReduce::kProd:
          return fns_->prod(p, len);
        default:
          return fns_->sum(p, len);
      }
    };
    if (r.extent == RegionExtent::kCol) {
      float* partial = reinterpret_cast<float*>(shared + r.partial) + row_chunk * cols_ + col;
      switch (r.kind) {
        case RegionReduce::kMax:
          fns_->col_max(partial, x, rows, cols);
          break;
        case RegionReduce::kMin:
          fns_->col_min(partial, x, rows, cols);
          break;
        case RegionReduce::kProd:
          fns_->col_prod(partial, x, rows, cols);
          break;
        default:
          fns_->col_sum(partial, x, rows, cols);
          break;
      }
    } else if (r.extent == RegionExtent::kScalar) {
      scalar_sums[k] = combine(r.kind, scalar_sums[k], static_cast<double>(flat(x, n)));
    } else {
      float* out = static_cast<float*>(outputs[r.output]) + row;
      for (int64_t q = 0; q < rows; ++q) {
        double v = static_cast<double>(flat(x + q * cols, cols));
        if (tile_rows_ == 1 && col > 0) v = combine(r.kind, scalar_sums[k], v);
        scalar_sums[k] = v;
        if (col + cols == cols_) out[q] = static_cast<float>(v * r.scale);
      }
    }
  }
}

void RegionMachine::run(const void* const* inputs, void* const* outputs, void* scratch,
                        runtime::WorkQueue& queue) const {
  char* shared = static_cast<char*>(scratch);
  void* first[kMaxRegisters];
  prologue(inputs, outputs, shared, first);
  const int64_t chunks = row_chunks_ * col_chunks_;
  SLUICE_CHECK(queue.width() <= threads_, "a region compiled for ", threads_, " threads runs on ",
               queue.width());
  auto body = [&](int64_t begin, int64_t end, int worker) {
    char* own = shared + shared_bytes_ + static_cast<size_t>(worker) * worker_bytes_;
    void* pointers[kMaxRegisters];
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const int64_t row_chunk = chunk / col_chunks_, col_chunk = chunk % col_chunks_;
      const int64_t r0 = row_chunk * chunk_rows_, r1 = std::min(rows_, r0 + chunk_rows_);
      const int64_t c0 = col_chunk * chunk_cols_, c1 = std::min(cols_, c0 + chunk_cols_);
      double sums[kMaxRegisters];
      for (size_t k = 0; k < reductions_.size(); ++k) {
        const Reduction& r = reductions_[k];
        sums[k] = static_cast<double>(identity(r.kind));
        if (r.extent == RegionExtent::kCol)
          std::fill_n(reinterpret_cast<float*>(shared + r.partial) + row_chunk * cols_ + c0, c1 - c0,
                      identity(r.kind));
      }
      for (int64_t row = r0; row < r1; row += tile_rows_)
        for (int64_t col = c0; col < c1; col += tile_cols_)
          tile(row, std::min(tile_rows_, r1 - row), col, std::min(tile_cols_, c1 - col), inputs, outputs,
               shared, own, pointers, row_chunk, sums);
      for (size_t k = 0; k < reductions_.size(); ++k)
        if (reductions_[k].extent == RegionExtent::kScalar)
          reinterpret_cast<double*>(shared + reductions_[k].partial)[chunk] = sums[k];
    }
  };
  queue.parallel_for(chunks, 1, body);
  finish(outputs, shared, queue);
}

void RegionMachine::run(Tensor* tensors, int n, void* scratch, runtime::WorkQueue& queue) const {
  char* shared = static_cast<char*>(scratch);
  void* first[kMaxRegisters];
  prologue(tensors[0].inputs, tensors[0].outputs, shared, first);
  SLUICE_CHECK(flat_ && queue.width() <= threads_, "a region compiled for ", threads_, " threads runs on ",
               queue.width());
  int64_t chunks = 0, elements = 0;
  for (int t = 0; t < n; ++t) {
    tensors[t].first_chunk = chunks;
    chunks += ceil_div(tensors[t].count, chunk_cols_);
    elements += tensors[t].count;
  }
  auto body = [&](int64_t begin, int64_t end, int worker) {
    char* own = shared + shared_bytes_ + static_cast<size_t>(worker) * worker_bytes_;
    void* pointers[kMaxRegisters];
    const Tensor* t = std::upper_bound(tensors, tensors + n, begin,
                                       [](int64_t chunk, const Tensor& x) { return chunk < x.first_chunk; }) -
                      1;
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      while (t + 1 < tensors + n && chunk >= t[1].first_chunk) ++t;
      const int64_t c0 = (chunk - t->first_chunk) * chunk_cols_, c1 = std::min(t->count, c0 + chunk_cols_);
      for (int64_t col = c0; col < c1; col += tile_cols_)
        tile(0, 1, col, std::min(tile_cols_, c1 - col), t->inputs, t->outputs, shared, own, pointers, 0,
             nullptr);
    }
  };
  // Many small tensors: a hand-off for about kChunk elements, as elsewhere.
  queue.parallel_for(chunks, std::max<int64_t>(1, chunks * kChunk / std::max<int64_t>(1, elements)), body);
}

void RegionMachine::finish(void* const* outputs, char* shared, runtime::WorkQueue& queue) const {
  for (const Reduction& r : reductions_) {
    if (r.extent == RegionExtent::kScalar) {
      const double* partial = reinterpret_cast<const double*>(shared + r.partial);
      double v = static_cast<double>(identity(r.kind));
      for (int64_t i = 0; i < row_chunks_ * col_chunks_; ++i) v = combine(r.kind, v, partial[i]);
      *static_cast<float*>(outputs[r.output]) = static_cast<float>(v * r.scale);
    } else if (r.extent == RegionExtent::kCol) {
      const float* partial = reinterpret_cast<const float*>(shared + r.partial);
      float* out = static_cast<float*>(outputs[r.output]);
      queue.parallel_for(cols_, 64, [&](int64_t begin, int64_t end) {
        double sums[64];
        for (int64_t c = begin; c < end; ++c) sums[c - begin] = static_cast<double>(identity(r.kind));
        for (int64_t i = 0; i < row_chunks_; ++i)
          for (int64_t c = begin; c < end; ++c)
            sums[c - begin] = combine(r.kind, sums[c - begin], static_cast<double>(partial[i * cols_ + c]));
        for (int64_t c = begin; c < end; ++c) out[c] = static_cast<float>(sums[c - begin] * r.scale);
      });
    } else if (cols_ == 0) {
      std::fill_n(static_cast<float*>(outputs[r.output]), rows_,
                  static_cast<float>(identity(r.kind) * r.scale));
    }
  }
}

}  // namespace sluice::kernels::cpu
