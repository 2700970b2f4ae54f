#pragma once
// Whole files in and out. A write goes to a temporary name beside the target, is synced and renamed, so a
// reader (or a crash) sees the old bytes or the new ones, never a part. Every error names the path and
// carries the code that fits (NotFound, PermissionDenied, ResourceExhausted …). An AtomicFile belongs to one
// thread; the free functions may be called from any. Example: `write_file_atomically(path,
// graph_to_bytes(g));`

#include <cstdint>
#include <string>
#include <string_view>

#include "graph/support/check.h"

namespace sluice {

/// Protobuf's and therefore GraphDef's ceiling, and the default of read_file.
inline constexpr uint64_t kMaxMessageBytes = (uint64_t{1} << 31) - 1;

/// The code that an errno value stands for.
Code code_of_errno(int error);
/// Throws "<path>; <strerror>" with that code.
[[noreturn]] void throw_errno(const std::string& path, std::string_view doing, int error);

/// The file's bytes. Refuses (before reading) a file larger than `max_bytes`, and a directory.
std::string read_file(const std::string& path, uint64_t max_bytes = kMaxMessageBytes);
bool file_exists(const std::string& path);
/// Throws NotFound, naming the directory, when the directory that `path` would be written to does not exist.
void require_parent_directory(const std::string& path);
/// Makes the directory entries of `path`'s directory durable: a rename into it survives a power cut.
void sync_parent_directory(const std::string& path);
/// Throws, naming the path and the cause, when a file could not be written there now: the directory is
/// missing or closed to us, or the path is a directory. Leaves nothing behind. For asking before long work.
void require_writable(const std::string& path);

/// A file being written under a temporary name; without `commit` the destructor removes it. What exists and
/// is no regular file (a device, a pipe) cannot be replaced and is written to as it is.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void append(std::string_view bytes);
  uint64_t size() const { return size_ + buffer_.size(); }
  const std::string& path() const { return path_; }
  /// Where the bytes are until commit, for a reader that checks them.
  const std::string& temporary_path() const { return temporary_; }
  /// Hands everything to the system; not yet on the disk.
  void flush();
  /// Flushes and syncs; the file still has its temporary name.
  void sync();
  /// sync, then rename to the real name and sync the directory.
  void commit();

 private:
  void write_all(std::string_view bytes);
  std::string path_, temporary_, buffer_;
  uint64_t size_ = 0;
  uint64_t started_ = 0;  // bytes whose way to the disk has begun
  int fd_ = -1;
};

void write_file_atomically(const std::string& path, std::string_view bytes);

}  // namespace sluice
