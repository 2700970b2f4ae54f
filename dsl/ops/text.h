#pragma once
// Strings in the graph: tf.strings' functions, names and argument order. They run on the host. The builder's
// thread.

#include <string>
#include <vector>

#include "dsl/tensor.h"

namespace sluice::dsl {

struct AsStringOptions {
  int precision = -1, width = -1;
  bool scientific = false, shortest = false;
  std::string fill = {};  // at most one character: ' ', '0', '-', '+'
  std::string name = {};
};
/// Numbers as printf writes them.
Tensor as_string(const Operand& input, const AsStringOptions& o = {}, Loc loc = Loc::current());
/// Element by element; scalars join with every element.
Tensor string_join(const std::vector<Operand>& inputs, const std::string& separator = {},
                   const std::string& name = {}, Loc loc = Loc::current());

struct ReduceJoinOptions {
  std::vector<int64_t> axis = {};  // empty: all, the first one outermost; the rank must be known then
  bool keepdims = false;
  std::string separator = {};
  std::string name = {};
};
Tensor reduce_join(const Operand& inputs, const ReduceJoinOptions& o = {}, Loc loc = Loc::current());

/// Matches of the pattern replaced (all, or the first); \1 … \9 in the rewrite are groups, \0 the match.
Tensor regex_replace(const Operand& input, const std::string& pattern, const std::string& rewrite,
                     bool replace_global = true, const std::string& name = {}, Loc loc = Loc::current());
Tensor regex_full_match(const Operand& input, const std::string& pattern, const std::string& name = {},
                        Loc loc = Loc::current());

/// A sparse tensor: coordinates [n, 2], values [n], shape [2].
struct SplitStrings {
  Tensor indices, values, shape;
};
/// Cuts at any byte of the delimiter; none cuts into bytes.
SplitStrings string_split(const Operand& source, const std::string& delimiter = " ", bool skip_empty = true,
                          const std::string& name = {}, Loc loc = Loc::current());
Tensor string_strip(const Operand& input, const std::string& name = {}, Loc loc = Loc::current());
Tensor string_length(const Operand& input, const std::string& name = {}, Loc loc = Loc::current());
Tensor substr(const Operand& input, int64_t pos, int64_t len, const std::string& name = {},
              Loc loc = Loc::current());
/// float, double, int32 or int64.
Tensor string_to_number(const Operand& input, DType out_type = DType::kFloat, const std::string& name = {},
                        Loc loc = Loc::current());

}  // namespace sluice::dsl
