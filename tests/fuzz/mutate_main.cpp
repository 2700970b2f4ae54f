// The driver where libFuzzer is not: runs the entry point on every seed, then on mutants of them until the
// time is up. The order of mutants depends on the seed number alone. The input being run lies in a file that
// stays when the process dies.
//
//   fuzz_record SEEDS_FOLDER [--seconds N] [--seed N] [--max-len N]      default: $SLUICE_FUZZ_SECONDS or 10
//   seconds fuzz_record FILE                                                     runs that input alone
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/count_memory.h"
#include "tests/fuzz/fuzz.h"

namespace {

namespace fs = std::filesystem;
using Bytes = std::string;
using Random = std::mt19937_64;

constexpr size_t kAllowed = size_t{64} << 20, kAllowedPerByte = 100;

struct Options {
  std::string path;
  double seconds = 10;
  uint64_t seed = 1;
  size_t max_len = 1 << 14;
};

size_t below(Random& r, size_t n) { return n == 0 ? 0 : static_cast<size_t>(r() % n); }

// Numbers at which sizes and signs go wrong.
uint64_t telling_number(Random& r) {
  static constexpr uint64_t kNumbers[] = {0,
                                          1,
                                          2,
                                          7,
                                          8,
                                          127,
                                          128,
                                          255,
                                          256,
                                          0x7fff,
                                          0x8000,
                                          0xffff,
                                          0x10000,
                                          0x7fffffff,
                                          0x80000000,
                                          0xffffffff,
                                          0x100000000,
                                          uint64_t{1} << 40,
                                          0x7fffffffffffffff,
                                          0x8000000000000000,
                                          0xffffffffffffffff};
  return kNumbers[below(r, std::size(kNumbers))];
}

void put_varint(Bytes* to, size_t at, uint64_t v) {
  Bytes b;
  for (; v >= 128; v >>= 7) b.push_back(static_cast<char>(v | 128));
  b.push_back(static_cast<char>(v));
  to->replace(at, std::min(to->size() - at, size_t{1} + b.size() / 4), b);
}

void mutate_once(Random& r, const std::vector<Bytes>& corpus, Bytes* b) {
  const size_t at = below(r, b->size() + 1), n = 1 + below(r, below(r, 8) == 0 ? 256 : 8);
  const size_t rest = b->size() - at;
  switch (below(r, 10)) {
    case 0:  // flip a bit
      if (rest > 0) (*b)[at] = static_cast<char>((*b)[at] ^ (1 << below(r, 8)));
      break;
    case 1:  // another byte
      if (rest > 0) (*b)[at] = static_cast<char>(r());
      break;
    case 2:  // take some out
      b->erase(at, n);
      break;
    case 3:  // put some in
      for (size_t i = 0; i < n; ++i) b->insert(at, 1, static_cast<char>(r()));
      break;
    case 4:  // repeat a part
      b->insert(at, b->substr(below(r, b->size() + 1), n));
      break;
    case 5:  // a part of another one
    {
      const Bytes& other = corpus[below(r, corpus.size())];
      const size_t from = below(r, other.size() + 1);
      b->replace(at, std::min(rest, below(r, n + 1)), other.substr(from, 4 * n));
      break;
    }
    case 6:  // cut the end off
      if (below(r, 4) == 0) b->resize(at);
      break;
    case 7: {  // a fixed number
      const uint64_t v = telling_number(r) + below(r, 3) - 1;
      std::memcpy(b->data() + at, &v, std::min(rest, size_t{1} << below(r, 4)));
      break;
    }
    case 8:  // a varint
      put_varint(b, at, telling_number(r) + below(r, 3) - 1);
      break;
    default:  // a little more or less
      if (rest > 0) (*b)[at] = static_cast<char>((*b)[at] + (r() & 1 ? 1 : -1));
  }
}

// The input lies in a shared mapping of a file, so it is there after a crash without a write a run.
class LastInput {
 public:
  LastInput(const std::string& path, size_t room) : path_(path), room_(room + sizeof(uint64_t)) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    sluice::fuzz::require(fd >= 0 && ::ftruncate(fd, static_cast<off_t>(room_)) == 0,
                          "no file for the last input");
    at_ = static_cast<char*>(::mmap(nullptr, room_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    ::close(fd);
    sluice::fuzz::require(at_ != MAP_FAILED, "the last input can't be mapped");
  }
  ~LastInput() { fs::remove(path_); }
  void set(const Bytes& input) {
    const uint64_t n = std::min(input.size(), room_ - sizeof n);
    std::memcpy(at_, &n, sizeof n);
    std::memcpy(at_ + sizeof n, input.data(), n);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  size_t room_;
  char* at_ = nullptr;
};

// The peak beyond what is allowed is as bad as a crash.
size_t run(const Bytes& input) {
  const Bytes copy(
      input);  // the entry point must not read beyond the input: a block of its own for the sanitizer
  sluice::fuzz::start_counting();
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(copy.data()), copy.size());
  const size_t peak = sluice::fuzz::peak_bytes();
  if (peak > kAllowed + kAllowedPerByte * input.size()) {
    std::fprintf(stderr, "fuzz: an input of %zu bytes took %zu bytes of memory\n", input.size(), peak);
    std::abort();
  }
  return peak;
}

Bytes read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(in), {});
}

