#pragma once
// The base of optimizers that stand in front of another one (moving averages, loss scaling, accumulation):
// all calls go on to it. Holds a reference to the inner optimizer, which must outlive the wrapper. The
// builder's thread.

#include <string>
#include <vector>

#include "dsl/train/optimizer.h"

namespace sluice::dsl::train {

class OptimizerWrapper : public Optimizer {
 public:
  GradsAndVars compute_gradients(const Tensor& loss, const ComputeOptions& o = {},
                                 Loc loc = Loc::current()) override {
    return inner_.compute_gradients(loss, o, loc);
  }
  Node& apply_gradients(const GradsAndVars& grads_and_vars, const Variable& global_step = {},
                        const std::string& name = {}, Loc loc = Loc::current()) override {
    return inner_.apply_gradients(grads_and_vars, global_step, name, loc);
  }
  Variable get_slot(const Variable& var, const std::string& slot) const override {
    return inner_.get_slot(var, slot);
  }
  std::vector<std::string> get_slot_names() const override { return inner_.get_slot_names(); }
  std::vector<std::pair<std::string, Operand>> hyper_parameters() const override {
    return inner_.hyper_parameters();
  }

 protected:
  OptimizerWrapper(Optimizer& inner, std::string name) : Optimizer(std::move(name), false), inner_(inner) {}

  Optimizer& inner_;

 private:
  // The inner optimizer makes the updates; nothing calls these here.
  void create_slots(const std::vector<Variable>& vars, Loc loc) final;
  Node& apply_dense(const Output& grad, const Variable& v, Loc loc) final;
  Node& apply_sparse(const IndexedSlices& grad, const Variable& v, Loc loc) final;
};

}  // namespace sluice::dsl::train
