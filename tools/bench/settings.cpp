#include "tools/bench/settings.h"

#include <algorithm>
#include <filesystem>

#include "graph/support/check.h"
#include "graph/support/file.h"
#include "graph/support/near.h"
#include "runtime/data/image_set.h"
#include "runtime/data/imagenet.h"
#include "tools/bench/flag_table.h"

namespace sluice::bench {

namespace {

namespace fs = std::filesystem;

std::string lower(std::string_view text) {
  std::string low(text);
  std::transform(low.begin(), low.end(), low.begin(), [](unsigned char c) { return std::tolower(c); });
  return low;
}

bool unset(const std::optional<std::string>& text) { return !text || text->empty(); }

template <class... Parts>
void demand(bool condition, const Parts&... parts) {
  SLUICE_REQUIRE(condition, Code::kInvalidArgument, parts...);
}

// A word of a closed set, as an index into it.
int choose(std::string_view flag, std::string_view value, std::initializer_list<std::string_view> legal) {
  int i = 0;
  std::string list;
  for (std::string_view l : legal) {
    if (l == value) return i;
    list += cat(i++ ? ", " : "", l);
  }
  throw_error(Code::kInvalidArgument, cat("flag --", flag, "=", value, ": must be one of ", list));
}

// Data set by name or folder (benchmark-tool §2.2); the string "None" is unset (§23, 1).
void resolve_data(const Params& p, Settings& s) {
  std::string name = lower(p.data_name);
  const bool has_dir = !unset(p.data_dir);
  if (name == "none" || name.empty()) {
    name = "imagenet";
    if (has_dir) {
      const std::string dir = lower(*p.data_dir);
      if (dir.find("imagenet") != std::string::npos) {
        name = "imagenet";
      } else if (dir.find("cifar10") != std::string::npos) {
        name = "cifar10";
      } else if (dir.find("fashion_mnist") != std::string::npos ||
                 dir.find("fashion-mnist") != std::string::npos) {
        name = "fashion_mnist";
      } else {
        demand(false, "Could not identify name of dataset. Please specify with --data_name option.");
      }
    }
  }
  demand(name != "cifar10",
         "flag --data_name=cifar10 is not available: the CIFAR-10 reader is not built yet");
  demand(name == "imagenet" || name == "fashion_mnist" || name == "synthetic",
         "Unknown dataset. Must be one of imagenet, cifar10, fashion_mnist, synthetic; --data_name is '",
         p.data_name, "'");
  s.data = name == "fashion_mnist" ? DataSet::kFashionMnist : DataSet::kImagenet;
  s.synthetic = name == "synthetic" || (name == "imagenet" && !has_dir);
  if (s.synthetic) return;
  s.data_dir = has_dir ? *p.data_dir : runtime::data::kFashionMnistDir;
}

void resolve_model(const Params& p, Settings& s) {
  s.model = dsl::models::find_model(p.model);
  if (s.model != nullptr) return;
  std::vector<std::string> names;
  std::string list;
  for (const auto& m : dsl::models::all_models()) {
    names.emplace_back(m.name);
    list += cat(list.empty() ? "" : ", ", m.name);
  }
  demand(false, "Invalid model name '", p.model, "' for dataset '",
         s.data == DataSet::kImagenet ? "imagenet" : "fashion_mnist", "'", ".", did_you_mean(p.model, names),
         " Known models: ", list);
}

void check_ranges(const Params& p) {
  demand(p.batch_size >= 0, "flag --batch_size=", p.batch_size,
         ": must not be negative; 0 takes the model's default");
  demand(p.num_batches > 0, "flag --num_batches=", p.num_batches, ": must be positive");
  demand(p.display_every > 0, "flag --display_every=", p.display_every, ": must be positive");
  demand(!p.num_warmup_batches || *p.num_warmup_batches >= 0,
         "flag --num_warmup_batches=", p.num_warmup_batches.value_or(0), ": must not be negative");
  demand(p.num_intra_threads >= 0, "flag --num_intra_threads=", p.num_intra_threads,
         ": must not be negative");
  demand(p.num_inter_threads >= 0, "flag --num_inter_threads=", p.num_inter_threads,
         ": must not be negative");
  demand(!p.num_epochs || *p.num_epochs > 0, "flag --num_epochs=", p.num_epochs.value_or(0),
         ": must be positive");
  demand(!p.gradient_clip || *p.gradient_clip >= 0, "flag --gradient_clip=", p.gradient_clip.value_or(0),
         ": must not be negative");
  demand(p.tf_random_seed >= INT32_MIN && p.tf_random_seed <= INT32_MAX,
         "flag --tf_random_seed=", p.tf_random_seed, ": must fit 32 bits");
}

void check_schedule(const Params& p) {
  const bool rate = p.learning_rate.value_or(0) != 0;
  const bool epochs = p.num_epochs_per_decay != 0, factor = p.learning_rate_decay_factor != 0;
  demand(!(epochs || factor) || (rate && epochs && factor),
         "If one of num_epochs_per_decay or learning_rate_decay_factor is set, both must be set"
         "and learning_rate must be set");
  demand(p.minimum_learning_rate == 0 || (rate && epochs && factor),
         "minimum_learning_rate requires learning_rate,num_epochs_per_decay, and "
         "learning_rate_decay_factor to be set");
}

void check_variable_update(const Params& p) {
  demand(!p.staged_vars || p.variable_update == "parameter_server",
         "staged_vars for now is only supported with variable_update=parameter_server");
  const std::string& v = p.variable_update;
  demand(v == "parameter_server" || v == "replicated" || v == "independent" ||
             v == "distributed_replicated" || v == "distributed_all_reduce",
         "Invalid variable_update: ", v);
  demand(p.job_name.empty() || p.job_name == "ps" || p.job_name == "worker" || p.job_name == "controller",
         "unrecognized job name: ", p.job_name, " (flag --job_name)");
}

void check_built(const Params& p) {
  std::string text;
  for (const FlagSpec& f : flag_table()) {
    if (f.klass != FlagClass::kRefused || is_default(f, p)) continue;
    text += cat(text.empty() ? "" : "\n", "flag --", f.name, "=", value_text(f, p),
                " is not available: ", f.reason);
  }
  demand(text.empty(), text);
}

void check_device(const Params& p) {
  const std::string device = lower(p.device.value_or("cpu"));
  demand(device == "cpu" || device == "gpu", "flag --device=", *p.device, ": must be one of cpu, gpu");
  demand(device == "cpu", "flag --device=gpu: there is no GPU that this build can use; take --device=cpu");
  const std::string holder = lower(p.local_parameter_device);
  demand(holder == "cpu" || holder == "gpu", "flag --local_parameter_device=", p.local_parameter_device,
         ": must be one of cpu, gpu");
}

// What cannot be written at the end is said at the start.
void check_writable(std::string_view flag, const std::string& value, const std::string& file) {
  try {
    require_writable(file);
  } catch (const Error& e) {
    throw Error(e.code(), cat("flag --", flag, "=", value, ": ", e.message()));
  }
}

void check_paths(const Params& p, const Settings& s) {
  if (s.mode == RunMode::kEvaluation) demand(!unset(p.train_dir), "Trained model directory not specified");
  std::error_code ignored;
  for (const auto& [flag, path] : {std::pair{"graph_file", s.graph_file}, {"trace_file", s.trace_file}}) {
    if (path.empty()) continue;
    const fs::path parent = fs::absolute(path, ignored).parent_path();
    SLUICE_REQUIRE(fs::is_directory(parent, ignored), Code::kNotFound, "flag --", flag, "=", path,
                   ": there is no folder ", parent.string());
    demand(!fs::is_directory(path, ignored), "flag --", flag, "=", path, ": is a folder");
    check_writable(flag, path, path);
  }
  if (!s.train_dir.empty() && s.mode == RunMode::kTraining) {
    // The nearest folder that is there already is the one that must take new entries.
    fs::path folder = fs::absolute(s.train_dir, ignored).lexically_normal();
    while (!fs::exists(folder, ignored) && folder.has_parent_path() && folder != folder.parent_path())
      folder = folder.parent_path();
    demand(fs::is_directory(folder, ignored), "flag --train_dir=", s.train_dir, ": ", folder.string(),
           " is not a folder");
    check_writable("train_dir", s.train_dir, (folder / "parameters.json").string());
  } else if (!s.train_dir.empty() && fs::exists(s.train_dir, ignored)) {
    demand(fs::is_directory(s.train_dir, ignored), "flag --train_dir=", s.train_dir, ": is not a folder");
  }
  if (s.mode == RunMode::kEvaluation)
    SLUICE_REQUIRE(fs::is_directory(s.train_dir, ignored), Code::kNotFound, "flag --train_dir=", s.train_dir,
                   ": there is no such folder");
  if (s.synthetic) return;
  SLUICE_REQUIRE(s.data == DataSet::kFashionMnist || fs::is_directory(s.data_dir, ignored), Code::kNotFound,
                 "flag --data_dir=", s.data_dir, ": there is no such folder");
  const bool training = s.mode != RunMode::kEvaluation;
  if (s.data == DataSet::kFashionMnist) {
    runtime::data::check_fashion_mnist(s.data_dir, training);
    if (s.eval_after_training) runtime::data::check_fashion_mnist(s.data_dir, false);
  } else {
    runtime::data::imagenet_files(s.data_dir, training);
    if (s.eval_after_training) runtime::data::imagenet_files(s.data_dir, false);
  }
}

void resolve_steps(const CommandLine& line, Settings& s) {
  const Params& p = line.params;
  s.batch = p.batch_size > 0 ? p.batch_size : s.model->batch_size;
  demand(!(p.num_epochs && line.given.count("num_batches")),
         "At most one of --num_batches and --num_epochs may be specified.");
  s.num_batches = p.num_epochs ? steps_of_epochs(*p.num_epochs, s.examples(), s.batch) : p.num_batches;
  s.whole_set = !line.given.count("num_batches") && !p.num_epochs;
  s.warmup_batches = s.mode == RunMode::kEvaluation ? 0 : p.num_warmup_batches.value_or(10);
  if (s.whole_set && s.mode == RunMode::kEvaluation && s.synthetic) {
    // Synthetic images have no end; the default count of steps stands.
    s.whole_set = false;
  } else if (s.whole_set && s.mode == RunMode::kEvaluation) {
    s.num_batches = (s.examples() + s.batch - 1) / s.batch;
  }
  s.display_every = p.display_every;
}

OptimizerSettings resolve_optimizer(const Params& p) {
  OptimizerSettings o;
  const int kind = [&] {
    constexpr std::string_view kNames[] = {"sgd", "momentum", "rmsprop", "adam"};
    for (int i = 0; i < 4; ++i)
      if (p.optimizer == kNames[i]) return i;
    throw_error(Code::kInvalidArgument,
                cat("Optimizer \"", p.optimizer,
                    "\" was not recognized; --optimizer takes sgd, momentum, rmsprop, adam"));
  }();
  o.kind = static_cast<OptimizerKind>(kind);
  o.momentum = p.momentum;
  o.rmsprop_decay = p.rmsprop_decay;
  o.rmsprop_momentum = p.rmsprop_momentum;
  o.rmsprop_epsilon = p.rmsprop_epsilon;
  if (p.learning_rate.value_or(0) != 0) o.learning_rate = p.learning_rate;
  o.epochs_per_decay = p.num_epochs_per_decay;
  o.decay_factor = p.learning_rate_decay_factor;
  o.minimum_rate = p.minimum_learning_rate;
  o.gradient_clip = p.gradient_clip;
  o.weight_decay = p.weight_decay;
  return o;
}

void resolve_preprocess(const Params& p, Settings& s) {
  using namespace runtime::data;
  s.preprocess.height = s.preprocess.width = s.model->image_size;
  demand(p.resize_method != "crop",
         "flag --resize_method=crop: no such method; take nearest, bilinear, bicubic, area or round_robin");
  s.preprocess.resize = static_cast<ResizeChoice>(
      choose("resize_method", p.resize_method, {"nearest", "bilinear", "bicubic", "area", "round_robin"}));
  s.preprocess.eval_method =
      static_cast<EvalMethod>(choose("eval_method", p.eval_method, {"vgg", "inception"}));
  s.preprocess.distort_color = p.distortions;
  s.preprocess.color_in_yiq = p.distort_color_in_yiq;
  s.preprocess.fuse_decode_and_crop = p.fuse_decode_and_crop;
}

}  // namespace

int64_t dataset_examples(DataSet data, bool training) {
  if (data == DataSet::kFashionMnist) return training ? 60000 : 10000;
  return training ? 1281167 : 50000;
}

int64_t Settings::examples() const { return dataset_examples(data, mode != RunMode::kEvaluation); }

int64_t steps_of_epochs(double epochs, int64_t examples, int64_t batch) {
  return static_cast<int64_t>(epochs * static_cast<double>(examples) + static_cast<double>(batch) - 1) /
         batch;
}

Settings resolve(const CommandLine& line) {
  const Params& p = line.params;
  Settings s;
  s.mode = p.eval ? RunMode::kEvaluation : p.forward_only ? RunMode::kForwardOnly : RunMode::kTraining;
  resolve_data(p, s);
  resolve_model(p, s);
  check_device(p);
  check_schedule(p);
  check_variable_update(p);
  demand(!(p.eval && p.forward_only), "Only one of forward_only and eval parameters is true");
  demand(!p.eval_after_training || s.mode == RunMode::kTraining,
         "--eval_after_training needs a training run, without --eval and --forward_only");
  check_ranges(p);
  check_built(p);
  s.optimizer = resolve_optimizer(p);
  resolve_preprocess(p, s);
  if (p.data_format)
    s.format = static_cast<dsl::models::DataFormat>(choose("data_format", *p.data_format, {"NHWC", "NCHW"}));
  s.print_accuracy = p.print_training_accuracy || s.mode == RunMode::kForwardOnly;
  s.eval_after_training = p.eval_after_training;
  s.flush_stdout = p.flush_stdout;
  s.intra_threads = static_cast<int>(p.num_intra_threads);
  s.inter_threads = static_cast<int>(p.num_inter_threads);
  s.winograd = p.winograd_nonfused;
  s.seed = p.tf_random_seed;
  s.train_dir = p.train_dir.value_or("");
  s.graph_file = p.graph_file.value_or("");
  s.trace_file = p.trace_file.value_or("");
  resolve_steps(line, s);
  check_paths(p, s);
  return s;
}

std::vector<std::string> neutral_notes(const Params& p) {
  std::vector<std::string> notes;
  for (const FlagSpec& f : flag_table())
    if (f.klass == FlagClass::kNeutral && !is_default(f, p))
      notes.push_back(cat("flag --", f.name, "=", value_text(f, p), " changes nothing: ", f.reason));
  for (const char* name : {"kmp_blocktime", "kmp_affinity", "kmp_settings"}) {
    const FlagSpec& f = *find_flag(name);
    std::string variable(name);
    std::transform(variable.begin(), variable.end(), variable.begin(),
                   [](unsigned char c) { return std::toupper(c); });
    if (p.mkl) {
      notes.push_back(cat("exported ", variable, "=", value_text(f, p),
                          "; not applied: the threading library here does not read it"));
    } else if (!is_default(f, p)) {
      notes.push_back(cat("flag --", name, "=", value_text(f, p), " not applied: it needs --mkl"));
    }
  }
  return notes;
}

}  // namespace sluice::bench
