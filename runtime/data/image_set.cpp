#include "runtime/data/image_set.h"

#include <algorithm>
#include <filesystem>

#include "graph/support/check.h"
#include "runtime/data/idx.h"

namespace sluice::runtime::data {

namespace {

std::string find_idx(const std::string& dir, const std::string& name) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  for (const char* suffix : {"", ".gz"}) {
    const fs::path path = fs::path(dir) / (name + suffix);
    if (fs::exists(path, ignored)) return path.string();
  }
  throw_error(Code::kNotFound,
              cat("Fashion-MNIST: no ", name, " or ", name, ".gz in ", dir,
                  "; install the Debian package dataset-fashion-mnist, or name a folder that has the files"));
}

std::string images_file(bool training) {
  return training ? "train-images-idx3-ubyte" : "t10k-images-idx3-ubyte";
}
std::string labels_file(bool training) {
  return training ? "train-labels-idx1-ubyte" : "t10k-labels-idx1-ubyte";
}

class ImageSetProducer : public BatchProducer {
 public:
  ImageSetProducer(std::shared_ptr<const ImageSet> set, const WalkOptions& walk, int height, int width,
                   ResizeChoice resize)
      : set_(std::move(set)),
        walk_(walk),
        height_(height > 0 ? height : set_->height),
        width_(width > 0 ? width : set_->width),
        resize_(resize) {
    SLUICE_REQUIRE(walk_.batch > 0, Code::kInvalidArgument, "batch must be positive, got ", walk_.batch);
    SLUICE_REQUIRE(set_->count > 0, Code::kInvalidArgument, "the image set is empty");
    start_epoch();
  }

  BatchJob claim() override {
    std::vector<uint32_t> indices;
    while (static_cast<int64_t>(indices.size()) < walk_.batch) {
      if (place_ == order_.size()) {
        if (!walk_.repeat) break;
        ++epoch_;
        start_epoch();
      }
      indices.push_back(order_[place_++]);
    }
    if (indices.empty()) return {};
    return [this, indices = std::move(indices)] { return make(indices); };
  }

 private:
  void start_epoch() {
    place_ = 0;
    if (walk_.shuffle) {
      order_ = permutation(static_cast<uint32_t>(set_->count), walk_.seed, epoch_);
    } else if (order_.empty()) {
      order_.resize(static_cast<size_t>(set_->count));
      std::iota(order_.begin(), order_.end(), 0u);
    }
  }

  // Reads only what is fixed after construction, so jobs may run side by side.
  Batch make(const std::vector<uint32_t>& indices) const {
    const auto n = static_cast<int64_t>(indices.size());
    Batch batch{Array(graph::DType::kFloat, {n, height_, width_, set_->channels}),
                Array(graph::DType::kInt32, {n})};
    const size_t stored = static_cast<size_t>(set_->height) * static_cast<size_t>(set_->width) *
                          static_cast<size_t>(set_->channels);
    float* dst = batch.images.as<float>().data();
    auto labels = batch.labels.as<int32_t>();
    for (size_t i = 0; i < indices.size(); ++i) {
      labels[i] = set_->labels[indices[i]];
      const uint8_t* src = set_->pixels.data() + indices[i] * stored;
      if (height_ == set_->height && width_ == set_->width) {
        dst = std::transform(src, src + stored, dst,
                             [](uint8_t p) { return static_cast<float>(p) / 127.5f - 1.0f; });
        continue;
      }
      FloatImage image{set_->height, set_->width, set_->channels, std::vector<float>(src, src + stored)};
      image = resize(image, height_, width_, method_at(resize_, static_cast<int64_t>(i)));
      scale_to_unit(image);
      dst = std::copy(image.pixels.begin(), image.pixels.end(), dst);
    }
    return batch;
  }

  const std::shared_ptr<const ImageSet> set_;  // shared: training and evaluation may walk one set
  const WalkOptions walk_;
  const int height_, width_;
  const ResizeChoice resize_;
  uint64_t epoch_ = 0;
  size_t place_ = 0;
  std::vector<uint32_t> order_;
};

}  // namespace

void check_fashion_mnist(const std::string& dir, bool training) {
  find_idx(dir, images_file(training));
  find_idx(dir, labels_file(training));
}

ImageSet load_fashion_mnist(const std::string& dir, bool training) {
  const std::string images_path = find_idx(dir, images_file(training));
  const std::string labels_path = find_idx(dir, labels_file(training));
  IdxData images = read_idx(images_path), labels = read_idx(labels_path);
  SLUICE_REQUIRE(images.dims.size() == 3 && images.dims[0] > 0, Code::kDataLoss, "IDX file ", images_path,
                 " should hold images under three dimensions, it has ", graph::dims_string(images.dims));
  SLUICE_REQUIRE(labels.dims.size() == 1 && labels.dims[0] == images.dims[0], Code::kDataLoss, "IDX file ",
                 labels_path, " holds labels ", graph::dims_string(labels.dims), " for ", images.dims[0],
                 " images");
  ImageSet set;
  set.count = images.dims[0];
  set.height = static_cast<int>(images.dims[1]);
  set.width = static_cast<int>(images.dims[2]);
  set.channels = 1;
  set.pixels = std::move(images.values);
  set.labels.reserve(labels.values.size());
  for (uint8_t label : labels.values) {
    SLUICE_REQUIRE(label <= 9, Code::kDataLoss, "IDX file ", labels_path, " holds label ",
                   static_cast<int>(label), "; Fashion-MNIST has 0 to 9");
    set.labels.push_back(label + 1);
  }
  return set;
}

std::unique_ptr<BatchProducer> image_set_producer(std::shared_ptr<const ImageSet> set,
                                                  const WalkOptions& walk, int height, int width,
                                                  ResizeChoice resize) {
  return std::make_unique<ImageSetProducer>(std::move(set), walk, height, width, resize);
}

}  // namespace sluice::runtime::data
