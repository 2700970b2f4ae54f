#pragma once
// What the parts of Saver share: the snapshot that a save writes, and its directory under a lock. Private to
// dsl/train.

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "dsl/train/save_directory.h"
#include "dsl/train/saver.h"
#include "runtime/io/slice.h"

namespace sluice::dsl::train {

/// Everything a save needs, so that it can be written while steps run.
struct Saver::Snapshot {
  struct Item {
    std::string name;
    runtime::io::SliceSpec slice;
    int shard = 0;
    // Shared with the variable until an update gives that one a copy; dropped once written.
    std::shared_ptr<const runtime::VariableBuffer> value;
  };
  std::string path;
  std::vector<Item> items;
  std::vector<std::pair<std::string, runtime::Array>> resume;
  int num_shards = 1;
  std::shared_ptr<const std::string> meta;  // null: none is written
  SaveCall call;
};

struct Saver::Kept {
  explicit Kept(double now) : directory(now) {}
  mutable std::mutex mutex;  // guards directory
  SaveDirectory directory;
};

inline double now_of(const SaverOptions& o) {
  if (o.clock) return o.clock();
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace sluice::dsl::train
