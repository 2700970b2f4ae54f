#include "tools/bench/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "graph/support/check.h"
#include "tools/bench/flag_table.h"
#include "tools/bench/settings.h"

namespace sluice::bench {
namespace {

using testing::HasSubstr;

Params parse(std::vector<std::string> arguments) { return parse_command_line(arguments).params; }

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.code() == Code::kInvalidArgument || e.code() == Code::kNotFound, true) << e.what();
    return e.message();
  }
  ADD_FAILURE() << "no error";
  return "";
}

std::string refusal(std::vector<std::string> arguments) {
  return error_of([&] { resolve(parse_command_line(arguments)); });
}

TEST(FlagTable, HasTheSeedsSeventyFour) {
  EXPECT_EQ(seed_flags().size(), 74u);
  std::set<std::string_view> names;
  for (const FlagSpec& f : flag_table()) {
    EXPECT_TRUE(names.insert(f.name).second) << f.name;
    EXPECT_FALSE(f.help.empty()) << f.name;
    EXPECT_EQ(f.reason.empty(), f.klass == FlagClass::kEffect || f.klass == FlagClass::kEnvironment)
        << f.name;
    EXPECT_TRUE(is_default(f, Params{})) << f.name;
  }
}

TEST(FlagTable, DefaultsAreTheSeeds) {
  auto text = [](const char* name) { return value_text(*find_flag(name), Params{}); };
  EXPECT_EQ(text("model"), "trivial");
  EXPECT_EQ(text("num_batches"), "100");
  EXPECT_EQ(text("data_name"), "None");
  EXPECT_EQ(text("weight_decay"), "4e-05");
  EXPECT_EQ(text("rmsprop_epsilon"), "1");
  EXPECT_EQ(text("kmp_affinity"), "granularity=fine,verbose,compact,1,0");
  EXPECT_EQ(text("eval_dir"), "/tmp/tf_cnn_benchmarks/eval");
  EXPECT_EQ(text("train_dir"), "None");
  EXPECT_EQ(text("num_intra_threads"), "0");
}

TEST(Flags, EveryFlagReadsItsValueBack) {
  for (const FlagSpec& f : flag_table()) {
    const std::string value = is_boolean(f) ? (value_text(f, Params{}) == "true" ? "false" : "true")
                              : type_name(f) == "integer" ? "7"
                              : type_name(f) == "float"   ? "0.625"
                                                          : "word";
    const Params p = parse({cat("--", f.name, "=", value)});
    EXPECT_EQ(value_text(f, p), value) << f.name;
    EXPECT_FALSE(is_default(f, p)) << f.name;
    for (const FlagSpec& other : flag_table())
      EXPECT_TRUE(&other == &f || is_default(other, p)) << f.name << " changed " << other.name;
  }
}

TEST(Flags, Syntax) {
  EXPECT_EQ(parse({"--batch_size", "8"}).batch_size, 8);
  EXPECT_EQ(parse({"--gradient_clip", "-1"}).gradient_clip, -1.0);
  EXPECT_EQ(parse({"--batch_size=8", "--batch_size=9"}).batch_size, 9);
  EXPECT_TRUE(parse({"--eval"}).eval);
  EXPECT_FALSE(parse({"--nodistortions"}).distortions);
  for (const char* yes : {"true", "t", "1", "True"}) EXPECT_TRUE(parse({cat("--eval=", yes)}).eval);
  for (const char* no : {"false", "f", "0", "False"})
    EXPECT_FALSE(parse({cat("--distortions=", no)}).distortions);
  EXPECT_EQ(parse({"--data_dir="}).data_dir, "");
  EXPECT_EQ(parse({"--data_dir=a=b"}).data_dir, "a=b");
  EXPECT_FALSE(parse({"--num_warmup_batches=0"}).num_warmup_batches == std::nullopt);
}

