// Ops that look at values and speak: CheckNumerics, Assert, Print.

#include <atomic>
#include <cmath>
#include <cstdio>

#include "kernels/host/input_array.h"
#include "kernels/host/summarize.h"
#include "kernels/reference/register.h"

namespace sluice::kernels {
namespace {

struct Bad {
  int64_t nan = 0, inf = 0, first = -1;
  double min = 0, max = 0;
  bool any_finite = false;
};

template <class T>
Bad inspect(const T* x, int64_t n) {
  Bad b;
  for (int64_t i = 0; i < n; ++i) {
    const double v = static_cast<double>(x[i]);
    if (std::isfinite(v)) {
      b.min = b.any_finite ? std::min(b.min, v) : v;
      b.max = b.any_finite ? std::max(b.max, v) : v;
      b.any_finite = true;
      continue;
    }
    if (b.first < 0) b.first = i;
    ++(std::isnan(v) ? b.nan : b.inf);
  }
  return b;
}

std::string index_text(const Dims& dims, int64_t at) {
  const Index s = strides_of(dims);
  Dims index;
  for (size_t d = 0; d < dims.size(); ++d) {
    index.push_back(at / s[d]);
    at %= s[d];
  }
  return dims_string(index);
}

template <class T>
bool all_finite(const T* x, int64_t n) {
  // A sum of x·0 is 0 unless something is not finite.
  T sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i] * T(0);
  return sum == T(0);
}

BoundFn check_numerics(const KernelSpec& spec) {
  return [message = spec.attr_or<std::string>("message", "")](KernelRun& r) {
    for_float(r.in_dtype(0), [&]<class T>() {
      const int64_t n = in_count(r, 0);
      if (!all_finite(r.in<T>(0), n)) [[unlikely]] {
        const Bad b = inspect(r.in<T>(0), n);
        std::string text = cat(message, " : Tensor had ",
                               b.nan && b.inf ? "Inf and NaN"
                               : b.nan        ? "NaN"
                                              : "Inf",
                               " values (", b.nan + b.inf, " of ", n, " elements, the first at ",
                               index_text(r.in_dims(0), b.first));
        text +=
            b.any_finite ? cat("; the finite ones lie in [", b.min, ", ", b.max, "])") : "; none is finite)";
        throw_error(Code::kInvalidArgument, std::move(text));
      }
    });
    copy_value(r, 0, 0);
  };
}

BoundFn assert_true(const KernelSpec& spec) {
  const auto limit = spec.attr_or<int64_t>("summarize", 3);
  return [limit](KernelRun& r) {
    if (*r.in<bool>(0)) return;
    std::string text = "assertion failed:";
    for (int i = 1; i < r.num_inputs(); ++i) text += cat(" [", summarize(r, i, limit), "]");
    throw_error(Code::kInvalidArgument, std::move(text));
  };
}

void say(std::FILE* to, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), to);
  std::fflush(to);
}

BoundFn print(const KernelSpec& spec) {
  struct Calls {
    std::atomic<int64_t> n{0};
  };
  // Shared because a bound function is copied; the count is one kernel's.
  return [message = spec.attr_or<std::string>("message", ""), limit = spec.attr_or<int64_t>("summarize", 3),
          first_n = spec.attr_or<int64_t>("first_n", -1), calls = std::make_shared<Calls>()](KernelRun& r) {
    if (first_n < 0 || calls->n.fetch_add(1) < first_n) {
      std::string text = message;
      for (int i = 1; i < r.num_inputs(); ++i) text += cat('[', summarize(r, i, limit), ']');
      say(stderr, text + '\n');
    }
    copy_value(r, 0, 0);
  };
}

BoundFn print_v2(const KernelSpec& spec) {
  const auto stream = spec.attr_or<std::string>("output_stream", "stderr");
  const auto end = spec.attr_or<std::string>("end", "\n");
  SLUICE_REQUIRE(
      stream == "stderr" || stream == "stdout" || stream.starts_with("log(") || stream.starts_with("file://"),
      Code::kInvalidArgument, "Unknown output stream: ", stream,
      "; use stderr, stdout, log(info), log(warning), log(error) or file://PATH");
  return [stream, end](KernelRun& r) {
    const std::string text = scalar_string(r, 0) + end;
    if (!stream.starts_with("file://")) return say(stream == "stdout" ? stdout : stderr, text);
    const std::string path = stream.substr(7);
    std::FILE* f = std::fopen(path.c_str(), "ab");
    SLUICE_REQUIRE(f != nullptr, Code::kNotFound, "Cannot open ", path, " for appending");
    say(f, text);
    std::fclose(f);
  };
}

}  // namespace

void register_host_numerics(KernelRegistry& r) {
  add_bound(r, "CheckNumerics", check_numerics, {{0, 0}});
  add_bound(r, "Assert", assert_true);
  add_bound(r, "Print", print, {{0, 0}});
  add_bound(r, "PrintV2", print_v2);
}

}  // namespace sluice::kernels
