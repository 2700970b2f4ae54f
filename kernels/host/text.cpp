// Text ops: patterns, joining along axes, splitting, pieces, numbers.

#include <algorithm>
#include <cctype>
#include <charconv>
#include <regex>

#include "kernels/host/input_array.h"
#include "kernels/reference/register.h"

namespace sluice::kernels {
namespace {

using Texts = std::vector<std::string>;

std::regex compiled(const std::string& pattern) {
  try {
    return std::regex(pattern);
  } catch (const std::regex_error& e) {
    throw_error(Code::kInvalidArgument, cat("Invalid pattern: ", pattern, ", error: ", e.what()));
  }
}

// Element by element: f(text) in input 0's shape.
template <class F>
void map_texts(KernelRun& r, F&& f) {
  const Texts& in = r.in_array(0).string_values();
  Texts out;
  out.reserve(in.size());
  for (const std::string& s : in) out.push_back(f(s));
  r.out_array(0) = Array::strings(r.in_dims(0), std::move(out));
}

// A rewrite as TensorFlow states it: \0 … \9 are the match and its groups, \\ a backslash.
std::string rewritten(const std::smatch& match, const std::string& rewrite) {
  std::string out;
  for (size_t i = 0; i < rewrite.size(); ++i) {
    if (rewrite[i] != '\\') {
      out += rewrite[i];
      continue;
    }
    SLUICE_REQUIRE(i + 1 < rewrite.size(), Code::kInvalidArgument, "RegexReplace: the rewrite '", rewrite,
                   "' ends in a backslash");
    const char c = rewrite[++i];
    if (c == '\\') {
      out += c;
      continue;
    }
    SLUICE_REQUIRE(std::isdigit(static_cast<unsigned char>(c)), Code::kInvalidArgument, "RegexReplace: '\\",
                   std::string(1, c), "' in the rewrite '", rewrite, "' is neither a group nor a backslash");
    const auto group = static_cast<size_t>(c - '0');
    SLUICE_REQUIRE(group < match.size(), Code::kInvalidArgument, "RegexReplace: the rewrite '", rewrite,
                   "' names group ", group, ", the pattern has ", match.size() - 1);
    out += match[group].str();
  }
  return out;
}

void replace_all(KernelRun& r, const std::regex& pattern, const std::string& rewrite, bool global) {
  map_texts(r, [&](const std::string& s) {
    std::string out;
    auto at = s.cbegin();
    for (std::sregex_iterator it(s.begin(), s.end(), pattern), end; it != end; ++it) {
      out.append(at, s.cbegin() + it->position());
      out += rewritten(*it, rewrite);
      at = s.cbegin() + it->position() + it->length();
      if (!global) break;
    }
    out.append(at, s.cend());
    return out;
  });
}

BoundFn regex_replace(const KernelSpec& spec) {
  return [global = spec.attr_or<bool>("replace_global", true)](KernelRun& r) {
    replace_all(r, compiled(scalar_string(r, 1)), scalar_string(r, 2), global);
  };
}

BoundFn static_regex_replace(const KernelSpec& spec) {
  return [pattern = compiled(spec.attr<std::string>("pattern")), rewrite = spec.attr<std::string>("rewrite"),
          global = spec.attr_or<bool>("replace_global", true)](KernelRun& r) {
    replace_all(r, pattern, rewrite, global);
  };
}

// Joins along the axes in the order given: the first axis changes slowest.
BoundFn reduce_join(const KernelSpec& spec) {
  return [keep = spec.attr_or<bool>("keep_dims", false),
          separator = spec.attr_or<std::string>("separator", "")](KernelRun& r) {
    const Dims& dims = r.in_dims(0);
    const Texts& in = r.in_array(0).string_values();
    const Index strides = strides_of(dims);
    std::vector<size_t> axes;
    for (int64_t k = 0; k < in_count(r, 1); ++k)
      axes.push_back(static_cast<size_t>(resolve_axis(int_at(r, 1, k), static_cast<int>(dims.size()))));
    Dims kept, out_dims;
    std::vector<int64_t> kept_strides;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (std::find(axes.begin(), axes.end(), d) == axes.end()) {
        kept.push_back(dims[d]);
        kept_strides.push_back(strides[d]);
        out_dims.push_back(dims[d]);
      } else if (keep) {
        out_dims.push_back(1);
      }
    }
    int64_t joined = 1;
    for (size_t a : axes) joined *= dims[a];
    Texts out(static_cast<size_t>(graph::num_elements(kept)));
    for (size_t k = 0; k < out.size(); ++k) {
      auto rest = static_cast<int64_t>(k);
      int64_t base = 0;
      for (size_t d = kept.size(); d-- > 0; rest /= kept[d]) base += rest % kept[d] * kept_strides[d];
      for (int64_t j = 0; j < joined; ++j) {
        int64_t at = base, left = j;
        for (size_t a = axes.size(); a-- > 0; left /= dims[axes[a]])
          at += left % dims[axes[a]] * strides[axes[a]];
        if (j) out[k] += separator;
        out[k] += in[static_cast<size_t>(at)];
      }
    }
    r.out_array(0) = Array::strings(std::move(out_dims), std::move(out));
  };
}

// Coordinates, parts and shape of the rows that `parts` cuts the strings into.
template <class F>
void split_rows(KernelRun& r, F&& parts) {
  const Texts& in = r.in_array(0).string_values();
  std::vector<Texts> rows;
  int64_t count = 0, widest = 0;
  for (const std::string& s : in) {
    rows.push_back(parts(s));
    count += static_cast<int64_t>(rows.back().size());
    widest = std::max(widest, static_cast<int64_t>(rows.back().size()));
  }
  auto* at = static_cast<int64_t*>(result(r, 0, {count, 2}));
  Texts values;
  values.reserve(static_cast<size_t>(count));
  for (size_t i = 0; i < rows.size(); ++i)
    for (size_t j = 0; j < rows[i].size(); ++j) {
      *at++ = static_cast<int64_t>(i);
      *at++ = static_cast<int64_t>(j);
      values.push_back(std::move(rows[i][j]));
    }
  r.out_array(1) = Array::strings({count}, std::move(values));
  auto* shape = static_cast<int64_t*>(result(r, 2, {2}));
  shape[0] = static_cast<int64_t>(rows.size());
  shape[1] = widest;
}

BoundFn string_split(const KernelSpec& spec) {
  return [skip = spec.attr_or<bool>("skip_empty", true)](KernelRun& r) {
    const std::string delimiters = scalar_string(r, 1);
    split_rows(r, [&](const std::string& s) {
      Texts out;
      if (delimiters.empty()) {
        for (char c : s) out.emplace_back(1, c);
        return out;
      }
      for (size_t at = 0;;) {
        const size_t next = std::min(s.find_first_of(delimiters, at), s.size());
        if (next > at || !skip) out.push_back(s.substr(at, next - at));
        if (next == s.size()) return out;
        at = next + 1;
      }
    });
  };
}

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

BoundFn string_split_v2(const KernelSpec& spec) {
  return [most = spec.attr_or<int64_t>("maxsplit", -1)](KernelRun& r) {
    const std::string separator = scalar_string(r, 1);
    auto may_cut = [most](const Texts& out) { return most < 0 || static_cast<int64_t>(out.size()) < most; };
    split_rows(r, [&](const std::string& s) {
      Texts out;
      if (separator.empty()) {  // runs of white space, none at the ends
        for (size_t at = 0;;) {
          while (at < s.size() && is_space(s[at])) ++at;
          if (at == s.size()) return out;
          size_t end = at;
          if (may_cut(out)) {
            while (end < s.size() && !is_space(s[end])) ++end;
          } else {
            end = s.size();
          }
          out.push_back(s.substr(at, end - at));
          at = end;
        }
      }
      for (size_t at = 0;;) {
        const size_t next = may_cut(out) ? s.find(separator, at) : std::string::npos;
        out.push_back(s.substr(at, next - at));
        if (next == std::string::npos) return out;
        at = next + separator.size();
      }
    });
  };
}

void strip(KernelRun& r) {
  map_texts(r, [](const std::string& s) {
    size_t b = 0, e = s.size();
    while (b < e && is_space(s[b])) ++b;
    while (e > b && is_space(s[e - 1])) --e;
    return s.substr(b, e - b);
  });
}

template <int (*kChange)(int)>
void change_case(KernelRun& r) {
  map_texts(r, [](const std::string& s) {
    std::string out = s;
    for (char& c : out)
      if (static_cast<unsigned char>(c) < 128) c = static_cast<char>(kChange(static_cast<unsigned char>(c)));
    return out;
  });
}

// Where the characters of a UTF-8 text start, and its end.
std::vector<size_t> character_starts(const std::string& s) {
  std::vector<size_t> at;
  for (size_t i = 0; i < s.size(); ++i)
    if ((static_cast<unsigned char>(s[i]) & 0xC0) != 0x80) at.push_back(i);
  at.push_back(s.size());
  return at;
}

BoundFn length(const KernelSpec& spec) {
  return [utf8 = spec.attr_or<std::string>("unit", "BYTE") == "UTF8_CHAR"](KernelRun& r) {
    const Texts& in = r.in_array(0).string_values();
    auto* to = static_cast<int32_t*>(result(r, 0, r.in_dims(0)));
    for (const std::string& s : in)
      *to++ = static_cast<int32_t>(utf8 ? character_starts(s).size() - 1 : s.size());
  };
}

// pos and len: scalars, or of the texts' shape.
BoundFn substr(const KernelSpec& spec) {
  return [utf8 = spec.attr_or<std::string>("unit", "BYTE") == "UTF8_CHAR"](KernelRun& r) {
    const Texts& in = r.in_array(0).string_values();
    const bool one_text = in_count(r, 0) == 1, one_place = in_count(r, 1) == 1;
    SLUICE_REQUIRE(in_count(r, 1) == in_count(r, 2), Code::kInvalidArgument,
                   "pos and len should have the same shape, got: ", dims_string(r.in_dims(1)), " vs. ",
                   dims_string(r.in_dims(2)));
    SLUICE_REQUIRE(one_text || one_place || r.in_dims(0) == r.in_dims(1), Code::kUnimplemented,
                   "Substr broadcasts a single text or a single place, got ", dims_string(r.in_dims(0)),
                   " and ", dims_string(r.in_dims(1)));
    const Dims& dims = one_text && r.in_dims(1).size() > r.in_dims(0).size() ? r.in_dims(1) : r.in_dims(0);
    Texts out(static_cast<size_t>(graph::num_elements(dims)));
    for (size_t k = 0; k < out.size(); ++k) {
      const std::string& s = in[one_text ? 0 : k];
      const auto at = static_cast<int64_t>(one_place ? 0 : k);
      int64_t from = int_at(r, 1, at), count = int_at(r, 2, at);
      std::vector<size_t> starts;
      if (utf8) starts = character_starts(s);
      const auto size = static_cast<int64_t>(utf8 ? starts.size() - 1 : s.size());
      SLUICE_REQUIRE(from <= size && from >= -size, Code::kInvalidArgument, "pos ", from,
                     " out of range for string b'", s, "' at index ", k);
      if (from < 0) from += size;
      count = std::clamp<int64_t>(count, 0, size - from);
      const auto b = static_cast<size_t>(from), e = static_cast<size_t>(from + count);
      out[k] = utf8 ? s.substr(starts[b], starts[e] - starts[b]) : s.substr(b, e - b);
    }
    r.out_array(0) = Array::strings(dims, std::move(out));
  };
}

void to_number(KernelRun& r) {
  const Texts& in = r.in_array(0).string_values();
  for_common(r.out_dtype(0), [&]<class T>() {
    T* to = static_cast<T*>(result(r, 0, r.in_dims(0)));
    for (const std::string& s : in) {
      const char *b = s.data(), *e = b + s.size();
      while (b < e && is_space(*b)) ++b;
      while (e > b && is_space(e[-1])) --e;
      if (e - b > 1 && *b == '+') ++b;
      T value{};
      const auto [end, error] = std::from_chars(b, e, value);
      SLUICE_REQUIRE(error == std::errc() && end == e, Code::kInvalidArgument,
                     "StringToNumberOp could not correctly convert string: ", s);
      *to++ = value;
    }
  });
}

}  // namespace

void register_host_text(KernelRegistry& r) {
  add_bound(r, "RegexReplace", regex_replace);
  add_bound(r, "StaticRegexReplace", static_regex_replace);
  add_bound(r, "ReduceJoin", reduce_join);
  add_bound(r, "StringSplit", string_split);
  add_bound(r, "StringSplitV2", string_split_v2);
  add(r, "StringStrip", strip);
  add(r, "StringLower", change_case<std::tolower>);
  add(r, "StringUpper", change_case<std::toupper>);
  add_bound(r, "StringLength", length);
  add_bound(r, "Substr", substr);
  add(r, "StringToNumber", to_number);
}

}  // namespace sluice::kernels
