#pragma once
// What SaveV2 and RestoreV2 do, and the text file `checkpoint` that says which checkpoints a directory holds
// (graph-and-training §7.4, §7.5). Restoring reads and checks every tensor before it returns, so that a
// caller can assign all or none. Any thread; writers of one prefix must not run at the same time.

#include <optional>
#include <string>
#include <vector>

#include "runtime/io/bundle.h"

namespace sluice::runtime::io {

/// Writes the tensors under these names, in this order. `shape_and_slices` has one spec a tensor ("" = whole)
/// or is empty.
void save_tensors(const std::string& prefix, const std::vector<std::string>& names,
                  const std::vector<std::string>& shape_and_slices, const std::vector<Array>& values);

/// Reads them again, with these dtypes. One error names everything missing (NotFound, with near names) or of
/// another type or shape (InvalidArgument "tensor_name = x; expected dtype float does not equal original
/// dtype double").
std::vector<Array> restore_tensors(const std::string& prefix, const std::vector<std::string>& names,
                                   const std::vector<std::string>& shape_and_slices,
                                   const std::vector<DType>& dtypes);

struct CheckpointState {
  std::string model_checkpoint_path;                    // the latest
  std::vector<std::string> all_model_checkpoint_paths;  // oldest to newest, the latest included
  std::vector<double> timestamps;                       // of each of the above; may be empty
  double last_preserved_timestamp = 0;
  bool operator==(const CheckpointState&) const = default;
};

/// Writes `<directory>/<file_name>` atomically. Paths are stored relative to the directory, so that it may be
/// moved; absolute ones that lie elsewhere stay, and with `relative` false all become absolute.
void write_checkpoint_state(const std::string& directory, const CheckpointState& state,
                            const std::string& file_name = "checkpoint", bool relative = true);
/// nullopt when there is none, or (with a warning) when it cannot be read. Relative paths are joined to the
/// directory.
std::optional<CheckpointState> read_checkpoint_state(const std::string& directory,
                                                     const std::string& file_name = "checkpoint");
/// The latest checkpoint's prefix if its index file exists, else "".
std::string latest_checkpoint(const std::string& directory, const std::string& file_name = "checkpoint");
/// True when `<prefix>.index` or a V1 file of that name exists.
bool checkpoint_exists(const std::string& prefix);

}  // namespace sluice::runtime::io
