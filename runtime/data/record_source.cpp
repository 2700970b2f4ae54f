// TFRecord files and text lines.

#include "runtime/data/file_set.h"
#include "runtime/data/line_reader.h"
#include "runtime/data/sources.h"
#include "runtime/io/record.h"

namespace sluice::runtime::data {
namespace {

class Records {
 public:
  Records(const std::string& path, const io::RecordReaderOptions& options, uint64_t offset, int64_t count)
      : options_(options), reader_(path, options) {
    reader_.seek(offset, count);
  }
  bool next(Element& out) { return reader_.next(&out.make(0, DType::kString, {}).string_values()[0]); }
  uint64_t offset() const { return reader_.offset(); }
  int64_t count() const { return reader_.count(); }
  // Behind the damage, where a reader that passes damage over finds its next record.
  bool skip() {
    io::RecordReaderOptions options = options_;
    options.skip_damaged = true;
    io::RecordReader probe(reader_.path(), options);
    probe.seek(reader_.offset(), reader_.count());
    std::string record;
    if (!probe.next(&record)) return false;
    constexpr uint64_t kFrame = 16;  // length, its CRC, the CRC of the bytes
    reader_.seek(probe.offset() - record.size() - kFrame, probe.count() - 1);
    return true;
  }

 private:
  const io::RecordReaderOptions options_;
  io::RecordReader reader_;
};

class Lines {
 public:
  Lines(const std::string& path, uint64_t offset, int64_t count) : reader_(path, offset, count) {}
  bool next(Element& out) { return reader_.next(&out.make(0, DType::kString, {}).string_values()[0]); }
  uint64_t offset() const { return reader_.offset(); }
  int64_t count() const { return reader_.line(); }
  bool skip() { return false; }

 private:
  LineReader reader_;
};

class RecordsDataset final : public Dataset {
 public:
  RecordsDataset(const std::vector<std::string>& files, const io::RecordReaderOptions& options)
      : Dataset({{"record", DType::kString, Shape::scalar()}}, {}),
        files_(shared_names(files)),
        options_(options) {}
  std::unique_ptr<Iterator> iterate(const IterateContext&) const override {
    return std::make_unique<FileIterator<Records>>(
        files_, this,
        [](const void* d, const std::shared_ptr<const std::string>& file, uint64_t offset, int64_t count) {
          return std::make_unique<Records>(*file, static_cast<const RecordsDataset*>(d)->options_, offset,
                                           count);
        });
  }
  // Names of files may differ where a run goes on elsewhere; their number may not.
  std::string describe() const override { return cat("TFRecord(", files_.size(), " files)"); }

 private:
  const std::vector<std::shared_ptr<const std::string>> files_;
  const io::RecordReaderOptions options_;
};

class LinesDataset final : public Dataset {
 public:
  explicit LinesDataset(const std::vector<std::string>& files)
      : Dataset({{"line", DType::kString, Shape::scalar()}}, {}), files_(shared_names(files)) {}
  std::unique_ptr<Iterator> iterate(const IterateContext&) const override {
    return std::make_unique<FileIterator<Lines>>(
        files_, this,
        [](const void*, const std::shared_ptr<const std::string>& file, uint64_t offset, int64_t count) {
          return std::make_unique<Lines>(*file, offset, count);
        });
  }
  std::string describe() const override { return cat("TextLine(", files_.size(), " files)"); }

 private:
  const std::vector<std::shared_ptr<const std::string>> files_;
};

}  // namespace

DatasetPtr tf_records(std::vector<std::string> files, io::RecordReaderOptions options) {
  return std::make_shared<RecordsDataset>(files, options);
}

DatasetPtr text_lines(std::vector<std::string> files) { return std::make_shared<LinesDataset>(files); }

}  // namespace sluice::runtime::data
