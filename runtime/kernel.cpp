#include "runtime/kernel.h"

#include <algorithm>

namespace sluice::runtime {
namespace {

class PlainKernel final : public Kernel {
 public:
  PlainKernel(KernelFn fn, std::vector<std::pair<int, int>> share, size_t scratch) : fn_(fn) {
    may_share = std::move(share);
    scratch_bytes = scratch;
  }
  void run(KernelRun& r) const override { fn_(r); }

 private:
  KernelFn fn_;
};

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};

}  // namespace

const graph::AttrValue* KernelSpec::find_attr(std::string_view name) const {
  auto it = attrs.find(name);
  if (it != attrs.end()) return &it->second;
  return node ? node->find_attr(name) : nullptr;
}

template <class T>
T KernelSpec::attr(std::string_view name) const {
  const graph::AttrValue* a = find_attr(name);
  SLUICE_REQUIRE(a && a->has_value(), Code::kInvalidArgument, "Node '", node ? node->name() : op, "' (op: '",
                 op, "') has no attr '", name, "'");
  if (const T* v = a->get_if<T>()) return *v;
  if constexpr (IsVector<T>::value)
    if (a->get_if<graph::EmptyList>()) return {};
  throw_error(Code::kInvalidArgument, cat("Attr '", name, "' of node '", node ? node->name() : op, "' is a ",
                                          a->kind(), ", the kernel wants another kind"));
}

template int64_t KernelSpec::attr(std::string_view) const;
template float KernelSpec::attr(std::string_view) const;
template bool KernelSpec::attr(std::string_view) const;
template std::string KernelSpec::attr(std::string_view) const;
template DType KernelSpec::attr(std::string_view) const;
template graph::Shape KernelSpec::attr(std::string_view) const;
template graph::Literal KernelSpec::attr(std::string_view) const;
template graph::FuncAttr KernelSpec::attr(std::string_view) const;
template std::vector<int64_t> KernelSpec::attr(std::string_view) const;
template std::vector<float> KernelSpec::attr(std::string_view) const;
template std::vector<bool> KernelSpec::attr(std::string_view) const;
template std::vector<std::string> KernelSpec::attr(std::string_view) const;
template std::vector<DType> KernelSpec::attr(std::string_view) const;
template std::vector<graph::Shape> KernelSpec::attr(std::string_view) const;
template std::vector<graph::Literal> KernelSpec::attr(std::string_view) const;

KernelMake plain(KernelFn fn, std::vector<std::pair<int, int>> share, size_t scratch_bytes) {
  return [fn, share = std::move(share), scratch_bytes](const KernelSpec&, Refusal&) {
    return std::make_unique<PlainKernel>(fn, share, scratch_bytes);
  };
}

void KernelRegistry::add(KernelDef def) {
  auto& list = defs_[def.op];
  for (const auto& d : list)
    SLUICE_REQUIRE(d->name != def.name || d->device != def.device, Code::kAlreadyExists, "Kernel '", def.name,
                   "' of op '", def.op, "' on ", def.device, " is registered already");
  const auto at =
      std::find_if(list.begin(), list.end(), [&](const auto& d) { return d->priority < def.priority; });
  list.insert(at, std::make_shared<const KernelDef>(std::move(def)));
}

std::vector<const KernelDef*> KernelRegistry::candidates(std::string_view op, std::string_view device) const {
  std::vector<const KernelDef*> found;
  auto it = defs_.find(std::string(op));
  if (it == defs_.end()) return found;
  for (const auto& d : it->second)
    if (d->device == device) found.push_back(d.get());
  return found;
}

std::vector<std::string> KernelRegistry::ops() const {
  std::vector<std::string> names;
  for (const auto& [op, list] : defs_) names.push_back(op);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace sluice::runtime
