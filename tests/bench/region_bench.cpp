// The tile machine against memory: chains of elementwise ops over 256 MiB. Eight ops must take at most twice
// the time of one.
//   region_bench [threads]

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernels/cpu/region_machine.h"
#include "runtime/array.h"
#include "runtime/cpu_features.h"
#include "runtime/region_writer.h"

using namespace sluice;
using runtime::RegionExtent;

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
  const int64_t n = int64_t{64} << 20;
  auto queue = runtime::make_default_queue(threads);
  runtime::Buffer x(static_cast<size_t>(n) * 4), y(static_cast<size_t>(n) * 4);
  std::memset(x.data(), 0, x.size());
  std::memset(y.data(), 0, y.size());
  double one = 0;
  for (int ops : {1, 2, 4, 8, 16}) {
    runtime::RegionWriter w(1, n);
    int r = w.in(RegionExtent::kWhole);
    const int a = w.in(RegionExtent::kScalar);
    static const char* kOps[] = {"Add", "Relu", "Mul", "Maximum", "Sub", "Abs", "Minimum", "Square"};
    for (int i = 0; i < ops; ++i) {
      const char* op = kOps[i % 8];
      const bool unary = !std::strcmp(op, "Relu") || !std::strcmp(op, "Abs") || !std::strcmp(op, "Square");
      r = w.op(op, unary ? std::vector<int>{r} : std::vector<int>{r, a});
    }
    w.out(r, RegionExtent::kWhole);
    std::string why;
    auto machine = kernels::cpu::RegionMachine::compile(w.take(), kernels::cpu::vec_fns(runtime::cpu_isa()),
                                                        threads, why);
    if (!machine) return std::fprintf(stderr, "%s\n", why.c_str()), 1;
    runtime::Buffer scratch(machine->scratch_bytes());
    const float scalar = 0.5f;
    const void* in[] = {x.data(), &scalar};
    void* out[] = {y.data()};
    double best = 1e9;
    for (int k = 0; k < 7; ++k) {
      auto start = std::chrono::steady_clock::now();
      machine->run(in, out, scratch.data(), *queue);
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    if (ops == 1) one = best;
    std::printf("%2d ops: %7.2f ms, %5.1f GB/s, %.2f of one op\n", ops, best * 1e3,
                2 * 4 * static_cast<double>(n) / best / 1e9, best / one);
  }
}
