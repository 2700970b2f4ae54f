#pragma once
// Which instruction set our vector code may use. Found once from the CPU, lowered by the environment variable
// SLUICE_MAX_ISA (sse42, avx2, avx512), so that one machine tests several. Any thread.

#include <optional>
#include <string_view>

namespace sluice::runtime {

enum class Isa { kSse42 = 0, kAvx2 = 1, kAvx512 = 2 };

/// The best level that CPU and SLUICE_MAX_ISA allow. InvalidArgument when the variable holds something else.
Isa cpu_isa();
/// The level of the CPU alone.
Isa hardware_isa();
/// "sse42", "avx2", "avx512".
std::string_view isa_name(Isa isa);
std::optional<Isa> parse_isa(std::string_view name);

}  // namespace sluice::runtime
