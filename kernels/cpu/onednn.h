#pragma once
// The one adapter over oneDNN (2.6, Debian's): nothing else of the house knows its types. It makes primitives
// from plain problem descriptions and runs them on the thread team of oneDNN itself (OpenMP, which is also
// our WorkQueue's). A Primitive is made once (slow: code is generated), then run is const, from any thread;
// memory objects are recycled per primitive, scratch is the caller's. Activations are channels-last; the
// weights of a convolution come in the library's own block format, described by `MemDesc`, and are packed by
// our code (kernels/cpu/weights.h). float32 only.
//
//   auto conv = make_convolution(problem, ConvPass::kForward, {}, threads, why);
//   conv->run({{Arg::kSrc, x}, {Arg::kWeights, packed}, {Arg::kDst, y}}, scratch);

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/matmul.h"

namespace sluice::kernels::cpu {

/// A convolution in TensorFlow's terms; dx, dW passes are described by their forward convolution.
struct ConvProblem {
  int64_t n = 0, ih = 0, iw = 0, ic = 0, oh = 0, ow = 0, oc = 0, kh = 0, kw = 0;
  int64_t stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  int64_t pad_top = 0, pad_bottom = 0, pad_left = 0, pad_right = 0;
  int64_t groups = 1;  // depthwise: groups == ic, oc == ic × multiplier
};

enum class ConvPass { kForward, kBackwardInput, kBackwardFilter };

/// What follows the convolution while its result is in registers: y = relu(conv + bias + y_before).
struct PostOps {
  bool bias = false;
  bool add = false;   // the destination's former content is added
  bool relu = false;  // turns NaN into 0: only where the caller allows it
};

/// The library's block format of one operand, in its own dim order (weights: [g,] o, i, h, w).
struct MemDesc {
  int ndims = 0;
  int64_t dims[6] = {}, padded[6] = {}, strides[6] = {};  // strides of whole blocks, in elements
  int num_blocks = 0;
  int block_dim[4] = {};
  int64_t block_size[4] = {};
  size_t bytes = 0;
};

enum class Arg { kSrc, kWeights, kBias, kDst, kDiffSrc, kDiffWeights, kDiffDst };

class Primitive {
 public:
  struct Binding {
    Arg arg;
    const void* data;  // written where the primitive writes it
  };
  struct Impl;
  explicit Primitive(std::unique_ptr<Impl> impl);
  ~Primitive();
  Primitive(const Primitive&) = delete;
  Primitive& operator=(const Primitive&) = delete;

  /// Internal error naming the library's implementation when it fails.
  void run(std::initializer_list<Binding> bindings, void* scratch) const;
  size_t scratch_bytes() const;
  /// Block format of kWeights or kDiffWeights.
  const MemDesc& weights() const;
  /// The library's name of the code it chose: "brgconv:avx512_core".
  const std::string& implementation() const;

 private:
  std::unique_ptr<Impl> impl_;
};

/// Each returns null and fills `why` when the library has no implementation worth having.
std::unique_ptr<Primitive> make_convolution(const ConvProblem& p, ConvPass pass, PostOps post, int threads,
                                            std::string& why);
std::unique_ptr<Primitive> make_matmul(const MatMulProblem& p, bool bias, int threads, std::string& why);
/// Local response normalisation across the channels of a channels-last image.
std::unique_ptr<Primitive> make_lrn(int64_t n, int64_t h, int64_t w, int64_t c, int size, float alpha,
                                    float beta, float k, int threads, std::string& why);

}  // namespace sluice::kernels::cpu
