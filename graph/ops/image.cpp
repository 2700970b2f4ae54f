// Resizing of NHWC images.

#include "graph/infer.h"
#include "graph/ops/grad_helpers.h"
#include "graph/ops/register.h"
#include "graph/ops/type_sets.h"

namespace sluice::graph::ops {
namespace {

constexpr const char* kAlign = "align_corners: bool = false";
constexpr const char* kHalfPixels = "half_pixel_centers: bool = false";

// Input 1 is (height, width).
void resize_shape(InferContext& c) {
  const Shape images = c.with_rank(0, 4);
  const Shape size_input = c.with_rank(1, 1);
  if (size_input.known_dim(0) && size_input.dim(0) != 2)
    c.fail(cat("Dimension must be 2 but is ", size_input.dim(0)));
  const Shape size = c.shape_value(1);
  const bool known = size.known_rank() && size.rank() == 2;
  c.set_output(0, Shape{images.dim(0), known ? size.dim(0) : kUnknownDim, known ? size.dim(1) : kUnknownDim,
                        images.dim(3)});
}

void resize_bilinear_grad_shape(InferContext& c) {
  const Shape grads = c.with_rank(0, 4);
  Shape image = c.with_rank(1, 4);
  image.set_dim(0, c.merge_dim(image.dim(0), grads.dim(0)));
  image.set_dim(3, c.merge_dim(image.dim(3), grads.dim(3)));
  c.set_output(0, image);
}

Gradients resize_bilinear_grad(Grad& g) {
  const DType t = g.x().dtype();
  if (!is_floating(t)) return no_gradient(g);
  return {g.op("ResizeBilinearGrad", {g.dy(), g.x()}, copy_attrs(g, {"align_corners", "half_pixel_centers"})),
          GradValue()};
}

Gradients resize_nearest_grad(Grad& g) {
  const Shape& image = g.x().shape();
  const AttrMap attrs = copy_attrs(g, {"align_corners", "half_pixel_centers"});
  if (image.known_rank() && image.known_dim(1) && image.known_dim(2)) {
    NameScope scope(g.graph(), "ResizeNearestNeighborGrad");
    const Output size =
        g.constant_i32({static_cast<int32_t>(image.dim(1)), static_cast<int32_t>(image.dim(2))}, "size");
    return {g.op("ResizeNearestNeighborGrad", {g.dy(), size}, attrs, scope.scope()), GradValue()};
  }
  const Output size = slice_vector(g, g.shape_of(g.x()), 1, 3);
  return {g.op("ResizeNearestNeighborGrad", {g.dy(), size}, attrs), GradValue()};
}

}  // namespace

void register_image(OpRegistry& r) {
  r.add({.name = "ResizeBilinear",
         .inputs = {"images: T", "size: int32"},
         .outputs = {"resized_images: float"},
         .attrs = {"T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double}", kAlign,
                   kHalfPixels},
         .doc = "Images of another size by interpolating between the four nearest pixels.",
         .infer = resize_shape,
         .grad = resize_bilinear_grad});
  r.add({.name = "ResizeBilinearGrad",
         .inputs = {"grads: float", "original_image: T"},
         .outputs = {"output: T"},
         .attrs = {"T: {float, bfloat16, half, double}", kAlign, kHalfPixels},
         .doc = "ResizeBilinear's gradient: every pixel's to the four that it came from.",
         .traits = kNotDifferentiable,
         .infer = resize_bilinear_grad_shape});
  r.add({.name = "ResizeNearestNeighbor",
         .inputs = {"images: T", "size: int32"},
         .outputs = {"resized_images: T"},
         .attrs = {"T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}", kAlign,
                   kHalfPixels},
         .doc = "Images of another size by taking the nearest pixel.",
         .infer = resize_shape,
         .grad = resize_nearest_grad});
  r.add({.name = "ResizeNearestNeighborGrad",
         .inputs = {"grads: T", "size: int32"},
         .outputs = {"output: T"},
         .attrs = {"T: {uint8, int8, int32, half, float, double, bfloat16}", kAlign, kHalfPixels},
         .doc = "ResizeNearestNeighbor's gradient: every pixel's added to the one that it came from.",
         .infer = resize_shape});
}

}  // namespace sluice::graph::ops
