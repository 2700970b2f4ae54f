#include <charconv>
#include <optional>

#include "graph/op.h"
#include "graph/support/check.h"

namespace sluice::graph {
namespace {

// A cursor over one spec string; every failure names the string and the place.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  void skip_space() {
    while (pos_ < text_.size() && (text_[pos_] == ' ' || text_[pos_] == '\n' || text_[pos_] == '\t')) ++pos_;
  }
  bool eat(std::string_view token) {
    skip_space();
    if (!text_.substr(pos_).starts_with(token)) return false;
    pos_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!eat(token)) fail(cat("expected '", token, "'"));
  }
  bool done() {
    skip_space();
    return pos_ == text_.size();
  }
  char peek() {
    skip_space();
    return pos_ < text_.size() ? text_[pos_] : '\0';
  }
  std::string word() {
    skip_space();
    const size_t from = pos_;
    while (pos_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[pos_])) || text_[pos_] == '_'))
      ++pos_;
    if (pos_ == from) fail("expected a name");
    return std::string(text_.substr(from, pos_ - from));
  }
  std::string quoted() {
    const char q = peek();
    if (q != '\'' && q != '"') fail("expected a quoted string");
    const size_t from = ++pos_;
    const size_t end = text_.find(q, from);
    if (end == std::string_view::npos) fail("unterminated string");
    pos_ = end + 1;
    return std::string(text_.substr(from, end - from));
  }
  double number() {
    skip_space();
    double v = 0;
    auto r = std::from_chars(text_.data() + pos_, text_.data() + text_.size(), v);
    if (r.ec != std::errc()) fail("expected a number");
    pos_ = static_cast<size_t>(r.ptr - text_.data());
    return v;
  }
  [[noreturn]] void fail(const std::string& why) const {
    throw_error(Code::kInvalidArgument, cat("op spec '", text_, "': ", why, " at column ", pos_));
  }

 private:
  std::string_view text_;
  size_t pos_ = 0;
};

std::vector<AttrValue> types(std::initializer_list<DType> list) {
  return std::vector<AttrValue>(list.begin(), list.end());
}

// TF's named type sets, less the types that no kernel of ours will ever see being refused: the sets are TF's
// own.
std::optional<std::vector<AttrValue>> named_type_set(std::string_view name) {
  using enum DType;
  if (name == "realnumbertype" || name == "realnumberictype")
    return types({kFloat, kDouble, kInt32, kUint8, kInt16, kInt8, kInt64, kBfloat16, kUint16, kHalf, kUint32,
                  kUint64});
  if (name == "numbertype")
    return types({kFloat, kDouble, kInt32, kUint8, kInt16, kInt8, kComplex64, kInt64, kQint8, kQuint8,
                  kQint32, kBfloat16, kQint16, kQuint16, kUint16, kComplex128, kHalf, kUint32, kUint64});
  if (name == "floattype") return types({kHalf, kBfloat16, kFloat, kDouble});
  if (name == "indextype") return types({kInt32, kInt64});
  return std::nullopt;
}

AttrValue parse_scalar_default(Cursor& c, std::string_view kind);

AttrValue parse_list_default(Cursor& c, std::string_view element) {
  c.expect("[");
  std::vector<AttrValue> items;
  while (!c.eat("]")) {
    items.push_back(parse_scalar_default(c, element));
    c.eat(",");
  }
  auto collect = [&]<class T>(std::vector<T> out) -> AttrValue {
    for (const AttrValue& v : items) out.push_back(*v.get_if<T>());
    return AttrValue(std::move(out));
  };
  if (element == "string") return collect(std::vector<std::string>{});
  if (element == "int") return collect(std::vector<int64_t>{});
  if (element == "float") return collect(std::vector<float>{});
  if (element == "type") return collect(std::vector<DType>{});
  if (element == "shape") return collect(std::vector<Shape>{});
  if (element == "func") return collect(std::vector<FuncAttr>{});
  if (element == "bool") {
    std::vector<bool> out;
    for (const AttrValue& v : items) out.push_back(*v.get_if<bool>());
    return AttrValue(std::move(out));
  }
  c.fail(cat("no default of kind list(", element, ")"));
}

