#include "graph/dtype.h"

#include <cctype>

namespace sluice::graph {
namespace {

struct Entry {
  DType type;
  const char* name;
  size_t size;
};

constexpr Entry kTable[] = {
    {DType::kFloat, "float", 4},     {DType::kDouble, "double", 8},
    {DType::kInt32, "int32", 4},     {DType::kUint8, "uint8", 1},
    {DType::kInt16, "int16", 2},     {DType::kInt8, "int8", 1},
    {DType::kString, "string", 0},   {DType::kComplex64, "complex64", 8},
    {DType::kInt64, "int64", 8},     {DType::kBool, "bool", 1},
    {DType::kQint8, "qint8", 1},     {DType::kQuint8, "quint8", 1},
    {DType::kQint32, "qint32", 4},   {DType::kBfloat16, "bfloat16", 2},
    {DType::kQint16, "qint16", 2},   {DType::kQuint16, "quint16", 2},
    {DType::kUint16, "uint16", 2},   {DType::kComplex128, "complex128", 16},
    {DType::kHalf, "half", 2},       {DType::kResource, "resource", 0},
    {DType::kVariant, "variant", 0}, {DType::kUint32, "uint32", 4},
    {DType::kUint64, "uint64", 8},
};

const Entry* find(DType t) {
  for (const Entry& e : kTable)
    if (e.type == base_dtype(t)) return &e;
  return nullptr;
}

}  // namespace

size_t dtype_size(DType t) {
  const Entry* e = find(t);
  return e ? e->size : 0;
}

bool is_floating(DType t) {
  t = base_dtype(t);
  return t == DType::kFloat || t == DType::kDouble || t == DType::kHalf || t == DType::kBfloat16;
}

bool is_integer(DType t) {
  switch (base_dtype(t)) {
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kUint8:
    case DType::kUint16:
    case DType::kUint32:
    case DType::kUint64:
      return true;
    default:
      return false;
  }
}

bool is_complex(DType t) {
  t = base_dtype(t);
  return t == DType::kComplex64 || t == DType::kComplex128;
}

bool is_trainable(DType t) {
  t = base_dtype(t);
  return is_floating(t) || is_complex(t) || t == DType::kResource || t == DType::kVariant;
}

std::string_view dtype_name(DType t) {
  // Ref names are needed often enough in messages to be worth a static table of their own.
  static const auto* refs = [] {
    auto* a = new std::string[24];
    for (const Entry& e : kTable) a[static_cast<int>(e.type)] = std::string(e.name) + "_ref";
    return a;
  }();
  const Entry* e = find(t);
  if (!e) return "invalid";
  return is_ref(t) ? std::string_view(refs[static_cast<int>(base_dtype(t))]) : std::string_view(e->name);
}

std::string dtype_proto_name(DType t) {
  std::string s = "DT_";
  for (char c : dtype_name(t)) s += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return s;
}

std::optional<DType> parse_dtype(std::string_view name) {
  std::string s(name);
  if (s.starts_with("DT_")) {
    s = s.substr(3);
    for (char& c : s) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  bool ref = false;
  if (s.ends_with("_ref")) ref = true, s.resize(s.size() - 4);
  if (s == "float32") s = "float";
  if (s == "float64") s = "double";
  if (s == "float16") s = "half";
  for (const Entry& e : kTable)
    if (s == e.name) return ref ? make_ref(e.type) : e.type;
  return std::nullopt;
}

bool is_valid_dtype(int number) {
  return number > 0 && number < 200 && find(static_cast<DType>(number)) != nullptr;
}

void append(std::string& s, DType t) { s += dtype_name(t); }

}  // namespace sluice::graph
