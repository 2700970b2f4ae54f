#include "runtime/resource.h"

#include <cstring>

#include "graph/support/hash.h"

namespace sluice::runtime {

std::shared_ptr<const VariableBuffer> Variable::read() const {
  std::lock_guard lock(mutex_);
  return value_;
}

bool Variable::initialized() const {
  std::lock_guard lock(mutex_);
  return value_ != nullptr;
}

std::optional<ValueSpec> Variable::spec() const {
  std::lock_guard lock(mutex_);
  if (!value_) return std::nullopt;
  return value_->spec;
}

Array Variable::value() const {
  std::shared_ptr<const VariableBuffer> v = read();
  SLUICE_REQUIRE(v != nullptr, Code::kFailedPrecondition, "Attempting to use uninitialized value ", name_);
  Array a(v->spec.dtype, v->spec.dims);
  if (v->spec.dtype == DType::kString) return v->strings ? v->strings->clone() : a;
  reorder(v->spec.dtype, v->spec.dims, v->spec.layout, v->buffer.data(), Layout{}, a.data());
  return a;
}

void Variable::assign(const Array& value, const Layout& layout) {
  SLUICE_REQUIRE(value.dtype() == dtype_, Code::kInvalidArgument, "Variable ", name_, " is ", dtype_,
                 ", a value of type ", value.dtype(), " cannot be assigned to it");
  auto buffer = std::make_shared<VariableBuffer>(ValueSpec{value.dtype(), value.dims(), layout});
  if (value.dtype() == DType::kString)
    buffer->strings = value.clone();
  else
    reorder(value.dtype(), value.dims(), Layout{}, value.data(), layout, buffer->buffer.data());
  install(std::move(buffer));
}

void Variable::install(std::shared_ptr<VariableBuffer> buffer) {
  const uint64_t hash = buffer ? hash_string(buffer->spec.str()) | 1 : 0;
  std::lock_guard lock(mutex_);
  value_ = std::move(buffer);
  spec_hash_.store(hash, std::memory_order_release);
  version_.fetch_add(1, std::memory_order_acq_rel);
}

void Variable::clear() { install(nullptr); }

Variable::WriteGuard::WriteGuard(Variable& v) : v_(v), lock_(v.mutex_) {
  SLUICE_REQUIRE(v_.value_ != nullptr, Code::kFailedPrecondition, "Attempting to use uninitialized value ",
                 v_.name_);
  if (v_.value_.use_count() == 1) {
    // use_count() orders nothing; counting up does, on the counter that the last reader counted down: what it
    // read is read before what is written now.
    const std::shared_ptr<VariableBuffer> after_the_last_reader = v_.value_;
    return;
  }
  // A reader holds this value: it keeps it, the variable goes on with a copy.
  auto copy = std::make_shared<VariableBuffer>(v_.value_->spec);
  if (v_.value_->strings)
    copy->strings = v_.value_->strings->clone();
  else
    std::memcpy(copy->buffer.data(), v_.value_->buffer.data(), v_.value_->buffer.size());
  v_.value_ = std::move(copy);
}

Variable::WriteGuard::~WriteGuard() { v_.version_.fetch_add(1, std::memory_order_acq_rel); }

void Variable::set_preferred_layout(Layout layout) {
  std::lock_guard lock(mutex_);
  preferred_ = std::move(layout);
}

Layout Variable::preferred_layout() const {
  std::lock_guard lock(mutex_);
  return preferred_;
}

std::shared_ptr<Variable> ResourceManager::variable(const std::string& container, const std::string& name,
                                                    DType dtype) {
  std::lock_guard lock(mutex_);
  std::shared_ptr<Variable>& v = variables_[{container, name}];
  if (!v) v = std::make_shared<Variable>(name, graph::base_dtype(dtype));
  SLUICE_REQUIRE(v->dtype() == graph::base_dtype(dtype), Code::kInvalidArgument, "Variable ", name,
                 " exists with type ", v->dtype(), ", asked for as ", dtype);
  return v;
}

std::shared_ptr<Variable> ResourceManager::find_variable(const std::string& container,
                                                         const std::string& name) const {
  std::lock_guard lock(mutex_);
  auto it = variables_.find({container, name});
  return it == variables_.end() ? nullptr : it->second;
}

std::vector<std::shared_ptr<Variable>> ResourceManager::variables() const {
  std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Variable>> all;
  for (const auto& [key, v] : variables_) all.push_back(v);
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a->name() < b->name(); });
  return all;
}

std::shared_ptr<RandomStream> ResourceManager::stream(const std::string& node_name) {
  std::lock_guard lock(mutex_);
  std::shared_ptr<RandomStream>& s = streams_[node_name];
  if (!s) s = std::make_shared<RandomStream>();
  return s;
}

std::shared_ptr<void> ResourceManager::get_or_create(const std::string& kind, const std::string& name,
                                                     const std::function<std::shared_ptr<void>()>& make) {
  std::lock_guard lock(mutex_);
  std::shared_ptr<void>& r = others_[{kind, name}];
  if (!r) r = make();
  return r;
}

}  // namespace sluice::runtime
