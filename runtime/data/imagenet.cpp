#include "runtime/data/imagenet.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>

#include "graph/support/check.h"
#include "runtime/io/example.h"
#include "runtime/io/record.h"

namespace sluice::runtime::data {

namespace {

namespace fs = std::filesystem;

// A record and where it was read, for messages.
struct RawRecord {
  std::string bytes;
  std::shared_ptr<const std::string> file;  // shared by all records of one file
  int64_t number = 0;
};

// Records of many files: `interleave` of them open at once, one record from each in turn; for ever when
// asked, in a new file order each epoch.
class RecordStream {
 public:
  RecordStream(std::vector<std::string> files, const WalkOptions& walk, int interleave)
      : files_(std::move(files)), walk_(walk), interleave_(static_cast<size_t>(std::max(interleave, 1))) {
    start_epoch();
  }

  bool next(RawRecord& out) {
    for (;;) {
      while (open_.size() < interleave_ && !waiting_.empty()) {
        const std::string& path = files_[waiting_.front()];
        open_.push_back(
            {std::make_unique<io::RecordReader>(path), std::make_shared<const std::string>(path)});
        waiting_.pop_front();
      }
      if (open_.empty()) {
        SLUICE_REQUIRE(seen_this_epoch_ > 0, Code::kDataLoss, "the record files hold no record, ", files_[0],
                       " among them");
        if (!walk_.repeat) return false;
        ++epoch_;
        start_epoch();
        continue;
      }
      turn_ %= open_.size();
      Open& source = open_[turn_];
      if (source.reader->next(&out.bytes)) {
        out.file = source.path;
        out.number = source.reader->count() - 1;
        ++seen_this_epoch_;
        ++turn_;
        return true;
      }
      open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(turn_));
    }
  }

 private:
  struct Open {
    std::unique_ptr<io::RecordReader> reader;
    std::shared_ptr<const std::string> path;
  };

  void start_epoch() {
    seen_this_epoch_ = 0;
    const auto n = static_cast<uint32_t>(files_.size());
    if (walk_.shuffle) {
      const std::vector<uint32_t> order = permutation(n, walk_.seed, epoch_);
      waiting_.assign(order.begin(), order.end());
    } else {
      for (uint32_t i = 0; i < n; ++i) waiting_.push_back(i);
    }
  }

  const std::vector<std::string> files_;
  const WalkOptions walk_;
  const size_t interleave_;
  std::vector<Open> open_;
  std::deque<uint32_t> waiting_;
  size_t turn_ = 0;
  uint64_t epoch_ = 0;
  int64_t seen_this_epoch_ = 0;
};

const io::Feature* find(const io::Example& example, std::string_view key) {
  auto it = example.find(key);
  return it == example.end() ? nullptr : &it->second;
}

std::vector<Box> boxes_of(const io::Example& example) {
  const io::Feature* sides[4] = {
      find(example, "image/object/bbox/ymin"), find(example, "image/object/bbox/xmin"),
      find(example, "image/object/bbox/ymax"), find(example, "image/object/bbox/xmax")};
  size_t n = sides[0] ? sides[0]->floats.size() : 0;
  for (const io::Feature* side : sides)
    SLUICE_REQUIRE((side ? side->floats.size() : 0) == n, Code::kInvalidArgument,
                   "the four sides of its bounding boxes differ in number");
  std::vector<Box> boxes;
  for (size_t i = 0; i < n; ++i)
    boxes.push_back({sides[0]->floats[i], sides[1]->floats[i], sides[2]->floats[i], sides[3]->floats[i]});
  return boxes;
}

class ImagenetProducer : public BatchProducer {
 public:
  ImagenetProducer(std::vector<std::string> files, const WalkOptions& walk,
                   const PreprocessOptions& preprocess, const MixOptions& mix)
      : walk_(walk),
        preprocess_(preprocess),
        buffer_size_(static_cast<size_t>(walk.shuffle ? std::max<int64_t>(mix.buffer, 1) : 1)),
        stream_(std::move(files), walk, walk.shuffle ? mix.interleave : 1),
        draw_(walk.seed, 0x73687566) {
    SLUICE_REQUIRE(walk_.batch > 0, Code::kInvalidArgument, "batch must be positive, got ", walk_.batch);
  }

  BatchJob claim() override {
    auto records = std::make_shared<std::vector<RawRecord>>();  // shared: a std::function must be copyable
    while (static_cast<int64_t>(records->size()) < walk_.batch) {
      RawRecord record;
      if (!draw(record)) break;
      records->push_back(std::move(record));
    }
    if (records->empty()) return {};
    const uint64_t first = ordinal_;
    ordinal_ += records->size();
    return [this, records, first] { return make(*records, first); };
  }

