#include "graph/support/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace sluice {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr uint64_t kStartBytes = uint64_t{8} << 20;
// Small enough that the disk starts early on a long piece.
constexpr size_t kPieceBytes = size_t{1} << 23;

std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Closes on scope exit.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

Code code_of_errno(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return Code::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return Code::kPermissionDenied;
    case EEXIST:
      return Code::kAlreadyExists;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return Code::kResourceExhausted;
    case EISDIR:
    case ENOTEMPTY:
      return Code::kFailedPrecondition;
    case EINVAL:
    case ENAMETOOLONG:
      return Code::kInvalidArgument;
    default:
      return Code::kUnknown;
  }
}

void throw_errno(const std::string& path, std::string_view doing, int error) {
  throw Error(code_of_errno(error), cat(path, "; ", std::strerror(error), " (", doing, ")"));
}

bool file_exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

void require_parent_directory(const std::string& path) {
  const std::string directory = directory_of(path);
  struct stat info {};
  SLUICE_REQUIRE(::stat(directory.c_str(), &info) == 0 && S_ISDIR(info.st_mode), Code::kNotFound, path,
                 "; the directory '", directory, "' does not exist");
}

void sync_parent_directory(const std::string& path) {
  const std::string directory = directory_of(path);
  Descriptor d{::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (d.fd < 0) throw_errno(directory, "opening the directory", errno);
  // Some file systems cannot sync a directory; they then order renames themselves.
  if (::fsync(d.fd) != 0 && errno != EINVAL && errno != EROFS && errno != EBADF)
    throw_errno(directory, "syncing the directory", errno);
}

void require_writable(const std::string& path) {
  struct stat info {};
  // Opening a pipe would wait for a reader.
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) return;
  const AtomicFile probe(path);
}

std::string read_file(const std::string& path, uint64_t max_bytes) {
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) throw_errno(path, "opening for reading", errno);
  struct stat info {};
  if (::fstat(file.fd, &info) != 0) throw_errno(path, "looking at its size", errno);
  if (S_ISDIR(info.st_mode)) throw_errno(path, "reading a file", EISDIR);
  const uint64_t stated = S_ISREG(info.st_mode) ? static_cast<uint64_t>(info.st_size) : 0;
  SLUICE_REQUIRE(stated <= max_bytes, Code::kResourceExhausted, path, "; the file has ", stated,
                 " bytes, more than the ", max_bytes, " that can be read");
  std::string out(stated, '\0');
  size_t at = 0;
  // Pipes and /proc state no size, so the end is found by reading.
  for (;;) {
    if (at == out.size()) {
      char probe;
      const ssize_t more = ::read(file.fd, &probe, 1);
      if (more < 0 && errno == EINTR) continue;
      if (more < 0) throw_errno(path, "reading", errno);
      if (more == 0) break;
      SLUICE_REQUIRE(at < max_bytes, Code::kResourceExhausted, path, "; more than the ", max_bytes,
                     " bytes that can be read");
      out.push_back(probe);
      ++at;
      out.resize(std::min<uint64_t>(max_bytes, out.size() + kBufferBytes));
      continue;
    }
    const ssize_t got = ::read(file.fd, out.data() + at, std::min(out.size() - at, kPieceBytes));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno(path, "reading", errno);
    if (got == 0) break;
    at += static_cast<size_t>(got);
  }
  out.resize(at);
  return out;
}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  static std::atomic<unsigned> counter{0};  // distinct names for concurrent writers of one process
  require_parent_directory(path_);
  struct stat info {};
  const bool exists = ::stat(path_.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) throw_errno(path_, "writing a file", EISDIR);
  if (exists && !S_ISREG(info.st_mode)) {
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    const std::string name = cat(path_, ".tempstate", ::getpid(), "_", counter.fetch_add(1));
    fd_ = ::open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd_ >= 0) temporary_ = name;
  }
  if (fd_ < 0) throw_errno(path_, "opening for writing", errno);
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::append(std::string_view bytes) {
  if (buffer_.size() + bytes.size() < kBufferBytes) {
    buffer_.append(bytes);
    return;
  }
  // A long piece goes out without a copy.
  flush();
  if (bytes.size() < kBufferBytes)
    buffer_.append(bytes);
  else
    write_all(bytes);
}

void AtomicFile::write_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd_, bytes.data(), std::min(bytes.size(), kPieceBytes));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw_errno(path_, "writing", errno);
    size_ += static_cast<uint64_t>(put);
    bytes.remove_prefix(static_cast<size_t>(put));
    // The disk starts now, not at the sync; what cannot start (pipes, odd file systems) waits for it.
    if (size_ - started_ >= kStartBytes) {
      ::sync_file_range(fd_, static_cast<off_t>(started_), static_cast<off_t>(size_ - started_),
                        SYNC_FILE_RANGE_WRITE);
      started_ = size_;
    }
  }
}

void AtomicFile::flush() {
  write_all(buffer_);
  buffer_.clear();
}

void AtomicFile::sync() {
  flush();
  if (::fsync(fd_) != 0 && errno != EINVAL && errno != EROFS) throw_errno(path_, "syncing", errno);
}

void AtomicFile::commit() {
  sync();
  const int fd = fd_;
  fd_ = -1;
  if (::close(fd) != 0) throw_errno(path_, "closing", errno);
  if (temporary_.empty()) return;
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) throw_errno(path_, "renaming into place", errno);
  temporary_.clear();
  sync_parent_directory(path_);
}

void write_file_atomically(const std::string& path, std::string_view bytes) {
  AtomicFile file(path);
  file.append(bytes);
  file.commit();
}

}  // namespace sluice
