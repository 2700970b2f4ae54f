#include "tools/bench/flag_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <type_traits>
#include <vector>

#include "graph/support/check.h"

namespace sluice::bench {

namespace {

using enum FlagClass;
using G = FlagGroup;
using P = Params;

constexpr std::string_view kNoTowers = "several towers in one process are not built yet";
constexpr std::string_view kNoCluster = "clusters of processes are not built yet";
constexpr std::string_view kNoHalf = "half precision is not built yet";
constexpr std::string_view kNoEvents = "summaries and event files are not built yet";
constexpr std::string_view kNoGpu = "this build has no GPU support";

const FlagSpec kFlags[] = {
    // General.
    {"model", G::kGeneral, kEffect, &P::model, "Network to run; an unknown name lists the known ones."},
    {"eval", G::kGeneral, kEffect, &P::eval,
     "Evaluate the newest checkpoint of --train_dir instead of benchmarking."},
    {"eval_interval_secs", G::kGeneral, kRefused, &P::eval_interval_secs,
     "Seconds between evaluations of newer checkpoints; 0 evaluates once.",
     "repeated evaluation is not built yet"},
    {"forward_only", G::kGeneral, kEffect, &P::forward_only,
     "Run the forward pass only: no loss, no gradient, no update."},
    {"print_training_accuracy", G::kGeneral, kEffect, &P::print_training_accuracy,
     "Compute and print top-1 and top-5 accuracy of each training batch."},
    {"batch_size", G::kGeneral, kEffect, &P::batch_size,
     "Images per device and step; 0 takes the model's default."},
    {"batch_group_size", G::kGeneral, kRefused, &P::batch_group_size,
     "Batches that the image producer prepares in one go.", "grouped preprocessing is not built yet"},
    {"num_batches", G::kGeneral, kEffect, &P::num_batches, "Timed steps, warm-up not counted."},
    {"num_warmup_batches", G::kGeneral, kEffect, &P::num_warmup_batches,
     "Untimed steps before timing starts; unset: 10 or more."},
    {"autotune_threshold", G::kGeneral, kRefused, &P::autotune_threshold,
     "Timing trials for each kernel candidate; also lengthens the default warm-up.",
     "timed kernel candidates are not built yet"},
    {"num_gpus", G::kGeneral, kRefused, &P::num_gpus, "Number of towers, one a device.", kNoTowers},
    {"gpu_indices", G::kGeneral, kRefused, &P::gpu_indices,
     "Order of the devices in a reduction ring, comma separated.", kNoTowers},
    {"display_every", G::kGeneral, kEffect, &P::display_every, "Print progress every this many steps."},
    {"moving_average_decay", G::kGeneral, kRefused, &P::moving_average_decay,
     "Decay of the moving average kept of each weight.", "averaged weights are not built yet"},
    // Data.
    {"data_dir", G::kData, kEffect, &P::data_dir,
     "Folder with the data set (ImageNet: TFRecord files). Unset: synthetic images."},
    {"data_name", G::kData, kEffect, &P::data_name,
     "Data set: imagenet, cifar10, fashion_mnist or synthetic. Unset: guessed from --data_dir."},
    {"data_subset", G::kData, kRefused, &P::data_subset, "Subset whose size counts as an epoch.",
     "another subset than the one the run mode reads is not built yet"},
    {"resize_method", G::kData, kEffect, &P::resize_method,
     "How images are brought to the network's size: nearest, bilinear, bicubic, area, or round_robin, which "
     "alternates by position in the batch."},
    {"eval_method", G::kData, kEffect, &P::eval_method,
     "How evaluation images are cropped and resized: vgg or inception."},
    {"distortions", G::kData, kEffect, &P::distortions, "Distort the colours of training images."},
    {"use_datasets", G::kData, kRefused, &P::use_datasets,
     "Use the data-set pipeline; false: the older shuffling record reader.",
     "the older record reader is not built yet"},
    {"cache_data", G::kData, kRefused, &P::cache_data,
     "Read one record, keep it and repeat it for ever: preprocessing without input.",
     "the one-record pipeline is not built yet"},
    {"local_parameter_device", G::kData, kNeutral, &P::local_parameter_device,
     "Device that holds shared parameters: cpu or gpu.",
     "with one device the parameters live where they are used"},
    {"device", G::kData, kEffect, &P::device, "Device that computes: cpu or gpu. Unset: the best one here."},
    {"data_format", G::kData, kEffect, &P::data_format,
     "Order of image dimensions in the graph: NHWC or NCHW. Unset: NHWC on a CPU, NCHW on a GPU."},
    {"num_intra_threads", G::kData, kEffect, &P::num_intra_threads,
     "Threads inside one operation; 0: measured, 1: one thread."},
    {"num_inter_threads", G::kData, kEffect, &P::num_inter_threads,
     "Operations that may run at the same time; 0: the system's choice."},
    {"trace_file", G::kData, kEffect, &P::trace_file,
     "Write a trace of the last warm-up step here, in Chrome's JSON."},
    {"graph_file", G::kData, kEffect, &P::graph_file,
     "Write the graph here; as text when the name ends in txt."},
    // Optimizer.
    {"optimizer", G::kOptimizer, kEffect, &P::optimizer, "sgd, momentum (Nesterov), rmsprop or adam."},
    {"learning_rate", G::kOptimizer, kEffect, &P::learning_rate,
     "Initial learning rate; unset or 0: the model's own."},
    {"num_epochs_per_decay", G::kOptimizer, kEffect, &P::num_epochs_per_decay,
     "Epochs after which the learning rate is multiplied by the decay factor; 0: never."},
    {"learning_rate_decay_factor", G::kOptimizer, kEffect, &P::learning_rate_decay_factor,
     "Factor applied every --num_epochs_per_decay epochs; 0: no decay."},
    {"minimum_learning_rate", G::kOptimizer, kEffect, &P::minimum_learning_rate,
     "The learning rate never decays below this."},
    {"momentum", G::kOptimizer, kEffect, &P::momentum, "Momentum of the momentum optimizer."},
    {"rmsprop_decay", G::kOptimizer, kEffect, &P::rmsprop_decay, "RMSProp's decay."},
    {"rmsprop_momentum", G::kOptimizer, kEffect, &P::rmsprop_momentum, "RMSProp's momentum."},
    {"rmsprop_epsilon", G::kOptimizer, kEffect, &P::rmsprop_epsilon, "RMSProp's epsilon, inside the root."},
    {"gradient_clip", G::kOptimizer, kEffect, &P::gradient_clip,
     "Clamp every gradient element to plus or minus this; unset: off."},
    {"weight_decay", G::kOptimizer, kEffect, &P::weight_decay, "Factor of the L2 term of the loss."},
    {"label_smoothing", G::kOptimizer, kRefused, &P::label_smoothing,
     "Share of the target spread evenly over all classes.", "smoothed labels are not built yet"},
    // Miscellaneous.
    {"gpu_memory_frac_for_testing", G::kMisc, kRefused, &P::gpu_memory_frac_for_testing,
     "Fraction of the GPU's memory to use; 0: all.", kNoGpu},
    {"use_tf_layers", G::kMisc, kNeutral, &P::use_tf_layers,
     "Which of two implementations of the layers to build.", "there is one implementation of the layers"},
    {"tf_random_seed", G::kMisc, kEffect, &P::tf_random_seed, "Graph-level random seed."},
    // Tuning.
    {"winograd_nonfused", G::kTuning, kEffect, &P::winograd_nonfused,
     "Allow Winograd convolutions; false: direct ones only."},
    {"sync_on_finish", G::kTuning, kNeutral, &P::sync_on_finish, "Wait for the devices after each step.",
     "a step returns only when its device is done"},
    {"staged_vars", G::kTuning, kRefused, &P::staged_vars,
     "Stage variables one step ahead of the computation.", "staging is not built yet"},
    {"force_gpu_compatible", G::kTuning, kNeutral, &P::force_gpu_compatible,
     "Allocate host buffers pinned for a GPU.", "without a GPU no buffer needs pinning"},
    {"xla", G::kTuning, kRefused, &P::xla, "Spend extra effort on compiling and tuning the plan.",
     "the compiler for loop regions is not built yet"},
    {"fuse_decode_and_crop", G::kTuning, kEffect, &P::fuse_decode_and_crop,
     "Decode only the crop window of a JPEG."},
    {"distort_color_in_yiq", G::kTuning, kEffect, &P::distort_color_in_yiq,
     "Distort saturation and hue in YIQ space instead of HSV."},
    // MKL.
    {"mkl", G::kMkl, kEnvironment, &P::mkl, "Export the settings below for the threading library."},
    {"kmp_blocktime", G::kMkl, kEnvironment, &P::kmp_blocktime,
     "Milliseconds a thread spins after a parallel region before it sleeps."},
    {"kmp_affinity", G::kMkl, kEnvironment, &P::kmp_affinity, "Binding of threads to processors."},
    {"kmp_settings", G::kMkl, kEnvironment, &P::kmp_settings, "1: the library prints its settings."},
    // Half precision.
    {"use_fp16", G::kHalf, kRefused, &P::use_fp16, "Use 16-bit floats for activations.", kNoHalf},
    {"fp16_loss_scale", G::kHalf, kRefused, &P::fp16_loss_scale,
     "Factor on the loss before, and off the gradients after, differentiation.", kNoHalf},
    {"fp16_vars", G::kHalf, kRefused, &P::fp16_vars, "Keep variables in 16-bit floats too.", kNoHalf},
    // Variables and cluster.
    {"variable_update", G::kVariables, kRefused, &P::variable_update,
     "How variables are kept and updated: parameter_server, replicated, independent, distributed_replicated, "
     "distributed_all_reduce.",
     "only parameter_server is built yet"},
    {"all_reduce_spec", G::kVariables, kRefused, &P::all_reduce_spec,
     "Algorithms that reduce gradients, by size: alg[#shards][/alg][:limit:spec].", kNoTowers},
    {"job_name", G::kVariables, kRefused, &P::job_name,
     "Role in a cluster: ps, worker, controller; empty: local.", kNoCluster},
    {"ps_hosts", G::kVariables, kRefused, &P::ps_hosts, "Parameter servers, host:port, comma separated.",
     kNoCluster},
    {"worker_hosts", G::kVariables, kRefused, &P::worker_hosts, "Workers, host:port, comma separated.",
     kNoCluster},
    {"controller_host", G::kVariables, kRefused, &P::controller_host, "Host that drives all workers.",
     kNoCluster},
    {"task_index", G::kVariables, kRefused, &P::task_index, "Index of this task within its job.", kNoCluster},
    {"server_protocol", G::kVariables, kRefused, &P::server_protocol, "Transport between processes.",
     kNoCluster},
    {"cross_replica_sync", G::kVariables, kRefused, &P::cross_replica_sync,
     "Replicas wait for each other at every step.", kNoCluster},
    // Summaries and checkpoints.
    {"summary_verbosity", G::kFiles, kRefused, &P::summary_verbosity,
     "0: no summaries; 1: scalars; 2: gradient histogram; 3: everything.", kNoEvents},
    {"save_summaries_steps", G::kFiles, kRefused, &P::save_summaries_steps,
     "Steps between summaries; 0: none.", kNoEvents},
    {"save_model_secs", G::kFiles, kRefused, &P::save_model_secs,
     "Seconds between checkpoints; 0: only the last.", "periodic checkpoints are not built yet"},
    {"train_dir", G::kFiles, kEffect, &P::train_dir,
     "Folder for checkpoints and parameters.json; a checkpoint found there is restored."},
    {"eval_dir", G::kFiles, kRefused, &P::eval_dir, "Folder for the event files of evaluations.", kNoEvents},
    {"ckpt_scope", G::kFiles, kRefused, &P::ckpt_scope, "Rename variables on restore, current:checkpoint.",
     "renaming on restore is not built yet"},
    {"result_storage", G::kFiles, kRefused, &P::result_storage, "Where to store the result.",
     "result stores are not built yet"},
    // The tool's own.
    {"num_epochs", G::kTool, kEffect, &P::num_epochs, "Timed epochs, instead of --num_batches."},
    {"eval_after_training", G::kTool, kEffect, &P::eval_after_training,
     "Evaluate the trained variables at the end, in the same process."},
    {"flush_stdout", G::kTool, kEffect, &P::flush_stdout, "Flush after every printed line."},
};

constexpr size_t kToolFlags = 3;
const Params kDefaults{};

template <class T>
T parse_number(const FlagSpec& flag, std::string_view text) {
  T value{};
  std::string_view body = !text.empty() && text[0] == '+' ? text.substr(1) : text;
  auto r = std::from_chars(body.data(), body.data() + body.size(), value);
  SLUICE_REQUIRE(r.ec == std::errc() && r.ptr == body.data() + body.size() && !body.empty(),
                 Code::kInvalidArgument, "flag --", flag.name, "=", text, ": not ",
                 std::is_integral_v<T> ? "an integer" : "a number");
  return value;
}

bool parse_bool(const FlagSpec& flag, std::string_view text) {
  std::string low(text);
  std::transform(low.begin(), low.end(), low.begin(), [](unsigned char c) { return std::tolower(c); });
  if (low == "true" || low == "t" || low == "1") return true;
  if (low == "false" || low == "f" || low == "0") return false;
  throw_error(Code::kInvalidArgument,
              cat("flag --", flag.name, "=", text, ": not a boolean; say true, false, t, f, 1 or 0"));
}

}  // namespace

std::span<const FlagSpec> flag_table() { return kFlags; }

std::span<const FlagSpec> seed_flags() {
  return std::span<const FlagSpec>(kFlags).first(std::size(kFlags) - kToolFlags);
}

const FlagSpec* find_flag(std::string_view name) {
  for (const FlagSpec& f : kFlags)
    if (f.name == name) return &f;
  return nullptr;
}

std::string_view group_title(FlagGroup group) {
  switch (group) {
    case G::kGeneral:
      return "Model, run mode, batch and step counts";
    case G::kData:
      return "Data, preprocessing, placement, threads, dumps";
    case G::kOptimizer:
      return "Optimizer, schedule, loss";
    case G::kMisc:
      return "Miscellaneous";
    case G::kTuning:
      return "Performance tuning";
    case G::kMkl:
      return "Threading library";
    case G::kHalf:
      return "Half precision";
    case G::kVariables:
      return "Variables, all-reduce, cluster";
    case G::kFiles:
      return "Summaries and checkpoints";
    case G::kTool:
      return "This tool";
  }
  return "";
}

bool is_boolean(const FlagSpec& flag) { return std::holds_alternative<bool Params::*>(flag.field); }

std::string_view type_name(const FlagSpec& flag) {
  constexpr std::array<std::string_view, 7> kNames = {"boolean", "integer", "float", "string",
                                                      "integer", "float",   "string"};
  return kNames[flag.field.index()];
}

std::string value_text(const FlagSpec& flag, const Params& params) {
  return std::visit(
      [&](auto field) -> std::string {
        const auto& v = params.*field;
        if constexpr (requires { v.has_value(); }) {
          return v ? cat(*v) : "None";
        } else {
          return cat(v);
        }
      },
      flag.field);
}

bool is_default(const FlagSpec& flag, const Params& params) {
  return std::visit([&](auto field) { return params.*field == kDefaults.*field; }, flag.field);
}

void copy_value(const FlagSpec& flag, const Params& from, Params& to) {
  std::visit([&](auto field) { to.*field = from.*field; }, flag.field);
}

void set_value(const FlagSpec& flag, std::string_view text, Params& params) {
  std::visit(
      [&](auto field) {
        using F = std::remove_reference_t<decltype(params.*field)>;
        if constexpr (std::is_same_v<F, bool>) {
          params.*field = parse_bool(flag, text);
        } else if constexpr (std::is_same_v<F, int64_t> || std::is_same_v<F, std::optional<int64_t>>) {
          params.*field = parse_number<int64_t>(flag, text);
        } else if constexpr (std::is_same_v<F, double> || std::is_same_v<F, std::optional<double>>) {
          double v = parse_number<double>(flag, text);
          SLUICE_REQUIRE(std::isfinite(v), Code::kInvalidArgument, "flag --", flag.name, "=", text,
                         ": not a finite number");
          params.*field = v;
        } else {
          params.*field = std::string(text);
        }
      },
      flag.field);
}

}  // namespace sluice::bench
