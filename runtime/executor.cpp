#include "runtime/executor.h"

#include <cstring>

#include "graph/support/check.h"

namespace sluice::runtime {

using plan::PlanValue;
using plan::Storage;
using plan::ValueId;

namespace {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// The step's error in the author's terms.
[[noreturn]] void fail(const Plan& plan, const RunContext& context, const Step& step, Code code,
                       const std::string& message) {
  std::string text = cat(message, "\n\t for '", step.name, "' (op: '", step.op, "')");
  if (!step.inputs.empty()) {
    text += " with input types and shapes: ";
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const Slot& slot = context.slots[static_cast<size_t>(step.first_slot) + i];
      const PlanValue& v = plan.value(step.inputs[i]);
      text += cat(i ? ", " : "", v.storage == Storage::kHandle ? "variable " : "",
                  (slot.spec ? *slot.spec : v.spec).str());
    }
  }
  if (step.nodes.size() > 1) {
    text += "\n\t made of:";
    for (const std::string& n : step.nodes) text += cat(" ", n);
  }
  throw Error(code, std::move(text), step.name, step.node ? step.node->loc() : Loc{});
}

}  // namespace

RunContext::RunContext(const Plan& p)
    : plan(p),
      slots(static_cast<size_t>(p.num_slots_)),
      holds(static_cast<size_t>(p.num_holds_)),
      dynamics(static_cast<size_t>(p.num_dynamics_)),
      dynamic_specs(static_cast<size_t>(p.num_dynamics_)),
      feeds(static_cast<size_t>(p.num_feeds_), nullptr),
      pending(p.concurrent() ? p.steps_.size() : 0) {
  for (const Step& step : p.steps_) {
    auto slot = slots.begin() + step.first_slot;
    for (const auto* list : {&step.inputs, &step.outputs})
      for (ValueId v : *list) {
        const PlanValue& value = p.value(v);
        const PlanValue& root = p.value(p.root(v));
        slot->spec = &value.spec;
        slot->variable = value.storage == Storage::kHandle ? value.variable.get() : nullptr;
        if (root.storage == Storage::kConstant) {
          slot->array = const_cast<Array*>(&root.constant);  // kernels only read inputs
          slot->data = slot->array->data();
        }
        if (const int d = p.dynamic_of_value_[static_cast<size_t>(v)]; d >= 0) {
          const auto k = static_cast<size_t>(d);
          dynamic_specs[k] = value.spec;
          slot->spec = &dynamic_specs[k];
          slot->array = &dynamics[k];
        }
        ++slot;
      }
  }
}

void RunContext::bind_arena(char* base) {
  if (base == arena) return;
  arena = base;
  for (const Step& step : plan.steps_) {
    auto slot = slots.begin() + step.first_slot;
    for (const auto* list : {&step.inputs, &step.outputs})
      for (ValueId v : *list) {
        const PlanValue& root = plan.value(plan.root(v));
        if (root.storage == Storage::kArena) slot->data = base + root.offset;
        ++slot;
      }
  }
}

void RunContext::bind_feeds() {
  for (size_t f = 0; f < feeds.size(); ++f)
    for (ValueId v : plan.values_of_feed_[f])
      for (int s : plan.slots_of_value_[static_cast<size_t>(v)]) {
        Slot& slot = slots[static_cast<size_t>(s)];
        slot.array = const_cast<Array*>(feeds[f]);  // kernels only read inputs
        slot.data = slot.array->data();
      }
}

void RunContext::release() {
  for (auto& h : holds) h.reset();
  for (Array& a : dynamics)
    if (a && a.dtype() != DType::kString) a = Array();
}

std::unique_ptr<RunContext> ContextPool::lease() {
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<RunContext> c = std::move(idle_.back());
      idle_.pop_back();
      return c;
    }
    idle_.reserve(16);
  }
  return std::make_unique<RunContext>(*plan_);
}

void ContextPool::give_back(std::unique_ptr<RunContext> context) {
  context->release();
  std::lock_guard lock(mutex_);
  idle_.push_back(std::move(context));
}

void Executor::read(const Plan& plan, RunContext& context, const Step& step) {
  const auto h = static_cast<size_t>(step.hold);
  Variable& variable = *plan.value(step.inputs[0]).variable;
  context.holds[h] = variable.read();
  if (!context.holds[h]) {
    throw_error(Code::kFailedPrecondition,
                step.is_ref ? cat("Attempting to use uninitialized value ", variable.name())
                            : cat("Error while reading resource variable ", variable.name(),
                                  " from Container: localhost. This could mean that the variable was "
                                  "uninitialized. Not found: Resource localhost/",
                                  variable.name(), " does not exist."));
  }
  const VariableBuffer& buffer = *context.holds[h];
  const PlanValue& value = plan.value(step.outputs[0]);
  SLUICE_REQUIRE(buffer.spec == value.spec, Code::kAborted, "Variable ", variable.name(), " changed from ",
                 value.spec.str(), " to ", buffer.spec.str(), " while the run was under way");
  if (value.storage == Storage::kDynamic) {  // strings
    const auto d = static_cast<size_t>(plan.dynamic_of_value_[static_cast<size_t>(step.outputs[0])]);
    context.dynamics[d] = buffer.strings ? *buffer.strings : Array(value.spec.dtype, value.spec.dims);
    context.holds[h].reset();
    return;
  }
  for (ValueId v : plan.values_of_hold_[h])
    for (int s : plan.slots_of_value_[static_cast<size_t>(v)])
      context.slots[static_cast<size_t>(s)].data = const_cast<void*>(buffer.buffer.data());
}

