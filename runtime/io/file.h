#pragma once
// Files as the readers and writers of this folder use them: whole files and atomic writes
// (graph/support/file.h) and reads at a position. A RandomFile may be read by several threads at once. Errors
// name the path; a read past the end is DataLoss, found before anything is allocated.

#include <cstdint>
#include <string>

#include "graph/support/file.h"

namespace sluice::runtime::io {

using sluice::AtomicFile;
using sluice::file_exists;
using sluice::read_file;
using sluice::require_parent_directory;
using sluice::write_file_atomically;

class RandomFile {
 public:
  explicit RandomFile(std::string path);
  ~RandomFile();
  RandomFile(const RandomFile&) = delete;
  RandomFile& operator=(const RandomFile&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  /// Exactly `bytes` bytes at `offset` into `out`.
  void read(uint64_t offset, void* out, uint64_t bytes) const;

 private:
  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

}  // namespace sluice::runtime::io
