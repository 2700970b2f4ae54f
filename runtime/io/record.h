#pragma once
// TFRecord files (graph-and-training §7.1): length, masked CRC of the length, bytes, masked CRC of the bytes.
// A reader checks the length against its CRC and against what the file still holds before it allocates. Each
// object belongs to one thread. Errors name file, offset and record number.
//
//   RecordReader in(path);
//   for (std::string record; in.next(&record);) …

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace sluice::runtime::io {

class RandomFile;

class RecordReader {
 public:
  explicit RecordReader(const std::string& path);
  ~RecordReader();

  /// The next record; false at the end of the file. DataLoss "truncated record at N" / "corrupted record at
  /// N".
  bool next(std::string* record);
  /// Offset of the record that comes next, and records read so far.
  uint64_t offset() const { return offset_; }
  int64_t count() const { return count_; }
  /// Goes on at an offset that `offset()` gave earlier.
  void seek(uint64_t offset, int64_t count);

 private:
  void fetch(uint64_t offset, void* out, size_t bytes);
  [[noreturn]] void fail(const char* what) const;

  std::unique_ptr<RandomFile> file_;
  std::string buffer_;  // bytes from buffer_at_ on
  uint64_t buffer_at_ = 0, offset_ = 0;
  int64_t count_ = 0;
};

/// Appends one framed record to `out`.
void append_record(std::string* out, std::string_view record);

/// Writes a new file (an existing one is replaced). Buffered; `close` or `flush` reports a full disk, the
/// destructor can't.
class RecordWriter {
 public:
  explicit RecordWriter(std::string path);
  ~RecordWriter();
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;

  void write(std::string_view record);
  /// Everything written so far reaches the file.
  void flush();
  void close();

 private:
  std::string path_, buffer_;
  int fd_ = -1;
};

}  // namespace sluice::runtime::io
