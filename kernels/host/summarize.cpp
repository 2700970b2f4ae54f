#include "kernels/host/summarize.h"

namespace sluice::kernels {
namespace {

std::string element(const KernelRun& r, int input, int64_t i) {
  const DType t = graph::base_dtype(r.in_dtype(input));
  if (t == DType::kString) return r.in_array(input).string_values()[static_cast<size_t>(i)];
  if (t == DType::kBool) return r.in<bool>(input)[i] ? "1" : "0";
  std::string s;
  for_numeric(t, [&]<class T>() {
    if constexpr (sizeof(T) == 1)
      s = cat(static_cast<int>(r.in<T>(input)[i]));
    else
      s = cat(r.in<T>(input)[i]);
  });
  return s;
}

struct Printer {
  const KernelRun& r;
  int input;
  const Dims& dims;
  int64_t limit, next = 0;
  std::string text;

  void print(size_t d) {
    if (next >= limit) return;
    if (d + 1 == dims.size()) {
      for (int64_t i = 0; i < dims[d]; ++i) {
        if (next >= limit) {
          if (d != 0) text += "...";
          return;
        }
        if (i > 0) text += ' ';
        text += element(r, input, next++);
      }
      return;
    }
    for (int64_t i = 0; i < dims[d] && next < limit; ++i) {
      text += '[';
      print(d + 1);
      text += ']';
    }
  }
};

}  // namespace

std::string summarize(const KernelRun& r, int input, int64_t limit) {
  const int64_t n = in_count(r, input);
  if (limit < 0 || limit > n) limit = n;
  if (n == 0) return "";
  if (r.in_dims(input).empty()) return limit > 0 ? element(r, input, 0) : "...";
  Printer p{r, input, r.in_dims(input), limit, 0, {}};
  p.print(0);
  if (n > limit) p.text += "...";
  return std::move(p.text);
}

}  // namespace sluice::kernels
