#include "runtime/data/state.h"
#include "runtime/data/copy_bytes.h"

#include <cstring>

namespace sluice::runtime::data {
namespace {

constexpr int64_t kMaxRank = 64;

}  // namespace

void StateWriter::put(int64_t v) { bytes_.append(reinterpret_cast<const char*>(&v), sizeof v); }

void StateWriter::put_text(std::string_view text) {
  put(static_cast<int64_t>(text.size()));
  bytes_.append(text);
}

void StateWriter::put_array(const Array& a) {
  put(static_cast<int64_t>(a.dtype()));
  if (!a) return;
  put(a.rank());
  for (int64_t d : a.dims()) put(d);
  if (a.dtype() == DType::kString)
    for (const std::string& s : a.string_values()) put_text(s);
  else
    bytes_.append(static_cast<const char*>(a.data()), a.bytes());
}

void StateWriter::put_element(const Element& e) {
  put(static_cast<int64_t>(e.size()));
  for (const Array& a : e.values) put_array(a);
  put(e.origin.file ? 1 : 0);
  if (!e.origin.file) return;
  put_text(*e.origin.file);
  put(e.origin.record);
  put_u64(e.origin.offset);
}

void StateWriter::put_error(const std::exception_ptr& error) {
  if (!error) return put(0);
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    put(static_cast<int64_t>(e.code()));
    put_text(e.message());
  } catch (const std::exception& e) {
    put(static_cast<int64_t>(Code::kUnknown));
    put_text(e.what());
  }
}

void StateReader::fail(const char* what) {
  throw_error(Code::kInvalidArgument, cat("The saved position of an input pipeline is damaged: ", what));
}

std::string_view StateReader::bytes(size_t n) {
  if (n > bytes_.size()) fail("it ends too early");
  const std::string_view got = bytes_.substr(0, n);
  bytes_.remove_prefix(n);
  return got;
}

int64_t StateReader::get() {
  int64_t v;
  copy_bytes(&v, bytes(sizeof v).data(), sizeof v);
  return v;
}

int64_t StateReader::get(int64_t low, int64_t high) {
  const int64_t v = get();
  if (v < low || v > high) fail("a number is out of range");
  return v;
}

std::string StateReader::get_text() {
  return std::string(bytes(static_cast<size_t>(get(0, static_cast<int64_t>(bytes_.size())))));
}

Array StateReader::get_array() {
  const auto dtype = static_cast<DType>(get(0, 100));
  if (dtype == DType::kInvalid) return Array();
  const size_t size = graph::dtype_size(dtype);
  if (!graph::is_valid_dtype(static_cast<int>(dtype)) || (size == 0 && dtype != DType::kString))
    fail("an array has an unknown type");
  Dims dims(static_cast<size_t>(get(0, kMaxRank)));
  int64_t elements = 1;
  for (int64_t& d : dims) {
    d = get(0, INT64_MAX);
    if (__builtin_mul_overflow(elements, d, &elements)) fail("an array is too large");
  }
  // A string takes at least its length's bytes.
  const auto left = static_cast<int64_t>(bytes_.size());
  if (elements > left / static_cast<int64_t>(size ? size : sizeof(int64_t))) fail("it ends too early");
  Array a(dtype, std::move(dims));
  if (dtype == DType::kString) {
    for (std::string& s : a.string_values()) s = get_text();
  } else if (a.bytes() > 0) {
    copy_bytes(a.data(), bytes(a.bytes()).data(), a.bytes());
  }
  return a;
}

void StateReader::get_element(Element& e) {
  e.values.resize(static_cast<size_t>(get(0, static_cast<int64_t>(bytes_.size() / sizeof(int64_t)))));
  for (Array& a : e.values) a = get_array();
  e.origin = {};
  if (get(0, 1) == 0) return;
  e.origin.file = std::make_shared<const std::string>(get_text());
  e.origin.record = get();
  e.origin.offset = get_u64();
}

std::exception_ptr StateReader::get_error() {
  const auto code = static_cast<Code>(get(0, 16));
  if (code == Code::kOk) return nullptr;
  return std::make_exception_ptr(Error(code, get_text()));
}

}  // namespace sluice::runtime::data
