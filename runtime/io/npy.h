#pragma once
// NumPy's .npy files, versions 1 and 2 (and 3 for reading): one array, little-endian or byte-swapped, C or
// Fortran order; integers, floats, bool, complex, half. Written as version 1, little-endian, C order. Pure
// but for the file; any thread.

#include <string>
#include <string_view>

#include "runtime/array.h"

namespace sluice::runtime::io {

/// InvalidArgument or DataLoss naming `source` when the header cannot be read, the type has no counterpart
/// (objects, strings, dates) or the data do not have exactly the stated size.
Array npy_from_bytes(std::string_view bytes, const std::string& source);
std::string npy_to_bytes(const Array& array);

Array read_npy(const std::string& path);
void write_npy(const std::string& path, const Array& array);

}  // namespace sluice::runtime::io
