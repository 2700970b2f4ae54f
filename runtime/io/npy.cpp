#include "runtime/io/npy.h"

#include <algorithm>
#include <cstring>

#include "graph/support/check.h"
#include "runtime/io/file.h"

namespace sluice::runtime::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct TypeName {
  DType type;
  const char* name;  // kind and width as in a descr
};
constexpr TypeName kTypes[] = {
    {DType::kFloat, "f4"},     {DType::kDouble, "f8"},      {DType::kHalf, "f2"},   {DType::kInt8, "i1"},
    {DType::kInt16, "i2"},     {DType::kInt32, "i4"},       {DType::kInt64, "i8"},  {DType::kUint8, "u1"},
    {DType::kUint16, "u2"},    {DType::kUint32, "u4"},      {DType::kUint64, "u8"}, {DType::kBool, "b1"},
    {DType::kComplex64, "c8"}, {DType::kComplex128, "c16"},
};

// Reads the header, a Python dict literal of three known keys.
class Header {
 public:
  Header(std::string_view text, const std::string& source) : rest_(text), source_(source) { parse(); }

  DType dtype = DType::kInvalid;
  bool swapped = false, fortran = false;
  Dims dims;

 private:
  [[noreturn]] void fail(std::string_view why) const {
    throw_error(Code::kInvalidArgument, cat(source_, ": .npy header: ", why));
  }
  void skip() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n' || rest_[0] == '\t'))
      rest_.remove_prefix(1);
  }
  bool take(std::string_view token) {
    skip();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  std::string quoted() {
    skip();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) fail("a quoted word is expected");
    const size_t end = rest_.find(rest_[0], 1);
    if (end == std::string_view::npos) fail("a quote is not closed");
    std::string word(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return word;
  }

  void parse() {
    bool have_descr = false, have_order = false, have_shape = false;
    if (!take("{")) fail("it is no dictionary");
    while (!take("}")) {
      const std::string key = quoted();
      if (!take(":")) fail("':' is expected");
      if (key == "descr") {
        skip();
        if (rest_.starts_with("[")) fail("structured arrays cannot be read");
        read_type(quoted());
        have_descr = true;
      } else if (key == "fortran_order") {
        fortran = take("True");
        if (!fortran && !take("False")) fail("fortran_order is neither True nor False");
        have_order = true;
      } else if (key == "shape") {
        read_shape();
        have_shape = true;
      } else {
        fail(cat("unknown key '", key, "'"));
      }
      take(",");
    }
    if (!have_descr || !have_order || !have_shape) fail("descr, fortran_order or shape is missing");
  }

  void read_type(const std::string& descr) {
    const bool ordered = !descr.empty() && std::string_view("<>|=").find(descr[0]) != std::string_view::npos;
    const std::string name = descr.substr(ordered ? 1 : 0);
    for (const TypeName& t : kTypes)
      if (name == t.name || (name == "?" && t.type == DType::kBool)) dtype = t.type;
    if (dtype == DType::kInvalid)
      fail(cat("arrays of type '", descr, "' cannot be read (numbers and bool can)"));
    swapped = descr[0] == '>' && graph::dtype_size(dtype) > 1;
  }

  void read_shape() {
    if (!take("(")) fail("the shape is no tuple");
    while (!take(")")) {
      skip();
      int64_t d = 0;
      size_t digits = 0;
      while (digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9') {
        if (__builtin_mul_overflow(d, 10, &d) || __builtin_add_overflow(d, rest_[digits] - '0', &d))
          fail("a dimension is too large");
        ++digits;
      }
      if (digits == 0) fail("a dimension is no number");
      if (dims.size() == 64) fail("there are more than 64 dimensions");
      rest_.remove_prefix(digits);
      dims.push_back(d);
      take(",");
    }
  }

  std::string_view rest_;
  const std::string& source_;
};

