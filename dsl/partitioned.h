#pragma once
// A variable in parts along one dimension (tf.PartitionedVariable): parts `name/part_0`, `name/part_1` … that
// checkpoints hold as slices of one tensor `name`, so it may be saved in four parts and restored whole or in
// three. A partitioner says how many parts each dimension gets. The initial value is drawn once for the whole
// shape and cut. The builder's thread.
//
//   PartitionedVariable e = get_variable(g, "emb", {50000, 64}, fixed_size_partitioner(4));
//   Tensor whole = e.as_tensor();

#include <functional>
#include <string>
#include <vector>

#include "dsl/variable.h"

namespace sluice::dsl {

/// Shape and type → number of parts in each dimension; at most one of them above 1.
using Partitioner = std::function<std::vector<int64_t>(const Dims& shape, DType dtype)>;

/// tf.fixed_size_partitioner: `num_shards` parts of `axis`.
Partitioner fixed_size_partitioner(int64_t num_shards, int axis = 0);
/// tf.variable_axis_size_partitioner: as many parts of `axis` as keep each within `max_shard_bytes`, at most
/// `max_shards` (0: any); a part holds one slice of `axis` at least.
Partitioner variable_axis_size_partitioner(int64_t max_shard_bytes, int axis = 0,
                                           int64_t bytes_per_string_element = 16, int64_t max_shards = 0);
/// tf.min_max_variable_partitioner: at most `max_partitions` parts, none smaller than `min_slice_size` bytes.
Partitioner min_max_variable_partitioner(int64_t max_partitions = 1, int axis = 0,
                                         int64_t min_slice_size = 256 << 10,
                                         int64_t bytes_per_string_element = 16);

class PartitionedVariable {
 public:
  PartitionedVariable() = default;
  PartitionedVariable(std::string name, Dims shape, int axis, std::vector<Variable> parts)
      : name_(std::move(name)), shape_(std::move(shape)), axis_(axis), parts_(std::move(parts)) {}
  const std::string& name() const { return name_; }
  const Dims& shape() const { return shape_; }
  int axis() const { return axis_; }
  const std::vector<Variable>& parts() const { return parts_; }
  /// The parts put together.
  Tensor as_tensor(Loc loc = Loc::current()) const;
  operator Tensor() const { return as_tensor(Loc{}); }

 private:
  std::string name_;
  Dims shape_;
  int axis_ = 0;
  std::vector<Variable> parts_;
};

/// get_variable in parts. Under reuse the parts are shared, as variables are. InvalidArgument when the
/// partitioner's answer does not fit the shape or cuts more than one dimension.
PartitionedVariable get_variable(Graph& g, const std::string& name, const Dims& shape,
                                 const Partitioner& partitioner, const VariableOptions& o = {},
                                 Loc loc = Loc::current());

/// For savers and warm starts: the parts, each under the whole's name.
std::vector<std::pair<std::string, Variable>> named_parts(const PartitionedVariable& v);

}  // namespace sluice::dsl
