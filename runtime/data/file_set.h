#pragma once
// What all file sources share: the list of files, which one is open, and where in it the reader stands. A
// reader R has: R(path, offset, count), bool next(Element&), offset(), count(), skip() after an error.

#include <memory>
#include <string>
#include <vector>

#include "runtime/data/state.h"

namespace sluice::runtime::data {

/// Reads one file after another. `make` opens a file at a position.
template <class R>
class FileIterator final : public Iterator {
 public:
  using Make = std::unique_ptr<R> (*)(const void* dataset, const std::shared_ptr<const std::string>& file,
                                      uint64_t offset, int64_t count);
  FileIterator(const std::vector<std::shared_ptr<const std::string>>& files, const void* dataset, Make make)
      : files_(files), dataset_(dataset), make_(make) {}

  bool next(Element& out, const CancelToken& cancel) override {
    for (;;) {
      if (!reader_) {
        if (file_ >= files_.size()) return false;
        // A file that cannot be opened costs itself only.
        const size_t opening = file_++;
        reader_ = make_(dataset_, files_[opening], 0, 0);
        --file_;
      }
      const uint64_t offset = reader_->offset();
      const int64_t count = reader_->count();
      try {
        if (reader_->next(out)) {
          if (out.origin.file != files_[file_]) out.origin.file = files_[file_];
          out.origin.offset = offset;
          out.origin.record = count;
          return true;
        }
      } catch (const Error& e) {
        const Origin origin{files_[file_], count, offset};
        if (!skipped()) close();
        rethrow_at(e, origin);
      }
      close();
      cancel.check();
    }
  }
  void save(StateWriter& out) override {
    out.put(static_cast<int64_t>(file_));
    out.put(reader_ != nullptr);
    if (!reader_) return;
    out.put_u64(reader_->offset());
    out.put(reader_->count());
  }
  void restore(StateReader& in) override {
    file_ = static_cast<size_t>(in.get(0, static_cast<int64_t>(files_.size())));
    if (in.get(0, 1) == 0) return;
    if (file_ >= files_.size()) StateReader::fail("a file number is out of range");
    const uint64_t offset = in.get_u64();
    reader_ = make_(dataset_, files_[file_], offset, in.get());
  }

 private:
  bool skipped() {
    try {
      return reader_->skip();
    } catch (const Error&) {
      return false;
    }
  }
  void close() {
    reader_.reset();
    ++file_;
  }

  const std::vector<std::shared_ptr<const std::string>>& files_;
  const void* dataset_;
  const Make make_;
  std::unique_ptr<R> reader_;
  size_t file_ = 0;  // the one under way
};

inline std::vector<std::shared_ptr<const std::string>> shared_names(const std::vector<std::string>& files) {
  std::vector<std::shared_ptr<const std::string>> names;
  for (const std::string& f : files) names.push_back(std::make_shared<const std::string>(f));
  return names;
}

}  // namespace sluice::runtime::data
