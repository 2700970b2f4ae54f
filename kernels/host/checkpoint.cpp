// SaveV2, RestoreV2 and MergeV2Checkpoints on V2 checkpoints.

#include <cstring>
#include <filesystem>

#include "kernels/host/input_array.h"
#include "kernels/reference/register.h"
#include "runtime/io/bundle.h"

namespace sluice::kernels {
namespace {

namespace io = runtime::io;

// Sharded savers write their parts to "<checkpoint>_temp…/part-…", a directory that nobody else makes.
void make_temporary_directory(const std::string& prefix) {
  const std::filesystem::path dir = std::filesystem::path(prefix).parent_path();
  std::error_code why;
  if (dir.filename().string().find("_temp") != std::string::npos) std::filesystem::create_directory(dir, why);
}

// (prefix, names, shape_and_slices, tensors…)
void save(KernelRun& r) {
  const std::vector<std::string>&names = r.in_array(1).string_values(),
        &specs = r.in_array(2).string_values();
  const int tensors = r.num_inputs() - 3;
  SLUICE_REQUIRE(names.size() == static_cast<size_t>(tensors) && specs.size() == names.size(),
                 Code::kInvalidArgument, "SaveV2 got ", names.size(), " names and ", specs.size(),
                 " slice specs for ", tensors, " tensors");
  const std::string& prefix = scalar_string(r, 0);
  make_temporary_directory(prefix);
  io::BundleWriter writer(prefix);
  for (size_t k = 0; k < names.size(); ++k) {
    // Borrowed: the step waits for the file.
    const int input = static_cast<int>(k) + 3;
    io::TensorView view{.dtype = graph::base_dtype(r.in_dtype(input)), .dims = r.in_dims(input)};
    if (view.dtype == DType::kString)
      view.strings = &r.in_array(input).string_values();
    else
      view.data = r.in_data(input);
    const io::SliceSpec spec = io::parse_slice_spec(specs[k]);
    if (spec.known)
      writer.add_slice(names[k], spec.full_dims, spec.slice, view);
    else
      writer.add(names[k], view);
  }
  writer.finish();
}

void put(const KernelRun& r, int output, const Array& value) {
  const DType to = graph::base_dtype(r.out_dtype(output));
  const Array typed = value.dtype() == to ? value : value.cast(to);
  if (r.out_is_array(output)) {
    r.out_array(output) = typed;
    return;
  }
  SLUICE_REQUIRE(typed.dims() == r.out_dims(output), Code::kInvalidArgument, "the checkpoint holds shape ",
                 dims_string(typed.dims()), " where ", dims_string(r.out_dims(output)), " was expected");
  if (typed.bytes() > 0) std::memcpy(r.out_data(output), typed.data(), typed.bytes());
}

// (prefix, names, shape_and_slices)
BoundFn restore(const KernelSpec& spec) {
  const auto dtypes = spec.attr_or<std::vector<DType>>("dtypes", {});
  return [dtypes](KernelRun& r) {
    const std::vector<std::string>&names = r.in_array(1).string_values(),
          &specs = r.in_array(2).string_values();
    SLUICE_REQUIRE(names.size() == static_cast<size_t>(r.num_outputs()) && specs.size() == names.size(),
                   Code::kInvalidArgument, "RestoreV2 got ", names.size(), " names and ", specs.size(),
                   " slice specs for ", r.num_outputs(), " outputs");
    const io::BundleReader reader(scalar_string(r, 0));
    // Everything that is missing or of another type is said at once, before anything is read.
    std::string missing, wrong;
    int absent = 0;
    for (size_t k = 0; k < names.size(); ++k) {
      const io::BundleEntry* e = reader.find(names[k]);
      if (!e) {
        try {
          reader.get(names[k]);
        } catch (const Error& error) {
          missing += cat(absent++ ? "\n" : "", error.message());
        }
        continue;
      }
      const DType wanted = k < dtypes.size() ? graph::base_dtype(dtypes[k])
                                             : graph::base_dtype(r.out_dtype(static_cast<int>(k)));
      if (e->dtype != wanted)
        wrong += cat("\ntensor_name = ", names[k], "; expected dtype ", wanted,
                     " does not equal original dtype ", e->dtype);
      const io::SliceSpec slice = io::parse_slice_spec(specs[k]);
      if (slice.known && slice.full_dims != e->dims)
        wrong += cat("\ntensor_name = ", names[k], "; shape in shape_and_slice spec ",
                     dims_string(slice.full_dims),
                     " does not match the shape stored in checkpoint: ", dims_string(e->dims));
    }
    if (absent > 1) missing += cat("\n", absent, " keys are missing from ", reader.prefix());
    SLUICE_REQUIRE(absent == 0, Code::kNotFound, missing, wrong);
    SLUICE_REQUIRE(wrong.empty(), Code::kInvalidArgument, wrong.substr(wrong.empty() ? 0 : 1));
    for (size_t k = 0; k < names.size(); ++k) {
      const int output = static_cast<int>(k);
      const io::SliceSpec slice = io::parse_slice_spec(specs[k]);
      if (!slice.known) {
        put(r, output, reader.read(names[k]));
        continue;
      }
      put(r, output, reader.read_slice(names[k], io::resolve_slice(slice.slice, slice.full_dims)));
    }
  };
}

// (prefixes, destination): one checkpoint of all tensors; the parts go away.
BoundFn merge(const KernelSpec& spec) {
  const bool delete_old = spec.attr_or<bool>("delete_old_dirs", true);
  return [delete_old](KernelRun& r) {
    const std::vector<std::string>& parts = r.in_array(0).string_values();
    const std::string& destination = scalar_string(r, 1);
    io::merge_bundles(parts, destination);
    if (!delete_old) return;
    namespace fs = std::filesystem;
    const fs::path kept = fs::path(destination).parent_path();
    for (const std::string& part : parts) {
      const fs::path dir = fs::path(part).parent_path();
      std::error_code ignored;
      if (!dir.empty() && dir != kept && fs::is_empty(dir, ignored)) fs::remove(dir, ignored);
    }
  };
}

}  // namespace

void register_host_checkpoint(KernelRegistry& r) {
  add(r, "SaveV2", save);
  add_bound(r, "RestoreV2", restore);
  add_bound(r, "MergeV2Checkpoints", merge);
}

}  // namespace sluice::kernels
