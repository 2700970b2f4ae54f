#include "dsl/train/saver.h"

#include <algorithm>
#include <map>

#include "dsl/ops/array.h"
#include "dsl/ops/control.h"
#include "dsl/require.h"
#include "dsl/train/restore.h"
#include "dsl/train/saver_internal.h"
#include "graph/support/log.h"
#include "passes/emit.h"

namespace sluice::dsl::train {

using graph::ColocateWith;
using graph::ControlDependencies;
using graph::DeviceScope;
using graph::NameScope;
using passes::Emit;

namespace {

double bytes_of(const Variable& v) {
  if (!v.shape().fully_known()) return 1;
  const size_t width = v.dtype() == DType::kString ? 16 : graph::dtype_size(v.dtype());
  return static_cast<double>(graph::num_elements(v.shape().dims())) * static_cast<double>(width) + 1;
}

}  // namespace

std::pair<std::string, std::string> resource_key(const Variable& v) {
  const Node& n = v.node();
  const auto shared = n.attr_or<std::string>("shared_name", "");
  return {n.attr_or<std::string>("container", ""), shared.empty() ? n.name() : shared};
}

Saver::Saver(Graph& g, const SaverOptions& o, Loc loc)
    : g_(g), o_(o), kept_(std::make_unique<Kept>(now_of(o))) {
  SLUICE_REQUIRE_AT(loc, o.write_version == 2, Code::kUnimplemented, "Saver: checkpoints of version ",
                    o.write_version, " are only read; write_version must be 2");
  SLUICE_REQUIRE_AT(
      loc, o.num_shards >= 0 && o.max_to_keep >= 0 && o.keep_checkpoint_every_n_hours > 0,
      Code::kInvalidArgument,
      "Saver: num_shards and max_to_keep can't be negative, keep_checkpoint_every_n_hours must be "
      "positive");
  if (!o.defer_build) build(loc);
}

std::unique_ptr<Saver> Saver::of_graph(Graph& g, const graph::SaverInfo& nodes, const SaverOptions& o) {
  SaverOptions options = o;
  options.defer_build = true;
  options.max_to_keep = std::max(nodes.max_to_keep, 0);
  options.sharded = nodes.sharded;
  if (nodes.keep_checkpoint_every_n_hours > 0)
    options.keep_checkpoint_every_n_hours = nodes.keep_checkpoint_every_n_hours;
  auto saver = std::make_unique<Saver>(g, options);
  saver->filename_ = g.output(nodes.filename_tensor);
  saver->save_tensor_ = g.output(nodes.save_tensor);
  saver->restore_all_ = &g.node(nodes.restore_op);
  saver->built_ = saver->foreign_ = true;
  return saver;
}

Saver::~Saver() {
  try {
    throw_pending();
  } catch (const std::exception& e) {
    log_error("A checkpoint could not be saved: ", e.what());
  }
}

void Saver::build(Loc loc) {
  if (built_) return;
  if (o_.variables) {
    vars_ = *o_.variables;
  } else {
    for (const Variable& v : global_variables(g_)) vars_.emplace_back(saved_name(v), v);
  }
  SLUICE_REQUIRE_AT(loc, !vars_.empty() || o_.allow_empty, Code::kInvalidArgument, "No variables to save");
  sort_and_check(&vars_, loc);
  built_ = true;
  if (!vars_.empty()) add_nodes(loc);
}

// Which variables go to which data file: one for all, one a device, or so many of about the same size.
std::vector<std::vector<Saver::Named>> Saver::shards() const {
  if (o_.num_shards > 1) {
    double total = 0, seen = 0;
    for (const auto& [name, v] : vars_) total += bytes_of(v);
    std::vector<std::vector<Named>> out(static_cast<size_t>(o_.num_shards));
    for (const Named& n : vars_) {
      const double middle = seen + bytes_of(n.second) / 2;
      const auto k = static_cast<size_t>(middle / total * o_.num_shards);
      out[std::min(k, out.size() - 1)].push_back(n);
      seen += bytes_of(n.second);
    }
    std::erase_if(out, [](const auto& s) { return s.empty(); });
    return out;
  }
  if (!o_.sharded) return {vars_};
  std::map<std::string, std::vector<Named>> by_device;
  for (const Named& n : vars_) by_device[n.second.node().device()].push_back(n);
  std::vector<std::vector<Named>> out;
  for (auto& [device, vars] : by_device) out.push_back(std::move(vars));
  return out;
}

void Saver::add_nodes(Loc loc) {
  // Savers are made late: they belong to no open block.
  ControlDependencies outside(g_, ControlDependencies::Clear{});
  NameScope scope(g_, o_.name);
  Emit e{g_, loc};
  {
    NameScope inner(g_, "filename");
    Output input = e.constant(Literal::scalar(o_.filename), "input");
    filename_ = e.op("PlaceholderWithDefault", {input}, inner.scope(),
                     {{"dtype", DType::kString}, {"shape", Shape::scalar()}});
  }
  filename_ = e.op("PlaceholderWithDefault", {filename_}, "Const",
                   {{"dtype", DType::kString}, {"shape", Shape::scalar()}});
  const std::vector<std::vector<Named>> groups = shards();
  if (!o_.sharded && o_.num_shards <= 1) {
    save_tensor_ = with_dependencies({add_save(vars_, filename_, loc)}, Tensor(filename_), {}, loc);
    restore_all_ = add_restore(vars_, "restore_all", loc);
    return;
  }
  // Each group writes a bundle of its own beside the checkpoint; merging them renames the data files.
  Output suffix = e.constant(Literal::scalar("_temp/part"));
  Output temporary = e.op("StringJoin", {filename_, suffix}, {}, {{"N", int64_t{2}}, {"separator", ""}});
  Output count = e.i32(static_cast<int32_t>(groups.size()), "num_shards");
  std::vector<Output> parts;
  std::vector<Node*> saves, restores;
  for (size_t k = 0; k < groups.size(); ++k) {
    NameScope inner(g_, "ShardedFilename");
    Output shard = e.i32(static_cast<int32_t>(k), "shard");
    parts.push_back(e.op("ShardedFilename", {temporary, shard, count}, inner.scope()));
  }
  for (size_t k = 0; k < groups.size(); ++k) saves.push_back(add_save(groups[k], parts[k], loc));
  {
    ControlDependencies written(g_, saves);
    Output all = e.op("Pack", parts, "MergeV2Checkpoints/checkpoint_prefixes");
    Node* merged = &e.node("MergeV2Checkpoints", {all, filename_}, {}, {{"delete_old_dirs", true}});
    ControlDependencies merging(g_, std::vector<Node*>{merged});
    save_tensor_ = e.op("Identity", {filename_});
  }
  for (const auto& group : groups) restores.push_back(add_restore(group, "restore_shard", loc));
  restore_all_ = &group(g_, restores, "restore_all", loc);
}

Node* Saver::add_save(const std::vector<Named>& vars, Output prefix, Loc loc) {
  Emit e{g_, loc};
  std::vector<std::string> names, specs;
  std::vector<Output> values;
  std::vector<DType> dtypes;
  for (const auto& [name, v] : vars) {
    names.push_back(name);
    specs.push_back(slice_spec(v));
    values.push_back(v.is_resource() ? v.snapshot().output() : v.handle());
    dtypes.push_back(v.dtype());
  }
  NameScope scope(g_, "SaveV2");
  std::vector<Output> in{prefix, e.constant(Literal::strings(names), "tensor_names"),
                         e.constant(Literal::strings(specs), "shape_and_slices")};
  in.insert(in.end(), values.begin(), values.end());
  return &e.node("SaveV2", std::move(in), scope.scope(), {{"dtypes", dtypes}});
}

Node* Saver::add_restore(const std::vector<Named>& vars, const std::string& name, Loc loc) {
  Emit e{g_, loc};
  std::vector<std::string> names, specs;
  std::vector<DType> dtypes;
  for (const auto& [key, v] : vars) {
    names.push_back(key);
    specs.push_back(slice_spec(v));
    dtypes.push_back(v.dtype());
  }
  Node* restore = nullptr;
  {
    DeviceScope host(g_, "/device:CPU:0");
    NameScope scope(g_, "RestoreV2");
    Output n = e.constant(Literal::strings(names), "tensor_names");
    Output s = e.constant(Literal::strings(specs), "shape_and_slices");
    restore = &e.node("RestoreV2", {filename_, n, s}, scope.scope(), {{"dtypes", dtypes}});
  }
  std::vector<Node*> assigns;
  for (size_t i = 0; i < vars.size(); ++i) {
    const Variable& v = vars[i].second;
    Output value = restore->output(static_cast<int>(i));
    if (o_.reshape && v.shape().fully_known()) {
      const Shape shape = v.shape();
      std::vector<int32_t> dims;
      for (int64_t d : shape.dims()) dims.push_back(static_cast<int32_t>(d));
      value = e.op("Reshape", {value, e.i32s(dims, "Reshape/shape")});
    }
    if (v.is_resource()) {
      Output held = e.op("Identity", {value});
      assigns.push_back(&e.node("AssignVariableOp", {v.handle(), held}, {}, {{"dtype", v.dtype()}}));
    } else {
      ColocateWith beside(g_, &v.node());
      assigns.push_back(
          &e.node("Assign", {v.handle(), value}, {}, {{"validate_shape", true}, {"use_locking", true}}));
    }
  }
  return &group(g_, assigns, name, loc);
}

graph::SaverInfo Saver::info() const {
  graph::SaverInfo s;
  if (filename_.node) s.filename_tensor = filename_.name();
  if (save_tensor_.node) s.save_tensor = save_tensor_.name();
  if (restore_all_) s.restore_op = restore_all_->name();
  s.max_to_keep = o_.max_to_keep;
  s.sharded = o_.sharded || o_.num_shards > 1;
  s.keep_checkpoint_every_n_hours = static_cast<float>(o_.keep_checkpoint_every_n_hours);
  return s;
}

}  // namespace sluice::dsl::train
