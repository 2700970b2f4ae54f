#include "dsl/train/constraint.h"

#include <any>
#include <map>

namespace sluice::dsl::train {

namespace {

using Constraints = std::map<const Node*, Constraint>;

Constraints& constraints(Graph& g) {
  std::any& slot = g.attachment("dsl.train.constraints");
  if (!slot.has_value()) slot = Constraints();
  return *std::any_cast<Constraints>(&slot);
}

}  // namespace

void set_constraint(const Variable& v, Constraint constraint) {
  v.graph().check_not_finalized();
  constraints(v.graph())[&v.node()] = std::move(constraint);
}

Constraint constraint_of(const Variable& v) {
  const Constraints& all = constraints(v.graph());
  const auto it = all.find(&v.node());
  return it == all.end() ? Constraint() : it->second;
}

}  // namespace sluice::dsl::train
