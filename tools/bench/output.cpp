#include "tools/bench/output.h"

#include <cinttypes>
#include <cstdarg>

#include "graph/support/check.h"

namespace sluice::bench {

namespace {

constexpr const char* kRule = "----------------------------------------------------------------";  // 64

__attribute__((format(printf, 1, 2))) std::string format(const char* pattern, ...) {
  char buffer[512];
  va_list args;
  va_start(args, pattern);
  std::vsnprintf(buffer, sizeof buffer, pattern, args);
  va_end(args);
  return buffer;
}

const char* mode_text(RunMode mode) {
  switch (mode) {
    case RunMode::kTraining:
      return "training";
    case RunMode::kForwardOnly:
      return "forward only";
    case RunMode::kEvaluation:
      return "evaluation";
  }
  return "";
}

const char* optimizer_text(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kSgd:
      return "sgd";
    case OptimizerKind::kMomentum:
      return "momentum";
    case OptimizerKind::kRmsprop:
      return "rmsprop";
    case OptimizerKind::kAdam:
      return "adam";
  }
  return "";
}

// printf writes "-nan" for a NaN with its sign set; Python never does.
double unsigned_nan(double v) { return v != v ? __builtin_nan("") : v; }

}  // namespace

void Output::line(const std::string& text) {
  std::fputs(text.c_str(), out_);
  std::fputc('\n', out_);
  if (flush_) std::fflush(out_);
}

void Output::info_block(const Settings& s) {
  const bool images = s.data == DataSet::kImagenet;
  const double epochs = static_cast<double>(s.num_batches * s.batch) / static_cast<double>(s.examples());
  line(cat("TensorFlow:  ", SLUICE_BENCH_VERSION));
  line(cat("Model:       ", s.model->printed_name));
  line(cat("Dataset:     ", images ? "imagenet" : "fashion_mnist", s.synthetic ? " (synthetic)" : ""));
  line(cat("Mode:        ", mode_text(s.mode)));
  line("SingleSess:  False");
  line(cat("Batch size:  ", s.batch, " global"));
  line(cat("             ", s.batch, " per device"));
  line(cat("Num batches: ", s.num_batches));
  line(format("Num epochs:  %.2f", epochs));
  line("Devices:     ['/cpu:0']");
  line("NUMA bind:   False");
  line(cat("Data format: ", s.format == dsl::models::DataFormat::kNhwc ? "NHWC" : "NCHW"));
  line(cat("Optimizer:   ", optimizer_text(s.optimizer.kind)));
  line("Variables:   parameter_server");
  line("==========");
}

void Output::header(bool accuracies) {
  line(cat("Step\tImg/sec\ttotal_loss", accuracies ? "\ttop_1_accuracy\ttop_5_accuracy" : ""));
}

std::string step_text(const StepReport& r) {
  std::string text = format("%" PRId64 "\timages/sec: %.1f +/- %.1f (jitter = %.1f)\t%.3f", r.step,
                            r.speed.mean, r.speed.uncertainty, r.speed.jitter, unsigned_nan(r.loss));
  if (r.top_1) text += format("\t%.3f\t%.3f", *r.top_1, r.top_5.value_or(0));
  return text;
}

void Output::step(const StepReport& report) { line(step_text(report)); }

void Output::total(double images_per_second) {
  line(kRule);
  line(format("total images/sec: %.2f", images_per_second));
  line(kRule);
}

void Output::eval_progress(int64_t step, double examples_per_second) {
  line(format("%" PRId64 "\t%.1f examples/sec", step, examples_per_second));
}

void Output::accuracy(double top_1, double top_5, int64_t examples) {
  line(format("Accuracy @ 1 = %.4f Accuracy @ 5 = %.4f [%" PRId64 " examples]", top_1, top_5, examples));
}

}  // namespace sluice::bench