TEST(Flags, MistakesAreNamed) {
  EXPECT_THAT(error_of([] { parse({"--batchsize=8"}); }), HasSubstr("Did you mean '--batch_size'"));
  EXPECT_THAT(error_of([] { parse({"--nodistortion"}); }), HasSubstr("--nodistortions"));
  EXPECT_THAT(error_of([] { parse({"-model=lenet"}); }), HasSubstr("--model"));
  EXPECT_THAT(error_of([] { parse({"--num_batches=ten"}); }), HasSubstr("--num_batches=ten: not an integer"));
  EXPECT_THAT(error_of([] { parse({"--num_batches=1.5"}); }), HasSubstr("not an integer"));
  EXPECT_THAT(error_of([] { parse({"--num_batches=99999999999999999999"}); }), HasSubstr("num_batches"));
  EXPECT_THAT(error_of([] { parse({"--momentum=fast"}); }), HasSubstr("not a number"));
  EXPECT_THAT(error_of([] { parse({"--momentum=nan"}); }), HasSubstr("not a finite number"));
  EXPECT_THAT(error_of([] { parse({"--eval=maybe"}); }), HasSubstr("not a boolean"));
  EXPECT_THAT(error_of([] { parse({"--batch_size"}); }), HasSubstr("batch_size"));
  EXPECT_THAT(error_of([] {
                parse({"--distortions", "False"});
              }),
              HasSubstr("Received unknown positional arguments: ['False']"));
}

TEST(Flags, HelpNamesEveryFlagAndGroup) {
  const std::string help = help_text();
  for (const FlagSpec& f : flag_table()) EXPECT_THAT(help, HasSubstr(cat("--", f.name)));
  EXPECT_THAT(help, HasSubstr("Summaries and checkpoints"));
}

TEST(Validation, TextsAndOrder) {
  EXPECT_THAT(refusal({"--model=nosuch"}), HasSubstr("Invalid model name 'nosuch' for dataset 'imagenet'"));
  EXPECT_THAT(refusal({"--model=resnet5"}), HasSubstr("Did you mean 'resnet50'"));
  EXPECT_THAT(refusal({"--data_name=mnist"}), HasSubstr("Unknown dataset. Must be one of imagenet"));
  EXPECT_THAT(refusal({"--data_dir=/tmp"}), HasSubstr("Could not identify name of dataset"));
  EXPECT_THAT(refusal({"--data_name=cifar10"}), HasSubstr("data_name"));
  EXPECT_THAT(
      refusal({"--num_epochs_per_decay=2"}),
      HasSubstr("If one of num_epochs_per_decay or learning_rate_decay_factor is set, both must be setand "
                "learning_rate must be set"));
  EXPECT_THAT(refusal({"--minimum_learning_rate=.1"}),
              HasSubstr("minimum_learning_rate requires learning_rate,num_epochs_per_decay, and "
                        "learning_rate_decay_factor to be set"));
  EXPECT_THAT(refusal({"--staged_vars", "--variable_update=replicated"}),
              HasSubstr("staged_vars for now is only supported with variable_update=parameter_server"));
  EXPECT_THAT(refusal({"--variable_update=foo"}), HasSubstr("Invalid variable_update: foo"));
  EXPECT_THAT(refusal({"--job_name=foo"}), HasSubstr("unrecognized job name: foo"));
  EXPECT_THAT(refusal({"--eval", "--forward_only"}),
              HasSubstr("Only one of forward_only and eval parameters is true"));
  EXPECT_THAT(refusal({"--eval"}), HasSubstr("Trained model directory not specified"));
  EXPECT_THAT(refusal({"--optimizer=adagrad"}), HasSubstr("Optimizer \"adagrad\" was not recognized"));
  EXPECT_THAT(refusal({"--device=gpu"}), HasSubstr("--device=gpu"));
  EXPECT_THAT(refusal({"--device=tpu"}), HasSubstr("--device=tpu"));
  EXPECT_THAT(refusal({"--data_format=HWC"}), HasSubstr("--data_format=HWC: must be one of NHWC, NCHW"));
  EXPECT_THAT(refusal({"--resize_method=crop"}), HasSubstr("nearest, bilinear, bicubic, area"));
  EXPECT_THAT(refusal({"--num_epochs=1", "--num_batches=5"}),
              HasSubstr("At most one of --num_batches and --num_epochs may be specified."));
  for (const char* flag : {"--batch_size=-4", "--num_batches=0", "--num_batches=-1", "--display_every=0",
                           "--num_warmup_batches=-1", "--num_intra_threads=-1"})
    EXPECT_THAT(refusal({flag}), HasSubstr(flag)) << flag;
}

