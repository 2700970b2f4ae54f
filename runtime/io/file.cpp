#include "runtime/io/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace sluice::runtime::io {

RandomFile::RandomFile(std::string path) : path_(std::move(path)) {
  fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) throw_errno(path_, "opening for reading", errno);
  struct stat info {};
  const int failed = ::fstat(fd_, &info) != 0 ? errno : S_ISDIR(info.st_mode) ? EISDIR : 0;
  if (failed != 0) {
    ::close(fd_);
    throw_errno(path_, "reading a file", failed);
  }
  size_ = static_cast<uint64_t>(info.st_size);
}

RandomFile::~RandomFile() { ::close(fd_); }

void RandomFile::read(uint64_t offset, void* out, uint64_t bytes) const {
  SLUICE_REQUIRE(offset <= size_ && bytes <= size_ - offset, Code::kDataLoss, path_, ": truncated: ", bytes,
                 " bytes are expected at offset ", offset, ", the file has ", size_);
  auto* to = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t got =
        ::pread(fd_, to, std::min<uint64_t>(bytes, uint64_t{1} << 28), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno(path_, "reading", errno);
    SLUICE_REQUIRE(got > 0, Code::kDataLoss, path_, ": the file became shorter while it was read");
    to += got, offset += static_cast<uint64_t>(got), bytes -= static_cast<uint64_t>(got);
  }
}

}  // namespace sluice::runtime::io