 private:
  // One record from the shuffle buffer, which is kept full while the stream lasts.
  bool draw(RawRecord& out) {
    RawRecord record;
    while (buffer_.size() < buffer_size_ && !ended_) {
      if (stream_.next(record)) {
        buffer_.push_back(std::move(record));
      } else {
        ended_ = true;
      }
    }
    if (buffer_.empty()) return false;
    const size_t i = buffer_size_ > 1 ? draw_.below(buffer_.size()) : 0;
    out = std::move(buffer_[i]);
    if (i + 1 != buffer_.size()) buffer_[i] = std::move(buffer_.back());
    buffer_.pop_back();
    return true;
  }

  // Reads only what is fixed after construction, so jobs may run side by side.
  Batch make(const std::vector<RawRecord>& records, uint64_t first) const {
    const auto n = static_cast<int64_t>(records.size());
    Batch batch{Array(graph::DType::kFloat, {n, preprocess_.height, preprocess_.width, 3}),
                Array(graph::DType::kInt32, {n})};
    float* dst = batch.images.as<float>().data();
    for (size_t i = 0; i < records.size(); ++i) {
      try {
        const io::Example example = io::parse_example(records[i].bytes);
        const std::string& encoded = io::single_bytes(example, "image/encoded");
        const int64_t label = io::single_int(example, "image/class/label");
        SLUICE_REQUIRE(label >= 0 && label <= 1000, Code::kInvalidArgument, "label ", label,
                       " is not within 0 and 1000");
        batch.labels.as<int32_t>()[i] = static_cast<int32_t>(label);
        const auto position = static_cast<int64_t>(i);
        Random random(walk_.seed, first + i);
        const FloatImage image = walk_.shuffle
                                     ? train_image(encoded, boxes_of(example), random, position, preprocess_)
                                     : eval_image(encoded, position, preprocess_);
        dst = std::copy(image.pixels.begin(), image.pixels.end(), dst);
      } catch (const Error& e) {
        throw_error(e.code() == Code::kInvalidArgument ? Code::kDataLoss : e.code(),
                    cat(*records[i].file, ": record number ", records[i].number, ": ", e.message()));
      }
    }
    return batch;
  }

  const WalkOptions walk_;
  const PreprocessOptions preprocess_;
  const size_t buffer_size_;
  RecordStream stream_;
  Random draw_;
  std::vector<RawRecord> buffer_;
  bool ended_ = false;
  uint64_t ordinal_ = 0;
};

}  // namespace

std::vector<std::string> imagenet_files(const std::string& dir, bool training) {
  const std::string prefix = training ? "train-" : "validation-";
  std::vector<std::string> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) && name.find("-of-", prefix.size()) != std::string::npos)
      files.push_back(entry.path().string());
  }
  SLUICE_REQUIRE(!error, Code::kNotFound, "cannot read the folder --data_dir=", dir, ": ", error.message());
  SLUICE_REQUIRE(!files.empty(), Code::kNotFound,
                 "Found no files in --data_dir matching: ", (fs::path(dir) / (prefix + "*-of-*")).string());
  std::sort(files.begin(), files.end());
  return files;
}

int64_t count_records(const std::vector<std::string>& files) {
  int64_t count = 0;
  for (const std::string& path : files) {
    std::ifstream in(path, std::ios::binary);
    std::error_code error;
    const auto size = static_cast<uint64_t>(fs::file_size(path, error));
    SLUICE_REQUIRE(in && !error, Code::kNotFound, "cannot read ", path);
    for (uint64_t offset = 0; offset < size; ++count) {
      char head[8];
      uint64_t length = 0;
      in.seekg(static_cast<std::streamoff>(offset));
      in.read(head, sizeof head);
      std::memcpy(&length, head, sizeof length);
      // Anything odd is left to the reader, which checks sums and says what is wrong.
      if (!in || length > size - offset || size - offset - length < 16) break;
      offset += 16 + length;
    }
  }
  return count;
}

std::unique_ptr<BatchProducer> imagenet_producer(std::vector<std::string> files, const WalkOptions& walk,
                                                 const PreprocessOptions& preprocess, const MixOptions& mix) {
  SLUICE_REQUIRE(!files.empty(), Code::kInvalidArgument, "no record files");
  return std::make_unique<ImagenetProducer>(std::move(files), walk, preprocess, mix);
}

}  // namespace sluice::runtime::data
