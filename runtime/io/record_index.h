#pragma once
// Where each record of a TFRecord file lies, so that records can be read in any order: shuffled, sharded, or
// from the middle. The index file is text, one line "offset bytes" a record (bytes with the 16 of the frame):
// the form that other readers of ".idx" files share. Only plain files can be indexed; a compressed one has no
// positions. Each object belongs to one thread.
//
//   write_record_index(path, path + ".idx");
//   IndexedRecords in(path, path + ".idx");
//   for (int64_t i : shuffled) in.read(i, &record);

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sluice::runtime::io {

class RecordReader;

struct RecordPlace {
  uint64_t offset = 0, bytes = 0;  // of the framed record
  bool operator==(const RecordPlace&) const = default;
};
using RecordIndex = std::vector<RecordPlace>;

/// Walks the file once and checks every record. DataLoss as RecordReader's; with skip_damaged, damaged
/// records are left out.
RecordIndex index_records(const std::string& path, bool skip_damaged = false);
/// Writes the index beside the file (atomically) and returns the number of records.
int64_t write_record_index(const std::string& path, const std::string& index_path, bool skip_damaged = false);
/// DataLoss naming file and line for text that is no index; offsets must rise and not overlap.
RecordIndex read_record_index(const std::string& index_path);

class IndexedRecords {
 public:
  /// FailedPrecondition when the index does not fit the file (it was made for another one, or the file
  /// changed).
  IndexedRecords(const std::string& path, const std::string& index_path);
  /// With an index made just now.
  explicit IndexedRecords(const std::string& path);
  ~IndexedRecords();

  int64_t size() const { return static_cast<int64_t>(index_.size()); }
  const RecordIndex& index() const { return index_; }
  /// Record `number`. OutOfRange for a number that is none, DataLoss naming file, offset and number.
  void read(int64_t number, std::string* record);

 private:
  RecordIndex index_;
  std::unique_ptr<RecordReader> reader_;
};

}  // namespace sluice::runtime::io
