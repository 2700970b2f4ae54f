// Matrix products.

#include "graph/infer.h"
#include "graph/ops/grad_helpers.h"
#include "graph/ops/register.h"
#include "graph/ops/type_sets.h"

namespace sluice::graph::ops {
namespace {

// One factor of a gradient product and whether it is transposed.
struct Factor {
  Output value;
  bool transposed;
};

// The gradients of a product A·B by A and by B, where A = a or aᵀ and B = b or bᵀ:
//   plain a:       da = dY·Bᵀ     transposed a:  da = B·dYᵀ
//   plain b:       db = Aᵀ·dY     transposed b:  db = dYᵀ·A
template <class Product>
Gradients product_grad(Output a, Output b, bool ta, bool tb, Output dy, Product&& product) {
  const Output da =
      ta ? product(Factor{b, tb}, Factor{dy, true}) : product(Factor{dy, false}, Factor{b, !tb});
  const Output db =
      tb ? product(Factor{dy, true}, Factor{a, ta}) : product(Factor{a, !ta}, Factor{dy, false});
  return {da, db};
}

Gradients mat_mul_grad(Grad& g) {
  const Output a = conj(g, g.x(0)), b = conj(g, g.x(1));
  return product_grad(a, b, g.attr<bool>("transpose_a"), g.attr<bool>("transpose_b"), g.dy(),
                      [&](Factor l, Factor r) {
                        return g.op("MatMul", {l.value, r.value},
                                    {{"transpose_a", l.transposed}, {"transpose_b", r.transposed}});
                      });
}

Gradients batch_products(Grad& g) {
  // The adjoint conjugates by itself.
  return product_grad(g.x(0), g.x(1), g.attr<bool>("adj_x"), g.attr<bool>("adj_y"), g.dy(),
                      [&](Factor l, Factor r) {
                        return g.op("BatchMatMulV2", {l.value, r.value},
                                    {{"adj_x", l.transposed}, {"adj_y", r.transposed}}, "MatMul");
                      });
}

// Sums over the batch dimensions that were broadcast.
Gradients batch_mat_mul_v2_grad(Grad& g) {
  Gradients grads = batch_products(g);
  const Shape &sx = g.x(0).shape(), &sy = g.x(1).shape();
  const bool matrices = sx.rank() == 2 && sy.rank() == 2;
  const auto batch = [](const Shape& s) { return s.known_rank() ? s.slice(0, s.rank() - 2) : Shape(); };
  if (matrices || (batch(sx).fully_known() && batch(sx) == batch(sy))) return grads;
  const Output shape_x = g.shape_of(g.x(0)), shape_y = g.shape_of(g.x(1));
  const Output batch_x = slice_vector(g, shape_x, 0, -2), batch_y = slice_vector(g, shape_y, 0, -2);
  Node& axes = g.node_op("BroadcastGradientArgs", {batch_x, batch_y});
  const Output gx = reshape(g, reduce_sum(g, grads[0].dense, axes.output(0), false), shape_x);
  return {gx, reshape(g, reduce_sum(g, grads[1].dense, axes.output(1), false), shape_y)};
}

// Batch dimensions broadcast (V2) or merge; the inner ones are multiplied.
void batch_shape(InferContext& c, bool broadcasts) {
  const Shape x = c.with_rank_at_least(0, 2), y = c.with_rank_at_least(1, 2);
  if (!x.known_rank() || !y.known_rank()) return c.set_output(0, Shape());
  const bool ax = c.attr<bool>("adj_x"), ay = c.attr<bool>("adj_y");
  const int rx = x.rank(), ry = y.rank();
  c.merge_dim(x.dim(ax ? rx - 2 : rx - 1), y.dim(ay ? ry - 1 : ry - 2));
  const Shape bx = x.slice(0, rx - 2), by = y.slice(0, ry - 2);
  const Shape batch = broadcasts ? broadcast(c, bx, by) : c.merge(bx, by);
  c.set_output(0, batch.concat(Shape{x.dim(ax ? rx - 1 : rx - 2), y.dim(ay ? ry - 2 : ry - 1)}));
}

}  // namespace

void register_math_matrix(OpRegistry& r) {
  r.add(
      {.name = "MatMul",
       .inputs = {"a: T", "b: T"},
       .outputs = {"product: T"},
       .attrs = {"transpose_a: bool = false", "transpose_b: bool = false",
                 "T: {bfloat16, half, float, double, int32, int64, uint8, uint16, uint32, uint64, complex64, "
                 "complex128}"},
       .doc = "Product of two matrices, each transposed first if asked.",
       .infer = matrix_multiply,
       .grad = mat_mul_grad,
       .later_attrs = {"grad_a: bool", "grad_b: bool"}});
  const std::vector<std::string> batch_attrs = {
      "T: {bfloat16, half, float, double, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, "
      "complex128}",
      "adj_x: bool = false", "adj_y: bool = false"};
  r.add({.name = "BatchMatMul",
         .inputs = {"x: T", "y: T"},
         .outputs = {"output: T"},
         .attrs = batch_attrs,
         .doc = "Products of the matrices in the last two dimensions; batch dimensions are equal.",
         .infer = [](InferContext& c) { batch_shape(c, false); },
         .grad = batch_products,
         .later_attrs = {"grad_x: bool", "grad_y: bool"}});
  r.add({.name = "BatchMatMulV2",
         .inputs = {"x: T", "y: T"},
         .outputs = {"output: T"},
         .attrs = batch_attrs,
         .doc = "Products of the matrices in the last two dimensions; batch dimensions broadcast.",
         .infer = [](InferContext& c) { batch_shape(c, true); },
         .grad = batch_mat_mul_v2_grad,
         .later_attrs = {"grad_x: bool", "grad_y: bool"}});
}

}  // namespace sluice::graph::ops
