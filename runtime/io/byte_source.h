#pragma once
// A file's bytes by position, compressed or not, as record readers want them: mostly forward, read ahead.
// Going back in a compressed file starts it over. One thread an object.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "runtime/io/deflate.h"

namespace sluice::runtime::io {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Up to `size` bytes at `offset` (of the uncompressed bytes) into `out`; fewer only at the end.
  virtual size_t read(uint64_t offset, char* out, size_t size) = 0;
  /// Bytes in all, where that is known without reading them.
  virtual std::optional<uint64_t> size() const = 0;
  /// Bytes of the file itself.
  virtual uint64_t file_size() const = 0;
  /// True once the end was met before the compressed stream was complete, or at damaged compressed bytes.
  virtual bool cut() const = 0;
  /// The file may have grown since: the next read at the end looks again.
  virtual void refresh() = 0;
};

/// NotFound and the like name the path.
std::unique_ptr<ByteSource> open_source(const std::string& path, Compression compression);

}  // namespace sluice::runtime::io
