// Constants to and from TensorProto (graph-and-training §7.6, "Decoding"). Sizes are checked against what the
// message holds before anything is allocated.

#include <bit>
#include <cmath>
#include <cstring>

#include "graph/graphdef_internal.h"
#include "graph/proto/graph.pb.h"

namespace sluice::graph::detail {
namespace {

static_assert(std::endian::native == std::endian::little, "tensor bytes are little-endian in files");

// The typed field of a message that holds elements of a type, and how many numbers of it make one element.
enum class Field {
  kFloat,
  kDouble,
  kInt,
  kString,
  kSComplex,
  kInt64,
  kBool,
  kDComplex,
  kHalf,
  kUint32,
  kUint64,
  kNone
};

Field field_of(DType t) {
  switch (t) {
    case DType::kFloat:
      return Field::kFloat;
    case DType::kDouble:
      return Field::kDouble;
    case DType::kInt32:
    case DType::kInt16:
    case DType::kInt8:
    case DType::kUint8:
    case DType::kUint16:
    case DType::kQint8:
    case DType::kQuint8:
    case DType::kQint16:
    case DType::kQuint16:
    case DType::kQint32:
      return Field::kInt;
    case DType::kString:
      return Field::kString;
    case DType::kComplex64:
      return Field::kSComplex;
    case DType::kComplex128:
      return Field::kDComplex;
    case DType::kInt64:
      return Field::kInt64;
    case DType::kBool:
      return Field::kBool;
    case DType::kHalf:
    case DType::kBfloat16:
      return Field::kHalf;
    case DType::kUint32:
      return Field::kUint32;
    case DType::kUint64:
      return Field::kUint64;
    default:
      return Field::kNone;
  }
}

int field_size(const proto::TensorProto& t, Field f) {
  switch (f) {
    case Field::kFloat:
      return t.float_val_size();
    case Field::kDouble:
      return t.double_val_size();
    case Field::kInt:
      return t.int_val_size();
    case Field::kString:
      return t.string_val_size();
    case Field::kSComplex:
      return t.scomplex_val_size();
    case Field::kInt64:
      return t.int64_val_size();
    case Field::kBool:
      return t.bool_val_size();
    case Field::kDComplex:
      return t.dcomplex_val_size();
    case Field::kHalf:
      return t.half_val_size();
    case Field::kUint32:
      return t.uint32_val_size();
    case Field::kUint64:
      return t.uint64_val_size();
    case Field::kNone:
      break;
  }
  return 0;
}

constexpr const char* kFieldNames[] = {"float_val",    "double_val", "int_val",   "string_val",
                                       "scomplex_val", "int64_val",  "bool_val",  "dcomplex_val",
                                       "half_val",     "uint32_val", "uint64_val"};

template <class To, class List>
void copy_as(const List& from, int count, std::byte* to) {
  for (int i = 0; i < count; ++i) {
    const To v = static_cast<To>(from[i]);
    std::memcpy(to + static_cast<size_t>(i) * sizeof(To), &v, sizeof(To));
  }
}

// The first `count` numbers of the field, each in the width of the element type.
void copy_values(const proto::TensorProto& t, Field f, size_t width, int count, std::byte* to) {
  switch (f) {
    case Field::kFloat:
      return copy_as<float>(t.float_val(), count, to);
    case Field::kDouble:
      return copy_as<double>(t.double_val(), count, to);
    case Field::kInt:
      if (width == 1) return copy_as<uint8_t>(t.int_val(), count, to);
      if (width == 2) return copy_as<uint16_t>(t.int_val(), count, to);
      return copy_as<int32_t>(t.int_val(), count, to);
    case Field::kSComplex:
      return copy_as<float>(t.scomplex_val(), count * 2, to);
    case Field::kDComplex:
      return copy_as<double>(t.dcomplex_val(), count * 2, to);
    case Field::kInt64:
      return copy_as<int64_t>(t.int64_val(), count, to);
    case Field::kBool:
      return copy_as<uint8_t>(t.bool_val(), count, to);
    case Field::kHalf:
      return copy_as<uint16_t>(t.half_val(), count, to);
    case Field::kUint32:
      return copy_as<uint32_t>(t.uint32_val(), count, to);
    case Field::kUint64:
      return copy_as<uint64_t>(t.uint64_val(), count, to);
    case Field::kString:
    case Field::kNone:
      break;
  }
}

void charge(ReadContext& context, uint64_t bytes, const Dims& dims) {
  if (bytes > context.repeat_bytes_left)
    context.fail(Code::kInvalidArgument,
                 cat("a constant of shape ", dims_string(dims), " repeats one value over ", bytes,
                     " bytes; all such repetition in a file together must stay under 2 GiB"));
  context.repeat_bytes_left -= bytes;
}

// Strings packed into tensor_content: all lengths as varints, then all characters.
std::vector<std::string> unpack_strings(std::string_view content, uint64_t count, ReadContext& context) {
  auto bad = [&] {
    context.fail(Code::kInvalidArgument, "tensor_content does not hold the strings its shape asks for");
  };
  if (count > content.size()) bad();
  std::vector<uint64_t> lengths(count);
  uint64_t total = 0;
  size_t at = 0;
  for (uint64_t& length : lengths) {
    int shift = 0;
    for (;; shift += 7) {
      if (at == content.size() || shift > 35) bad();
      const uint8_t byte = static_cast<uint8_t>(content[at++]);
      length |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    total += length;
    if (total > content.size()) bad();
  }
  if (total != content.size() - at) bad();
  std::vector<std::string> out;
  out.reserve(count);
  for (uint64_t length : lengths) {
    out.emplace_back(content.substr(at, length));
    at += length;
  }
  return out;
}

Literal strings_from_proto(const proto::TensorProto& in, Dims dims, uint64_t elements, ReadContext& context) {
  if (!in.tensor_content().empty())
    return Literal(std::move(dims), unpack_strings(in.tensor_content(), elements, context));
  const auto given = static_cast<uint64_t>(in.string_val_size());
  const uint64_t taken = std::min(given, elements);
  const std::string last = taken > 0 ? in.string_val(static_cast<int>(taken) - 1) : std::string();
  charge(context, repeat_bytes(in), dims);
  std::vector<std::string> out(in.string_val().begin(), in.string_val().begin() + static_cast<int>(taken));
  out.resize(elements, last);
  return Literal(std::move(dims), std::move(out));
}

// True when every element has the first one's bytes; such constants are stored as one value.
bool uniform(const Literal& l) {
  const size_t width = dtype_size(l.dtype());
  return l.size_bytes() > width && std::memcmp(l.data(), l.data() + width, l.size_bytes() - width) == 0;
}

// NaN carries bits that decimal text would lose.
bool first_is_nan(const Literal& l) {
  if (l.dtype() == DType::kFloat) return std::isnan(l.as<float>()[0]);
  if (l.dtype() == DType::kDouble) return std::isnan(l.as<double>()[0]);
  return is_complex(l.dtype()) || l.dtype() == DType::kHalf || l.dtype() == DType::kBfloat16;
}

template <class T>
T first_as(const Literal& l) {
  T v;
  std::memcpy(&v, l.data(), sizeof v);
  return v;
}

void put_first(const Literal& l, Field f, proto::TensorProto* out) {
  switch (f) {
    case Field::kFloat:
      return out->add_float_val(first_as<float>(l));
    case Field::kDouble:
      return out->add_double_val(first_as<double>(l));
    case Field::kInt:
      switch (l.dtype()) {
        case DType::kInt8:
        case DType::kQint8:
          return out->add_int_val(first_as<int8_t>(l));
        case DType::kUint8:
        case DType::kQuint8:
          return out->add_int_val(first_as<uint8_t>(l));
        case DType::kInt16:
        case DType::kQint16:
          return out->add_int_val(first_as<int16_t>(l));
        case DType::kUint16:
        case DType::kQuint16:
          return out->add_int_val(first_as<uint16_t>(l));
        default:
          return out->add_int_val(first_as<int32_t>(l));
      }
    case Field::kInt64:
      return out->add_int64_val(first_as<int64_t>(l));
    case Field::kBool:
      return out->add_bool_val(first_as<uint8_t>(l) != 0);
    case Field::kUint32:
      return out->add_uint32_val(first_as<uint32_t>(l));
    case Field::kUint64:
      return out->add_uint64_val(first_as<uint64_t>(l));
    default:
      SLUICE_CHECK(false, "no single value of ", l.dtype());
  }
}

}  // namespace

void literal_to_proto(const Literal& literal, proto::TensorProto* out) {
  out->Clear();
  out->set_dtype(static_cast<proto::DataType>(static_cast<int>(literal.dtype())));
  shape_to_proto(literal.shape(), out->mutable_tensor_shape());
  if (literal.dtype() == DType::kString) {
    for (const std::string& s : literal.as_strings()) out->add_string_val(s);
    return;
  }
  if (literal.elements() == 0) return;
  if ((literal.elements() == 1 || uniform(literal)) && !first_is_nan(literal))
    put_first(literal, field_of(literal.dtype()), out);
  else
    out->set_tensor_content(literal.data(), literal.size_bytes());
}

uint64_t repeat_bytes(const proto::TensorProto& in) {
  uint64_t elements = 1;
  for (const auto& d : in.tensor_shape().dim())
    if (d.size() < 0 || __builtin_mul_overflow(elements, static_cast<uint64_t>(d.size()), &elements))
      return UINT64_MAX;
  const DType dtype = is_valid_dtype(in.dtype()) ? static_cast<DType>(in.dtype()) : DType::kInvalid;
  const Field field = field_of(dtype);
  if (!in.tensor_content().empty() || field == Field::kNone)
    return 0;  // its size is checked, or it is refused
  const auto given = static_cast<uint64_t>(field_size(in, field) / (is_complex(dtype) ? 2 : 1));
  if (given >= elements) return 0;
  uint64_t each = dtype_size(dtype), bytes = 0;
  if (field == Field::kString)
    each = sizeof(std::string) + (given > 0 ? in.string_val(static_cast<int>(given) - 1).size() : 0);
  return __builtin_mul_overflow(elements - given, each, &bytes) ? UINT64_MAX : bytes;
}

Literal literal_from_proto(const proto::TensorProto& in, ReadContext& context) {
  const int number = in.dtype();
  if (!is_valid_dtype(number) || is_ref(static_cast<DType>(number)))
    context.fail(Code::kInvalidArgument, cat("TensorProto has no usable dtype (", number, ")"));
  const DType dtype = static_cast<DType>(number);
  const Shape shape = shape_from_proto(in.tensor_shape(), context);
  if (!shape.fully_known())
    context.fail(Code::kInvalidArgument,
                 cat("TensorProto of shape ", shape, ": a constant's shape must be fully known"));
  Dims dims = shape.dims();
  const auto elements = static_cast<uint64_t>(num_elements(dims));
  const Field field = field_of(dtype);
  if (field == Field::kNone)
    context.fail(Code::kUnimplemented, cat("constants of type ", dtype, " cannot be read"));
  for (int f = 0; f < static_cast<int>(Field::kNone); ++f)
    if (static_cast<Field>(f) != field && field_size(in, static_cast<Field>(f)) > 0)
      context.fail(Code::kInvalidArgument,
                   cat("TensorProto of dtype ", dtype, " holds ", kFieldNames[f], "; its values belong in ",
                       kFieldNames[static_cast<int>(field)]));
  if (dtype == DType::kString) return strings_from_proto(in, std::move(dims), elements, context);

  const size_t width = dtype_size(dtype);
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(elements, width, &bytes) || bytes > static_cast<uint64_t>(INT64_MAX))
    context.fail(Code::kInvalidArgument, cat("TensorProto of shape ", shape, " is too large"));
  if (!in.tensor_content().empty()) {
    if (in.tensor_content().size() != bytes)
      context.fail(Code::kInvalidArgument,
                   cat("TensorProto of dtype ", dtype, " and shape ", shape, " needs ", bytes,
                       " bytes of tensor_content, got ", in.tensor_content().size()));
    std::vector<std::byte> content(bytes);
    std::memcpy(content.data(), in.tensor_content().data(), bytes);
    if (dtype == DType::kBool)
      for (std::byte& b : content)
        b = b == std::byte{0} ? std::byte{0} : std::byte{1};  // a C++ bool is 0 or 1
    return Literal(dtype, std::move(dims), std::move(content));
  }
  const int numbers = field_size(in, field), per_element = is_complex(dtype) ? 2 : 1;
  if (numbers % per_element != 0)
    context.fail(Code::kInvalidArgument, cat("TensorProto of dtype ", dtype, " holds half a complex number"));
  const uint64_t taken = std::min(static_cast<uint64_t>(numbers / per_element), elements);
  charge(context, repeat_bytes(in), dims);
  std::vector<std::byte> values(bytes);
  copy_values(in, field, width, static_cast<int>(taken), values.data());
  if (taken > 0)
    for (uint64_t i = taken; i < elements; ++i)
      std::memcpy(values.data() + i * width, values.data() + (taken - 1) * width, width);
  return Literal(dtype, std::move(dims), std::move(values));
}

}  // namespace sluice::graph::detail
