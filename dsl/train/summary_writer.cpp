#include "dsl/train/summary_writer.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "graph/support/log.h"
#include "runtime/io/wire.h"

namespace sluice::dsl::train {

namespace {

using Clock = std::chrono::steady_clock;
using runtime::io::EventsWriter;
using runtime::io::WireField;
using runtime::io::WireReader;
using runtime::io::WireType;
using runtime::io::WireWriter;

constexpr int kSummaryValue = 1, kValueTag = 1, kValueMetadata = 9;

// The Summary without the metadata of tags that were seen before; notes the new ones.
std::string strip_metadata(std::string_view summary, std::set<std::string, std::less<>>* seen) {
  WireWriter out;
  WireReader in(summary);
  bool sound = true;
  for (WireField f; sound && in.next(&f);) {
    if (!f.is_bytes(kSummaryValue)) {
      out.append(f.raw);
      continue;
    }
    std::string_view tag;
    bool has_metadata = false;
    WireReader value(f.bytes);
    for (WireField v; value.next(&v);) {
      if (v.is_bytes(kValueTag)) tag = v.bytes;
      has_metadata = has_metadata || v.is_bytes(kValueMetadata);
    }
    sound = value.sound();
    if (!has_metadata || seen->insert(std::string(tag)).second) {
      out.append(f.raw);
      continue;
    }
    WireWriter kept;
    WireReader again(f.bytes);
    for (WireField v; again.next(&v);)
      if (!v.is_bytes(kValueMetadata)) kept.append(v.raw);
    out.bytes_field(kSummaryValue, kept.str());
  }
  SLUICE_REQUIRE(sound && in.sound(), Code::kDataLoss, "add_summary: the bytes are no Summary message");
  return out.take();
}

Clock::duration seconds(double s) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
}

}  // namespace

struct FileWriter::Impl {
  const std::string logdir;
  const FileWriterOptions options;

  mutable std::mutex mutex;  // guards what follows
  std::condition_variable wake, room, idle;
  std::deque<std::string> queue;  // serialized events
  std::unique_ptr<EventsWriter> file;
  std::exception_ptr failed;       // told by the next call
  int64_t added = 0, flushed = 0;  // events put into the queue; of these, in the file
  int64_t flush_wanted = 0;        // `flushed` that someone waits for
  bool stop = false, is_closed = true;
  std::set<std::string, std::less<>> tags, run_tags;
  std::thread thread;

  Impl(std::string d, FileWriterOptions o) : logdir(std::move(d)), options(std::move(o)) {}

  void open() {
    file = std::make_unique<EventsWriter>(logdir, options.filename_suffix);
    stop = is_closed = false;
    thread = std::thread([this] { work(); });
  }

  // The thread: takes all that waits, writes it, and flushes when asked to or when it is time.
  void work() {
    std::unique_lock lock(mutex);
    const double every = std::min(options.flush_secs, 1e6);
    auto next_flush = Clock::now() + seconds(every);
    int64_t taken = flushed;  // what was put since this thread was made is still in the queue
    for (;;) {
      const auto called = [&] {
        return stop || !queue.empty() || (flush_wanted > flushed && taken > flushed);
      };
      if (taken > flushed)
        wake.wait_until(lock, next_flush, called);
      else
        wake.wait(lock, called);
      std::deque<std::string> batch;
      batch.swap(queue);
      taken += static_cast<int64_t>(batch.size());
      const bool due = stop || flush_wanted > flushed || Clock::now() >= next_flush;
      room.notify_all();
      EventsWriter* const to = file.get();
      std::exception_ptr error;
      lock.unlock();
      for (const std::string& event : batch) {
        try {
          to->write_serialized(event);  // keeps the event even where the disk takes none
        } catch (...) {
          if (!error) error = std::current_exception();
        }
      }
      try {
        if (due) to->flush();
      } catch (...) {
        if (!error) error = std::current_exception();
      }
      lock.lock();
      if (error && !failed) failed = error;
      if (due || error) {
        flushed = taken;
        next_flush = Clock::now() + seconds(every);
        idle.notify_all();
      }
      if (stop && queue.empty() && flushed == added) return;
    }
  }

  void rethrow() {
    if (!failed) return;
    const std::exception_ptr error = std::exchange(failed, nullptr);
    std::rethrow_exception(error);
  }

  bool warn_if_closed() const {
    if (is_closed)
      log_warning("Attempting to use a closed FileWriter (", logdir,
                  "). The operation will be a noop unless the FileWriter is explicitly reopened.");
    return is_closed;
  }

  void put(std::unique_lock<std::mutex>& lock, Event event) {
    rethrow();
    if (warn_if_closed()) return;
    if (event.wall_time == 0) event.wall_time = runtime::io::wall_time_now();
    std::string bytes = runtime::io::serialize_event(event);
    room.wait(lock, [&] { return stop || static_cast<int>(queue.size()) < options.max_queue; });
    if (stop) return;  // closed meanwhile
    queue.push_back(std::move(bytes));
    ++added;
    wake.notify_one();
  }