// Elements stored with the first index running fastest, put in our order.
void from_fortran(const char* in, size_t width, const Dims& dims, char* out) {
  const size_t rank = dims.size();
  std::vector<int64_t> strides(rank, 1), at(rank, 0);
  for (size_t k = 1; k < rank; ++k) strides[k] = strides[k - 1] * dims[k - 1];
  const int64_t n = graph::num_elements(dims);
  for (int64_t i = 0; i < n; ++i) {
    int64_t from = 0;
    for (size_t k = 0; k < rank; ++k) from += at[k] * strides[k];
    std::memcpy(out + static_cast<size_t>(i) * width, in + static_cast<size_t>(from) * width, width);
    for (size_t k = rank; k-- > 0;) {
      if (++at[k] < dims[k]) break;
      at[k] = 0;
    }
  }
}

}  // namespace

Array npy_from_bytes(std::string_view bytes, const std::string& source) {
  SLUICE_REQUIRE(bytes.starts_with(kMagic) && bytes.size() >= 10, Code::kInvalidArgument, source,
                 ": not a .npy file (no NumPy magic)");
  const int version = bytes[6];
  SLUICE_REQUIRE(version >= 1 && version <= 3, Code::kInvalidArgument, source, ": .npy version ", version,
                 " cannot be read");
  const size_t length_bytes = version == 1 ? 2 : 4;
  SLUICE_REQUIRE(bytes.size() >= 8 + length_bytes, Code::kDataLoss, source, ": truncated .npy header");
  uint32_t length = 0;
  std::memcpy(&length, bytes.data() + 8, length_bytes);
  const size_t begin = 8 + length_bytes;
  SLUICE_REQUIRE(length <= bytes.size() - begin, Code::kDataLoss, source, ": truncated .npy header");
  const Header header(bytes.substr(begin, length), source);
  const std::string_view data = bytes.substr(begin + length);
  const size_t width = graph::dtype_size(header.dtype);
  uint64_t expected = width;
  bool overflow = false, empty = false;
  for (int64_t d : header.dims) {
    empty |= d == 0;
    overflow |= __builtin_mul_overflow(expected, static_cast<uint64_t>(d), &expected);
  }
  if (empty && !overflow) expected = 0;
  SLUICE_REQUIRE(!overflow && data.size() == expected, Code::kDataLoss, source, ": a ", header.dtype,
                 graph::dims_string(header.dims), " array needs ",
                 overflow ? "more bytes than can be counted" : cat(expected, " bytes"), ", the file has ",
                 data.size());
  Array out(header.dtype, header.dims);
  auto* to = static_cast<char*>(out.data());
  if (header.fortran && header.dims.size() > 1)
    from_fortran(data.data(), width, header.dims, to);
  else if (expected > 0)
    std::memcpy(to, data.data(), expected);
  if (header.swapped) {
    const size_t part = graph::is_complex(header.dtype) ? width / 2 : width;
    for (size_t i = 0; i < expected; i += part) std::reverse(to + i, to + i + part);
  }
  if (header.dtype == DType::kBool)
    for (size_t i = 0; i < expected; ++i) to[i] = to[i] != 0;
  return out;
}

std::string npy_to_bytes(const Array& array) {
  const char* name = nullptr;
  for (const TypeName& t : kTypes)
    if (t.type == array.dtype()) name = t.name;
  SLUICE_REQUIRE(name, Code::kInvalidArgument, "a ", array.dtype(), " array cannot be written as .npy");
  std::string header = cat("{'descr': '", graph::dtype_size(array.dtype()) == 1 ? '|' : '<', name,
                           "', 'fortran_order': False, 'shape': (");
  for (size_t i = 0; i < array.dims().size(); ++i) header += cat(i ? ", " : "", array.dims()[i]);
  header += array.dims().size() == 1 ? ",), }" : "), }";
  // NumPy aligns the data to 64 bytes.
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string out(kMagic);
  out += '\x01';
  out += '\x00';
  const auto length = static_cast<uint16_t>(header.size());
  out.append(reinterpret_cast<const char*>(&length), sizeof length);
  out += header;
  if (array.bytes() > 0) out.append(static_cast<const char*>(array.data()), array.bytes());
  return out;
}

Array read_npy(const std::string& path) { return npy_from_bytes(read_file(path, uint64_t{1} << 40), path); }

void write_npy(const std::string& path, const Array& array) {
  write_file_atomically(path, npy_to_bytes(array));
}

}  // namespace sluice::runtime::io
