#include "graph/attr.h"

#include "graph/support/quote.h"

namespace sluice::graph {
namespace {

template <class T>
std::string one(const T& v) {
  if constexpr (std::is_same_v<T, std::string>)
    return quoted(v);
  else if constexpr (std::is_same_v<T, FuncAttr>)
    return cat('@', v.name);
  else
    return cat(v);
}

}  // namespace

bool FuncAttr::operator==(const FuncAttr& o) const {
  if (name != o.name) return false;
  const bool a = attrs && !attrs->empty(), b = o.attrs && !o.attrs->empty();
  return a == b && (!a || *attrs == *o.attrs);
}

std::string_view AttrValue::kind() const {
  static constexpr std::string_view kNames[] = {
      "nothing",    "string",     "int",         "float",        "bool",         "type",      "shape",
      "tensor",     "func",       "placeholder", "list()",       "list(string)", "list(int)", "list(float)",
      "list(bool)", "list(type)", "list(shape)", "list(tensor)", "list(func)"};
  return kNames[v_.index()];
}

bool AttrValue::is_list() const { return v_.index() >= 10; }

std::string AttrValue::str() const {
  return std::visit(
      []<class T>(const T& v) -> std::string {
        if constexpr (std::is_same_v<T, std::monostate>)
          return "<none>";
        else if constexpr (std::is_same_v<T, EmptyList>)
          return "[]";
        else if constexpr (std::is_same_v<T, PlaceholderAttr>)
          return cat('$', v.name);
        else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, Literal> ||
                           std::is_same_v<T, Shape> || std::is_same_v<T, FuncAttr> ||
                           std::is_same_v<T, DType> || std::is_arithmetic_v<T>)
          return one(v);
        else {
          std::string s = "[";
          bool first = true;
          for (const auto& e : v) {
            if (!first) s += ',';
            first = false;
            if constexpr (std::is_same_v<T, std::vector<bool>>)
              s += cat(static_cast<bool>(e));
            else
              s += one(e);
          }
          return s + "]";
        }
      },
      v_);
}

void append(std::string& s, const AttrValue& value) { s += value.str(); }

}  // namespace sluice::graph