  void flush(std::unique_lock<std::mutex>& lock) {
    if (!is_closed && flushed < added) {
      const int64_t target = added;
      flush_wanted = std::max(flush_wanted, target);
      wake.notify_one();
      idle.wait(lock, [&] { return flushed >= target; });
    }
    rethrow();
  }

  void close(std::unique_lock<std::mutex>& lock) {
    if (is_closed) return rethrow();
    is_closed = stop = true;
    wake.notify_one();
    room.notify_all();
    std::thread ending = std::move(thread);
    lock.unlock();
    ending.join();
    lock.lock();
    const auto closing = std::move(file);
    try {
      closing->close();
    } catch (...) {
      if (!failed) failed = std::current_exception();
    }
    rethrow();
  }
};

FileWriter::FileWriter(std::string logdir, FileWriterOptions options)
    : impl_(std::make_unique<Impl>(std::move(logdir), options)) {
  SLUICE_REQUIRE(options.max_queue >= 1, Code::kInvalidArgument, "FileWriter: max_queue is at least 1, not ",
                 options.max_queue);
  SLUICE_REQUIRE(options.flush_secs >= 0, Code::kInvalidArgument,
                 "FileWriter: flush_secs is negative: ", options.flush_secs);
  impl_->open();
  if (!options.graph) return;
  try {
    add_graph(*options.graph);
    add_meta_graph(*options.graph);
  } catch (...) {
    try {
      close();  // its thread must end before Impl goes
    } catch (const std::exception& e) {
      log_error("closing the event file of ", impl_->logdir, ": ", e.what());
    }
    throw;
  }
}

FileWriter::~FileWriter() {
  try {
    close();
  } catch (const std::exception& e) {
    log_error("closing the event file of ", impl_->logdir, ": ", e.what());
  }
}

void FileWriter::add_summary(std::string_view serialized, int64_t step) {
  std::unique_lock lock(impl_->mutex);
  impl_->put(lock, Event::summary(strip_metadata(serialized, &impl_->tags), step));
}

void FileWriter::add_summary(const runtime::Array& summary, int64_t step) {
  SLUICE_REQUIRE(summary.dtype() == graph::DType::kString, Code::kInvalidArgument,
                 "add_summary takes the string a summary op gives, not ", summary.dtype());
  for (const std::string& s : summary.string_values()) add_summary(s, step);
}

void FileWriter::add_event(Event event) {
  std::unique_lock lock(impl_->mutex);
  impl_->put(lock, std::move(event));
}

void FileWriter::add_graph(const graph::Graph& graph) {
  add_event(Event::graph_def(graph::graph_to_bytes(graph)));
}

void FileWriter::add_meta_graph(const graph::Graph& graph, const graph::MetaGraphInfo& info) {
  add_event(Event::meta_graph_def(graph::meta_graph_to_bytes(graph, info)));
}

void FileWriter::add_run_metadata(const runtime::RunMetadata& metadata, const std::string& tag,
                                  int64_t step) {
  std::string bytes = runtime::io::run_metadata_to_bytes(metadata);
  std::unique_lock lock(impl_->mutex);
  SLUICE_REQUIRE(impl_->run_tags.insert(tag).second, Code::kInvalidArgument,
                 "The provided tag was already used for this event type: '", tag, "'");
  impl_->put(lock, Event::run_metadata(tag, std::move(bytes), step));
}

void FileWriter::add_session_log(SessionLog log, int64_t step) {
  add_event(Event::session(std::move(log), step));
}

void FileWriter::flush() {
  std::unique_lock lock(impl_->mutex);
  impl_->flush(lock);
}

void FileWriter::close() {
  std::unique_lock lock(impl_->mutex);
  impl_->close(lock);
}

void FileWriter::reopen() {
  std::unique_lock lock(impl_->mutex);
  if (impl_->is_closed) impl_->open();
}

bool FileWriter::closed() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->is_closed;
}

const std::string& FileWriter::logdir() const { return impl_->logdir; }

std::string FileWriter::path() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->file ? impl_->file->path() : "";
}

namespace {

struct Cache {
  std::mutex mutex;  // guards writers
  std::map<std::string, std::shared_ptr<FileWriter>> writers;
};

// The process's own: hooks made in different places must find the same file, as in TensorFlow.
Cache& cache() {
  static Cache c;
  return c;
}

}  // namespace

std::shared_ptr<FileWriter> FileWriterCache::get(const std::string& logdir) {
  std::string key = std::filesystem::absolute(logdir).lexically_normal().string();
  while (key.size() > 1 && key.back() == '/') key.pop_back();
  Cache& c = cache();
  std::lock_guard lock(c.mutex);
  if (const auto it = c.writers.find(key); it != c.writers.end()) return it->second;
  auto w = std::make_shared<FileWriter>(logdir);
  c.writers.emplace(std::move(key), w);
  return w;
}

void FileWriterCache::clear() {
  Cache& c = cache();
  std::lock_guard lock(c.mutex);
  for (auto& [key, writer] : c.writers) writer->flush();
  c.writers.clear();
}

}  // namespace sluice::dsl::train
