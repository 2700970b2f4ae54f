#include "runtime/io/slice.h"

#include <charconv>
#include <cstring>

#include "graph/support/check.h"

namespace sluice::runtime::io {
namespace {

bool read_int(std::string_view text, int64_t* v) {
  const auto r = std::from_chars(text.data(), text.data() + text.size(), *v);
  return r.ec == std::errc() && r.ptr == text.data() + text.size() && !text.empty();
}

// One length byte, then big-endian bytes without leading zeros.
void put_unsigned(std::string* out, uint64_t v) {
  char bytes[8];
  int n = 0;
  for (; v > 0; v >>= 8) bytes[7 - n++] = static_cast<char>(v & 0xff);
  out->push_back(static_cast<char>(n));
  out->append(bytes + 8 - n, static_cast<size_t>(n));
}

// Sign-extended big-endian in as few bytes as hold 7 payload bits each; the first bits count the bytes.
void put_signed(std::string* out, int64_t v) {
  const uint64_t magnitude = static_cast<uint64_t>(v < 0 ? ~v : v);
  int length = 1;
  while (length < 10 && (7 * length - 1 < 64) && (magnitude >> (7 * length - 1)) != 0) ++length;
  unsigned char bytes[10];
  for (int i = 0; i < 10; ++i) {
    const int shift = 8 * (9 - i);
    bytes[i] = static_cast<unsigned char>(shift >= 64 ? (v < 0 ? 0xff : 0)
                                                      : (static_cast<uint64_t>(v) >> shift) & 0xff);
  }
  unsigned char* first = bytes + 10 - length;
  if (length == 1) {
    first[0] ^= 0x80;
  } else {
    first[0] ^= static_cast<unsigned char>(length >= 8 ? 0xff : (0xff << (8 - length)) & 0xff);
    if (length >= 8) first[1] ^= static_cast<unsigned char>((0xff << (16 - length)) & 0xff);
  }
  out->append(reinterpret_cast<const char*>(first), static_cast<size_t>(length));
}

void put_string(std::string* out, std::string_view s) {
  for (const char c : s) {
    out->push_back(c);
    if (c == '\0') out->push_back('\xff');
    if (c == '\xff') out->push_back('\0');
  }
  out->append("\0\1", 2);
}

// Calls f(offset in the part, offset in the whole, elements) for each contiguous run.
template <class F>
void for_each_run(const TensorSlice& slice, const Dims& full, F&& f) {
  const size_t rank = full.size();
  int64_t elements = 1;
  for (const SliceDim& d : slice) elements *= d.length;
  if (elements == 0) return;
  const int64_t run = rank == 0 ? 1 : slice[rank - 1].length;
  std::vector<int64_t> at(rank, 0);
  for (int64_t done = 0; done < elements; done += run) {
    int64_t offset = 0;
    for (size_t k = 0; k < rank; ++k) offset = offset * full[k] + slice[k].start + at[k];
    f(done, offset, run);
    for (size_t k = rank > 0 ? rank - 1 : 0; k-- > 0;) {
      if (++at[k] < slice[k].length) break;
      at[k] = 0;
    }
  }
}

}  // namespace

SliceSpec parse_slice_spec(std::string_view text) {
  SliceSpec spec;
  if (text.empty()) return spec;
  auto bad = [&](const char* why) {
    throw_error(Code::kInvalidArgument, cat("shape_and_slice spec '", text, "': ", why));
  };
  spec.known = true;
  std::string_view rest = text;
  for (size_t space; (space = rest.find(' ')) != std::string_view::npos; rest.remove_prefix(space + 1)) {
    int64_t d = 0;
    if (!read_int(rest.substr(0, space), &d) || d < 0) bad("a dimension is no number");
    spec.full_dims.push_back(d);
  }
  while (!rest.empty()) {
    const size_t colon = rest.find(':');
    const std::string_view part = rest.substr(0, colon);
    rest = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
    SliceDim d;
    const size_t comma = part.find(',');
    if (part != "-" && (comma == std::string_view::npos || !read_int(part.substr(0, comma), &d.start) ||
                        !read_int(part.substr(comma + 1), &d.length) || d.start < 0 || d.length < 0))
      bad("an extent is neither 'start,length' nor '-'");
    spec.slice.push_back(d);
  }
  if (spec.slice.size() != spec.full_dims.size()) bad("dimensions and extents differ in number");
  resolve_slice(spec.slice, spec.full_dims);  // only to refuse what does not fit
  return spec;
}

TensorSlice resolve_slice(const TensorSlice& slice, const Dims& full) {
  SLUICE_REQUIRE(slice.size() == full.size(), Code::kInvalidArgument, "a slice of rank ", slice.size(),
                 " cannot lie in a tensor of shape ", graph::dims_string(full));
  TensorSlice out = slice;
  for (size_t i = 0; i < full.size(); ++i) {
    if (out[i].length < 0) out[i] = {0, full[i]};
    SLUICE_REQUIRE(out[i].start >= 0 && out[i].start <= full[i] && out[i].length <= full[i] - out[i].start,
                   Code::kInvalidArgument, "slice ", out[i].start, "+", out[i].length, " of dimension ", i,
                   " leaves the shape ", graph::dims_string(full));
  }
  return out;
}

Dims slice_dims(const TensorSlice& resolved) {
  Dims d;
  for (const SliceDim& s : resolved) d.push_back(s.length);
  return d;
}

bool covers(const TensorSlice& resolved, const Dims& full) { return slice_dims(resolved) == full; }

std::string slice_key(std::string_view name, const TensorSlice& slice) {
  std::string key;
  put_unsigned(&key, 0);
  put_string(&key, name);
  put_unsigned(&key, slice.size());
  for (const SliceDim& d : slice) {
    put_signed(&key, d.start);
    put_signed(&key, d.length);
  }
  return key;
}

void insert_slice(const Array& part, const TensorSlice& slice, Array* whole) {
  const size_t width = graph::dtype_size(part.dtype());
  for_each_run(slice, whole->dims(), [&](int64_t from, int64_t to, int64_t n) {
    if (width == 0) {
      for (int64_t i = 0; i < n; ++i)
        whole->string_values()[static_cast<size_t>(to + i)] =
            part.string_values()[static_cast<size_t>(from + i)];
    } else {
      std::memcpy(static_cast<char*>(whole->data()) + static_cast<size_t>(to) * width,
                  static_cast<const char*>(part.data()) + static_cast<size_t>(from) * width,
                  static_cast<size_t>(n) * width);
    }
  });
}

Array extract_slice(const Array& whole, const TensorSlice& slice) {
  Array part(whole.dtype(), slice_dims(slice));
  const size_t width = graph::dtype_size(part.dtype());
  for_each_run(slice, whole.dims(), [&](int64_t to, int64_t from, int64_t n) {
    if (width == 0) {
      for (int64_t i = 0; i < n; ++i)
        part.string_values()[static_cast<size_t>(to + i)] =
            whole.string_values()[static_cast<size_t>(from + i)];
    } else {
      std::memcpy(static_cast<char*>(part.data()) + static_cast<size_t>(to) * width,
                  static_cast<const char*>(whole.data()) + static_cast<size_t>(from) * width,
                  static_cast<size_t>(n) * width);
    }
  });
  return part;
}

}  // namespace sluice::runtime::io
