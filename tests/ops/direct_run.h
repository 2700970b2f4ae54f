#pragma once
// Runs one op by one kernel, without a session: makes the node, infers its shapes, builds KernelSpec and
// slots by hand. For tests of kernels; one thread.

#include <memory>
#include <string>
#include <vector>

#include "runtime/kernel.h"

namespace sluice::optest {

using graph::AttrMap;
using graph::Dims;
using graph::DType;
using runtime::Array;

/// One operand: a value, or a variable (given to the op as a resource handle or a ref).
struct Operand {
  Array value;
  std::shared_ptr<runtime::Variable> variable;
  Operand(Array v) : value(std::move(v)) {}
  Operand(std::shared_ptr<runtime::Variable> v) : variable(std::move(v)) {}
};

struct Call {
  std::string op;
  std::vector<Operand> inputs;
  AttrMap attrs = {};
  std::string name = "op";
  /// Whether the kernel is told the inputs' values while it is made, as for constants of a plan.
  bool constants_known = true;
  runtime::ResourceManager* resources = nullptr;
  /// Double operands stand for float ones: the node is made in float and run in double, as reference64 does.
  bool widen = false;
};

/// One op, ready to run any number of times by any of its kernels.
class DirectRun {
 public:
  explicit DirectRun(Call call);
  ~DirectRun();

  /// Names of the kernels registered for the op, best first.
  std::vector<std::string> candidates() const;
  /// Null with `why` when the candidate declines.
  std::unique_ptr<runtime::Kernel> make(const std::string& candidate, std::string& why) const;
  /// Outputs of one run; layouts the kernel wants are honoured by reordering. Throws what the kernel throws.
  std::vector<Array> run(const runtime::Kernel& kernel) const;
  /// Seconds that the kernel itself takes on warm buffers, two threads.
  double time(const runtime::Kernel& kernel) const;
  /// Shapes by inference: from the inputs' shapes alone, or with their values too.
  std::vector<graph::Shape> inferred(bool with_values) const;
  const graph::Node& node() const { return *node_; }

 private:
  struct Buffers;
  std::unique_ptr<Buffers> prepare(const runtime::Kernel& kernel) const;
  void execute(const runtime::Kernel& kernel, Buffers& b, runtime::WorkQueue& queue) const;

  Call call_;
  std::unique_ptr<graph::Graph> graph_;
  graph::Node* node_ = nullptr;
  runtime::KernelSpec spec_;
  std::vector<bool> open_;  // per output: its size is known only to the kernel
};

/// Runs by the named kernel; fails with Unimplemented when it declines.
std::vector<Array> run_op(Call call, const std::string& candidate = "reference");

}  // namespace sluice::optest
