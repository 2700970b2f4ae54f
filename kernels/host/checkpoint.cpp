// SaveV2, RestoreV2 and MergeV2Checkpoints on V2 checkpoints.

#include <cstring>
#include <filesystem>

#include "kernels/host/input_array.h"
#include "kernels/reference/register.h"
#include "runtime/io/bundle.h"

namespace sluice::kernels {
namespace {

namespace io = runtime::io;

// (prefix, names, shape_and_slices, tensors…)
void save(KernelRun& r) {
  const std::vector<std::string>&names = r.in_array(1).string_values(),
        &specs = r.in_array(2).string_values();
  const int tensors = r.num_inputs() - 3;
  SLUICE_REQUIRE(names.size() == static_cast<size_t>(tensors) && specs.size() == names.size(),
                 Code::kInvalidArgument, "SaveV2 got ", names.size(), " names and ", specs.size(),
                 " slice specs for ", tensors, " tensors");
  io::BundleWriter writer(scalar_string(r, 0));
  for (size_t k = 0; k < names.size(); ++k) {
    const Array value = input_array(r, static_cast<int>(k) + 3);
    const io::SliceSpec spec = io::parse_slice_spec(specs[k]);
    if (spec.known)
      writer.add_slice(names[k], spec.full_dims, spec.slice, value);
    else
      writer.add(names[k], value);
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
    // Everything that is missing is said at once.
    std::string missing;
    int absent = 0;
    for (const std::string& name : names) {
      if (reader.find(name)) continue;
      try {
        reader.get(name);
      } catch (const Error& e) {
        missing += cat(absent++ ? "\n" : "", e.message());
      }
    }
    if (absent > 1) missing += cat("\n", absent, " keys are missing from ", reader.prefix());
    SLUICE_REQUIRE(absent == 0, Code::kNotFound, missing);
    for (size_t k = 0; k < names.size(); ++k) {
      const int output = static_cast<int>(k);
      const io::BundleEntry& entry = reader.get(names[k]);
      const DType wanted =
          k < dtypes.size() ? graph::base_dtype(dtypes[k]) : graph::base_dtype(r.out_dtype(output));
      SLUICE_REQUIRE(entry.dtype == wanted, Code::kInvalidArgument, "tensor_name = ", names[k],
                     "; expected dtype ", wanted, " does not equal original dtype ", entry.dtype);
      const io::SliceSpec slice = io::parse_slice_spec(specs[k]);
      if (!slice.known) {
        put(r, output, reader.read(names[k]));
        continue;
      }
      SLUICE_REQUIRE(slice.full_dims == entry.dims, Code::kInvalidArgument, "tensor_name = ", names[k],
                     "; shape in shape_and_slice spec ", dims_string(slice.full_dims),
                     " does not match the shape stored in checkpoint: ", dims_string(entry.dims));
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
    namespace fs = std::filesystem;
    io::BundleWriter writer(destination);
    for (const std::string& part : parts) {
      const io::BundleReader reader(part);
      for (const auto& [name, entry] : reader.entries()) {
        if (name.empty()) continue;
        if (entry.slices.empty()) writer.add(name, reader.read(name));
        for (const io::TensorSlice& s : entry.slices)
          writer.add_slice(name, entry.dims, s, reader.read_slice(name, io::resolve_slice(s, entry.dims)));
      }
    }
    writer.finish();
    for (const std::string& part : parts) {
      if (part == destination) continue;
      std::error_code ignored;
      const fs::path dir = fs::path(part).parent_path();
      const std::string stem = fs::path(part).filename().string();
      std::vector<fs::path> old;
      for (const auto& file : fs::directory_iterator(dir.empty() ? "." : dir, ignored)) {
        const std::string name = file.path().filename().string();
        if (name == stem + ".index" || name.starts_with(stem + ".data-")) old.push_back(file.path());
      }
      for (const fs::path& file : old) fs::remove(file, ignored);
      if (delete_old && !dir.empty() && dir != fs::path(destination).parent_path() &&
          fs::is_empty(dir, ignored))
        fs::remove(dir, ignored);
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
