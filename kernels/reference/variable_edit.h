#pragma once
// Exclusive access to a variable's elements in row-major order for one update. A plain layout is written in
// place under the variable's lock; any other is taken out, changed, and put back by `commit`.

#include <optional>

#include "kernels/reference/common.h"

namespace sluice::kernels {

class VariableEdit {
 public:
  /// FailedPrecondition when uninitialised.
  explicit VariableEdit(runtime::Variable& v);

  const Dims& dims() const { return *dims_; }
  DType dtype() const { return variable_.dtype(); }
  int64_t elements() const { return graph::num_elements(*dims_); }
  template <class T>
  T* data() {
    SLUICE_CHECK(dtype() == graph::dtype_of<T>, "variable '", variable_.name(), "' is ", dtype());
    return static_cast<T*>(data_);
  }
  /// Ends the update. Without it a change in another layout is dropped.
  void commit();

 private:
  runtime::Variable& variable_;
  std::optional<runtime::Variable::WriteGuard> guard_;
  Array copy_;
  runtime::Layout layout_;
  const Dims* dims_ = nullptr;  // the buffer's own, or the copy's
  void* data_ = nullptr;
};

/// Gives a variable the value of an input, in place where dims agree and nobody reads.
void assign_variable(runtime::Variable& v, const KernelRun& r, int input);
/// Copies a variable's value to an output; FailedPrecondition when uninitialised.
void read_variable(const runtime::Variable& v, const KernelRun& r, int output);

}  // namespace sluice::kernels
