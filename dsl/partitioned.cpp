#include "dsl/partitioned.h"

#include <algorithm>
#include <cmath>

#include "dsl/ops/array.h"
#include "dsl/require.h"
#include "dsl/variable_store.h"

namespace sluice::dsl {
namespace {

size_t axis_index(const Dims& shape, int axis) {
  const int rank = static_cast<int>(shape.size());
  const int at = axis < 0 ? axis + rank : axis;
  SLUICE_REQUIRE(at >= 0 && at < rank, Code::kInvalidArgument, "Cannot partition variable along axis ", axis,
                 " when shape is only ", graph::dims_string(shape));
  return static_cast<size_t>(at);
}

double element_bytes(DType dtype, int64_t bytes_per_string_element) {
  return dtype == DType::kString ? static_cast<double>(bytes_per_string_element)
                                 : static_cast<double>(graph::dtype_size(dtype));
}

std::string list(const std::vector<int64_t>& values) {
  std::string out;
  for (size_t i = 0; i < values.size(); ++i) out += cat(i ? ", " : "", values[i]);
  return "[" + out + "]";
}

}  // namespace

Partitioner fixed_size_partitioner(int64_t num_shards, int axis) {
  return [=](const Dims& shape, DType) {
    std::vector<int64_t> parts(shape.size(), 1);
    const size_t at = axis_index(shape, axis);
    parts[at] = std::min(num_shards, shape[at]);
    return parts;
  };
}

Partitioner variable_axis_size_partitioner(int64_t max_shard_bytes, int axis,
                                           int64_t bytes_per_string_element, int64_t max_shards) {
  SLUICE_REQUIRE(max_shard_bytes >= 1 && bytes_per_string_element >= 1, Code::kInvalidArgument,
                 "max_shard_bytes and bytes_per_string_element must be positive.");
  SLUICE_REQUIRE(max_shards >= 0, Code::kInvalidArgument, "max_shards must be positive.");
  return [=](const Dims& shape, DType dtype) {
    const size_t at = axis_index(shape, axis);
    const double slice = static_cast<double>(graph::num_elements(shape)) /
                         static_cast<double>(std::max<int64_t>(shape[at], 1)) *
                         element_bytes(dtype, bytes_per_string_element);
    // At least one slice goes into a part, however large it is.
    const double slices =
        std::max(1.0, std::floor(static_cast<double>(max_shard_bytes) / std::max(slice, 1e-9)));
    auto count = static_cast<int64_t>(std::ceil(static_cast<double>(shape[at]) / slices));
    if (max_shards > 0) count = std::min(count, max_shards);
    std::vector<int64_t> parts(shape.size(), 1);
    parts[at] = std::max<int64_t>(count, 1);
    return parts;
  };
}

Partitioner min_max_variable_partitioner(int64_t max_partitions, int axis, int64_t min_slice_size,
                                         int64_t bytes_per_string_element) {
  SLUICE_REQUIRE(max_partitions >= 1 && min_slice_size >= 1, Code::kInvalidArgument,
                 "max_partitions and min_slice_size must be positive.");
  return [=](const Dims& shape, DType dtype) {
    const size_t at = axis_index(shape, axis);
    const double bytes =
        static_cast<double>(graph::num_elements(shape)) * element_bytes(dtype, bytes_per_string_element);
    const auto wanted = static_cast<int64_t>(std::ceil(bytes / static_cast<double>(min_slice_size)));
    std::vector<int64_t> parts(shape.size(), 1);
    parts[at] = std::max<int64_t>(1, std::min({shape[at], max_partitions, wanted}));
    return parts;
  };
}

Tensor PartitionedVariable::as_tensor(Loc loc) const {
  SLUICE_REQUIRE_AT(loc, !parts_.empty(), Code::kInvalidArgument,
                    "a partitioned variable without parts has no value");
  if (parts_.size() == 1) return parts_[0].value(loc);
  std::vector<Operand> values;
  for (const Variable& p : parts_) values.emplace_back(p.value(loc));
  return concat(values, axis_, name_ + "/ConcatPartitions/concat", loc);
}

PartitionedVariable get_variable(Graph& g, const std::string& name, const Dims& shape,
                                 const Partitioner& partitioner, const VariableOptions& o, Loc loc) {
  SLUICE_REQUIRE_AT(loc, !name.empty() && !shape.empty(), Code::kInvalidArgument,
                    "A partitioned variable needs a ", "name and a shape of rank 1 or more, got '", name,
                    "' and ", graph::dims_string(shape));
  VariableOptions with = o;
  if (with.initial_value) {
    with.dtype = with.initial_value.dtype();
    SLUICE_REQUIRE_AT(loc, with.initial_value.shape() == Shape(shape), Code::kInvalidArgument, "Shape of '",
                      name, "' is ", graph::dims_string(shape), ", its initial value's ",
                      with.initial_value.shape());
  }
  const std::vector<int64_t> counts = partitioner(shape, with.dtype);
  SLUICE_REQUIRE_AT(loc, counts.size() == shape.size(), Code::kInvalidArgument,
                    "Partitioner returned a partition list that does not match the Variable's rank: ",
                    list(counts), " vs. ", graph::dims_string(shape));
  size_t axis = 0;
  int cut = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    SLUICE_REQUIRE_AT(
        loc, counts[i] >= 1 && (counts[i] == 1 || counts[i] <= shape[i]), Code::kInvalidArgument,
        "Partitioner returned zero partitions for some axes, or more than their size: ", list(counts));
    if (counts[i] > 1) axis = i, ++cut;
  }
  SLUICE_REQUIRE_AT(loc, cut <= 1, Code::kInvalidArgument,
                    "Cannot slice along more than one dimension: ", list(counts));
  const VariableStore::Scope& scope = VariableStore::of(g).scopes.back();
  const std::string full = scope.path.empty() ? name : scope.path + "/" + name;
  Initializer whole_initializer = with.initializer    ? with.initializer
                                  : scope.initializer ? scope.initializer
                                                      : default_initializer(full, with.dtype);
  if (with.initial_value)
    whole_initializer = [value = with.initial_value](Graph&, const Dims&, DType, Loc) { return value; };
  with.initial_value = {};
  // One value for the whole shape, so that its distribution is that of the whole; drawn when the first part
  // is made.
  auto whole = std::make_shared<Tensor>();  // shared by the initializers of the parts
  const int64_t count = counts[axis], base = shape[axis] / count, extra = shape[axis] % count;
  std::vector<Variable> parts;
  int64_t start = 0;
  for (int64_t k = 0; k < count; ++k) {
    Dims dims = shape, offset(shape.size(), 0);
    dims[axis] = base + (k < extra);
    offset[axis] = start;
    start += dims[axis];
    with.initializer = [&, offset](Graph& graph, const Dims& part, DType dtype, Loc at) {
      if (!*whole) *whole = whole_initializer(graph, shape, dtype, at);
      return slice(*whole, offset, part, {}, at);
    };
    Variable v = get_variable(g, cat(name, "/part_", k), dims, with, loc);
    v.info()->slice = std::make_shared<const graph::SaveSlice>(graph::SaveSlice{full, shape, offset, dims});
    parts.push_back(v);
  }
  return {full, shape, static_cast<int>(axis), std::move(parts)};
}

std::vector<std::pair<std::string, Variable>> named_parts(const PartitionedVariable& v) {
  std::vector<std::pair<std::string, Variable>> out;
  for (const Variable& p : v.parts()) out.emplace_back(v.name(), p);
  return out;
}

}  // namespace sluice::dsl
