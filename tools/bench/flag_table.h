#pragma once
// Every flag once: name, group, class, the field of Params it fills, and its help. Parsing, --help,
// parameters.json, the refusal of what is not built and the tests all walk this table, so a flag cannot be
// half known. Immutable; any thread.

#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "tools/bench/params.h"

namespace sluice::bench {

/// What a non-default value does (decisions #9). kRefused needs a part that is not built: the run ends before
/// it starts. kEnvironment exports settings for a threading library that may be absent.
enum class FlagClass { kEffect, kEnvironment, kNeutral, kRefused };

enum class FlagGroup {
  kGeneral,
  kData,
  kOptimizer,
  kMisc,
  kTuning,
  kMkl,
  kHalf,
  kVariables,
  kFiles,
  kTool,
};

using FlagField = std::variant<bool Params::*, int64_t Params::*, double Params::*, std::string Params::*,
                               std::optional<int64_t> Params::*, std::optional<double> Params::*,
                               std::optional<std::string> Params::*>;

struct FlagSpec {
  std::string_view name;
  FlagGroup group;
  FlagClass klass;
  FlagField field;
  std::string_view help;
  /// kNeutral: why nothing changes. kRefused: what is missing.
  std::string_view reason = {};
};

/// All flags in the order of their groups; the tool's own come last.
std::span<const FlagSpec> flag_table();
/// The seed's 74: the table without FlagGroup::kTool.
std::span<const FlagSpec> seed_flags();
/// Null when there is none of that name.
const FlagSpec* find_flag(std::string_view name);
std::string_view group_title(FlagGroup group);

bool is_boolean(const FlagSpec& flag);
/// "boolean", "integer", "float", "string".
std::string_view type_name(const FlagSpec& flag);
/// The value as the command line would say it; "None" when unset.
std::string value_text(const FlagSpec& flag, const Params& params);
/// True when the field holds its default.
bool is_default(const FlagSpec& flag, const Params& params);
/// Copies this one field.
void copy_value(const FlagSpec& flag, const Params& from, Params& to);
/// Reads `text` into the field. Throws InvalidArgument naming flag and text when it is not of the flag's
/// type.
void set_value(const FlagSpec& flag, std::string_view text, Params& params);

}  // namespace sluice::bench
