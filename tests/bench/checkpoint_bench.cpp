// Checkpoints against the disk: checkpoint_bench [FOLDER [MEGABYTES]]. Writes and restores variables in turn
// with dd (conv=fsync; reads after the file has left the page cache) and prints ratios, the memory a save and
// a restore take beyond the values themselves, the speed of the checksum, and what a save in the background
// costs the steps beside it. Goals (issue 4): write and restore ≥ 0.80 of dd, memory ≤ 64 MiB, background
// ≤ 1.05.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "dsl/dsl.h"
#include "dsl/train/saver.h"
#include "dsl/train/train_op.h"
#include "runtime/io/bundle.h"
#include "runtime/io/crc32c.h"
#include "runtime/io/file.h"

namespace {

using namespace sluice;
using namespace sluice::dsl;
namespace fs = std::filesystem;
namespace io = runtime::io;
using Clock = std::chrono::steady_clock;

double seconds(const std::function<void()>& f) {
  const auto start = Clock::now();
  f();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

// From /proc/self/status, in MiB.
double memory(const char* field) {
  const std::string status = io::read_file("/proc/self/status");
  const size_t at = status.find(field);
  return at == std::string::npos ? 0 : std::atof(status.c_str() + at + std::string(field).size()) / 1024;
}

// Peak resident memory of f beyond what was there before it.
double growth(const std::function<void()>& f) {
  const int fd = ::open("/proc/self/clear_refs", O_WRONLY);
  const bool reset = fd >= 0 && ::write(fd, "5", 1) == 1;
  if (fd >= 0) ::close(fd);
  const double before = memory("VmRSS:");
  f();
  return reset ? memory("VmHWM:") - before : -1;
}

void shell(const std::string& command) {
  if (std::system(command.c_str()) != 0) std::fprintf(stderr, "failed: %s\n", command.c_str());
}

void drop_cache(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY);
  if (fd < 0) return;
  ::fdatasync(fd);
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
}

void disk(const std::string& folder, int megabytes) {
  constexpr int kVariables = 8, kRounds = 5;
  Graph g;
  for (int k = 0; k < kVariables; ++k)
    get_variable(g, cat("v", k), {megabytes / kVariables, 1 << 18}, {.initializer = ones_initializer()});
  train::Saver saver(g, {.max_to_keep = 1, .write_meta_graph = false});
  runtime::Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  const std::string m = folder + "/m", raw = folder + "/raw";
  const std::string dd =
      cat("dd if=/dev/zero of=", raw, " bs=1M count=", megabytes, " conv=fsync 2>/dev/null");
  const std::string dd_read = cat("dd if=", raw, " of=/dev/null bs=1M 2>/dev/null");
  std::vector<double> dd_writes, saves, dd_reads, restores;
  double save_memory = 0, restore_memory = 0;
  for (int round = 0; round < kRounds; ++round) {
    fs::remove(raw);
    dd_writes.push_back(seconds([&] { shell(dd); }));
    train::remove_checkpoint(m);
    double t = 0;
    save_memory = std::max(save_memory, growth([&] { t = seconds([&] { saver.save(s, m); }); }));
    saves.push_back(t);
    drop_cache(raw);
    dd_reads.push_back(seconds([&] { shell(dd_read); }));
    drop_cache(io::shard_path(m, 0, 1));
    restore_memory = std::max(restore_memory, growth([&] { t = seconds([&] { saver.restore(s, m); }); }));
    restores.push_back(t);
  }
  std::printf("write   dd %6.0f MB/s  save    %6.0f MB/s  ratio %.2f  memory beyond the values %.0f MiB\n",
              megabytes / median(dd_writes), megabytes / median(saves), median(dd_writes) / median(saves),
              save_memory);
  std::printf(
      "read    dd %6.0f MB/s  restore %6.0f MB/s  ratio %.2f  memory beyond the new values %.0f MiB\n",
      megabytes / median(dd_reads), megabytes / median(restores), median(dd_reads) / median(restores),
      restore_memory - megabytes);
}

void checksum() {
  const std::string bytes(64 << 20, 'x');
  uint32_t crc = 0;
  std::vector<double> fast, table;
  for (int round = 0; round < 5; ++round) {
    fast.push_back(seconds([&] { crc += io::crc32c(bytes); }));
    table.push_back(seconds([&] { crc += io::crc32c_extend_by_table(0, bytes.data(), bytes.size()); }));
  }
  std::printf("crc32c  hardware %.1f GB/s  table %.1f GB/s  (%08x)\n", 0.0671 / median(fast),
              0.0671 / median(table), crc);
}

void background(const std::string& folder) {
  constexpr int kUnits = 1536;
  Graph g;
  Tensor x = constant(g, Literal::zeros(DType::kFloat, {64, kUnits}));
  Tensor h = x;
  for (int k = 0; k < 3; ++k) h = relu(matmul(h, get_variable(g, cat("w", k), {kUnits, kUnits})));
  train::MomentumOptimizer optimizer(0.01, 0.9);
  Tensor train_op = train::create_train_op(reduce_mean(square(h)), optimizer);
  train::Saver saver(g, {.max_to_keep = 2, .write_meta_graph = false});
  runtime::Session s(g);
  s.run({}, {}, {&global_variables_initializer(g)});
  for (int i = 0; i < 10; ++i) s.run({train_op});
  std::vector<double> alone, beside;
  double blocked = 0;
  int saves = 0;
  for (int round = 0; round < 6; ++round) {
    for (int i = 0; i < 40; ++i) alone.push_back(seconds([&] { s.run({train_op}); }));
    train::SaveHandle save;
    blocked += seconds([&] { save = saver.save_async(s, folder + "/b", round); });
    ++saves;
    do {
      beside.push_back(seconds([&] { s.run({train_op}); }));
    } while (!save.done());
    save.wait();
  }
  auto mean = [](const std::vector<double>& v) {
    double sum = 0;
    for (double t : v) sum += t;
    return sum / static_cast<double>(v.size());
  };
  std::printf(
      "steps   alone %.2f ms  beside a save %.2f ms (%zu steps, %d saves)  ratio of means %.3f, of medians "
      "%.3f\n",
      mean(alone) * 1e3, mean(beside) * 1e3, beside.size(), saves, mean(beside) / mean(alone),
      median(beside) / median(alone));
  std::printf("        snapshot %.2f ms a save\n", blocked / saves * 1e3);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string folder =
      argc > 1 ? argv[1] : (fs::temp_directory_path() / "sluice_checkpoint_bench").string();
  const int megabytes = argc > 2 ? std::atoi(argv[2]) / 8 * 8 : 1024;
  fs::create_directories(folder);
  checksum();
  disk(folder, megabytes);
  background(folder);
  fs::remove_all(folder);
  return 0;
}