void Executor::step(const Plan& plan, RunContext& context, const Step& step, RunEnvironment& env) {
  if (step.kind == StepKind::kRead) return read(plan, context, step);
  auto publish = [&](ValueId v) {
    const auto d = static_cast<size_t>(plan.dynamic_of_value_[static_cast<size_t>(v)]);
    Array& a = context.dynamics[d];
    context.dynamic_specs[d].dims = a.dims();
    for (int s : plan.slots_of_value_[static_cast<size_t>(v)])
      context.slots[static_cast<size_t>(s)].data = a.dtype() == DType::kString ? nullptr : a.data();
  };
  Slot* slots = context.slots.data() + step.first_slot;
  if (step.kind == StepKind::kShare) {
    const auto d = static_cast<size_t>(plan.dynamic_of_value_[static_cast<size_t>(step.outputs[0])]);
    context.dynamics[d] = slots[0].array->reshaped(plan.value(step.outputs[0]).spec.dims);
    return publish(step.outputs[0]);
  }
  const int num_inputs = static_cast<int>(step.inputs.size());
  Slot* outputs = slots + num_inputs;
  for (int j : step.dynamic_outputs) {
    const PlanValue& v = plan.value(step.outputs[static_cast<size_t>(j)]);
    Array& a = *outputs[j].array;
    if (!v.known_dims)
      a = Array();
    else if (!a || a.dims() != v.spec.dims || !a.unique())
      a = Array(v.spec.dtype, v.spec.dims);
  }
  KernelRun run(slots, outputs, num_inputs, static_cast<int>(step.outputs.size()),
                context.arena ? context.arena + step.scratch : nullptr, *env.queue, env.state);
  step.kernel->run(run);
  for (int j : step.dynamic_outputs) {
    const PlanValue& v = plan.value(step.outputs[static_cast<size_t>(j)]);
    SLUICE_CHECK(outputs[j].array->dtype() == v.spec.dtype, "the kernel made no value of type ",
                 v.spec.dtype);
    publish(step.outputs[static_cast<size_t>(j)]);
  }
}

void Executor::run(const Plan& plan, RunContext& context, RunEnvironment& env) {
  for (const Step& s : plan.steps_) run_step(plan, context, s, env, 0);
}

void Executor::run_step(const Plan& plan, RunContext& context, const Step& s, RunEnvironment& env,
                        int thread) {
  const int64_t start = env.observer ? now_ns() : 0;
  try {
    if (env.state.cancel) env.state.cancel->check();
    if (s.may_block && env.team && env.team->owns_lock()) {
      env.team->unlock();
      try {
        step(plan, context, s, env);
      } catch (...) {
        env.team->lock();
        throw;
      }
      env.team->lock();
    } else {
      step(plan, context, s, env);
    }
  } catch (const Error& e) {
    fail(plan, context, s, e.code(), e.message());
  } catch (const std::bad_alloc&) {
    fail(plan, context, s, Code::kResourceExhausted, "OOM when allocating");
  } catch (const std::exception& e) {
    fail(plan, context, s, Code::kInternal, e.what());
  }
  for (int h : s.release) context.holds[static_cast<size_t>(h)].reset();
  if (env.observer) env.observer->step_ran(plan, s, {start, now_ns(), thread});
}

void Executor::store(const Plan& plan, const RunContext& context, ValueId v, Array& out) {
  const PlanValue& value = plan.value(v);
  const ValueId root_id = plan.root(v);
  const PlanValue& root = plan.value(root_id);
  const void* data = nullptr;
  switch (root.storage) {
    case Storage::kDynamic: {
      const Array& a = context.dynamics[static_cast<size_t>(plan.dynamic_of_value_[static_cast<size_t>(v)])];
      out = a.dtype() == DType::kString ? a.clone() : a;
      return;
    }
    case Storage::kArena:
      data = context.arena + root.offset;
      break;
    case Storage::kConstant:
      data = root.constant.data();
      break;
    case Storage::kFeed:
      data = context.feeds[static_cast<size_t>(root.feed)]->data();
      break;
    case Storage::kVariable:
      for (size_t h = 0; h < context.holds.size(); ++h)
        if (plan.values_of_hold_[h][0] == root_id) data = context.holds[h]->buffer.data();
      break;
    case Storage::kHandle:
      SLUICE_CHECK(false, "a handle has no value to fetch");
  }
  if (value.spec.dtype == DType::kString) {
    const Array& a =
        root.storage == Storage::kFeed ? *context.feeds[static_cast<size_t>(root.feed)] : root.constant;
    out = a.clone().reshaped(value.spec.dims);
    return;
  }
  if (out.dtype() != value.spec.dtype || out.dims() != value.spec.dims || !out.unique())
    out = Array(value.spec.dtype, value.spec.dims);
  if (value.spec.layout.plain()) {
    if (out.bytes()) std::memcpy(out.data(), data, out.bytes());
  } else {
    reorder(value.spec.dtype, value.spec.dims, value.spec.layout, data, Layout{}, out.data());
  }
}

}  // namespace sluice::runtime
