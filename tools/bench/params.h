#pragma once
// The values of sluice-bench's flags, one field a flag under the flag's own name, and nothing else: what the
// command line or a parameters.json says, before any meaning is given to it. Defaults are the seed's, with
// decisions #6, #7 and #13 where they differ. `Settings` (settings.h) is what the benchmark itself reads. A
// plain value.

#include <cstdint>
#include <optional>
#include <string>

namespace sluice::bench {

struct Params {
  // Model, run mode, batch and step counts.
  std::string model = "trivial";
  bool eval = false;
  int64_t eval_interval_secs = 0;
  bool forward_only = false;
  bool print_training_accuracy = false;
  int64_t batch_size = 0;
  int64_t batch_group_size = 1;
  int64_t num_batches = 100;
  std::optional<int64_t> num_warmup_batches;
  std::optional<int64_t> autotune_threshold;
  int64_t num_gpus = 1;
  std::string gpu_indices;
  int64_t display_every = 10;
  std::optional<double> moving_average_decay;

  // Data, preprocessing, placement, threads, dumps.
  std::optional<std::string> data_dir;
  std::string data_name = "None";
  std::string data_subset = "train";
  std::string resize_method = "bilinear";
  std::string eval_method = "vgg";
  bool distortions = true;
  bool use_datasets = true;
  bool cache_data = false;
  std::string local_parameter_device = "gpu";
  std::optional<std::string> device;
  std::optional<std::string> data_format;
  int64_t num_intra_threads = 0;
  int64_t num_inter_threads = 0;
  std::optional<std::string> trace_file;
  std::optional<std::string> graph_file;

  // Optimizer, schedule, loss.
  std::string optimizer = "sgd";
  std::optional<double> learning_rate;
  double num_epochs_per_decay = 0;
  double learning_rate_decay_factor = 0;
  double minimum_learning_rate = 0;
  double momentum = 0.9;
  double rmsprop_decay = 0.9;
  double rmsprop_momentum = 0.9;
  double rmsprop_epsilon = 1.0;
  std::optional<double> gradient_clip;
  double weight_decay = 0.00004;
  double label_smoothing = 0.0;

  // Miscellaneous.
  double gpu_memory_frac_for_testing = 0;
  bool use_tf_layers = true;
  int64_t tf_random_seed = 1234;

  // Performance tuning.
  bool winograd_nonfused = true;
  bool sync_on_finish = false;
  bool staged_vars = false;
  bool force_gpu_compatible = true;
  bool xla = false;
  bool fuse_decode_and_crop = true;
  bool distort_color_in_yiq = false;

  // MKL.
  bool mkl = false;
  int64_t kmp_blocktime = 30;
  std::string kmp_affinity = "granularity=fine,verbose,compact,1,0";
  int64_t kmp_settings = 1;

  // Half precision.
  bool use_fp16 = false;
  std::optional<double> fp16_loss_scale;
  bool fp16_vars = false;

  // Variables, all-reduce, cluster.
  std::string variable_update = "parameter_server";
  std::optional<std::string> all_reduce_spec;
  std::string job_name;
  std::string ps_hosts;
  std::string worker_hosts;
  std::optional<std::string> controller_host;
  int64_t task_index = 0;
  std::string server_protocol = "grpc";
  bool cross_replica_sync = true;

  // Summaries and checkpoints.
  int64_t summary_verbosity = 0;
  int64_t save_summaries_steps = 0;
  int64_t save_model_secs = 0;
  std::optional<std::string> train_dir;
  std::string eval_dir = "/tmp/tf_cnn_benchmarks/eval";
  std::optional<std::string> ckpt_scope;
  std::optional<std::string> result_storage;

  // The tool's own: not among the seed's 74 and not in parameters.json.
  std::optional<double> num_epochs;
  bool eval_after_training = false;
  bool flush_stdout = false;
};

}  // namespace sluice::bench
