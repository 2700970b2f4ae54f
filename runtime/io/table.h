#pragma once
// The sorted string table that holds a checkpoint's index (LevelDB's layout, graph-and-training §7.4). Whole
// tables in memory: an index is small. The reader takes no more memory than a small multiple of the file,
// whatever the file says. Each object belongs to one thread; the free function is pure.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::runtime::io {

/// Collects entries in strictly increasing key order and gives the file's bytes.
class TableBuilder {
 public:
  /// InvalidArgument when `key` does not come after the last one.
  void add(std::string_view key, std::string_view value);
  /// Ends the table; nothing may be added afterwards.
  std::string finish();

 private:
  struct Block {
    explicit Block(int interval) : restart_interval(interval) {}
    void add(std::string_view key, std::string_view value);
    size_t estimate() const { return bytes.size() + 4 * restarts.size() + 4; }
    std::string finish();
    const int restart_interval;
    int since_restart = 0;
    std::string bytes, last_key;
    std::vector<uint32_t> restarts = {0};
  };
  void flush();
  // Appends a block with its trailer; returns its encoded handle.
  std::string write_block(const std::string& block);

  Block data_{16}, index_{1};
  std::string out_, last_key_, pending_handle_;
  bool any_ = false, pending_ = false, finished_ = false;
};

using TableEntries = std::vector<std::pair<std::string, std::string>>;

/// Every entry, in key order. DataLoss naming `path`: "not an sstable (bad magic number)", "block checksum
/// mismatch", and one for each other way to be damaged. Blocks may be stored raw or with snappy.
TableEntries read_table(std::string_view bytes, const std::string& path);

}  // namespace sluice::runtime::io
