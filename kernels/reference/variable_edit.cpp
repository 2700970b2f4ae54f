#include "kernels/reference/variable_edit.h"

#include <cstring>

namespace sluice::kernels {
namespace {

[[noreturn]] void uninitialized(const std::string& name) {
  throw_error(
      Code::kFailedPrecondition,
      cat("Error while reading resource variable ", name,
          " from Container: localhost. This could mean that the variable was uninitialized. Not found: "
          "Resource localhost/",
          name, " does not exist."));
}

}  // namespace

VariableEdit::VariableEdit(runtime::Variable& v) : variable_(v) {
  guard_.emplace(v);
  const runtime::ValueSpec& spec = guard_->buffer().spec;
  if (spec.layout.plain()) {  // no copy of the dims: updates allocate nothing
    dims_ = &spec.dims;
    data_ = guard_->buffer().buffer.data();
    return;
  }
  layout_ = spec.layout;
  guard_.reset();
  copy_ = v.value();
  dims_ = &copy_.dims();
  data_ = copy_.data();
}

void VariableEdit::commit() {
  if (!guard_) variable_.assign(copy_, layout_);
}

void assign_variable(runtime::Variable& v, const KernelRun& r, int input) {
  const DType from = graph::base_dtype(r.in_dtype(input));
  if (from == DType::kString) return v.assign(r.in_array(input).reshaped(r.in_dims(input)));
  if (v.initialized() && v.dtype() == from) {
    runtime::Variable::WriteGuard guard(v);
    runtime::VariableBuffer& b = guard.buffer();
    if (b.spec.dims == r.in_dims(input)) {
      runtime::reorder(from, b.spec.dims, runtime::Layout{}, r.in_data(input), b.spec.layout,
                       b.buffer.data());
      return;
    }
  }
  Array value(from, r.in_dims(input));
  if (value.bytes() > 0) std::memcpy(value.data(), r.in_data(input), value.bytes());
  v.assign(from == v.dtype() ? value : value.cast(v.dtype()), v.preferred_layout());
}

void read_variable(const runtime::Variable& v, const KernelRun& r, int output) {
  const std::shared_ptr<const runtime::VariableBuffer> held = v.read();
  if (!held) uninitialized(v.name());
  const DType to = graph::base_dtype(r.out_dtype(output));
  if (to == DType::kString || held->spec.dtype != to) {
    const Array value = held->spec.dtype == to ? v.value() : v.value().cast(to);
    if (to == DType::kString || r.out_is_array(output))
      r.out_array(output) = value;
    else if (value.bytes() > 0)
      std::memcpy(r.out_data(output), value.data(), value.bytes());
    return;
  }
  void* data = r.out_is_array(output) ? result(r, output, held->spec.dims) : r.out_data(output);
  SLUICE_REQUIRE(r.out_is_array(output) || held->spec.dims == r.out_dims(output), Code::kInvalidArgument,
                 "Variable ", v.name(), " has shape ", dims_string(held->spec.dims),
                 " where the plan expected ", dims_string(r.out_dims(output)));
  runtime::reorder(to, held->spec.dims, held->spec.layout, held->buffer.data(), runtime::Layout{}, data);
}

}  // namespace sluice::kernels
