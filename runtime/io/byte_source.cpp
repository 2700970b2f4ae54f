#include "runtime/io/byte_source.h"

#include <algorithm>
#include <cstring>

#include "runtime/io/file.h"

namespace sluice::runtime::io {
namespace {

constexpr size_t kBuffer = size_t{1} << 18;
constexpr size_t kKept = 64;  // of the former window: who looks for a record steps back by less than a header

// Small pieces come from a read-ahead buffer; long ones go straight to `out`.
class PlainSource final : public ByteSource {
 public:
  explicit PlainSource(const std::string& path) : file_(std::make_unique<RandomFile>(path)) {}

  size_t read(uint64_t offset, char* out, size_t size) override {
    if (offset >= file_->size()) return 0;
    const auto total = static_cast<size_t>(std::min<uint64_t>(size, file_->size() - offset));
    size_t left = total;
    if (offset >= buffer_at_ && offset < buffer_at_ + buffer_.size()) {
      const size_t from = static_cast<size_t>(offset - buffer_at_), n = std::min(left, buffer_.size() - from);
      std::memcpy(out, buffer_.data() + from, n);
      out += n, offset += n, left -= n;
    }
    if (left == 0) return total;
    if (left >= kBuffer) {
      file_->read(offset, out, left);
      return total;
    }
    buffer_.resize(static_cast<size_t>(std::min<uint64_t>(kBuffer, file_->size() - offset)));
    buffer_at_ = offset;
    file_->read(offset, buffer_.data(), buffer_.size());
    std::memcpy(out, buffer_.data(), left);
    return total;
  }
  std::optional<uint64_t> size() const override { return file_->size(); }
  uint64_t file_size() const override { return file_->size(); }
  bool cut() const override { return false; }
  void refresh() override { file_ = std::make_unique<RandomFile>(std::string(file_->path())); }

 private:
  std::unique_ptr<RandomFile> file_;
  std::string buffer_;  // bytes from buffer_at_ on
  uint64_t buffer_at_ = 0;
};

class InflatedSource final : public ByteSource {
 public:
  InflatedSource(const std::string& path, Compression compression)
      : compression_(compression),
        file_(std::make_unique<RandomFile>(path)),
        inflater_(std::make_unique<Inflater>(compression)) {}

  size_t read(uint64_t offset, char* out, size_t size) override {
    if (offset < window_at_) start_over();
    size_t done = 0;
    while (done < size) {
      const uint64_t end = window_at_ + window_.size();
      if (offset < end) {
        const auto from = static_cast<size_t>(offset - window_at_);
        const size_t n = std::min(size - done, window_.size() - from);
        std::memcpy(out + done, window_.data() + from, n);
        done += n, offset += n;
      } else if (!fill()) {
        break;
      }
    }
    return done;
  }
  std::optional<uint64_t> size() const override { return std::nullopt; }
  uint64_t file_size() const override { return file_->size(); }
  bool cut() const override { return cut_; }
  void refresh() override {
    file_ = std::make_unique<RandomFile>(std::string(file_->path()));
    start_over();
  }

 private:
  void start_over() {
    inflater_ = std::make_unique<Inflater>(compression_);
    input_.clear(), rest_ = {}, window_.clear();
    input_at_ = window_at_ = 0;
    cut_ = ended_ = between_ = false;
  }
  // The next window; false at the end.
  bool fill() {
    if (ended_) return false;
    const size_t kept = std::min(window_.size(), kKept);
    window_at_ += window_.size() - kept;
    window_.erase(0, window_.size() - kept);
    window_.resize(kept + kBuffer);
    size_t have = 0;
    while (have == 0) {
      if (rest_.empty()) {
        const uint64_t left = file_->size() - input_at_;
        if (left == 0) {
          ended_ = true;
          cut_ = !between_;
          break;
        }
        input_.resize(static_cast<size_t>(std::min<uint64_t>(kBuffer, left)));
        file_->read(input_at_, input_.data(), input_.size());
        input_at_ += input_.size();
        rest_ = input_;
      }
      between_ = false;
      const Inflater::State s = inflater_->run(&rest_, window_.data() + kept, kBuffer, &have);
      if (s == Inflater::State::kDamaged) {
        ended_ = cut_ = true;
        break;
      }
      if (s == Inflater::State::kEnd) {  // several streams one after the other are one file
        inflater_->restart();
        between_ = true;
      }
    }
    window_.resize(kept + have);
    return have > 0;
  }

  Compression compression_;
  std::unique_ptr<RandomFile> file_;
  std::unique_ptr<Inflater> inflater_;
  std::string input_, window_;  // window_: uncompressed bytes from window_at_ on
  std::string_view rest_;       // of input_
  uint64_t input_at_ = 0, window_at_ = 0;
  bool cut_ = false, ended_ = false;
  bool between_ = false;  // after the end of one stream
};

}  // namespace

std::unique_ptr<ByteSource> open_source(const std::string& path, Compression compression) {
  if (compression == Compression::kNone) return std::make_unique<PlainSource>(path);
  return std::make_unique<InflatedSource>(path, compression);
}

}  // namespace sluice::runtime::io
