#pragma once
// Labelled images held in memory as bytes, and the producer that makes batches of them. ImageSet is a plain
// value, immutable once loaded and shared by producers; a producer belongs to one Prefetcher.

#include <memory>
#include <string>

#include "runtime/data/prefetch.h"
#include "runtime/data/preprocess.h"

namespace sluice::runtime::data {

/// Images of one size; labels as the network sees them (0 is background).
struct ImageSet {
  int64_t count = 0;
  int height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels;
  std::vector<int32_t> labels;
};

/// Where the Debian package dataset-fashion-mnist puts its files.
inline constexpr const char* kFashionMnistDir = "/usr/share/datasets/fashion-mnist";

/// Reads the training or the test set of Fashion-MNIST from IDX files, gzipped or not; stored labels 0…9
/// become 1…10. NotFound names the folder and the package that has the files; DataLoss names the file.
ImageSet load_fashion_mnist(const std::string& dir, bool training);

/// Throws what load_fashion_mnist would for a missing folder or file, without reading them.
void check_fashion_mnist(const std::string& dir, bool training);

/// How a producer walks its data.
struct WalkOptions {
  int64_t batch = 32;
  bool shuffle = false;  // a new order each epoch
  bool repeat = false;   // for ever, batches straddling epochs; else once, the last batch partial
  uint64_t seed = 0;
};

/// Batches of `set`, scaled to x/127.5 − 1 and brought to height × width (0: as they are) by `resize`.
std::unique_ptr<BatchProducer> image_set_producer(std::shared_ptr<const ImageSet> set,
                                                  const WalkOptions& walk, int height = 0, int width = 0,
                                                  ResizeChoice resize = ResizeChoice::kBilinear);

}  // namespace sluice::runtime::data
