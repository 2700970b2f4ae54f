#include "runtime/io/record.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "graph/support/log.h"
#include "runtime/io/byte_source.h"
#include "runtime/io/crc32c.h"
#include "runtime/io/file.h"

namespace sluice::runtime::io {
namespace {

constexpr size_t kBuffer = size_t{1} << 18;
constexpr size_t kHeader = 12;  // u64 length, u32 crc
constexpr size_t kFooter = 4;   // u32 crc
constexpr size_t kFirstPiece = size_t{1} << 20;

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

bool sound_header(const char* header) {
  return unmask_crc(load<uint32_t>(header + 8)) == crc32c({header, 8});
}

}  // namespace

RecordReader::RecordReader(const std::string& path, RecordReaderOptions options)
    : path_(path), options_(options), source_(open_source(path, options.compression)) {}
RecordReader::~RecordReader() = default;

void RecordReader::seek(uint64_t offset, int64_t count) {
  offset_ = offset, count_ = count;
  torn_ = at_end_ = false;
}

std::string RecordReader::complaint(Outcome what) const {
  std::string hint;
  if (count_ == 0 && options_.compression == Compression::kNone) {
    char magic[2] = {0, 0};
    source_->read(0, magic, 2);
    if (magic[0] == '\x1f' && magic[1] == '\x8b') hint = "; the file looks compressed: read it as GZIP";
    if (magic[0] == '\x78') hint = "; the file looks compressed: read it as ZLIB";
  }
  if (source_->cut()) hint = "; the compressed stream is cut off or damaged there";
  return cat(path_, ": ", what == Outcome::kTruncated ? "truncated" : "corrupted", " record at ", offset_,
             " (record number ", count_, ")", hint);
}

uint64_t RecordReader::record_limit() const {
  if (options_.max_record_bytes > 0) return options_.max_record_bytes;
  if (options_.compression == Compression::kNone) return UINT64_MAX;
  return (uint64_t{16} << 20) + 32 * source_->file_size();
}

uint64_t RecordReader::next_plausible(bool* found) {
  const auto size = source_->size();
  char header[kHeader];
  for (uint64_t at = offset_ + 1;; ++at) {
    const size_t got = source_->read(at, header, kHeader);
    *found = false;
    if (got < kHeader) return at + got;
    if (!sound_header(header)) continue;
    const uint64_t length = load<uint64_t>(header), rest = size ? *size - at - kHeader : UINT64_MAX;
    *found = rest >= kFooter && length <= rest - kFooter;
    if (*found) return at;
  }
}

RecordReader::Outcome RecordReader::read(std::string* record) {
  char header[kHeader];
  const size_t got = source_->read(offset_, header, kHeader);
  if (got == 0) return source_->cut() ? Outcome::kTruncated : Outcome::kEnd;
  if (got < kHeader) return Outcome::kTruncated;
  if (!sound_header(header)) return Outcome::kBadLength;
  const auto length = load<uint64_t>(header);
  if (const auto size = source_->size()) {
    const uint64_t rest = *size - offset_ - kHeader;
    if (rest < kFooter || length > rest - kFooter) return Outcome::kTruncated;
  }
  SLUICE_REQUIRE(length <= record_limit(), Code::kResourceExhausted, path_, ": the record at ", offset_,
                 " (record number ", count_, ") states ", length, " bytes, more than the ", record_limit(),
                 " that max_record_bytes allows");
  return read_data(length, record);
}

// Where the size of the rest is unknown the record grows only as bytes really come.
RecordReader::Outcome RecordReader::read_data(uint64_t length, std::string* record) {
  const uint64_t start = offset_ + kHeader;
  record->clear();
  for (uint64_t have = 0; have < length;) {
    const uint64_t want =
        source_->size() ? length : std::min<uint64_t>(length, std::max<uint64_t>(2 * have, kFirstPiece));
    record->resize(want);
    have += source_->read(start + have, record->data() + have, static_cast<size_t>(want - have));
    if (have < want) return Outcome::kTruncated;
  }
  char footer[kFooter];
  if (source_->read(start + length, footer, kFooter) < kFooter) return Outcome::kTruncated;
  next_offset_ = start + length + kFooter;
  return unmask_crc(load<uint32_t>(footer)) == crc32c(*record) ? Outcome::kRecord : Outcome::kBadData;
}

void RecordReader::pass_over(Outcome what) {
  log_warning(complaint(what), "; skipped");
  ++damaged_;
  bool found = true;
  if (what != Outcome::kBadData) next_offset_ = next_plausible(&found);  // where the next begins isn't known
  at_end_ = !found;
  offset_ = next_offset_;
  ++count_;
}

bool RecordReader::next(std::string* record) {
  if (at_end_) source_->refresh();
  at_end_ = torn_ = false;
  while (!at_end_) {
    const Outcome what = read(record);
    if (what == Outcome::kRecord) {
      offset_ = next_offset_;
      ++count_;
      return true;
    }
    torn_ = what == Outcome::kTruncated && options_.torn_tail_is_end;
    at_end_ = torn_ || what == Outcome::kEnd;
    if (at_end_) break;
    if (!options_.skip_damaged) throw_error(Code::kDataLoss, complaint(what));
    pass_over(what);
  }
  record->clear();
  return false;
}

void append_record(std::string* out, std::string_view record) {
  const auto length = static_cast<uint64_t>(record.size());
  put(out, length);
  put(out, mask_crc(crc32c_extend(0, &length, sizeof length)));
  out->append(record);
  put(out, mask_crc(crc32c(record)));
}

void write_out(int fd, std::string* bytes, const std::string& path) {
  size_t done = 0;
  while (done < bytes->size()) {
    const ssize_t put = ::write(fd, bytes->data() + done, std::min(bytes->size() - done, size_t{1} << 28));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      const int error = errno;
      bytes->erase(0, done);
      throw_errno(path, "writing", error);
    }
    done += static_cast<size_t>(put);
  }
  bytes->clear();
}

RecordWriter::RecordWriter(std::string path, RecordWriterOptions options) : path_(std::move(path)) {
  SLUICE_REQUIRE(!options.append || options.compression == Compression::kNone, Code::kInvalidArgument, path_,
                 ": a compressed file can't be appended to");
  require_parent_directory(path_);
  if (options.compression != Compression::kNone)
    deflater_ = std::make_unique<Deflater>(options.compression, options.level);
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | (options.append ? O_APPEND : O_TRUNC) | O_CLOEXEC, 0666);
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
  if (deflater_) {
    std::string framed;
    append_record(&framed, record);
    deflater_->add(framed, &buffer_);
  } else {
    append_record(&buffer_, record);
  }
  if (buffer_.size() >= kBuffer) drain();
}

void RecordWriter::drain() { write_out(fd_, &buffer_, path_); }

void RecordWriter::flush() {
  SLUICE_REQUIRE(fd_ >= 0, Code::kFailedPrecondition, path_, ": the writer is closed");
  if (deflater_) deflater_->flush(&buffer_);
  drain();
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
  if (deflater_) deflater_->finish(&buffer_);
  drain();
}

}  // namespace sluice::runtime::io
