#pragma once
// From encoded image to network input: the training distortions (random crop window, flip, resize, colour)
// and the two evaluation crops (benchmark-tool §10). Pure functions of their arguments, the random numbers
// included; any thread. Results are scaled to x/127.5 − 1.

#include <string_view>
#include <vector>

#include "runtime/data/image.h"
#include "runtime/data/random.h"

namespace sluice::runtime::data {

/// Corners as fractions of the image's height and width.
struct Box {
  float ymin = 0, xmin = 0, ymax = 1, xmax = 1;
};

/// Limits of the random crop window.
struct CropOptions {
  float min_object_covered = 0.1f;
  float min_aspect = 0.75f, max_aspect = 1.33f;  // width / height
  float min_area = 0.05f, max_area = 1.0f;       // of the image
  int max_attempts = 100;
};

/// A random window of allowed area and aspect that covers enough of at least one box (none given: the whole
/// image is the box); the whole image when every attempt fails. InvalidArgument for a box that is inverted or
/// leaves [0,1].
Window sample_crop_window(Random& random, int height, int width, const std::vector<Box>& boxes,
                          const CropOptions& options = {});

enum class ResizeChoice { kNearest, kBilinear, kBicubic, kArea, kRoundRobin };
/// round_robin goes through the four methods by position in the batch.
ResizeMethod method_at(ResizeChoice choice, int64_t batch_position);

enum class EvalMethod { kVgg, kInception };

struct PreprocessOptions {
  int height = 224, width = 224;
  ResizeChoice resize = ResizeChoice::kBilinear;
  EvalMethod eval_method = EvalMethod::kVgg;
  bool distort_color = true;
  bool color_in_yiq = false;
  bool fuse_decode_and_crop = true;
};

/// Colour distortion of an image in [0,1], in the order that the batch position asks for; clamps to [0,1].
void distort_color(FloatImage& image, Random& random, int64_t batch_position, bool in_yiq);

/// x/127.5 − 1 of pixels 0…255.
void scale_to_unit(FloatImage& image);

FloatImage train_image(std::string_view encoded, const std::vector<Box>& boxes, Random& random,
                       int64_t batch_position, const PreprocessOptions& options);
FloatImage eval_image(std::string_view encoded, int64_t batch_position, const PreprocessOptions& options);

}  // namespace sluice::runtime::data
