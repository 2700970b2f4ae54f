#include "runtime/io/record.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/io/crc32c.h"
#include "runtime/io/file.h"

namespace sluice::runtime::io {
namespace {

constexpr size_t kBuffer = size_t{1} << 18;
constexpr size_t kHeader = 12;  // u64 length, u32 crc
constexpr size_t kFooter = 4;   // u32 crc

template <class T>
T load(const void* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

template <class T>
void put(std::string* out, T v) {
  out->append(reinterpret_cast<const char*>(&v), sizeof v);
}

}  // namespace

RecordReader::RecordReader(const std::string& path) : file_(std::make_unique<RandomFile>(path)) {}
RecordReader::~RecordReader() = default;

void RecordReader::seek(uint64_t offset, int64_t count) { offset_ = offset, count_ = count; }

void RecordReader::fail(const char* what) const {
  unsigned char magic[2] = {0, 0};
  if (file_->size() >= 2) file_->read(0, magic, 2);
  const bool zipped =
      count_ == 0 && ((magic[0] == 0x1f && magic[1] == 0x8b) || (magic[0] == 0x78 && magic[1] != 0));
  throw_error(Code::kDataLoss,
              cat(file_->path(), ": ", what, " record at ", offset_, " (record number ", count_, ")",
                  zipped ? "; the file looks compressed, decompress it first" : ""));
}

// Small pieces come from a read-ahead buffer; long ones go straight to `out`.
void RecordReader::fetch(uint64_t offset, void* out, size_t bytes) {
  auto* to = static_cast<char*>(out);
  if (offset >= buffer_at_ && offset < buffer_at_ + buffer_.size()) {
    const size_t from = static_cast<size_t>(offset - buffer_at_), n = std::min(bytes, buffer_.size() - from);
    std::memcpy(to, buffer_.data() + from, n);
    to += n, offset += n, bytes -= n;
  }
  if (bytes == 0) return;
  if (bytes >= kBuffer) return file_->read(offset, to, bytes);
  buffer_.resize(static_cast<size_t>(std::min<uint64_t>(kBuffer, file_->size() - offset)));
  buffer_at_ = offset;
  file_->read(offset, buffer_.data(), buffer_.size());
  std::memcpy(to, buffer_.data(), bytes);
}

bool RecordReader::next(std::string* record) {
  const uint64_t size = file_->size();
  if (offset_ >= size) return false;
  if (size - offset_ < kHeader) fail("truncated");
  char header[kHeader];
  fetch(offset_, header, kHeader);
  if (unmask_crc(load<uint32_t>(header + 8)) != crc32c({header, 8})) fail("corrupted");
  const auto length = load<uint64_t>(header);
  const uint64_t rest = size - offset_ - kHeader;
  if (rest < kFooter || length > rest - kFooter) fail("truncated");
  record->resize(length);
  fetch(offset_ + kHeader, record->data(), length);
  uint32_t stored;
  fetch(offset_ + kHeader + length, &stored, sizeof stored);
  if (unmask_crc(stored) != crc32c(*record)) fail("corrupted");
  offset_ += kHeader + length + kFooter;
  ++count_;
  return true;
}

void append_record(std::string* out, std::string_view record) {
  const auto length = static_cast<uint64_t>(record.size());
  put(out, length);
  put(out, mask_crc(crc32c_extend(0, &length, sizeof length)));
  out->append(record);
  put(out, mask_crc(crc32c(record)));
}

RecordWriter::RecordWriter(std::string path) : path_(std::move(path)) {
  require_parent_directory(path_);
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) throw_errno(path_, "opening for writing", errno);
}

RecordWriter::~RecordWriter() {
  try {
    close();
  } catch (const Error&) {  // nobody is left to tell; `close` before is the way to know
  }
}

void RecordWriter::write(std::string_view record) {
  SLUICE_REQUIRE(fd_ >= 0, Code::kFailedPrecondition, path_, ": the writer is closed");
  append_record(&buffer_, record);
  if (buffer_.size() >= kBuffer) flush();
}

void RecordWriter::flush() {
  std::string_view rest = buffer_;
  while (!rest.empty()) {
    const ssize_t put = ::write(fd_, rest.data(), std::min(rest.size(), size_t{1} << 28));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw_errno(path_, "writing", errno);
    rest.remove_prefix(static_cast<size_t>(put));
  }
  buffer_.clear();
}

void RecordWriter::close() {
  if (fd_ < 0) return;
  struct Closer {
    int& fd;
    ~Closer() {
      ::close(fd);
      fd = -1;
    }
  } closer{fd_};
  flush();
}

}  // namespace sluice::runtime::io
