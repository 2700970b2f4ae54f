// Variables: creation, reads, assignments, scatter updates, counters. One kernel serves the ref and the
// resource form of an op, since both give the Variable as input 0.

#include "kernels/reference/common.h"
#include "kernels/reference/gather.h"
#include "kernels/reference/register.h"
#include "kernels/reference/variable_edit.h"
#include "kernels/scalar.h"

namespace sluice::kernels {
namespace {

void made_by_the_plan(KernelRun&) {}

void read(KernelRun& r) { read_variable(r.variable(0), r, 0); }
void assign_resource(KernelRun& r) { assign_variable(r.variable(0), r, 1); }

BoundFn assign_ref(const KernelSpec& spec) {
  const bool validate = spec.attr_or<bool>("validate_shape", true);
  return [validate](KernelRun& r) {
    if (validate) {
      const auto now = r.variable(0).read();
      SLUICE_REQUIRE(!now || now->spec.dims == r.in_dims(1), Code::kInvalidArgument,
                     "Assign requires shapes of both tensors to match. lhs shape= ",
                     dims_string(now->spec.dims), " rhs shape= ", dims_string(r.in_dims(1)));
    }
    assign_variable(r.variable(0), r, 1);
  };
}

template <class Op>
void update(KernelRun& r) {
  VariableEdit v(r.variable(0));
  SLUICE_REQUIRE(v.dims() == r.in_dims(1), Code::kInvalidArgument, "Cannot update variable with shape ",
                 dims_string(v.dims()), " using a Tensor with shape ", dims_string(r.in_dims(1)),
                 ", shapes must be equal.");
  for_numeric(v.dtype(), [&]<class T>() {
    T* to = v.data<T>();
    for (int64_t i = 0, n = v.elements(); i < n; ++i) to[i] = Op{}(to[i], r.in<T>(1)[i]);
  });
  v.commit();
}

void is_initialized(KernelRun& r) { *r.out<bool>(0) = r.variable(0).initialized(); }
void destroy(KernelRun& r) { r.variable(0).clear(); }

void variable_shape(KernelRun& r) {
  const auto spec = r.variable(0).spec();
  SLUICE_REQUIRE(spec.has_value(), Code::kFailedPrecondition, "Attempting to use uninitialized value ",
                 r.variable(0).name());
  for_index(r.out_dtype(0), [&]<class T>() {
    T* to = static_cast<T*>(result(r, 0, {static_cast<int64_t>(spec->dims.size())}));
    for (int64_t d : spec->dims) *to++ = static_cast<T>(d);
  });
}

struct Second {  // ScatterUpdate
  template <class T>
  T operator()(T, T y) const {
    return y;
  }
};

// (variable, indices, updates): updates are [indices…, row…] or one scalar.
template <class Op>
void scatter(KernelRun& r) {
  VariableEdit v(r.variable(0));
  SLUICE_REQUIRE(!v.dims().empty(), Code::kInvalidArgument, "Scatter needs a variable of rank 1 or more");
  check_indices(r, 1, v.dims()[0]);
  const int64_t rows = in_count(r, 1);
  int64_t inner = 1;
  for (size_t d = 1; d < v.dims().size(); ++d) inner *= v.dims()[d];
  const bool scalar_update = r.in_dims(2).empty();
  SLUICE_REQUIRE(
      scalar_update || in_count(r, 2) == rows * inner, Code::kInvalidArgument,
      "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got updates.shape ",
      dims_string(r.in_dims(2)), ", indices.shape ", dims_string(r.in_dims(1)), ", params.shape ",
      dims_string(v.dims()));
  for_numeric(v.dtype(), [&]<class T>() {
    const T* from = r.in<T>(2);
    for (int64_t k = 0; k < rows; ++k) {
      T* to = v.data<T>() + int_at(r, 1, k) * inner;
      for (int64_t i = 0; i < inner; ++i) to[i] = Op{}(to[i], from[scalar_update ? 0 : k * inner + i]);
    }
  });
  v.commit();
}

BoundFn count_up_to(const KernelSpec& spec) {
  const auto limit = spec.attr<int64_t>("limit");
  return [limit](KernelRun& r) {
    VariableEdit v(r.variable(0));
    for_index(v.dtype(), [&]<class T>() {
      T& counter = *v.data<T>();
      SLUICE_REQUIRE(counter < limit, Code::kOutOfRange, "Reached limit of ", limit);
      *r.out<T>(0) = counter++;
    });
    v.commit();
  };
}

}  // namespace

void register_state(KernelRegistry& r) {
  for (const char* op : {"VarHandleOp", "Variable", "VariableV2"}) add(r, op, made_by_the_plan);
  add(r, "ReadVariableOp", read);
  add(r, "AssignVariableOp", assign_resource);
  add_bound(r, "Assign", assign_ref);
  for (const char* op : {"AssignAdd", "AssignAddVariableOp"}) add(r, op, update<scalar::Add>);
  for (const char* op : {"AssignSub", "AssignSubVariableOp"}) add(r, op, update<scalar::Sub>);
  for (const char* op : {"IsVariableInitialized", "VarIsInitializedOp"}) add(r, op, is_initialized);
  add(r, "DestroyResourceOp", destroy);
  add(r, "VariableShape", variable_shape);
  for (const char* op : {"ScatterAdd", "ResourceScatterAdd"}) add(r, op, scatter<scalar::Add>);
  for (const char* op : {"ScatterSub", "ResourceScatterSub"}) add(r, op, scatter<scalar::Sub>);
  for (const char* op : {"ScatterMul", "ResourceScatterMul"}) add(r, op, scatter<scalar::Mul>);
  for (const char* op : {"ScatterDiv", "ResourceScatterDiv"}) add(r, op, scatter<scalar::Div>);
  for (const char* op : {"ScatterMin", "ResourceScatterMin"}) add(r, op, scatter<scalar::Minimum>);
  for (const char* op : {"ScatterMax", "ResourceScatterMax"}) add(r, op, scatter<scalar::Maximum>);
  for (const char* op : {"ScatterUpdate", "ResourceScatterUpdate"}) add(r, op, scatter<Second>);
  for (const char* op : {"CountUpTo", "ResourceCountUpTo"}) add_bound(r, op, count_up_to);
}

}  // namespace sluice::kernels
