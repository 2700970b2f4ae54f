#include "runtime/cpu_features.h"

#include <algorithm>
#include <cstdlib>

#include "graph/support/check.h"

namespace sluice::runtime {

Isa hardware_isa() {
  static const Isa isa = [] {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512cd"))
      return Isa::kAvx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Isa::kAvx2;
    return Isa::kSse42;
  }();
  return isa;
}

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::kSse42:
      return "sse42";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
  }
  return "?";
}

std::optional<Isa> parse_isa(std::string_view name) {
  for (Isa isa : {Isa::kSse42, Isa::kAvx2, Isa::kAvx512})
    if (isa_name(isa) == name) return isa;
  return std::nullopt;
}

Isa cpu_isa() {
  static const Isa isa = [] {
    const char* text = std::getenv("SLUICE_MAX_ISA");
    if (!text || !*text) return hardware_isa();
    std::optional<Isa> limit = parse_isa(text);
    SLUICE_REQUIRE(limit.has_value(), Code::kInvalidArgument, "SLUICE_MAX_ISA is '", text,
                   "'; it must be sse42, avx2 or avx512");
    return std::min(*limit, hardware_isa());
  }();
  return isa;
}

}  // namespace sluice::runtime
