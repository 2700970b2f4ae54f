#include "passes/clip_gradients.h"

#include "passes/emit.h"

namespace sluice::passes {

using graph::ColocateWith;
using graph::NameScope;

namespace {

Output stored(const GradValue& t, const char* what) {
  SLUICE_REQUIRE(!t.none(), Code::kInvalidArgument, what, " needs a tensor, got none");
  return t.is_slices() ? t.slices.values : t.dense;
}

GradValue restore(const GradValue& like, Output values) {
  if (!like.is_slices()) return values;
  graph::IndexedSlices s = like.slices;
  s.values = values;
  return s;
}

std::string or_default(const std::string& name, const char* fallback) {
  return name.empty() ? fallback : name;
}

// A limit: a tensor, or a number that becomes a constant of the tensor's dtype where it is first used.
struct Limit {
  Output tensor;
  double number = 0;
  Output as(const Emit& e, DType dtype, const std::string& name) const {
    return tensor ? tensor : e.scalar(dtype, number, name);
  }
};

// The limit over a norm that exceeds it, and exactly 1 elsewhere:
//
//   m = max(norm, limit)      (NaN stays NaN)
//   ratio = (m == limit ? 1 : limit) / (m == limit ? 1 : m)
//
// Both branches are chosen before the division, so 0/0 and inf/inf never arise, nor in the gradient.
Output ratio(const Emit& e, Output norm, Output limit) {
  Output m = e.op("Maximum", {norm, limit});
  Output inside = e.op("Equal", {m, limit});
  Output ones = e.ones_like(m, "ones_like");
  Output over = e.op("Mul", {ones, limit}, "mul");
  Output top = e.op("Select", {inside, ones, over});
  Output bottom = e.op("Select", {inside, ones, m});
  return e.op("RealDiv", {top, bottom}, "truediv");
}

// sqrt(sum of squares) whose gradient at zero is zero.
Output euclidean_norm(const Emit& e, Output t, const std::vector<int32_t>* axes) {
  Output squares = e.op("Mul", {t, t}, "mul");
  Output sum;
  if (axes) {
    NameScope scope(e.g, "Sum");
    Output a = e.i32s(*axes, "reduction_indices");
    sum = e.op("Sum", {squares, a}, scope.scope(), {{"keep_dims", true}});
  } else {
    sum = e.op("Sum", {squares, e.all_axes(squares)}, {}, {{"keep_dims", true}});
  }
  Output positive;
  {
    NameScope scope(e.g, "Greater");
    positive = e.op("Greater", {sum, e.scalar(t.dtype(), 0.0, "y")}, scope.scope());
  }
  Output safe = e.op("Select", {positive, sum, e.ones_like(sum)});
  Output root = e.op("Sqrt", {safe});
  return e.op("Select", {positive, root, sum});
}

GradValue clip_value(const GradValue& t, const Limit& lo, const Limit& hi, const std::string& name, Loc loc) {
  Output v = stored(t, "clip_by_value");
  Emit e{v.graph(), loc};
  NameScope scope(e.g, or_default(name, "clip_by_value"));
  Output low;
  {
    NameScope inner(e.g, "Minimum");
    low = e.op("Minimum", {v, hi.as(e, v.dtype(), "y")}, inner.scope());
  }
  Output out = e.op("Maximum", {low, lo.as(e, v.dtype(), "y")}, scope.scope());
  const graph::Shape& want = v.shape();
  SLUICE_REQUIRE(want.compatible(out.shape()) && (!want.known_rank() || out.shape().known_rank()),
                 Code::kInvalidArgument, "clip_by_value: limits of shape ",
                 (lo.tensor ? lo.tensor.shape() : graph::Shape::scalar()), " and ",
                 (hi.tensor ? hi.tensor.shape() : graph::Shape::scalar()), " enlarge ", v.name(),
                 " of shape ", want, " to ", out.shape());
  e.g.set_shape(out, want);
  return restore(t, out);
}

GradValue clip_norm(const GradValue& t, const Limit& limit, const std::vector<int32_t>* axes,
                    const std::string& name, Loc loc) {
  Output v = stored(t, "clip_by_norm");
  Emit e{v.graph(), loc};
  NameScope scope(e.g, or_default(name, "clip_by_norm"));
  Output norm = euclidean_norm(e, v, axes);
  Output r = ratio(e, norm, limit.as(e, v.dtype(), "clip_norm"));
  Output scaled = e.op("Mul", {v, r}, "mul");
  return restore(t, e.op("Identity", {scaled}, scope.scope()));
}

std::pair<std::vector<GradValue>, Output> clip_global(const std::vector<GradValue>& ts, const Limit& limit,
                                                      Output use_norm, const std::string& name, Loc loc) {
  Output norm = use_norm ? use_norm : global_norm(ts, {}, loc);
  Emit e{norm.graph(), loc};
  NameScope scope(e.g, or_default(name, "clip_by_global_norm"));
  Output r = ratio(e, norm, limit.as(e, norm.dtype(), "clip_norm"));
  // norm - norm is 0 for a finite norm and NaN otherwise.
  Output poison = e.op("Sub", {norm, norm}, "sub");
  Output scale = e.op("AddV2", {r, poison}, "add");
  std::vector<GradValue> out;
  for (size_t i = 0; i < ts.size(); ++i) {
    if (ts[i].none()) {
      out.push_back(ts[i]);
      continue;
    }
    Output v = stored(ts[i], "clip_by_global_norm");
    ColocateWith beside(e.g, v.node);
    Output factor = scale;
    if (v.dtype() != scale.dtype()) factor = e.op("Cast", {scale}, {}, {{"DstT", v.dtype()}});
    Output scaled = e.op("Mul", {v, factor}, "mul");
    std::string leaf = cat(or_default(name, "clip_by_global_norm"), "/_", i);
    out.push_back(restore(ts[i], e.op("Identity", {scaled}, leaf)));
  }
  return {std::move(out), norm};
}

Output clip_average(Output t, const Limit& limit, const std::string& name, Loc loc) {
  Emit e{t.graph(), loc};
  NameScope scope(e.g, or_default(name, "clip_by_average_norm"));
  Output size = e.op("Size", {t});
  Output count = e.op("Cast", {size}, {}, {{"DstT", t.dtype()}});
  Output norm = euclidean_norm(e, t, nullptr);
  Output average = e.op("RealDiv", {norm, count}, "truediv");
  Output r = ratio(e, average, limit.as(e, t.dtype(), "clip_norm"));
  return e.op("Identity", {e.op("Mul", {t, r}, "mul")}, scope.scope());
}

}  // namespace

GradValue clip_by_value(const GradValue& t, Output lo, Output hi, const std::string& name, Loc loc) {
  return clip_value(t, {lo}, {hi}, name, loc);
}
GradValue clip_by_value(const GradValue& t, double lo, double hi, const std::string& name, Loc loc) {
  return clip_value(t, {{}, lo}, {{}, hi}, name, loc);
}

GradValue clip_by_norm(const GradValue& t, Output limit, const std::vector<int32_t>* axes,
                       const std::string& name, Loc loc) {
  return clip_norm(t, {limit}, axes, name, loc);
}
GradValue clip_by_norm(const GradValue& t, double limit, const std::vector<int32_t>* axes,
                       const std::string& name, Loc loc) {
  return clip_norm(t, {{}, limit}, axes, name, loc);
}

Output global_norm(const std::vector<GradValue>& ts, const std::string& name, Loc loc) {
  const GradValue* first = nullptr;
  for (const GradValue& t : ts) {
    if (!t.none() && !first) first = &t;
  }
  SLUICE_REQUIRE(first, Code::kInvalidArgument, "global_norm of an empty list: every one of its ", ts.size(),
                 " tensors is none");
  Emit e{stored(*first, "global_norm").graph(), loc};
  NameScope scope(e.g, or_default(name, "global_norm"));
  std::vector<Output> halves;
  for (const GradValue& t : ts) {
    if (t.none()) continue;
    Output v = stored(t, "global_norm");
    ColocateWith beside(e.g, v.node);
    halves.push_back(e.op("L2Loss", {v}));
  }
  Output stacked = e.op("Pack", halves, "stack", {{"axis", 0}});
  Output sum = e.op("Sum", {stacked, e.i32s({0})});
  Output two = e.scalar(sum.dtype(), 2.0);
  return e.op("Sqrt", {e.op("Mul", {sum, two}, "mul")}, or_default(name, "global_norm"));
}

std::pair<std::vector<GradValue>, Output> clip_by_global_norm(const std::vector<GradValue>& ts, Output limit,
                                                              Output use_norm, const std::string& name,
                                                              Loc loc) {
  return clip_global(ts, {limit}, use_norm, name, loc);
}
std::pair<std::vector<GradValue>, Output> clip_by_global_norm(const std::vector<GradValue>& ts, double limit,
                                                              Output use_norm, const std::string& name,
                                                              Loc loc) {
  return clip_global(ts, {{}, limit}, use_norm, name, loc);
}

Output clip_by_average_norm(Output t, Output limit, const std::string& name, Loc loc) {
  return clip_average(t, {limit}, name, loc);
}
Output clip_by_average_norm(Output t, double limit, const std::string& name, Loc loc) {
  return clip_average(t, {{}, limit}, name, loc);
}

}  // namespace sluice::passes
