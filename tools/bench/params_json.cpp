#include "tools/bench/params_json.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "graph/support/check.h"
#include "graph/support/file.h"
#include "tools/bench/flag_table.h"

namespace sluice::bench {

namespace {

using nlohmann::ordered_json;
namespace fs = std::filesystem;

ordered_json to_json(const FlagSpec& flag, const Params& params) {
  return std::visit(
      [&](auto field) -> ordered_json {
        const auto& v = params.*field;
        if constexpr (requires { v.has_value(); }) {
          return v ? ordered_json(*v) : ordered_json(nullptr);
        } else {
          return v;
        }
      },
      flag.field);
}

void from_json(const FlagSpec& flag, const ordered_json& json, Params& params) {
  if (json.is_null()) {
    copy_value(flag, Params{}, params);
  } else {
    set_value(flag, json.is_string() ? json.get<std::string>() : json.dump(), params);
  }
}

// Where the training run's value holds for its evaluation too.
constexpr std::string_view kTakenOver[] = {"model",       "data_dir",        "data_name",   "num_gpus",
                                           "data_format", "label_smoothing", "weight_decay"};

}  // namespace

std::string params_path(const std::string& train_dir) {
  return (fs::path(train_dir) / "parameters.json").string();
}

void save_params(const Params& params, const std::string& train_dir) {
  ordered_json all = ordered_json::object();
  for (const FlagSpec& f : seed_flags()) all[std::string(f.name)] = to_json(f, params);
  std::error_code error;
  fs::create_directories(train_dir, error);
  write_file_atomically(params_path(train_dir), all.dump(4) + "\n");
}

bool load_params(const std::string& train_dir, CommandLine& line) {
  const std::string path = params_path(train_dir);
  std::ifstream in(path);
  if (!in) return false;
  const ordered_json all = ordered_json::parse(in, nullptr, false);
  SLUICE_REQUIRE(all.is_object(), Code::kDataLoss, path, " is not a JSON object of parameters");
  for (const auto& [key, value] : all.items()) {
    const FlagSpec* flag = find_flag(key);
    SLUICE_REQUIRE(flag != nullptr && flag->group != FlagGroup::kTool, Code::kInvalidArgument, path,
                   " has an unknown parameter '", key, "'");
    const bool wanted = std::find(std::begin(kTakenOver), std::end(kTakenOver), key) != std::end(kTakenOver);
    if (wanted && !line.given.count(key)) from_json(*flag, value, line.params);
  }
  return true;
}

}  // namespace sluice::bench
