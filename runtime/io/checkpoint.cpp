#include "runtime/io/checkpoint.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <filesystem>

#include "graph/proto/checkpoint.pb.h"
#include "graph/support/log.h"
#include "graph/support/near.h"
#include "runtime/io/file.h"
#include "runtime/io/v1_tables.h"

namespace sluice::runtime::io {
namespace {

constexpr uint64_t kMaxStateBytes = uint64_t{64} << 20;

class Silent : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber, const std::string& message) override {
    if (first.empty()) first = cat("line ", line + 1, ": ", message);
  }
  std::string first;
};

std::string with_slash(const std::string& directory) {
  if (directory.empty()) return "./";
  return directory.back() == '/' ? directory : directory + "/";
}

std::string relative_to(const std::string& directory, const std::string& path) {
  const std::string base = with_slash(directory);
  if (path.starts_with(base)) return path.substr(base.size());
  if (path.empty() || path[0] == '/') return path;
  if (directory.starts_with("/")) {
    const std::string whole = std::filesystem::absolute(path).lexically_normal().string();
    return whole.starts_with(base) ? whole.substr(base.size()) : whole;
  }
  // Both as seen from the working directory; a reader joins the path to its own name for the directory.
  return std::filesystem::path(path).lexically_relative(base).string();
}

std::string joined(const std::string& directory, const std::string& path) {
  return path.empty() || path[0] == '/' ? path : with_slash(directory) + path;
}

void check_counts(size_t names, size_t specs, size_t others, const char* what) {
  SLUICE_REQUIRE(names == others && (specs == 0 || specs == names), Code::kInvalidArgument, "Got ", names,
                 " tensor names, ", specs, " shape_and_slices and ", others, " ", what,
                 "; the numbers must agree");
}

}  // namespace

void save_tensors(const std::string& prefix, const std::vector<std::string>& names,
                  const std::vector<std::string>& shape_and_slices, const std::vector<Array>& values) {
  check_counts(names.size(), shape_and_slices.size(), values.size(), "tensors");
  BundleWriter writer(prefix);
  for (size_t i = 0; i < names.size(); ++i) {
    const SliceSpec spec = parse_slice_spec(shape_and_slices.empty() ? "" : shape_and_slices[i]);
    if (spec.known)
      writer.add_slice(names[i], spec.full_dims, spec.slice, values[i]);
    else
      writer.add(names[i], values[i]);
  }
  writer.finish();
}

std::vector<Array> restore_tensors(const std::string& prefix, const std::vector<std::string>& names,
                                   const std::vector<std::string>& shape_and_slices,
                                   const std::vector<DType>& dtypes) {
  check_counts(names.size(), shape_and_slices.size(), dtypes.size(), "dtypes");
  const BundleReader reader(prefix);
  std::vector<SliceSpec> specs(names.size());
  std::vector<std::string> known;
  for (const auto& [key, entry] : reader.entries()) known.push_back(key);
  std::string missing, wrong;
  int missing_count = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!shape_and_slices.empty()) specs[i] = parse_slice_spec(shape_and_slices[i]);
    const BundleEntry* e = reader.find(names[i]);
    if (!e) {
      missing += cat(missing.empty() ? "Key " : "; Key ", names[i], " not found in checkpoint.",
                     did_you_mean(names[i], known));
      ++missing_count;
      continue;
    }
    if (e->dtype != base_dtype(dtypes[i]))
      wrong += cat("\ntensor_name = ", names[i], "; expected dtype ", base_dtype(dtypes[i]),
                   " does not equal original dtype ", e->dtype);
    if (specs[i].known && e->dims != specs[i].full_dims)
      wrong += cat("\ntensor_name = ", names[i], "; shape in shape_and_slice spec ",
                   graph::dims_string(specs[i].full_dims),
                   " does not match the shape stored in checkpoint: ", graph::dims_string(e->dims));
  }
  if (missing_count > 0)
    throw_error(Code::kNotFound, cat(prefix, ": ", missing_count, " of ", names.size(),
                                     " tensors are missing: ", missing, wrong));
  SLUICE_REQUIRE(wrong.empty(), Code::kInvalidArgument, prefix, ": ", wrong.substr(1));
  std::vector<Array> out;
  out.reserve(names.size());
  for (size_t i = 0; i < names.size(); ++i)
    out.push_back(specs[i].known ? reader.read_slice(names[i], specs[i].slice) : reader.read(names[i]));
  return out;
}

void write_checkpoint_state(const std::string& directory, const CheckpointState& state,
                            const std::string& file_name, bool relative) {
  auto stored = [&](const std::string& p) {
    return relative ? relative_to(directory, p) : std::filesystem::absolute(p).lexically_normal().string();
  };
  proto::CheckpointState out;
  out.set_model_checkpoint_path(stored(state.model_checkpoint_path));
  for (const auto& p : state.all_model_checkpoint_paths) out.add_all_model_checkpoint_paths(stored(p));
  for (double t : state.timestamps) out.add_all_model_checkpoint_timestamps(t);
  out.set_last_preserved_timestamp(state.last_preserved_timestamp);
  std::string text;
  SLUICE_CHECK(google::protobuf::TextFormat::PrintToString(out, &text), "text printing failed");
  write_file_atomically(with_slash(directory) + file_name, text);
}

std::optional<CheckpointState> read_checkpoint_state(const std::string& directory,
                                                     const std::string& file_name) {
  const std::string path = with_slash(directory) + file_name;
  if (!file_exists(path)) return std::nullopt;
  std::string text;
  try {
    text = read_file(path, kMaxStateBytes);
  } catch (const Error& e) {
    log_warning(path, ": ", e.what(), ": Checkpoint ignored");
    return std::nullopt;
  }
  proto::CheckpointState in;
  Silent errors;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.SetRecursionLimit(100);
  if (!parser.ParseFromString(text, &in) || in.model_checkpoint_path().empty()) {
    log_warning(path, ": ", errors.first.empty() ? "no model_checkpoint_path" : errors.first,
                ": Checkpoint ignored");
    return std::nullopt;
  }
  CheckpointState out;
  out.model_checkpoint_path = joined(directory, in.model_checkpoint_path());
  for (const auto& p : in.all_model_checkpoint_paths())
    out.all_model_checkpoint_paths.push_back(joined(directory, p));
  out.timestamps.assign(in.all_model_checkpoint_timestamps().begin(),
                        in.all_model_checkpoint_timestamps().end());
  out.last_preserved_timestamp = in.last_preserved_timestamp();
  return out;
}

std::string latest_checkpoint(const std::string& directory, const std::string& file_name) {
  const auto state = read_checkpoint_state(directory, file_name);
  return state && checkpoint_exists(state->model_checkpoint_path) ? state->model_checkpoint_path
                                                                  : std::string();
}

bool checkpoint_exists(const std::string& prefix) {
  if (prefix.empty()) return false;
  if (file_exists(prefix + ".index")) return true;
  const std::vector<std::string> v1 = v1_files(prefix);
  return std::any_of(v1.begin(), v1.end(), is_table);
}

}  // namespace sluice::runtime::io
