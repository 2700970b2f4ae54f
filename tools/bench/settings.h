#pragma once
// What a run does, with every choice made: the checked meaning of Params. The benchmark sees this only; flag
// texts end in `resolve`. A plain value.

#include <cstdint>
#include <optional>
#include <string>

#include "dsl/models/registry.h"
#include "runtime/data/preprocess.h"
#include "tools/bench/flags.h"

namespace sluice::bench {

enum class RunMode { kTraining, kForwardOnly, kEvaluation };
enum class DataSet { kImagenet, kFashionMnist };
enum class OptimizerKind { kSgd, kMomentum, kRmsprop, kAdam };

struct OptimizerSettings {
  OptimizerKind kind = OptimizerKind::kSgd;
  double momentum = 0.9;
  double rmsprop_decay = 0.9, rmsprop_momentum = 0.9, rmsprop_epsilon = 1.0;
  std::optional<double> learning_rate;  // none: the model's own
  double epochs_per_decay = 0, decay_factor = 0, minimum_rate = 0;
  std::optional<double> gradient_clip;
  double weight_decay = 0;
};

struct Settings {
  const dsl::models::ModelSpec* model = nullptr;
  RunMode mode = RunMode::kTraining;
  bool print_accuracy = false;
  bool eval_after_training = false;
  bool flush_stdout = false;

  DataSet data = DataSet::kImagenet;
  bool synthetic = true;
  std::string data_dir;  // of real data
  runtime::data::PreprocessOptions preprocess;

  int64_t batch = 0;
  int64_t num_batches = 100;  // timed steps, or evaluation steps when `whole_set` is false
  bool whole_set = false;     // evaluation reads every example once
  int64_t warmup_batches = 10;
  int64_t display_every = 10;

  dsl::models::DataFormat format = dsl::models::DataFormat::kNhwc;
  int intra_threads = 0, inter_threads = 0;
  bool winograd = true;
  int64_t seed = 1234;
  std::string train_dir, graph_file, trace_file;  // "" : none

  OptimizerSettings optimizer;

  /// Examples of the subset that the mode reads, by the data set's published size.
  int64_t examples() const;
  /// Logits of the last layer, background included.
  int classes() const { return data == DataSet::kImagenet ? 1001 : 11; }
  int channels() const { return data == DataSet::kImagenet ? 3 : 1; }
};

/// Checks the values in benchmark-tool §3's order and resolves defaults. Throws InvalidArgument (NotFound for
/// a path) with the text for the user; every such error is the command line's fault, exit code 2.
Settings resolve(const CommandLine& line);

/// One line a flag that was given a value and changes nothing, or is exported for another library.
std::vector<std::string> neutral_notes(const Params& params);

/// Examples of a data set's training or evaluation subset.
int64_t dataset_examples(DataSet data, bool training);

/// Steps that `epochs` of `examples` take: int(epochs·examples + batch − 1) / batch.
int64_t steps_of_epochs(double epochs, int64_t examples, int64_t batch);

}  // namespace sluice::bench
