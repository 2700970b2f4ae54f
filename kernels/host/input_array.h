#pragma once
// A kernel's input as an Array, for code that works on whole values (files, messages).

#include <cstring>

#include "kernels/reference/common.h"

namespace sluice::kernels {

/// Strings share their buffer, other elements are copied.
inline Array input_array(const KernelRun& r, int i) {
  const DType t = graph::base_dtype(r.in_dtype(i));
  if (t == DType::kString) return r.in_array(i).reshaped(r.in_dims(i));
  Array a(t, r.in_dims(i));
  if (a.bytes() > 0) std::memcpy(a.data(), r.in_data(i), a.bytes());
  return a;
}

/// The single string of an input.
inline const std::string& scalar_string(const KernelRun& r, int i) {
  SLUICE_REQUIRE(in_count(r, i) == 1, Code::kInvalidArgument, "Input ", i, " must be one string, got shape ",
                 dims_string(r.in_dims(i)));
  return r.in_array(i).string_values()[0];
}

/// Sets a string output that is one scalar.
inline void put_string(const KernelRun& r, int i, std::string value) {
  r.out_array(i) = Array::strings({}, {std::move(value)});
}

}  // namespace sluice::kernels