TEST(Validation, PathsAreNamed) {
  EXPECT_THAT(refusal({"--data_name=imagenet", "--data_dir=/nonexistent/place"}),
              HasSubstr("/nonexistent/place"));
  EXPECT_THAT(refusal({"--data_name=fashion_mnist", "--data_dir=/nonexistent/place"}),
              HasSubstr("dataset-fashion-mnist"));
  EXPECT_THAT(refusal({"--data_name=imagenet", "--data_dir=/tmp"}),
              HasSubstr("Found no files in --data_dir matching: /tmp/train-*-of-*"));
  EXPECT_THAT(refusal({"--graph_file=/nonexistent/place/g.pb"}), HasSubstr("graph_file"));
  EXPECT_THAT(refusal({"--trace_file=/nonexistent/place/t.json"}), HasSubstr("trace_file"));
  EXPECT_THAT(refusal({"--eval", "--train_dir=/nonexistent/place"}), HasSubstr("/nonexistent/place"));
}

TEST(Validation, UnbuiltFlagsAreNamedAllAtOnce) {
  const std::string text = refusal({"--use_fp16", "--xla", "--num_gpus=2"});
  for (const char* name : {"--use_fp16", "--xla", "--num_gpus=2"}) EXPECT_THAT(text, HasSubstr(name));
  for (const FlagSpec& f : seed_flags()) {
    if (f.klass != FlagClass::kRefused || f.name == "variable_update" || f.name == "job_name") continue;
    const std::string value = is_boolean(f) ? (value_text(f, Params{}) == "true" ? "false" : "true")
                              : type_name(f) == "integer" ? "3"
                              : type_name(f) == "float"   ? "0.5"
                                                          : "word";
    EXPECT_THAT(refusal({cat("--", f.name, "=", value)}), HasSubstr(cat("--", f.name, "="))) << f.name;
  }
  EXPECT_THAT(refusal({"--variable_update=replicated"}), HasSubstr("--variable_update=replicated"));
  EXPECT_THAT(refusal({"--job_name=ps"}), HasSubstr("--job_name=ps"));
}

TEST(Validation, DefaultsBecomeSettings) {
  const Settings s = resolve(parse_command_line({}));
  EXPECT_EQ(s.model->name, "trivial");
  EXPECT_EQ(s.batch, 32);
  EXPECT_EQ(s.num_batches, 100);
  EXPECT_EQ(s.warmup_batches, 10);
  EXPECT_TRUE(s.synthetic);
  EXPECT_EQ(resolve(parse_command_line({"--num_warmup_batches=0"})).warmup_batches, 0);
  EXPECT_EQ(resolve(parse_command_line({"--model=alexnet"})).batch, 512);
  EXPECT_EQ(resolve(parse_command_line({"--device=CPU"})).mode, RunMode::kTraining);
  EXPECT_TRUE(resolve(parse_command_line({"--forward_only"})).print_accuracy);
}

TEST(Steps, FollowTheEpochs) {
  EXPECT_EQ(steps_of_epochs(3, 3, 2), 5);
  EXPECT_EQ(steps_of_epochs(4, 3, 2), 6);
  EXPECT_EQ(steps_of_epochs(3, 60000, 64), 2813);
  EXPECT_EQ(steps_of_epochs(100.0 / 50000, 50000, 2), 50);
}

}  // namespace
}  // namespace sluice::bench
