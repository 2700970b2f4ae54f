#pragma once
// State that outlives a step: variables, random streams, and other named resources, keyed (container, name).
// Owned by a session. Every object here is safe for concurrent runs: look-ups take the manager's mutex, a
// variable its own.

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/array.h"

namespace sluice::runtime {

/// Bytes of a variable in the layout the plans chose. A reader holds a reference for as long as it looks; a
/// writer that finds itself the only holder writes in place, otherwise it installs a copy (so a read never
/// changes under its reader).
struct VariableBuffer {
  VariableBuffer(ValueSpec s) : spec(std::move(s)), buffer(spec.bytes()) {}
  ValueSpec spec;
  Buffer buffer;
  std::optional<Array> strings;  // the value of a string variable; `buffer` is then empty
};

class Variable {
 public:
  explicit Variable(std::string name, DType dtype) : name_(std::move(name)), dtype_(dtype) {}
  const std::string& name() const { return name_; }
  DType dtype() const { return dtype_; }

  /// Null when uninitialised. The result stays valid and unchanged while held.
  std::shared_ptr<const VariableBuffer> read() const;
  bool initialized() const;
  /// Shape, layout of the current value; nullopt when uninitialised.
  std::optional<ValueSpec> spec() const;
  /// Changes with shape, layout and being initialised, not with the value; plans compare it. Cheap.
  uint64_t spec_hash() const { return spec_hash_.load(std::memory_order_acquire); }
  /// A row-major copy (or share) of the value; FailedPrecondition with TF's text when uninitialised.
  Array value() const;
  /// Installs a value given in row-major order, converted to `layout`.
  void assign(const Array& value, const Layout& layout = {});
  /// Takes ownership of a filled buffer.
  void install(std::shared_ptr<VariableBuffer> buffer);
  void clear();
  /// Counts assignments and updates; copies kept elsewhere in other layouts compare it.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }

  /// Exclusive access for an update: the buffer to write (unshared; a copy is made when a reader holds it),
  /// kept locked until the guard goes. FailedPrecondition when uninitialised.
  class WriteGuard {
   public:
    explicit WriteGuard(Variable& v);
    ~WriteGuard();  // counts the version up
    WriteGuard(const WriteGuard&) = delete;
    WriteGuard& operator=(const WriteGuard&) = delete;
    VariableBuffer& buffer() { return *v_.value_; }

   private:
    Variable& v_;
    std::unique_lock<std::mutex> lock_;
  };

  /// Layout the first training plan asked for; the next assign uses it.
  void set_preferred_layout(Layout layout);
  Layout preferred_layout() const;

 private:
  const std::string name_;
  const DType dtype_;
  mutable std::mutex mutex_;  // guards value_ and preferred_
  std::shared_ptr<VariableBuffer> value_;
  Layout preferred_;
  std::atomic<uint64_t> version_{0}, spec_hash_{0};
};

/// One random op's stream: the 128-bit block counter that the next run starts from.
struct RandomStream {
  std::mutex mutex;  // guards counter
  uint64_t counter[2] = {0, 0};
  uint64_t key = 0, key2 = 0;  // seed, seed2 as drawn or given
  bool seeded = false;
};

class ResourceManager {
 public:
  /// Creates on first use; InvalidArgument when it exists with another dtype.
  std::shared_ptr<Variable> variable(const std::string& container, const std::string& name, DType dtype);
  std::shared_ptr<Variable> find_variable(const std::string& container, const std::string& name) const;
  /// Every variable, sorted by name.
  std::vector<std::shared_ptr<Variable>> variables() const;
  std::shared_ptr<RandomStream> stream(const std::string& node_name);
  /// Any other resource; `make` runs once.
  std::shared_ptr<void> get_or_create(const std::string& kind, const std::string& name,
                                      const std::function<std::shared_ptr<void>()>& make);

 private:
  mutable std::mutex mutex_;  // guards the maps
  std::map<std::pair<std::string, std::string>, std::shared_ptr<Variable>> variables_;
  std::map<std::string, std::shared_ptr<RandomStream>> streams_;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<void>> others_;
};

}  // namespace sluice::runtime
