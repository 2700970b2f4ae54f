#pragma once
// From a dtype known at run time to a C++ type known at compile time. Instantiates its function eleven times:
// for .cpp files that convert or print elements, not for headers.

#include <cstdint>

#include "graph/dtype.h"
#include "graph/support/check.h"

namespace sluice::graph {

/// f(static_cast<const T*>(nullptr)) with the C++ type of a number dtype or bool, whose result it returns.
/// Unimplemented, "<what> of type <t> has no numeric elements", for string, half, complex and their kin.
template <class F>
auto visit_numeric(DType t, const char* what, F&& f) {
  switch (base_dtype(t)) {
    case DType::kFloat:
      return f(static_cast<const float*>(nullptr));
    case DType::kDouble:
      return f(static_cast<const double*>(nullptr));
    case DType::kInt8:
      return f(static_cast<const int8_t*>(nullptr));
    case DType::kInt16:
      return f(static_cast<const int16_t*>(nullptr));
    case DType::kInt32:
      return f(static_cast<const int32_t*>(nullptr));
    case DType::kInt64:
      return f(static_cast<const int64_t*>(nullptr));
    case DType::kUint8:
      return f(static_cast<const uint8_t*>(nullptr));
    case DType::kUint16:
      return f(static_cast<const uint16_t*>(nullptr));
    case DType::kUint32:
      return f(static_cast<const uint32_t*>(nullptr));
    case DType::kUint64:
      return f(static_cast<const uint64_t*>(nullptr));
    case DType::kBool:
      return f(static_cast<const bool*>(nullptr));
    default:
      throw_error(Code::kUnimplemented, cat(what, " of type ", t, " has no numeric elements"));
  }
}

}  // namespace sluice::graph
