// String ops that savers and summaries use.

#include <cstdio>
#include <regex>

#include "kernels/host/input_array.h"
#include "kernels/reference/register.h"

namespace sluice::kernels {
namespace {

// Scalars join every element.
BoundFn string_join(const KernelSpec& spec) {
  return [separator = spec.attr_or<std::string>("separator", "")](KernelRun& r) {
    Dims dims;
    for (int i = 0; i < r.num_inputs(); ++i)
      if (!r.in_dims(i).empty()) {
        SLUICE_REQUIRE(dims.empty() || dims == r.in_dims(i), Code::kInvalidArgument,
                       "Input shapes do not match: ", dims_string(dims), " and ", dims_string(r.in_dims(i)));
        dims = r.in_dims(i);
      }
    std::vector<std::string> out(static_cast<size_t>(graph::num_elements(dims)));
    for (size_t k = 0; k < out.size(); ++k)
      for (int i = 0; i < r.num_inputs(); ++i) {
        if (i) out[k] += separator;
        out[k] += r.in_array(i).string_values()[r.in_dims(i).empty() ? 0 : k];
      }
    r.out_array(0) = Array::strings(dims, std::move(out));
  };
}

std::string five_digits(int64_t n) {
  char text[32];
  std::snprintf(text, sizeof text, "%05lld", static_cast<long long>(n));
  return text;
}

void sharded_filename(KernelRun& r) {
  put_string(
      r, 0,
      cat(scalar_string(r, 0), "-", five_digits(scalar_int(r, 1)), "-of-", five_digits(scalar_int(r, 2))));
}
void sharded_filespec(KernelRun& r) {
  put_string(r, 0, cat(scalar_string(r, 0), "-?\?\?\?\?-of-", five_digits(scalar_int(r, 1))));
}

// Elements as printf writes them.
BoundFn as_string(const KernelSpec& spec) {
  const auto precision = spec.attr_or<int64_t>("precision", -1), width = spec.attr_or<int64_t>("width", -1);
  const bool scientific = spec.attr_or<bool>("scientific", false),
             shortest = spec.attr_or<bool>("shortest", false);
  const auto fill = spec.attr_or<std::string>("fill", "");
  SLUICE_REQUIRE(fill.size() <= 1, Code::kInvalidArgument,
                 "Fill string must be one or fewer characters: ", fill);
  SLUICE_REQUIRE(!(scientific && shortest), Code::kInvalidArgument,
                 "Cannot select both scientific and shortest notation");
  std::string format = "%" + fill;
  if (width >= 0) format += cat(width);
  if (precision >= 0) format += cat(".", precision);
  const char real = shortest ? 'g' : scientific ? 'e' : 'f';
  return [format, real](KernelRun& r) {
    std::vector<std::string> out(static_cast<size_t>(in_count(r, 0)));
    for (size_t k = 0; k < out.size(); ++k) {
      if (r.in_dtype(0) == DType::kBool) {
        out[k] = r.in<bool>(0)[k] ? "true" : "false";
        continue;
      }
      char text[512];
      for_numeric(r.in_dtype(0), [&]<class T>() {
        const T v = r.in<T>(0)[k];
        if constexpr (std::is_floating_point_v<T>)
          std::snprintf(text, sizeof text, (format + real).c_str(), static_cast<double>(v));
        else if constexpr (std::is_signed_v<T>)
          std::snprintf(text, sizeof text, (format + "lld").c_str(), static_cast<long long>(v));
        else
          std::snprintf(text, sizeof text, (format + "llu").c_str(), static_cast<unsigned long long>(v));
      });
      out[k] = text;
    }
    r.out_array(0) = Array::strings(r.in_dims(0), std::move(out));
  };
}

void match_all(const KernelRun& r, const std::string& pattern) {
  std::regex expression;
  try {
    expression = std::regex(pattern);
  } catch (const std::regex_error&) {
    throw_error(Code::kInvalidArgument, cat("Invalid pattern: ", pattern));
  }
  const std::vector<std::string>& in = r.in_array(0).string_values();
  for (size_t k = 0; k < in.size(); ++k) r.out<bool>(0)[k] = std::regex_match(in[k], expression);
}

BoundFn static_regex_full_match(const KernelSpec& spec) {
  return [pattern = spec.attr<std::string>("pattern")](KernelRun& r) { match_all(r, pattern); };
}
void regex_full_match(KernelRun& r) { match_all(r, scalar_string(r, 1)); }

}  // namespace

void register_host_strings(KernelRegistry& r) {
  add_bound(r, "StringJoin", string_join);
  add(r, "ShardedFilename", sharded_filename);
  add(r, "ShardedFilespec", sharded_filespec);
  add_bound(r, "AsString", as_string);
  add_bound(r, "StaticRegexFullMatch", static_regex_full_match);
  add(r, "RegexFullMatch", regex_full_match);
}

}  // namespace sluice::kernels
