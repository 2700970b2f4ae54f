#pragma once
// TFRecord files (graph-and-training §7.1): length, masked CRC of the length, bytes, masked CRC of the bytes;
// the whole file may be a zlib or gzip stream. A reader checks the length against its CRC and against what
// the file still holds before it allocates. Each object belongs to one thread. Errors name file, offset and
// record number (offsets count uncompressed bytes).
//
//   RecordReader in(path, {.compression = Compression::kGzip});
//   for (std::string record; in.next(&record);) …

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/io/deflate.h"

namespace sluice::runtime::io {

class ByteSource;

struct RecordReaderOptions {
  Compression compression = Compression::kNone;
  /// Damaged records are passed over, counted and told as warnings. After a damaged length the next record is
  /// looked for byte by byte.
  bool skip_damaged = false;
  /// A record that the end of the file cuts off ends the reading without an error; `torn` tells.
  bool torn_tail_is_end = false;
  /// Longer records are ResourceExhausted. 0: what the file holds; of a compressed file 16 MiB + 32 times its
  /// size, for a few bytes can stand for a great many.
  uint64_t max_record_bytes = 0;
};

class RecordReader {
 public:
  explicit RecordReader(const std::string& path, RecordReaderOptions options = {});
  ~RecordReader();

  /// The next record; false at the end of the file. DataLoss "truncated record at N" / "corrupted record at
  /// N". After false, a call reads what was appended to the file meanwhile.
  bool next(std::string* record);
  /// Offset of the record that comes next, and records read or passed over so far.
  uint64_t offset() const { return offset_; }
  int64_t count() const { return count_; }
  /// Damaged records passed over.
  int64_t damaged() const { return damaged_; }
  /// The reading ended at a cut-off record.
  bool torn() const { return torn_; }
  const std::string& path() const { return path_; }
  /// Goes on at an offset that `offset()` gave earlier.
  void seek(uint64_t offset, int64_t count);

 private:
  enum class Outcome { kRecord, kEnd, kTruncated, kBadLength, kBadData };
  Outcome read(std::string* record);
  Outcome read_data(uint64_t length, std::string* record);
  uint64_t record_limit() const;
  // Offset of the next place after offset_ where a length fits its CRC; the end where there is none.
  uint64_t next_plausible(bool* found);
  void pass_over(Outcome what);
  std::string complaint(Outcome what) const;

  std::string path_;
  RecordReaderOptions options_;
  std::unique_ptr<ByteSource> source_;
  uint64_t offset_ = 0, next_offset_ = 0;
  int64_t count_ = 0, damaged_ = 0;
  bool torn_ = false, at_end_ = false;
};

/// Appends one framed record to `out`.
void append_record(std::string* out, std::string_view record);

struct RecordWriterOptions {
  Compression compression = Compression::kNone;
  int level = -1;       // 1 … 9; -1: zlib's default
  bool append = false;  // go on at the end of an existing file; not for compressed ones
};

/// Writes a new file (an existing one is replaced). Buffered; `close` or `flush` reports a full disk, the
/// destructor can't.
class RecordWriter {
 public:
  explicit RecordWriter(std::string path, RecordWriterOptions options = {});
  ~RecordWriter();
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;

  void write(std::string_view record);
  /// Everything written so far reaches the file and can be read back from it.
  void flush();
  void close();

 private:
  void drain();

  std::string path_, buffer_;
  std::unique_ptr<Deflater> deflater_;
  int fd_ = -1;
};

/// All of `bytes` to a descriptor, and empties it. Errors name the path; what was written by then is taken
/// out of `bytes`, so that a later call goes on where this one stopped.
void write_out(int fd, std::string* bytes, const std::string& path);

}  // namespace sluice::runtime::io
