#include "runtime/io/events.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "graph/support/log.h"
#include "runtime/io/file.h"
#include "runtime/io/record.h"

namespace sluice::runtime::io {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBuffer = size_t{1} << 18;
constexpr size_t kMostWaiting = size_t{1} << 26;  // bytes kept for a disk that takes none
constexpr const char* kVersion = "brain.Event:2";
constexpr int kMaxNames = 10000;  // writers that may begin in one folder in one second

std::string host_name() {
  char name[256] = "localhost";
  ::gethostname(name, sizeof name - 1);
  return name;
}

void make_folder(const std::string& directory) {
  std::error_code failed;
  fs::create_directories(directory, failed);
  if (failed && !fs::is_directory(directory)) throw_errno(directory, "making the folder", failed.value());
}

}  // namespace

double wall_time_now() {
  using namespace std::chrono;
  return static_cast<double>(duration_cast<microseconds>(system_clock::now().time_since_epoch()).count()) *
         1e-6;
}

EventsWriter::EventsWriter(const std::string& directory, const std::string& suffix) {
  make_folder(directory);
  const double now = wall_time_now();
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%010lld", static_cast<long long>(now));
  const std::string wanted =
      (fs::path(directory) / cat("events.out.tfevents.", seconds, ".", host_name(), suffix)).string();
  for (int n = 0; fd_ < 0; ++n) {
    path_ = n == 0 ? wanted : cat(wanted, ".", n);
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    if (fd_ < 0 && (errno != EEXIST || n == kMaxNames)) throw_errno(path_, "making an event file", errno);
  }
  write({.kind = Event::Kind::kFileVersion, .wall_time = now, .data = kVersion});
  flush();
}

EventsWriter::~EventsWriter() {
  try {
    close();
  } catch (const Error& e) {
    log_error("closing an event file: ", e.what());
  }
}

void EventsWriter::write(const Event& event) {
  if (event.wall_time != 0) return write_serialized(serialize_event(event));
  Event stamped = event;
  stamped.wall_time = wall_time_now();
  write_serialized(serialize_event(stamped));
}

void EventsWriter::write_serialized(std::string_view event) {
  SLUICE_REQUIRE(fd_ >= 0, Code::kFailedPrecondition, path_, ": the event file is closed");
  SLUICE_REQUIRE(buffer_.size() < kMostWaiting, Code::kResourceExhausted, path_, ": ", waiting_,
                 " events wait for a disk that takes none; this one is lost");
  append_record(&buffer_, event);
  ++waiting_;
  if (buffer_.size() >= kBuffer) flush();
}

void EventsWriter::flush() {
  if (fd_ < 0 || buffer_.empty()) return;
  struct stat info {};
  SLUICE_REQUIRE(::fstat(fd_, &info) == 0 && info.st_nlink > 0, Code::kNotFound, path_,
                 "; the event file was deleted while it was written; ", waiting_, " events are lost");
  write_out(fd_, &buffer_, path_);
  waiting_ = 0;
}

void EventsWriter::close() {
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

EventsReader::EventsReader(const std::string& path, EventsReaderOptions options)
    : records_(std::make_unique<RecordReader>(
          path, RecordReaderOptions{.skip_damaged = options.skip_damaged,
                                    .torn_tail_is_end = options.torn_tail_is_end})),
      path_(path),
      options_(options) {}
EventsReader::~EventsReader() = default;

int64_t EventsReader::damaged() const { return records_->damaged() + damaged_messages_; }
uint64_t EventsReader::offset() const { return records_->offset(); }

std::optional<Event> EventsReader::next() {
  for (;;) {
    const uint64_t at = records_->offset();
    const int64_t number = records_->count();
    const bool more = records_->next(&record_);
    torn_ = records_->torn();
    if (!more) return std::nullopt;
    const std::string where = cat(path_, ": record at ", at, " (record number ", number, ")");
    try {
      return parse_event(record_, where);
    } catch (const Error& e) {
      if (!options_.skip_damaged) throw;
      log_warning(e.message(), "; skipped");
      ++damaged_messages_;
    }
  }
}

std::vector<std::string> event_files(const std::string& directory) {
  std::vector<std::string> paths;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(directory, failed))
    if (entry.is_regular_file() && entry.path().filename().string().find("tfevents") != std::string::npos)
      paths.push_back(entry.path().string());
  if (failed) throw_errno(directory, "listing the folder", failed.value());
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace sluice::runtime::io
