#include "dsl/train/saver.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "dsl/ops/array.h"
#include "dsl/ops/control.h"
#include "dsl/require.h"
#include "graph/support/log.h"
#include "passes/emit.h"
#include "runtime/io/checkpoint.h"

namespace sluice::dsl::train {

using graph::ColocateWith;
using graph::DeviceScope;
using graph::NameScope;
using passes::Emit;

namespace {

std::string directory_of(const std::string& prefix) {
  std::string d = std::filesystem::path(prefix).parent_path().string();
  return d.empty() ? "." : d;
}

void remove_checkpoint(const std::string& path) {
  std::error_code ignored;
  for (const char* suffix : {".index", ".data-00000-of-00001", ".meta"}) {
    std::filesystem::remove(path + suffix, ignored);
  }
}

}  // namespace

Saver::Saver(Graph& g, const SaverOptions& o, Loc loc) : g_(g), o_(o) {
  std::vector<std::pair<std::string, Variable>> vars;
  if (o.variables) {
    vars = *o.variables;
  } else {
    for (const Variable& v : global_variables(g)) vars.emplace_back(v.name(), v);
  }
  SLUICE_REQUIRE_AT(loc, !vars.empty(), Code::kInvalidArgument, "No variables to save");
  std::sort(vars.begin(), vars.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 1; i < vars.size(); ++i) {
    SLUICE_REQUIRE_AT(loc, vars[i - 1].first != vars[i].first, Code::kInvalidArgument,
                      "At least two variables have the same name: ", vars[i].first);
  }
  NameScope scope(g, o.name);
  Emit e{g, loc};
  {
    NameScope inner(g, "filename");
    Output input = e.constant(Literal::scalar("model"), "input");
    filename_ = e.op("PlaceholderWithDefault", {input}, inner.scope(),
                     {{"dtype", DType::kString}, {"shape", Shape::scalar()}});
  }
  filename_ = e.op("PlaceholderWithDefault", {filename_}, "Const",
                   {{"dtype", DType::kString}, {"shape", Shape::scalar()}});
  add_save(vars, loc);
  add_restore(vars, loc);
}

void Saver::add_save(const std::vector<std::pair<std::string, Variable>>& vars, Loc loc) {
  Emit e{g_, loc};
  std::vector<std::string> names;
  std::vector<Output> values;
  std::vector<DType> dtypes;
  for (const auto& [name, v] : vars) {
    names.push_back(name);
    values.push_back(v.is_resource() ? v.snapshot().output() : v.handle());
    dtypes.push_back(v.dtype());
  }
  Node* save = nullptr;
  {
    NameScope scope(g_, "SaveV2");
    std::vector<std::string> whole(names.size());
    std::vector<Output> in{filename_, e.constant(Literal::strings(names), "tensor_names"),
                           e.constant(Literal::strings(whole), "shape_and_slices")};
    in.insert(in.end(), values.begin(), values.end());
    save = &e.node("SaveV2", std::move(in), scope.scope(), {{"dtypes", dtypes}});
  }
  save_tensor_ = with_dependencies({save}, Tensor(filename_), {}, loc);
}

void Saver::add_restore(const std::vector<std::pair<std::string, Variable>>& vars, Loc loc) {
  Emit e{g_, loc};
  std::vector<std::string> names;
  std::vector<DType> dtypes;
  for (const auto& [name, v] : vars) {
    names.push_back(name);
    dtypes.push_back(v.dtype());
  }
  Node* restore = nullptr;
  {
    DeviceScope host(g_, "/device:CPU:0");
    NameScope scope(g_, "RestoreV2");
    Output n = e.constant(Literal::strings(names), "tensor_names");
    Output s = e.constant(Literal::strings(std::vector<std::string>(names.size())), "shape_and_slices");
    restore = &e.node("RestoreV2", {filename_, n, s}, scope.scope(), {{"dtypes", dtypes}});
  }
  std::vector<Node*> assigns;
  for (size_t i = 0; i < vars.size(); ++i) {
    const Variable& v = vars[i].second;
    Output value = restore->output(static_cast<int>(i));
    if (v.is_resource()) {
      Output held = e.op("Identity", {value});
      assigns.push_back(&e.node("AssignVariableOp", {v.handle(), held}, {}, {{"dtype", v.dtype()}}));
    } else {
      ColocateWith beside(g_, &v.node());
      assigns.push_back(
          &e.node("Assign", {v.handle(), value}, {}, {{"validate_shape", true}, {"use_locking", true}}));
    }
  }
  restore_all_ = &group(g_, assigns, "restore_all", loc);
}

graph::SaverInfo Saver::info() const {
  graph::SaverInfo s;
  s.filename_tensor = filename_.name();
  s.save_tensor = save_tensor_.name();
  s.restore_op = restore_all_->name();
  s.max_to_keep = o_.max_to_keep;
  return s;
}

std::string Saver::save(runtime::Session& session, const std::string& prefix,
                        std::optional<int64_t> global_step) {
  std::string path = global_step ? cat(prefix, "-", *global_step) : prefix;
  std::string directory = directory_of(path);
  SLUICE_REQUIRE(std::filesystem::is_directory(directory), Code::kNotFound, "Saver::save: the directory '",
                 directory, "' of '", path, "' does not exist");
  session.run({save_tensor_}, {{filename_, runtime::Array::strings({}, {path})}});
  if (o_.write_meta_graph) {
    graph::MetaGraphInfo meta;
    meta.saver = info();
    graph::write_meta_graph_file(g_, meta, path + ".meta");
  }
  keep(path);
  return path;
}

// Enters the new checkpoint in the state file, and deletes the oldest beyond max_to_keep.
void Saver::keep(const std::string& path) {
  std::string directory = directory_of(path);
  if (directory_ != directory) {
    // Checkpoints of an earlier process count as well.
    kept_.clear(), times_.clear(), directory_ = directory;
    if (auto state = runtime::io::read_checkpoint_state(directory)) {
      for (const std::string& p : state->all_model_checkpoint_paths) {
        if (runtime::io::checkpoint_exists(p)) kept_.push_back(p), times_.push_back(0);
      }
      if (state->timestamps.size() == state->all_model_checkpoint_paths.size() &&
          kept_.size() == state->timestamps.size()) {
        times_ = state->timestamps;
      }
    }
  }
  auto same = [&](const std::string& p) {
    return std::filesystem::path(p).lexically_normal() == std::filesystem::path(path).lexically_normal();
  };
  for (size_t i = kept_.size(); i-- > 0;) {
    if (same(kept_[i])) {
      kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(i));
      times_.erase(times_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  kept_.push_back(path);
  auto now = std::chrono::system_clock::now().time_since_epoch();
  times_.push_back(std::chrono::duration<double>(now).count());
  std::vector<std::string> old;
  while (o_.max_to_keep > 0 && kept_.size() > static_cast<size_t>(o_.max_to_keep)) {
    old.push_back(kept_.front());
    kept_.erase(kept_.begin());
    times_.erase(times_.begin());
  }
  runtime::io::CheckpointState state;
  state.model_checkpoint_path = path;
  state.all_model_checkpoint_paths = kept_;
  state.timestamps = times_;
  runtime::io::write_checkpoint_state(directory, state);
  // Only now: were the order reversed, a crash could leave a state file that names deleted files.
  for (const std::string& p : old) remove_checkpoint(p);
}

void Saver::restore(runtime::Session& session, const std::string& path) {
  SLUICE_REQUIRE(!path.empty() && runtime::io::checkpoint_exists(path), Code::kNotFound,
                 "The passed save_path is not a valid checkpoint: ", path);
  log_info("Restoring parameters from ", path);
  session.run({}, {{filename_, runtime::Array::strings({}, {path})}}, {restore_all_});
}

std::string latest_checkpoint(const std::string& directory) {
  return runtime::io::latest_checkpoint(directory);
}

}  // namespace sluice::dsl::train
