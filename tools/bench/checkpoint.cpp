#include "tools/bench/checkpoint.h"

#include <filesystem>
#include <set>

#include "graph/support/check.h"
#include "graph/support/log.h"
#include "runtime/io/bundle.h"
#include "runtime/io/checkpoint.h"

namespace sluice::bench {

namespace {

void check_fits(const std::vector<dsl::Variable>& variables, const std::string& prefix) {
  const runtime::io::BundleReader reader(prefix);
  std::string missing, unfit, surplus;
  size_t surplus_count = 0;
  std::set<std::string_view> names;
  for (const dsl::Variable& v : variables) {
    names.insert(v.name());
    const runtime::io::BundleEntry* entry = reader.find(v.name());
    if (entry == nullptr) {
      missing += cat(missing.empty() ? "" : ", ", v.name());
    } else if (entry->dtype != v.dtype() || !v.shape().compatible(graph::Shape(entry->dims))) {
      unfit += cat(unfit.empty() ? "" : "; ", v.name(), " is ", v.dtype(), v.shape(), " in the graph and ",
                   entry->dtype, graph::dims_string(entry->dims), " in the checkpoint");
    }
  }
  for (const auto& [name, entry] : reader.entries()) {
    if (names.count(name)) continue;
    if (++surplus_count <= 3) surplus += cat(surplus.empty() ? "" : ", ", name);
  }
  SLUICE_REQUIRE(missing.empty(), Code::kNotFound, "Restoring from checkpoint failed. ", prefix,
                 " lacks the keys: ", missing);
  SLUICE_REQUIRE(unfit.empty(), Code::kInvalidArgument, "Restoring from checkpoint failed. ", prefix,
                 " does not fit the graph: ", unfit);
  if (surplus_count > 0)
    log_info(prefix, " holds ", surplus_count, " tensors that the graph does not use: ", surplus,
             surplus_count > 3 ? ", …" : "");
}

}  // namespace

std::string latest_checkpoint(const std::string& train_dir) {
  const std::string prefix = dsl::train::latest_checkpoint(train_dir);
  SLUICE_REQUIRE(!prefix.empty(), Code::kNotFound, "Checkpoint not found in ", train_dir);
  return prefix;
}

Checkpointer::Checkpointer(ModelGraph& model) : model_(model), saver_(model.graph) {}

int64_t Checkpointer::step(runtime::Session& session) const {
  return session.run({model_.global_step.snapshot()})[0].item<int64_t>();
}

void Checkpointer::save(runtime::Session& session, const std::string& train_dir) {
  std::filesystem::create_directories(train_dir);
  saver_.save(session, (std::filesystem::path(train_dir) / "model.ckpt").string(), step(session));
}

void Checkpointer::restore(runtime::Session& session, const std::string& prefix) {
  check_fits(dsl::global_variables(model_.graph), prefix);
  saver_.restore(session, prefix);
}

int64_t Checkpointer::restore_latest(runtime::Session& session, const std::string& train_dir) {
  const std::string prefix = dsl::train::latest_checkpoint(train_dir);
  if (prefix.empty()) return 0;
  restore(session, prefix);
  const int64_t at = step(session);
  log_info("resuming from ", prefix, " at step ", at);
  return at;
}

}  // namespace sluice::bench
