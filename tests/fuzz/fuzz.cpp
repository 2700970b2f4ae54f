#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace sluice::fuzz {

void require(bool holds, const char* rule) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: %s\n", rule);
  std::abort();
}

namespace {

// Removed when the process ends by itself.
struct Folder {
  std::filesystem::path path;
  Folder() {
    const std::filesystem::path memory = "/dev/shm";
    std::string name =
        ((::access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::temp_directory_path()) /
         "sluice_fuzz_XXXXXX")
            .string();
    require(::mkdtemp(name.data()) != nullptr, "no folder for scratch files");
    path = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

}  // namespace

std::string scratch_path(const std::string& name) {
  static const Folder folder;
  return (folder.path / name).string();
}

void write_scratch(const std::string& path, std::string_view bytes) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  require(fd >= 0, "a scratch file can't be opened");
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    require(n > 0, "a scratch file can't be written");
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  ::close(fd);
}

}  // namespace sluice::fuzz