Shape parse_shape_default(Cursor& c) {
  if (c.eat("{")) {  // {unknown_rank: true} or {}
    if (c.eat("}")) return Shape::scalar();
    c.expect("unknown_rank");
    c.expect(":");
    c.expect("true");
    c.expect("}");
    return Shape();
  }
  c.expect("[");
  Dims dims;
  while (!c.eat("]")) {
    dims.push_back(static_cast<int64_t>(c.number()));
    c.eat(",");
  }
  return Shape(std::move(dims));
}

AttrValue parse_scalar_default(Cursor& c, std::string_view kind) {
  if (kind == "string") return c.quoted();
  if (kind == "int") return static_cast<int64_t>(c.number());
  if (kind == "float") return static_cast<float>(c.number());
  if (kind == "bool") {
    const std::string w = c.word();
    if (w != "true" && w != "false") c.fail("a bool is true or false");
    return w == "true";
  }
  if (kind == "type") {
    const std::string w = c.word();
    const auto t = parse_dtype(w);
    if (!t) c.fail(cat("'", w, "' is no type"));
    return *t;
  }
  if (kind == "shape") return parse_shape_default(c);
  if (kind == "tensor") {  // a vector: uint8[255, 0]
    const std::string w = c.word();
    const auto t = parse_dtype(w);
    if (!t) c.fail(cat("'", w, "' is no type"));
    std::vector<double> values;
    c.expect("[");
    while (!c.eat("]")) {
      values.push_back(c.number());
      c.eat(",");
    }
    return Literal::vector<double>(std::span<const double>(values)).cast(*t);
  }
  c.fail(cat("no default of kind ", kind));
}

}  // namespace

AttrSpec parse_attr_spec(std::string_view spec) {
  Cursor c(spec);
  AttrSpec a;
  a.name = c.word();
  c.expect(":");
  bool list = false;
  std::string inner;
  auto parse_set = [&] {  // after '{'
    while (!c.eat("}")) {
      if (c.peek() == '\'' || c.peek() == '"') {
        inner = "string";
        a.allowed.emplace_back(c.quoted());
      } else {
        inner = "type";
        const std::string w = c.word();
        if (auto set = named_type_set(w)) {
          a.allowed.insert(a.allowed.end(), set->begin(), set->end());
        } else {
          const auto t = parse_dtype(w);
          if (!t) c.fail(cat("'", w, "' is no type"));
          a.allowed.emplace_back(*t);
        }
      }
      c.eat(",");
    }
  };
  auto parse_kind = [&] {
    if (c.eat("{")) return parse_set();
    inner = c.word();
    if (auto set = named_type_set(inner)) {
      a.allowed = *set;
      inner = "type";
    }
  };
  if (c.eat("list(")) {
    list = true;
    parse_kind();
    c.expect(")");
  } else {
    parse_kind();
  }
  a.kind = list ? cat("list(", inner, ")") : inner;
  if (c.eat(">=")) a.has_minimum = true, a.minimum = static_cast<int64_t>(c.number());
  if (c.eat("=")) a.default_value = list ? parse_list_default(c, inner) : parse_scalar_default(c, a.kind);
  if (!c.done()) c.fail("text after the end");
  return a;
}

ArgSpec parse_arg_spec(std::string_view spec, const std::vector<AttrSpec>& attrs) {
  Cursor c(spec);
  ArgSpec a;
  a.name = c.word();
  c.expect(":");
  if (c.eat("Ref(")) a.is_ref = true;
  std::string w = c.word();
  if (c.eat("*")) {
    a.number_attr = w;
    w = c.word();
  }
  if (a.is_ref) c.expect(")");
  if (!c.done()) c.fail("text after the end");
  for (const AttrSpec& s : attrs) {
    if (s.name != w) continue;
    (s.kind == "list(type)" ? a.type_list_attr : a.type_attr) = w;
    return a;
  }
  const auto t = parse_dtype(w);
  if (!t) c.fail(cat("'", w, "' is neither a type nor an attr"));
  a.type = *t;
  return a;
}

}  // namespace sluice::graph
