// A trainer to be killed: crash_trainer DIRECTORY STEPS. Resumes from the directory's latest checkpoint,
// saves every second step (in turn beside the steps and between them), and prints the last loss and a
// checksum of all variables. Every random number comes from the graph's streams, so the output depends on
// nothing but STEPS. Exit 3: a completed checkpoint was lost, or one that must be whole is not.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "dsl/dsl.h"
#include "dsl/train/saver.h"
#include "dsl/train/train_op.h"
#include "runtime/io/bundle.h"
#include "runtime/io/crc32c.h"
#include "runtime/io/file.h"

namespace {

using namespace sluice;
using namespace sluice::dsl;
using namespace sluice::dsl::train;
namespace io = runtime::io;

int lost(const std::string& what) {
  std::fprintf(stderr, "crash_trainer: %s\n", what.c_str());
  return 3;
}

int run(const std::string& directory, int64_t steps) {
  Graph g;
  g.set_seed(7);
  // Data, noise and dropout are drawn anew each step.
  Tensor x = random_normal(g, {16, 64});
  Variable w = get_variable(g, "w", {64, 4096}), u = get_variable(g, "u", {4096, 1});
  Tensor h = dropout(relu(matmul(x, w)), 0.5);
  Tensor loss = reduce_mean(square(subtract(matmul(h, u), reduce_sum(x, 1, {.keepdims = true}))));
  MomentumOptimizer optimizer(0.001, 0.9);
  Tensor train_op = create_train_op(loss, optimizer);
  Variable step = get_global_step(g);
  // The last loss is state too: a life that finds all steps done must tell it.
  Variable last = get_variable(g, "last_loss", {}, {.initializer = zeros_initializer(), .trainable = false});
  Node& keep = assign_op(last, train_op);
  Saver saver(g, {.max_to_keep = 2}), again(g, {.write_meta_graph = false, .name = "again", .num_shards = 2});
  Node& init = global_variables_initializer(g);
  runtime::Session s(g, {.intra_op_threads = 1, .deterministic = true});

  // What an earlier life finished writing, told before the next step began.
  const std::string told_path = directory + "/told";
  const int64_t told = io::file_exists(told_path) ? std::atoll(io::read_file(told_path).c_str()) : 0;
  const std::string latest = latest_checkpoint(directory);
  if (latest.empty() && told > 0) return lost(cat("no checkpoint, but step ", told, " was saved"));
  if (latest.empty())
    s.run({}, {}, {&init});
  else
    saver.restore(s, latest);
  const std::string same = directory + "/same";
  if (io::checkpoint_exists(same)) io::BundleReader(same).verify();
  int64_t at = s.run({step.snapshot()})[0].item<int64_t>();
  if (at < told) return lost(cat("resumed at step ", at, ", but step ", told, " was saved"));

  const int fd = ::open(told_path.c_str(), O_WRONLY | O_CREAT, 0644);
  auto tell = [&](int64_t saved) {
    const std::string text = cat(saved, "      \n");
    return ::pwrite(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
  };
  SaveHandle pending;
  int64_t pending_step = 0;
  while (at < steps) {
    s.run({}, {}, {&keep});
    ++at;
    if (at % 2 != 0) continue;
    if (!pending.path().empty()) {
      pending.wait();
      if (!tell(pending_step)) return lost("cannot tell");
    }
    pending = saver.save_async(s, directory + "/model", at);
    pending_step = at;
    if (at % 4 != 0) continue;
    pending.wait();
    if (!tell(at)) return lost("cannot tell");
    pending = {};
    again.save(s, same, {}, {.write_state = false});
  }
  saver.wait();
  uint32_t crc = 0;
  for (const auto& v : s.resources().variables()) {
    const runtime::Array value = v->value();
    crc = io::crc32c_extend(crc, value.data(), value.bytes());
  }
  const double loss_then = s.run({last.snapshot()})[0].item<float>();
  std::printf("step %lld loss %a variables %08x\n", static_cast<long long>(at), loss_then, crc);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    return run(argv[1], std::atoll(argv[2]));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "crash_trainer: %s\n", e.what());
    return 1;
  }
}
