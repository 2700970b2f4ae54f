#include "tools/bench/input.h"

#include "runtime/data/image_set.h"
#include "runtime/data/imagenet.h"
#include "runtime/work_queue.h"

namespace sluice::bench {

namespace data = runtime::data;

ImageInput::ImageInput(const Settings& s, bool training, bool repeat) {
  const data::WalkOptions walk{.batch = s.batch,
                               .shuffle = training,
                               .repeat = training || repeat,
                               .seed = static_cast<uint64_t>(s.seed)};
  if (s.data == DataSet::kFashionMnist) {
    auto set = std::make_shared<data::ImageSet>(data::load_fashion_mnist(s.data_dir, training));
    source_ = std::make_unique<data::Prefetcher>(data::image_set_producer(
        std::move(set), walk, s.preprocess.height, s.preprocess.width, s.preprocess.resize));
    return;
  }
  // Decoding is the work here: as many threads as there are processors, which the steps leave idle in turn.
  source_ = std::make_unique<data::Prefetcher>(
      data::imagenet_producer(data::imagenet_files(s.data_dir, training), walk, s.preprocess),
      runtime::available_cpus());
}

int64_t count_eval_examples(const Settings& s) {
  if (s.data == DataSet::kFashionMnist) return dataset_examples(s.data, false);
  return data::count_records(data::imagenet_files(s.data_dir, false));
}

}  // namespace sluice::bench