bool parse(int argc, char** argv, Options* o) {
  if (const char* s = std::getenv("SLUICE_FUZZ_SECONDS")) o->seconds = std::atof(s);
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.rfind("--", 0) != 0) {
      o->path = word;
      continue;
    }
    if (++i >= argc) return false;
    if (word == "--seconds")
      o->seconds = std::atof(argv[i]);
    else if (word == "--seed")
      o->seed = std::strtoull(argv[i], nullptr, 10);
    else if (word == "--max-len")
      o->max_len = std::strtoull(argv[i], nullptr, 10);
    else
      return false;
  }
  return !o->path.empty();
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  if (!parse(argc, argv, &o)) {
    std::fprintf(stderr, "usage: %s SEEDS_FOLDER|FILE [--seconds N] [--seed N] [--max-len N]\n", argv[0]);
    return 2;
  }
  if (fs::is_regular_file(o.path)) {
    std::printf("peak %zu bytes\n", run(read(o.path)));
    return 0;
  }
  std::vector<fs::path> files;
  for (const auto& f : fs::directory_iterator(o.path)) files.push_back(f.path());
  std::sort(files.begin(), files.end());
  std::vector<Bytes> corpus;
  for (const fs::path& f : files) corpus.push_back(read(f));
  sluice::fuzz::require(!corpus.empty(), "the folder has no seeds");

  LastInput last((fs::temp_directory_path() /
                  (fs::path(argv[0]).filename().string() + "_last_" + std::to_string(::getpid()) + ".bin"))
                     .string(),
                 o.max_len);
  std::printf("the input being run (after 8 bytes of its length): %s\n", last.path().c_str());
  std::fflush(stdout);
  size_t runs = 0, most = 0;
  const auto go = [&](const Bytes& input) {
    last.set(input);
    most = std::max(most, run(input));
    ++runs;
  };
  try {
    go("");
    for (const Bytes& seed : corpus) go(seed);
    Random r(o.seed);
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(o.seconds);
    while (std::chrono::steady_clock::now() < end) {
      Bytes b = corpus[below(r, corpus.size())];
      for (size_t n = 1 + below(r, below(r, 4) == 0 ? 32 : 4); n > 0; --n) mutate_once(r, corpus, &b);
      b.resize(std::min(b.size(), o.max_len));
      go(b);
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "fuzz: an exception got out: %s\n", e.what());
    std::abort();
  }
  std::printf("%zu inputs, at most %zu bytes of memory\n", runs, most);
  return 0;
}
