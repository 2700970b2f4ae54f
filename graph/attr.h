#pragma once
// Attribute values of a node: TensorFlow's AttrValue as a closed set of C++ types. A value type; any thread.
// Example: `AttrMap attrs{{"T", DType::kFloat}, {"strides", std::vector<int64_t>{1, 2, 2, 1}}};`

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "graph/dtype.h"
#include "graph/literal.h"
#include "graph/shape.h"

namespace sluice::graph {

class AttrValue;
using AttrMap = std::map<std::string, AttrValue, std::less<>>;

/// A function's name with attributes bound (NameAttrList).
struct FuncAttr {
  std::string name;
  std::shared_ptr<const AttrMap> attrs;  // null when empty; shared because AttrValue is copied freely
  bool operator==(const FuncAttr& other) const;
};

/// `list {}` of no known element type.
struct EmptyList {
  bool operator==(const EmptyList&) const = default;
};

/// A name standing for a value that a function's caller binds.
struct PlaceholderAttr {
  std::string name;
  bool operator==(const PlaceholderAttr&) const = default;
};

class AttrValue {
 public:
  using Variant =
      std::variant<std::monostate, std::string, int64_t, float, bool, DType, Shape, Literal, FuncAttr,
                   PlaceholderAttr, EmptyList, std::vector<std::string>, std::vector<int64_t>,
                   std::vector<float>, std::vector<bool>, std::vector<DType>, std::vector<Shape>,
                   std::vector<Literal>, std::vector<FuncAttr>>;

  AttrValue() = default;
  AttrValue(const char* s) : v_(std::string(s)) {}
  AttrValue(std::string s) : v_(std::move(s)) {}
  AttrValue(int i) : v_(static_cast<int64_t>(i)) {}
  AttrValue(int64_t i) : v_(i) {}
  AttrValue(float f) : v_(f) {}
  AttrValue(double f) : v_(static_cast<float>(f)) {}
  template <class B>
  requires std::is_same_v<B, bool>  // pointers must not become booleans
  AttrValue(B b) : v_(b) {}
  AttrValue(DType t) : v_(t) {}
  AttrValue(Shape s) : v_(std::move(s)) {}
  AttrValue(Literal l) : v_(std::move(l)) {}
  AttrValue(FuncAttr f) : v_(std::move(f)) {}
  AttrValue(PlaceholderAttr p) : v_(std::move(p)) {}
  AttrValue(EmptyList e) : v_(e) {}
  template <class T>
  AttrValue(std::vector<T> list) : v_(std::move(list)) {}

  bool has_value() const { return !std::holds_alternative<std::monostate>(v_); }
  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&v_);
  }
  const Variant& variant() const { return v_; }
  /// "string", "int", "list(type)" … as op definitions name it.
  std::string_view kind() const;
  bool is_list() const;
  bool operator==(const AttrValue& other) const { return v_ == other.v_; }
  /// For people: 3, "SAME", float, [1,2,2,1].
  std::string str() const;

 private:
  Variant v_;
};

void append(std::string& s, const AttrValue& value);

}  // namespace sluice::graph
