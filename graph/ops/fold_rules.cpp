#include "graph/ops/fold_rules.h"

#include <algorithm>
#include <limits>

namespace sluice::graph::ops {
namespace {

using MaybeInt = std::optional<int64_t>;

bool fits(int64_t v, DType type) {
  switch (type) {
    case DType::kInt8:
      return v >= INT8_MIN && v <= INT8_MAX;
    case DType::kUint8:
      return v >= 0 && v <= UINT8_MAX;
    case DType::kInt16:
      return v >= INT16_MIN && v <= INT16_MAX;
    case DType::kUint16:
      return v >= 0 && v <= UINT16_MAX;
    case DType::kInt32:
      return v >= INT32_MIN && v <= INT32_MAX;
    case DType::kUint32:
      return v >= 0 && v <= UINT32_MAX;
    case DType::kInt64:
      return true;
    default:
      return false;
  }
}

MaybeInt in_range(MaybeInt v, const FoldContext& c) {
  return v && fits(*v, base_dtype(c.node().output_type(0))) ? v : std::nullopt;
}

}  // namespace

FoldFn fold_binary(IntBinary f) {
  return [f](FoldContext& c) {
    const auto x = c.input(0), y = c.input(1);
    if (!x || !y) return;
    const Dims dx = x->dims(), dy = y->dims();
    const size_t nx = x->values.size(), ny = y->values.size();
    Dims dims;  // real broadcasting is left to the kernel
    if (dx == dy || (ny == 1 && dy.size() <= dx.size())) {
      dims = dx;
    } else if (nx == 1 && dx.size() <= dy.size()) {
      dims = dy;
    } else {
      return;
    }
    PartialInts out;
    out.scalar = dims.empty();
    out.values.resize(dims == dx ? nx : ny);
    if (dims.size() > 1) out.higher = std::move(dims);
    for (size_t i = 0; i < out.values.size(); ++i) {
      const MaybeInt a = x->values[nx == 1 ? 0 : i], b = y->values[ny == 1 ? 0 : i];
      if (a && b) out.values[i] = in_range(f(*a, *b), c);
    }
    c.set_output(0, std::move(out));
  };
}

FoldFn fold_unary(IntUnary f) {
  return [f](FoldContext& c) {
    auto x = c.input(0);
    if (!x) return;
    for (MaybeInt& v : x->values)
      if (v) v = in_range(f(*v), c);
    c.set_output(0, std::move(*x));
  };
}

FoldFn fold_reduction(IntBinary f, int64_t init) {
  return [f, init](FoldContext& c) {
    const auto x = c.input(0), axes = c.input(1);
    if (!x || x->dims().size() != 1 || !axes || axes->values.size() != 1) return;
    if (axes->values[0] != MaybeInt(0) && axes->values[0] != MaybeInt(-1)) return;
    MaybeInt total = init;
    for (size_t i = 0; i < x->values.size(); ++i) {
      const MaybeInt v = x->values[i];
      if (i == 0) {
        total = v;
      } else {
        total = total && v ? in_range(f(*total, *v), c) : std::nullopt;
      }
    }
    PartialInts out;
    out.scalar = !c.node().attr_or<bool>("keep_dims", false);
    out.values = {total};
    c.set_output(0, std::move(out));
  };
}

void fold_cast(FoldContext& c) {
  auto x = c.input(0);
  if (!x || !is_integer(c.node().attr<DType>("SrcT")) || !is_integer(c.node().attr<DType>("DstT"))) return;
  for (MaybeInt& v : x->values) v = in_range(v, c);
  c.set_output(0, std::move(*x));
}

MaybeInt int_add(int64_t x, int64_t y) {
  int64_t r = 0;
  return __builtin_add_overflow(x, y, &r) ? std::nullopt : MaybeInt(r);
}

MaybeInt int_sub(int64_t x, int64_t y) {
  int64_t r = 0;
  return __builtin_sub_overflow(x, y, &r) ? std::nullopt : MaybeInt(r);
}

MaybeInt int_mul(int64_t x, int64_t y) {
  int64_t r = 0;
  return __builtin_mul_overflow(x, y, &r) ? std::nullopt : MaybeInt(r);
}

MaybeInt int_truncate_div(int64_t x, int64_t y) {
  if (y == 0 || (y == -1 && x == std::numeric_limits<int64_t>::min())) return std::nullopt;
  return x / y;
}

MaybeInt int_truncate_mod(int64_t x, int64_t y) {
  if (y == 0 || y == -1) return y == 0 ? std::nullopt : MaybeInt(0);
  return x % y;
}

MaybeInt int_floor_div(int64_t x, int64_t y) {
  const MaybeInt q = int_truncate_div(x, y);
  if (!q) return q;
  return *q - ((x % y != 0 && (x < 0) != (y < 0)) ? 1 : 0);
}

MaybeInt int_floor_mod(int64_t x, int64_t y) {
  const MaybeInt r = int_truncate_mod(x, y);
  if (!r || *r == 0) return r;
  return (*r < 0) != (y < 0) ? *r + y : *r;
}

MaybeInt int_maximum(int64_t x, int64_t y) { return std::max(x, y); }
MaybeInt int_minimum(int64_t x, int64_t y) { return std::min(x, y); }

}  // namespace sluice::graph::ops
