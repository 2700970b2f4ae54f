// Attribute values, shapes and op definitions to and from their messages.

#include <google/protobuf/repeated_field.h>

#include "graph/graphdef_internal.h"
#include "graph/op.h"
#include "graph/proto/graph.pb.h"

namespace sluice::graph::detail {
namespace {

constexpr int kMaxRank = 254;  // TensorFlow's own limit

DType dtype_from_number(int number, ReadContext& context) {
  if (number != 0 && !is_valid_dtype(number))
    context.fail(Code::kInvalidArgument, cat("unknown DataType ", number));
  return static_cast<DType>(number);
}

proto::DataType dtype_number(DType t) { return static_cast<proto::DataType>(static_cast<int>(t)); }

void func_to_proto(const FuncAttr& f, proto::NameAttrList* out) {
  out->set_name(f.name);
  if (f.attrs)
    for (const auto& [name, value] : *f.attrs) attr_to_proto(value, &(*out->mutable_attr())[name]);
}

FuncAttr func_from_proto(const proto::NameAttrList& in, ReadContext& context) {
  FuncAttr f{.name = in.name()};
  if (in.attr().empty()) return f;
  auto attrs = std::make_shared<AttrMap>();
  for (const auto& [name, value] : in.attr()) attrs->emplace(name, attr_from_proto(value, context));
  f.attrs = std::move(attrs);
  return f;
}

AttrValue list_from_proto(const proto::AttrValue::ListValue& in, ReadContext& context) {
  const int kinds = !in.s().empty() + !in.i().empty() + !in.f().empty() + !in.b().empty() +
                    !in.type().empty() + !in.shape().empty() + !in.tensor().empty() + !in.func().empty();
  if (kinds > 1) context.fail(Code::kInvalidArgument, "a list holds values of several kinds");
  if (!in.s().empty()) return std::vector<std::string>(in.s().begin(), in.s().end());
  if (!in.i().empty()) return std::vector<int64_t>(in.i().begin(), in.i().end());
  if (!in.f().empty()) return std::vector<float>(in.f().begin(), in.f().end());
  if (!in.b().empty()) return std::vector<bool>(in.b().begin(), in.b().end());
  if (!in.type().empty()) {
    std::vector<DType> v;
    v.reserve(static_cast<size_t>(in.type_size()));
    for (int t : in.type()) v.push_back(dtype_from_number(t, context));
    return v;
  }
  if (!in.shape().empty()) {
    std::vector<Shape> v;
    for (const auto& s : in.shape()) v.push_back(shape_from_proto(s, context));
    return v;
  }
  if (!in.tensor().empty()) {
    std::vector<Literal> v;
    for (const auto& t : in.tensor()) v.push_back(literal_from_proto(t, context));
    return v;
  }
  if (!in.func().empty()) {
    std::vector<FuncAttr> v;
    for (const auto& f : in.func()) v.push_back(func_from_proto(f, context));
    return v;
  }
  return EmptyList{};
}

// Writes each alternative of AttrValue.
struct Writer {
  proto::AttrValue* out;
  proto::AttrValue::ListValue* list() const { return out->mutable_list(); }
  void operator()(std::monostate) const { out->clear_value(); }
  void operator()(const std::string& v) const { out->set_s(v); }
  void operator()(int64_t v) const { out->set_i(v); }
  void operator()(float v) const { out->set_f(v); }
  void operator()(bool v) const { out->set_b(v); }
  void operator()(DType v) const { out->set_type(dtype_number(v)); }
  void operator()(const Shape& v) const { shape_to_proto(v, out->mutable_shape()); }
  void operator()(const Literal& v) const { literal_to_proto(v, out->mutable_tensor()); }
  void operator()(const FuncAttr& v) const { func_to_proto(v, out->mutable_func()); }
  void operator()(const PlaceholderAttr& v) const { out->set_placeholder(v.name); }
  void operator()(const EmptyList&) const { list(); }
  void operator()(const std::vector<std::string>& v) const {
    auto* l = list();
    for (const auto& e : v) l->add_s(e);
  }
  void operator()(const std::vector<int64_t>& v) const { list()->mutable_i()->Add(v.begin(), v.end()); }
  void operator()(const std::vector<float>& v) const { list()->mutable_f()->Add(v.begin(), v.end()); }
  void operator()(const std::vector<bool>& v) const {
    auto* l = list();
    for (bool e : v) l->add_b(e);
  }
  void operator()(const std::vector<DType>& v) const {
    auto* l = list();
    for (DType e : v) l->add_type(dtype_number(e));
  }
  void operator()(const std::vector<Shape>& v) const {
    auto* l = list();
    for (const auto& e : v) shape_to_proto(e, l->add_shape());
  }
  void operator()(const std::vector<Literal>& v) const {
    auto* l = list();
    for (const auto& e : v) literal_to_proto(e, l->add_tensor());
  }
  void operator()(const std::vector<FuncAttr>& v) const {
    auto* l = list();
    for (const auto& e : v) func_to_proto(e, l->add_func());
  }
};

void arg_to_proto(const ArgSpec& arg, proto::OpDef::ArgDef* out) {
  out->set_name(arg.name);
  out->set_type(dtype_number(arg.type));
  out->set_type_attr(arg.type_attr);
  out->set_number_attr(arg.number_attr);
  out->set_type_list_attr(arg.type_list_attr);
  out->set_is_ref(arg.is_ref);
}

}  // namespace

void shape_to_proto(const Shape& shape, proto::TensorShapeProto* out) {
  out->Clear();
  if (!shape.known_rank()) {
    out->set_unknown_rank(true);
    return;
  }
  for (int64_t d : shape.dims()) out->add_dim()->set_size(d);
}

Shape shape_from_proto(const proto::TensorShapeProto& in, ReadContext& context) {
  if (in.unknown_rank()) {
    if (in.dim_size() > 0)
      context.fail(Code::kInvalidArgument, "An unknown shape must not have any dimensions set.");
    return {};
  }
  if (in.dim_size() > kMaxRank)
    context.fail(Code::kInvalidArgument, cat("Shape has too many dimensions: ", in.dim_size(), ", at most ",
                                             kMaxRank, " are allowed"));
  Dims dims;
  dims.reserve(static_cast<size_t>(in.dim_size()));
  int64_t known = 1;
  for (const auto& d : in.dim()) {
    if (d.size() < kUnknownDim)
      context.fail(Code::kInvalidArgument,
                   cat("Shape has dimensions with values below -1 (where -1 means unknown): ", d.size()));
    dims.push_back(d.size());
    if (d.size() >= 0 && __builtin_mul_overflow(known, d.size(), &known))
      context.fail(Code::kInvalidArgument,
                   cat("Shape ", dims_string(dims), " is too large (more than 2**63 - 1 entries)"));
  }
  return Shape(std::move(dims));
}

void attr_to_proto(const AttrValue& value, proto::AttrValue* out) {
  std::visit(Writer{out}, value.variant());
}

AttrValue attr_from_proto(const proto::AttrValue& in, ReadContext& context) {
  switch (in.value_case()) {
    case proto::AttrValue::kS:
      return in.s();
    case proto::AttrValue::kI:
      return in.i();
    case proto::AttrValue::kF:
      return in.f();
    case proto::AttrValue::kB:
      return in.b();
    case proto::AttrValue::kType:
      return dtype_from_number(in.type(), context);
    case proto::AttrValue::kShape:
      return shape_from_proto(in.shape(), context);
    case proto::AttrValue::kTensor:
      return literal_from_proto(in.tensor(), context);
    case proto::AttrValue::kList:
      return list_from_proto(in.list(), context);
    case proto::AttrValue::kFunc:
      return func_from_proto(in.func(), context);
    case proto::AttrValue::kPlaceholder:
      return PlaceholderAttr{in.placeholder()};
    case proto::AttrValue::VALUE_NOT_SET:
      break;
  }
  return {};
}

void op_def_to_proto(const OpDef& def, proto::OpDef* out) {
  out->set_name(def.name);
  for (const ArgSpec& a : def.input_args) arg_to_proto(a, out->add_input_arg());
  for (const ArgSpec& a : def.output_args) arg_to_proto(a, out->add_output_arg());
  for (const AttrSpec& a : def.attr_specs) {
    auto* attr = out->add_attr();
    attr->set_name(a.name);
    attr->set_type(a.kind);
    if (a.default_value.has_value()) attr_to_proto(a.default_value, attr->mutable_default_value());
    attr->set_has_minimum(a.has_minimum);
    attr->set_minimum(a.minimum);
    for (const AttrValue& v : a.allowed) {
      auto* list = attr->mutable_allowed_values()->mutable_list();
      if (const DType* t = v.get_if<DType>())
        list->add_type(dtype_number(*t));
      else if (const std::string* s = v.get_if<std::string>())
        list->add_s(*s);
    }
  }
  out->set_is_aggregate(def.has(kAggregate));
  out->set_is_stateful(def.has(kStateful));
  out->set_is_commutative(def.has(kCommutative));
  out->set_allows_uninitialized_input(def.has(kAllowsUninitialized));
}

}  // namespace sluice::graph::detail
