#pragma once
// Random values, drawn from TensorFlow's Philox streams: a seeded op gives TensorFlow's numbers. The pair of
// seeds follows TensorFlow's table (graph-and-training §1.8); Graph::set_seed is the graph-level seed. The
// builder's thread.

#include <optional>
#include <string>
#include <vector>

#include "dsl/tensor.h"

namespace sluice::dsl {

struct RandomOptions {
  DType dtype = DType::kFloat;
  std::optional<int64_t> seed = {};
  std::string name = {};
};

/// [minval, maxval); integers where dtype is int32 or int64.
Tensor random_uniform(Graph& g, const std::vector<int64_t>& shape, double minval = 0, double maxval = 1,
                      const RandomOptions& o = {}, Loc loc = Loc::current());
Tensor random_uniform(const Tensor& shape, double minval = 0, double maxval = 1, const RandomOptions& o = {},
                      Loc loc = Loc::current());
Tensor random_normal(Graph& g, const std::vector<int64_t>& shape, double mean = 0, double stddev = 1,
                     const RandomOptions& o = {}, Loc loc = Loc::current());
/// Values further than two standard deviations from the mean are drawn again.
Tensor truncated_normal(Graph& g, const std::vector<int64_t>& shape, double mean = 0, double stddev = 1,
                        const RandomOptions& o = {}, Loc loc = Loc::current());

}  // namespace sluice::dsl
