// Which function runs which op: TensorFlow's names to members of the vector table, then to scalar loops over
// kernels/scalar.h.

#include <algorithm>
#include <utility>

#include "kernels/cpu/region_machine.h"
#include "kernels/scalar.h"

namespace sluice::kernels::cpu {
namespace {

using runtime::DType;

struct Row {
  std::string_view op;
  TileFn VecFns::*fn;
};

#define SLUICE_MEMBER(name) {#name, &VecFns::f32_##name},
constexpr Row kFloatRows[] = {SLUICE_VEC_F32_OPS(SLUICE_MEMBER){"AddV2", &VecFns::f32_Add},
                              {"Identity", &VecFns::f32_Copy},
                              {"Inv", &VecFns::f32_Reciprocal},
                              {"InvGrad", &VecFns::f32_ReciprocalGrad},
                              {"RealDiv", &VecFns::f32_Div},
                              {"Round", &VecFns::f32_Rint},
                              {"SelectV2", &VecFns::f32_Select}};
constexpr Row kFloatCompareRows[] = {SLUICE_VEC_COMPARE_OPS(SLUICE_MEMBER)};
#undef SLUICE_MEMBER
#define SLUICE_MEMBER(name) {#name, &VecFns::i32_##name},
constexpr Row kIntRows[] = {SLUICE_VEC_I32_OPS(SLUICE_MEMBER){"AddV2", &VecFns::i32_Add},
                            {"Identity", &VecFns::i32_Copy},
                            {"SelectV2", &VecFns::i32_Select}};
constexpr Row kIntCompareRows[] = {SLUICE_VEC_COMPARE_OPS(SLUICE_MEMBER)};
#undef SLUICE_MEMBER
#define SLUICE_MEMBER(name) {#name, &VecFns::bool_##name},
constexpr Row kBoolRows[] = {SLUICE_VEC_BOOL_OPS(SLUICE_MEMBER){"Identity", &VecFns::bool_Copy},
                             {"SelectV2", &VecFns::bool_Select}};
#undef SLUICE_MEMBER

template <size_t N>
TileFn VecFns::*find_row(const Row (&rows)[N], std::string_view op) {
  for (const Row& r : rows)
    if (r.op == op) return r.fn;
  return nullptr;
}

template <class F>
void unary_loop(void* o_, const void* a_, const void*, const void*, int64_t n, float) {
  float* o = static_cast<float*>(o_);
  const float* a = static_cast<const float*>(a_);
  for (int64_t i = 0; i < n; ++i) o[i] = F{}(a[i]);
}
template <class F>
void binary_loop(void* o_, const void* a_, const void* b_, const void*, int64_t n, float) {
  float* o = static_cast<float*>(o_);
  const float* a = static_cast<const float*>(a_);
  const float* b = static_cast<const float*>(b_);
  for (int64_t i = 0; i < n; ++i) o[i] = F{}(a[i], b[i]);
}
template <class F>
void test_loop(void* o_, const void* a_, const void*, const void*, int64_t n, float) {
  uint8_t* o = static_cast<uint8_t*>(o_);
  const float* a = static_cast<const float*>(a_);
  for (int64_t i = 0; i < n; ++i) o[i] = F{}(a[i]);
}

struct ScalarRow {
  std::string_view op;
  TileFn fn;
};

#define SLUICE_ROW(name) {#name, unary_loop<scalar::name>},
constexpr ScalarRow kUnaryRows[] = {SLUICE_UNARY_FLOAT_OPS(SLUICE_ROW)};
#undef SLUICE_ROW
#define SLUICE_ROW(name) {#name, binary_loop<scalar::name>},
constexpr ScalarRow kBinaryRows[] = {SLUICE_BINARY_FLOAT_OPS(SLUICE_ROW) SLUICE_GRAD_OPS(
    SLUICE_ROW) SLUICE_ROW(FloorDiv) SLUICE_ROW(FloorMod) SLUICE_ROW(Mod) SLUICE_ROW(Pow)};
#undef SLUICE_ROW
#define SLUICE_ROW(name) {#name, test_loop<scalar::name>},
constexpr ScalarRow kTestRows[] = {SLUICE_UNARY_TEST_OPS(SLUICE_ROW)};
#undef SLUICE_ROW

template <size_t N>
TileFn find_scalar_row(const ScalarRow (&rows)[N], std::string_view op) {
  for (const ScalarRow& r : rows)
    if (r.op == op) return r.fn;
  return nullptr;
}

}  // namespace

TileFn find_scalar_fn(std::string_view op, DType operand, DType result) {
  if (operand != DType::kFloat) return nullptr;
  if (result == DType::kBool) return find_scalar_row(kTestRows, op);
  if (TileFn fn = find_scalar_row(kUnaryRows, op)) return fn;
  return find_scalar_row(kBinaryRows, op);
}

TileFn find_tile_fn(const VecFns& fns, std::string_view op, DType operand, DType result) {
  if (op == "Cast") {
    if (operand == result) return find_tile_fn(fns, "Copy", operand, result);
    if (operand == DType::kFloat)
      return result == DType::kInt32  ? fns.cast_f32_i32
             : result == DType::kBool ? fns.cast_f32_bool
                                      : nullptr;
    if (operand == DType::kInt32)
      return result == DType::kFloat  ? fns.cast_i32_f32
             : result == DType::kBool ? fns.cast_i32_bool
                                      : nullptr;
    if (operand == DType::kBool)
      return result == DType::kFloat   ? fns.cast_bool_f32
             : result == DType::kInt32 ? fns.cast_bool_i32
                                       : nullptr;
    return nullptr;
  }
  TileFn VecFns::*member = nullptr;
  if (operand == DType::kFloat)
    member = result == DType::kBool ? find_row(kFloatCompareRows, op) : find_row(kFloatRows, op);
  else if (operand == DType::kInt32)
    member = result == DType::kBool ? find_row(kIntCompareRows, op) : find_row(kIntRows, op);
  else if (operand == DType::kBool)
    member = find_row(kBoolRows, op);
  if (member) return fns.*member;
  return find_scalar_fn(op, operand, result);
}

bool region_supports(std::string_view op, DType dtype) {
  if (dtype != DType::kFloat && dtype != DType::kInt32 && dtype != DType::kBool) return false;
  if (op == "Cast") return true;
  if (op == "AddN") return dtype != DType::kBool;
  static constexpr std::string_view kInternal[] = {"Copy", "MulAdd", "MulSub", "NegMulAdd"};
  if (std::find(std::begin(kInternal), std::end(kInternal), op) != std::end(kInternal)) return false;
  const VecFns& fns = vec_fns_sse42();
  return find_tile_fn(fns, op, dtype, dtype) || find_tile_fn(fns, op, dtype, DType::kBool);
}

}  // namespace sluice::kernels::cpu
