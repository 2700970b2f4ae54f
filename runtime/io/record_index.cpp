#include "runtime/io/record_index.h"

#include <charconv>
#include <string_view>

#include "runtime/io/file.h"
#include "runtime/io/record.h"

namespace sluice::runtime::io {
namespace {

constexpr uint64_t kFrame = 16;  // length and two checksums

// Takes one number and the character after it off the front of `text`.
bool take_number(std::string_view* text, char after, uint64_t* v) {
  const auto [end, failed] = std::from_chars(text->data(), text->data() + text->size(), *v);
  if (failed != std::errc()) return false;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  if (text->empty()) return after == '\n';  // the last line may lack its end
  if (text->front() != after) return false;
  text->remove_prefix(1);
  return true;
}

}  // namespace

RecordIndex index_records(const std::string& path, bool skip_damaged) {
  RecordIndex index;
  RecordReader in(path, {.skip_damaged = skip_damaged});
  for (std::string record; in.next(&record);) {
    const uint64_t bytes = record.size() + kFrame;
    index.push_back({in.offset() - bytes, bytes});
  }
  return index;
}

int64_t write_record_index(const std::string& path, const std::string& index_path, bool skip_damaged) {
  const RecordIndex index = index_records(path, skip_damaged);
  std::string text;
  for (const RecordPlace& p : index) text += cat(p.offset, ' ', p.bytes, '\n');
  write_file_atomically(index_path, text);
  return static_cast<int64_t>(index.size());
}

RecordIndex read_record_index(const std::string& index_path) {
  const std::string bytes = read_file(index_path);
  RecordIndex index;
  std::string_view text = bytes;
  uint64_t end = 0;
  while (!text.empty()) {
    RecordPlace p;
    const bool sound = take_number(&text, ' ', &p.offset) && take_number(&text, '\n', &p.bytes) &&
                       p.bytes >= kFrame && p.offset >= end && p.offset + p.bytes > p.offset;
    SLUICE_REQUIRE(sound, Code::kDataLoss, index_path, ": line ", index.size() + 1,
                   " is no \"offset bytes\" of a record after the one before");
    end = p.offset + p.bytes;
    index.push_back(p);
  }
  return index;
}

IndexedRecords::IndexedRecords(const std::string& path, const std::string& index_path)
    : index_(read_record_index(index_path)), reader_(std::make_unique<RecordReader>(path)) {
  const uint64_t size = RandomFile(path).size();
  const uint64_t end = index_.empty() ? 0 : index_.back().offset + index_.back().bytes;
  SLUICE_REQUIRE(end <= size && (index_.empty() ? size == 0 : true), Code::kFailedPrecondition, index_path,
                 ": the index does not fit ", path, ": it ends at ", end, ", the file has ", size,
                 " bytes; make it anew with write_record_index");
}

IndexedRecords::IndexedRecords(const std::string& path)
    : index_(index_records(path)), reader_(std::make_unique<RecordReader>(path)) {}

IndexedRecords::~IndexedRecords() = default;

void IndexedRecords::read(int64_t number, std::string* record) {
  SLUICE_REQUIRE(number >= 0 && number < size(), Code::kOutOfRange, reader_->path(), ": record ", number,
                 " is asked for, there are ", size());
  const RecordPlace& p = index_[static_cast<size_t>(number)];
  reader_->seek(p.offset, number);
  const bool read = reader_->next(record) && reader_->offset() == p.offset + p.bytes;
  SLUICE_REQUIRE(read, Code::kFailedPrecondition, reader_->path(), ": record ", number, " at ", p.offset,
                 " has not the ", p.bytes, " bytes that the index states; make the index anew");
}

}  // namespace sluice::runtime::io
