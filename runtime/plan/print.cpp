#include "graph/support/cat.h"
#include "runtime/plan/plan.h"
#include "runtime/region.h"

namespace sluice::runtime {

using plan::PlanValue;
using plan::Storage;
using plan::ValueId;

namespace {

const char* name(Storage s) {
  switch (s) {
    case Storage::kArena:
      return "arena";
    case Storage::kConstant:
      return "constant";
    case Storage::kFeed:
      return "feed";
    case Storage::kVariable:
      return "variable";
    case Storage::kHandle:
      return "handle";
    case Storage::kDynamic:
      return "array";
  }
  return "?";
}

std::string quoted(std::string_view s) {
  std::string r = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') {
      r += '\\';
      r += c;
    } else if (c == '\n') {
      r += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      constexpr const char* kHex = "0123456789abcdef";
      r += "\\u00";
      r += kHex[(c >> 4) & 15];
      r += kHex[c & 15];
    } else {
      r += c;
    }
  }
  return r + '"';
}

template <class List, class F>
std::string json_list(const List& list, F item) {
  std::string s = "[";
  for (const auto& x : list) s += cat(s.size() > 1 ? "," : "", item(x));
  return s + "]";
}

std::string dims_json(const Dims& dims) {
  return json_list(dims, [](int64_t d) { return cat(d); });
}

}  // namespace

ValueId Plan::root(ValueId v) const {
  while (value(v).buffer_of >= 0) v = value(v).buffer_of;
  return v;
}

std::string Plan::str() const {
  std::string s = cat(steps_.size(), " steps, arena ", arena_bytes_, " bytes (live peak ", live_peak_, ")",
                      is_cut() ? ", the rest is compiled when its shapes are known" : "", '\n');
  auto list = [&](const std::vector<ValueId>& ids) {
    std::string t;
    for (ValueId v : ids) {
      const PlanValue& x = value(v);
      t += cat(t.empty() ? "" : ", ", "%", v, ":",
               x.known_dims ? x.spec.str() : cat(x.spec.dtype, "[dynamic]"));
      const PlanValue& r = value(root(v));
      if (r.storage == Storage::kArena)
        t += cat("+", r.offset);
      else
        t += cat("(", name(r.storage), ")");
    }
    return t;
  };
  int number = 0;
  for (const Step& step : steps_) {
    s += cat(number++, "  ", step.name, " = ", step.op, " [", step.candidate, "] (", list(step.inputs),
             ") -> (", list(step.outputs), ")\n");
    if (step.nodes.size() > 1) {
      s += "      of";
      for (const std::string& n : step.nodes) s += cat(" ", n);
      s += '\n';
    }
    for (const plan::Refused& r : step.refusals) s += cat("      not ", r.candidate, ": ", r.reason, '\n');
    if (step.region) {
      std::string text = step.region->str(), indented = "      | ";
      for (char c : text) {
        indented += c;
        if (c == '\n') indented += "      | ";
      }
      s += indented + '\n';
    }
  }
  s += "arena\n";
  for (size_t v = 0; v < values_.size(); ++v) {
    const PlanValue& x = values_[v];
    if (x.storage != Storage::kArena || x.buffer_of >= 0 || x.last < x.first) continue;
    s += cat("  ", x.offset, " .. ", x.offset + x.spec.bytes(), "  %", v, " ", x.name, "  ", x.spec.str(),
             "  steps ", x.first, "-", x.last, '\n');
  }
  return s;
}

std::string Plan::json() const {
  auto value_json = [&](ValueId v) {
    const PlanValue& x = value(v);
    const PlanValue& r = value(root(v));
    std::string s = cat(
        "{\"id\":", v, ",\"name\":", quoted(x.name), ",\"dtype\":", quoted(graph::dtype_name(x.spec.dtype)),
        ",\"dims\":", x.known_dims ? dims_json(x.spec.dims) : "null",
        ",\"layout\":", quoted(x.spec.layout.str()), ",\"storage\":", quoted(name(r.storage)));
    if (r.storage == Storage::kArena) s += cat(",\"offset\":", r.offset);
    return s + "}";
  };
  auto strings = [](const std::vector<std::string>& list) {
    return json_list(list, [](const std::string& t) { return quoted(t); });
  };
  std::string s = cat("{\"arena_bytes\":", arena_bytes_, ",\"live_peak_bytes\":", live_peak_,
                      ",\"compile_seconds\":", compile_seconds_, ",\"forward_only\":", forward_only_,
                      ",\"cut\":", is_cut());
  int number = 0;
  s += ",\"steps\":" + json_list(steps_, [&](const Step& step) {
         std::string t =
             cat("{\"step\":", number++, ",\"name\":", quoted(step.name), ",\"op\":", quoted(step.op),
                 ",\"kernel\":", quoted(step.candidate), ",\"nodes\":", strings(step.nodes),
                 ",\"inputs\":", json_list(step.inputs, value_json),
                 ",\"outputs\":", json_list(step.outputs, value_json),
                 ",\"refused\":", json_list(step.refusals, [](const plan::Refused& r) {
                   return cat("{\"kernel\":", quoted(r.candidate), ",\"reason\":", quoted(r.reason), "}");
                 }));
         if (step.region)
           t += cat(",\"region\":{\"rows\":", step.region->rows, ",\"cols\":", step.region->cols,
                    ",\"ops\":", step.region->insts.size(), ",\"text\":", quoted(step.region->str()), "}");
         return t + "}\n";
       });
  std::string arena;
  for (size_t v = 0; v < values_.size(); ++v) {
    const PlanValue& x = values_[v];
    if (x.storage != Storage::kArena || x.buffer_of >= 0 || x.last < x.first) continue;
    arena += cat(arena.empty() ? "" : ",\n", "{\"value\":", v, ",\"name\":", quoted(x.name),
                 ",\"offset\":", x.offset, ",\"bytes\":", x.spec.bytes(), ",\"first\":", x.first,
                 ",\"last\":", x.last, "}");
  }
  s += cat(",\"arena\":[", arena, "]");
  s += ",\"variables\":" + json_list(variables_, [](const plan::VariableUse& u) {
         const auto spec = u.variable->spec();
         return cat("{\"name\":", quoted(u.variable->name()), ",\"spec\":", quoted(spec ? spec->str() : ""),
                    "}");
       });
  s += ",\"passes\":" + json_list(passes_, [](const plan::PassTime& p) {
         return cat("{\"name\":", quoted(p.name), ",\"seconds\":", p.seconds,
                    ",\"ops_before\":", p.ops_before, ",\"ops_after\":", p.ops_after, "}");
       });
  return s + "}\n";
}

}  // namespace sluice::runtime
