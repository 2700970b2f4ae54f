#include <algorithm>

#include "graph/graph.h"
#include "graph/node_resolve.h"
#include "graph/support/check.h"

namespace sluice::graph {

DType Output::dtype() const { return base_dtype(node->output_type(index)); }
const Shape& Output::shape() const { return node->output_shape(index); }
std::string Output::name() const { return node ? cat(node->name(), ":", index) : "<none>"; }
Graph& Output::graph() const { return node->graph(); }

void append(std::string& s, const Output& o) { s += o.name(); }

std::pair<int, int> Node::input_range(std::string_view arg) const {
  const auto lengths = arg_lengths(*def_, attrs_, num_inputs(), name_);
  int at = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (def_->input_args[i].name == arg) return {at, at + lengths[i]};
    at += lengths[i];
  }
  throw_error(Code::kInternal, cat("op '", op(), "' has no input '", arg, "'"), name_, loc_);
}

const AttrValue* Node::find_attr(std::string_view name) const {
  const auto it = attrs_.find(name);
  return it == attrs_.end() ? nullptr : &it->second;
}

template <class T>
T Node::attr(std::string_view name) const {
  const AttrValue* v = find_attr(name);
  if (!v)
    throw_error(Code::kInvalidArgument, cat("node '", name_, "' (op '", op(), "') has no attr '", name, "'"),
                name_, loc_);
  if (const T* t = v->get_if<T>()) return *t;
  if constexpr (requires(T t) { t.push_back(typename T::value_type()); } && !std::is_same_v<T, std::string>) {
    if (v->get_if<EmptyList>()) return {};
  }
  throw_error(Code::kInvalidArgument,
              cat("attr '", name, "' of node '", name_, "' (op '", op(), "') is a ", v->kind(),
                  ", not what was asked for"),
              name_, loc_);
}

template std::string Node::attr<std::string>(std::string_view) const;
template int64_t Node::attr<int64_t>(std::string_view) const;
template float Node::attr<float>(std::string_view) const;
template bool Node::attr<bool>(std::string_view) const;
template DType Node::attr<DType>(std::string_view) const;
template Shape Node::attr<Shape>(std::string_view) const;
template Literal Node::attr<Literal>(std::string_view) const;
template FuncAttr Node::attr<FuncAttr>(std::string_view) const;
template std::vector<std::string> Node::attr<std::vector<std::string>>(std::string_view) const;
template std::vector<int64_t> Node::attr<std::vector<int64_t>>(std::string_view) const;
template std::vector<float> Node::attr<std::vector<float>>(std::string_view) const;
template std::vector<bool> Node::attr<std::vector<bool>>(std::string_view) const;
template std::vector<DType> Node::attr<std::vector<DType>>(std::string_view) const;
template std::vector<Shape> Node::attr<std::vector<Shape>>(std::string_view) const;

std::string Node::str() const {
  std::string s = cat(name_, " = ", op());
  if (!attrs_.empty()) {
    s += '[';
    bool first = true;
    for (const auto& [k, v] : attrs_) {
      s += cat(first ? "" : ", ", k, "=", v);
      first = false;
    }
    s += ']';
  }
  s += '(';
  for (int i = 0; i < num_inputs(); ++i) s += cat(i ? ", " : "", inputs_[static_cast<size_t>(i)]);
  for (size_t i = 0; i < control_inputs_.size(); ++i)
    s += cat(i || num_inputs() ? ", ^" : "^", control_inputs_[i]->name());
  s += ')';
  for (int i = 0; i < num_outputs(); ++i) {
    s += cat(i ? ", " : " : ", output_type(i));
    s += output_shape(i).str();
  }
  if (!device_.empty()) s += cat(" @", device_);
  if (loc_.known()) s += cat("  {", loc_.str(), "}");
  return s;
}

}  // namespace sluice::graph
