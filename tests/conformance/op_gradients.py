#!/usr/bin/env python3
"""Every op with a gradient: TensorFlow builds it and its tf.gradients, we run the file, values must agree.

    op_gradients.py [SLUICE_GRAPH] [--insert INSERT_GRADIENTS] [--only REGEX] [--keep DIR]
    op_gradients.py --oracle [--only REGEX] [--keep DIR]     TensorFlow's half only: the files and its values
    op_gradients.py --list

Two comparisons. With SLUICE_GRAPH: TensorFlow's graph and gradients run here (kernels). With --insert: our
gradients, inserted into TensorFlow's forward graph, run in TensorFlow (gradient functions, graph files).

For each case this writes graph.pb, one .npy a feed and one a fetched value, and runs
`SLUICE_GRAPH run graph.pb --feed x0=x0.npy … --fetch y0 --out y0.npy …`. y0… are the op's outputs, dx0… the
gradients by its inputs for a fixed random gradient of every output. Values agree when infinities and NaN stand in
the same places and the largest difference is at most tol times the largest magnitude. Exit 0 all agree, 1 some
differ, 77 (with the reason) where TensorFlow is absent.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

try:
    import numpy as np
    import tensorflow.compat.v1 as tf
    from tensorflow.python.ops import gen_array_ops as A
    from tensorflow.python.ops import gen_data_flow_ops as D
    from tensorflow.python.ops import gen_image_ops as I
    from tensorflow.python.ops import gen_math_ops as M
    from tensorflow.python.ops import gen_nn_ops as N
except ImportError as error:
    print(f"skipped: TensorFlow cannot be imported here ({error})")
    sys.exit(77)

tf.disable_eager_execution()

# A function table for ops whose generated wrapper has a Python keyword or a private name.
clip_by_value = getattr(M, "_clip_by_value", None) or getattr(A, "_clip_by_value")


class Values:
    """Feeds of a case, drawn from a stream seeded by the case's name."""

    def __init__(self, draw, dtype=np.float32):
        self.draw, self.dtype = draw, dtype

    def array(self, rng):
        return np.asarray(self.draw(rng)).astype(self.dtype)


def r(*shape, dtype=np.float32):
    """Standard normal."""
    return Values(lambda rng: rng.standard_normal(shape), dtype)


def pos(*shape, low=0.2, high=3.0):
    """Uniform and positive."""
    return Values(lambda rng: rng.uniform(low, high, shape))


def unit(*shape):
    """Inside (-1, 1)."""
    return pos(*shape, low=-0.95, high=0.95)


def v(*values, dtype=np.float32, shape=None):
    """These values: edges, indices."""
    return Values(lambda rng: np.reshape(values, (len(values),) if shape is None else shape), dtype)


def ids(*values, dtype=np.int32, shape=None):
    return v(*values, dtype=dtype, shape=shape)


def probs(rows, columns):
    """Rows that sum to one."""
    def draw(rng):
        p = rng.uniform(0.1, 1, (rows, columns))
        return p / p.sum(-1, keepdims=True)
    return Values(draw)


class Case:
    """static: sizes are known while building. gradient: TensorFlow's CPU can run this op's gradient."""

    def __init__(self, name, build, *feeds, tol=1e-5, static=True, gradient=True):
        self.name, self.build, self.feeds = name, build, feeds
        self.tol, self.static, self.gradient = tol, static, gradient


def const(value, dtype=tf.int32):
    return tf.constant(value, dtype)


S1, S2 = [1, 1, 1, 1], [1, 2, 2, 1]
K3 = [1, 3, 3, 1]
EDGES = v(-3, -1, -0.0, 0, 1, 6, 7)
NONE = lambda n: tf.zeros([n])


def conv(stride=S1, padding="SAME", **more):
    return lambda x, f: N.conv2d(x, f, stride, padding, **more)


def batch_norm(op, training=True):
    def build(x, scale, offset, *stats):
        mean, var = stats or (NONE(0), NONE(0))
        return op(x, scale, offset, mean, var, is_training=training)[0]
    return build


# One line an op: name, how to build it from its placeholders, feeds, tolerance where it is not 1e-5.
CASES = [
    # Element-wise, one input.
    Case("Neg", M.neg, r(2, 3)),
    Case("Abs", M._abs if hasattr(M, "_abs") else M.abs, EDGES),
    Case("Sign", M.sign, EDGES),
    Case("Square", M.square, r(2, 3)),
    Case("Sqrt", M.sqrt, pos(2, 3)),
    Case("Sqrt at 0", M.sqrt, v(0, 1, 4)),
    Case("SqrtGrad", M.sqrt_grad, pos(2, 3), r(2, 3)),
    Case("Rsqrt", M.rsqrt, pos(2, 3)),
    Case("RsqrtGrad", M.rsqrt_grad, pos(2, 3), r(2, 3)),
    Case("Reciprocal", M.reciprocal, pos(2, 3)),
    Case("ReciprocalGrad", M.reciprocal_grad, pos(2, 3), r(2, 3)),
    Case("Inv", M.inv, pos(2, 3)),
    Case("Exp", M.exp, r(2, 3)),
    Case("Expm1", M.expm1, v(-2, -1e-4, 0, 1e-6, 3)),
    Case("Log", M.log, pos(2, 3)),
    Case("Log at 0", M.log, v(0, 1, 2)),
    Case("Log1p", M.log1p, v(-0.5, 0, 1e-6, 3)),
    Case("Sin", M.sin, r(2, 3)),
    Case("Cos", M.cos, r(2, 3)),
    Case("Tan", M.tan, unit(2, 3)),
    Case("Asin", M.asin, unit(2, 3)),
    Case("Acos", M.acos, unit(2, 3)),
    Case("Atan", M.atan, r(2, 3)),
    Case("Sinh", M.sinh, r(2, 3)),
    Case("Cosh", M.cosh, r(2, 3)),
    Case("Tanh", M.tanh, r(2, 3)),
    Case("TanhGrad", M.tanh_grad, unit(2, 3), r(2, 3)),
    Case("Sigmoid", M.sigmoid, v(-40, -1, 0, 2, 40)),
    Case("SigmoidGrad", M.sigmoid_grad, unit(2, 3), r(2, 3)),
    Case("Erf", M.erf, r(2, 3)),
    Case("Erfc", M.erfc, r(2, 3)),
    Case("Floor", lambda x: M.floor(x) + x, v(-1.5, -1, 0.5, 2)),
    Case("Ceil", lambda x: M.ceil(x) + x, v(-1.5, -1, 0.5, 2)),
    Case("Round", lambda x: M.round(x) + x, v(-1.5, -0.5, 0.5, 1.5, 2.5)),
    Case("Rint", lambda x: M.rint(x) + x, v(-1.5, -0.5, 0.5, 1.5, 2.5)),
    Case("Cast", lambda x: tf.cast(x, tf.float64), r(2, 3)),
    Case("Cast down", lambda x: tf.cast(x, tf.float32), r(2, 3, dtype=np.float64)),
    # Element-wise, two and three inputs; broadcasting known and unknown while building.
    Case("Add", M.add, r(2, 3), r(3)),
    Case("AddV2", M.add_v2, r(2, 1), r(3)),
    Case("AddV2 dynamic", M.add_v2, r(2, 1), r(2, 3), static=False),
    Case("Sub", M.sub, r(2, 3), r(1, 3)),
    Case("Mul", M.mul, r(2, 3), r(3)),
    Case("Mul same", M.mul, r(2, 3), r(2, 3)),
    Case("Mul dynamic", M.mul, r(2, 3), r(3), static=False),
    Case("Mul float64", M.mul, r(2, 3, dtype=np.float64), r(3, dtype=np.float64), tol=1e-12),
    Case("MulNoNan", M.mul_no_nan, v(1, 2, np.inf), v(0, 3, 0)),
    Case("Div", M.div, r(2, 3), pos(3)),
    Case("RealDiv", M.real_div, r(2, 3), pos(3)),
    Case("RealDiv by 0", M.real_div, v(1, 0, -1), v(0, 0, 2)),
    Case("DivNoNan", M.div_no_nan, v(1, 0, -1), v(0, 0, 2)),
    Case("FloorMod", M.floor_mod, v(-7, 7, 5.5), v(2, 2, -2)),
    Case("FloorDiv", lambda x, y: M.floor_div(x, y) + x, v(-7, 7, 5.5), v(2, 2, -2)),
    Case("Pow", M._pow, pos(2, 3), r(3)),
    Case("Pow edges", M._pow, v(0, 0, -2, -2, 3), v(2, 1, 2, 3, 0)),
    Case("Maximum", M.maximum, v(1, 2, 3, -1), v(1, 3, 2, -1)),
    Case("Minimum", M.minimum, v(1, 2, 3, -1), v(1, 3, 2, -1)),
    Case("Maximum broadcast", M.maximum, r(2, 3), r(3)),
    Case("SquaredDifference", M.squared_difference, r(2, 3), r(3)),
    Case("Xlogy", M.xlogy, v(0, 1, 2), v(0, 2, 3)),
    Case("Xdivy", M.xdivy, v(0, 1, 2), v(0, 2, 3)),
    Case("AddN", lambda x, y, z: M.add_n([x, y, z]), r(2, 3), r(2, 3), r(2, 3)),
    Case("AccumulateNV2", lambda x, y: M.accumulate_nv2([x, y], shape=[2, 3]), r(2, 3), r(2, 3)),
    Case("Select", lambda x, y: M.select(x > y, x * 2.0, y), r(2, 3), r(2, 3)),
    Case("Select rows", lambda x, y: M.select(const([True, False], tf.bool), x, y), r(2, 3), r(2, 3)),
    Case("SelectV2", lambda x, y: M.select_v2(const([[True], [False]], tf.bool), x, y), r(2, 3), r(3)),
    Case("ClipByValue", clip_by_value, r(4, 5), v(-0.5, shape=()), v(0.5, shape=())),
    Case("clip_by_value", lambda x: tf.clip_by_value(x, -0.5, 0.5), r(4, 5)),
    # Activations.
    Case("Relu", N.relu, EDGES),
    Case("ReluGrad", N.relu_grad, r(7), EDGES),
    Case("Relu6", N.relu6, EDGES),
    Case("Relu6Grad", N.relu6_grad, r(7), EDGES),
    Case("LeakyRelu", lambda x: N.leaky_relu(x, alpha=0.3), EDGES),
    Case("LeakyReluGrad", lambda g, x: N.leaky_relu_grad(g, x, alpha=0.3), r(7), EDGES),
    Case("Elu", N.elu, EDGES),
    Case("EluGrad", N.elu_grad, r(4), v(-0.9, -0.1, 0, 2)),
    Case("Selu", N.selu, EDGES),
    Case("SeluGrad", N.selu_grad, r(4), v(-0.9, -0.1, 0, 2)),
    Case("Softplus", N.softplus, v(-40, -1, 0, 1, 40)),
    Case("SoftplusGrad", N.softplus_grad, r(5), v(-4, -1, 0, 1, 4)),
    Case("Softsign", N.softsign, r(2, 3)),
    # Reductions and scans.
    Case("Sum", lambda x: M._sum(x, [1]), r(2, 3, 4)),
    Case("Sum all", lambda x: M._sum(x, [0, 1]), r(2, 3)),
    Case("Sum keep dynamic", lambda x: M._sum(x, [1], keep_dims=True), r(2, 3), static=False),
    Case("Sum dynamic", lambda x: M._sum(x, [-1]), r(2, 3), static=False),
    Case("Mean", lambda x: M.mean(x, [0, 2]), r(2, 3, 4)),
    Case("Mean dynamic", lambda x: M.mean(x, [0, 2]), r(2, 3, 4), static=False),
    Case("Max", lambda x: M._max(x, [1]), v(1, 3, 3, 2, 0, 2, shape=(2, 3))),
    Case("Min keep", lambda x: M._min(x, [1], keep_dims=True), v(1, 3, 1, 2, 0, 2, shape=(2, 3))),
    Case("Prod", lambda x: M.prod(x, [1]), v(1, 2, 3, 0, 4, 5, 0, 0, 2, shape=(3, 3))),
    Case("Cumsum", lambda x: M.cumsum(x, 1), r(2, 4)),
    Case("Cumsum exclusive reverse", lambda x: M.cumsum(x, 0, exclusive=True, reverse=True), r(4, 2)),
    Case("Cumprod", lambda x: M.cumprod(x, 1), pos(2, 4)),
    Case("SegmentSum", lambda x: M.segment_sum(x, const([0, 0, 2])), r(3, 2)),
    Case("UnsortedSegmentSum", lambda x: M.unsorted_segment_sum(x, const([1, 0, 1]), 3), r(3, 2)),
    # Matrices.
    Case("MatMul", M.mat_mul, r(2, 3), r(3, 4)),
    Case("MatMul ta", lambda x, y: M.mat_mul(x, y, transpose_a=True), r(3, 2), r(3, 4)),
    Case("MatMul tb", lambda x, y: M.mat_mul(x, y, transpose_b=True), r(2, 3), r(4, 3)),
    Case("MatMul tatb", lambda x, y: M.mat_mul(x, y, transpose_a=True, transpose_b=True), r(3, 2), r(4, 3)),
    Case("BatchMatMul", M.batch_mat_mul, r(5, 2, 3), r(5, 3, 4)),
    Case("BatchMatMulV2", M.batch_mat_mul_v2, r(5, 2, 3), r(1, 3, 4)),
    Case("BatchMatMulV2 adj", lambda x, y: M.batch_mat_mul_v2(x, y, adj_x=True, adj_y=True), r(2, 3, 2), r(2, 4, 3)),
    # Network ops.
    Case("BiasAdd", N.bias_add, r(2, 4, 4, 3), r(3)),
    Case("BiasAdd matrix", N.bias_add, r(2, 3), r(3)),
    Case("BiasAddV1", N.bias_add_v1, r(2, 3), r(3)),
    Case("BiasAddGrad", N.bias_add_grad, r(2, 4, 3)),
    Case("Softmax", N.softmax, r(4, 5)),
    Case("LogSoftmax", N.log_softmax, r(4, 5)),
    Case("Conv2D", conv(), r(2, 6, 6, 3), r(3, 3, 3, 4)),
    Case("Conv2D stride", conv(S2), r(2, 7, 6, 3), r(3, 3, 3, 4)),
    Case("Conv2D valid", conv(S2, "VALID"), r(2, 8, 7, 3), r(5, 3, 3, 4)),
    Case("Conv2D 1x1", conv(S2), r(2, 7, 7, 3), r(1, 1, 3, 4)),
    Case("Conv2D dilated", conv(dilations=[1, 2, 2, 1]), r(1, 8, 8, 2), r(3, 3, 2, 3), gradient=False),
    Case("Conv2D explicit", conv(S1, "EXPLICIT", explicit_paddings=[0, 0, 1, 0, 2, 1, 0, 0]), r(1, 5, 5, 2),
         r(3, 3, 2, 3)),
    Case("Conv2D dynamic", conv(), r(2, 6, 6, 3), r(3, 3, 3, 4), static=False),
    Case("Conv2DBackpropInput", lambda f, y: N.conv2d_backprop_input([2, 6, 6, 3], f, y, S2, "SAME"), r(3, 3, 3, 4),
         r(2, 3, 3, 4)),
    Case("Conv2DBackpropFilter", lambda x, y: N.conv2d_backprop_filter(x, [3, 3, 3, 4], y, S2, "SAME"),
         r(2, 6, 6, 3), r(2, 3, 3, 4)),
    Case("DepthwiseConv2dNative", lambda x, f: N.depthwise_conv2d_native(x, f, S1, "SAME"), r(2, 6, 6, 3),
         r(3, 3, 3, 2)),
    Case("DepthwiseConv2dNative stride", lambda x, f: N.depthwise_conv2d_native(x, f, S2, "VALID"), r(2, 7, 7, 3),
         r(3, 3, 3, 1)),
    Case("DepthwiseConv2dNativeBackpropInput",
         lambda f, y: N.depthwise_conv2d_native_backprop_input([2, 6, 6, 3], f, y, S1, "SAME"), r(3, 3, 3, 2),
         r(2, 6, 6, 6)),
    Case("DepthwiseConv2dNativeBackpropFilter",
         lambda x, y: N.depthwise_conv2d_native_backprop_filter(x, [3, 3, 3, 2], y, S1, "SAME"), r(2, 6, 6, 3),
         r(2, 6, 6, 6)),
    Case("MaxPool", lambda x: N.max_pool(x, K3, S2, "SAME"), r(2, 7, 6, 3)),
    Case("MaxPool ties", lambda x: N.max_pool(x, S2, S2, "VALID"), v(*([1.0] * 16), shape=(1, 4, 4, 1))),
    Case("MaxPool overlap", lambda x: N.max_pool(x, K3, S1, "VALID"), r(1, 5, 5, 2)),
    Case("MaxPoolGrad", lambda x, g: N.max_pool_grad(x, N.max_pool(x, S2, S2, "SAME"), g, S2, S2, "SAME"),
         r(1, 5, 4, 2), r(1, 3, 2, 2)),
    Case("AvgPool", lambda x: N.avg_pool(x, K3, S2, "SAME"), r(2, 7, 6, 3)),
    Case("AvgPool valid", lambda x: N.avg_pool(x, K3, S1, "VALID"), r(2, 5, 5, 3)),
    Case("AvgPoolGrad", lambda g: N.avg_pool_grad([1, 5, 4, 2], g, K3, S2, "SAME"), r(1, 3, 2, 2)),
    Case("FusedBatchNorm", batch_norm(N._fused_batch_norm if hasattr(N, "_fused_batch_norm") else N.fused_batch_norm),
         r(3, 4, 4, 2), r(2), r(2), tol=5e-5),
    Case("FusedBatchNormV2", batch_norm(N.fused_batch_norm_v2), r(3, 4, 4, 2), r(2), r(2), tol=5e-5),
    Case("FusedBatchNormV3", batch_norm(N.fused_batch_norm_v3), r(3, 4, 4, 2), r(2), r(2), tol=5e-5),
    Case("FusedBatchNormV3 inference", batch_norm(N.fused_batch_norm_v3, False), r(3, 4, 4, 2), r(2), r(2), r(2),
         pos(2), tol=5e-5),
    Case("FusedBatchNormGrad",
         lambda g, x, s: N.fused_batch_norm_grad(g, x, s, *tf.nn.moments(x, [0, 1, 2]))[:3], r(2, 3, 3, 2),
         r(2, 3, 3, 2), r(2), tol=2e-4),
    Case("LRN", lambda x: N.lrn(x, depth_radius=2, bias=1.5, alpha=0.3, beta=0.7), r(1, 3, 3, 7)),
    Case("LRN defaults", N.lrn, r(1, 3, 3, 16)),
    Case("SoftmaxCrossEntropyWithLogits", lambda x, t: N.softmax_cross_entropy_with_logits(x, t)[0], r(4, 5),
         probs(4, 5)),
    Case("SoftmaxCrossEntropyWithLogits second order",
         lambda x, t: list(N.softmax_cross_entropy_with_logits(x, t)), r(4, 5), probs(4, 5)),
    Case("SparseSoftmaxCrossEntropyWithLogits",
         lambda x, t: N.sparse_softmax_cross_entropy_with_logits(x, t)[0], r(4, 5), ids(1, 0, 4, 2)),
    Case("sigmoid_cross_entropy", lambda x, t: tf.nn.sigmoid_cross_entropy_with_logits(logits=x, labels=t),
         v(-40, -1, 0, 2, 40), v(0, 1, 0.5, 1, 0)),
    Case("L2Loss", N.l2_loss, r(3, 4)),
    Case("TopKV2", lambda x: N.top_kv2(x, const(3))[0], r(4, 6)),
    Case("TopKV2 vector", lambda x: N.top_kv2(x, const(2))[0], v(1, 3, 2, 3)),
    Case("ResizeBilinear", lambda x: I.resize_bilinear(x, [7, 5]), r(2, 4, 4, 3)),
    Case("ResizeBilinear align", lambda x: I.resize_bilinear(x, [3, 6], align_corners=True), r(2, 4, 4, 3)),
    Case("ResizeBilinear half pixel", lambda x: I.resize_bilinear(x, [7, 5], half_pixel_centers=True), r(2, 4, 4, 3)),
    Case("ResizeNearestNeighbor", lambda x: I.resize_nearest_neighbor(x, [7, 5]), r(2, 4, 4, 3)),
    Case("dropout mask", lambda x: x * (1 / 0.8) * tf.cast(const([1, 0, 1], tf.float32) >= 0.5, tf.float32), r(2, 3)),
    # Arrays.
    Case("Identity", A.identity, r(2, 3)),
    Case("IdentityN", lambda x, y: A.identity_n([x, y]), r(2, 3), r(4)),
    Case("StopGradient", lambda x: A.stop_gradient(x) * x, r(2, 3)),
    Case("CheckNumerics", lambda x: A.check_numerics(x, "x"), r(2, 3)),
    Case("Reshape", lambda x: A.reshape(x, [3, -1]), r(2, 6)),
    Case("ExpandDims", lambda x: A.expand_dims(x, 1), r(2, 3)),
    Case("Squeeze", lambda x: A.squeeze(x, [1]), r(2, 1, 3)),
    Case("Transpose", lambda x: A.transpose(x, [2, 0, 1]), r(2, 3, 4)),
    Case("ConcatV2", lambda x, y: A.concat_v2([x, y], 1), r(2, 3), r(2, 2)),
    Case("ConcatV2 dynamic", lambda x, y: A.concat_v2([x, y], 1), r(2, 3), r(2, 2), static=False),
    Case("Split", lambda x: A.split(1, x, 3)[1:], r(2, 6)),
    Case("SplitV", lambda x: A.split_v(x, [1, 3, 2], 1, num_split=3)[:2], r(2, 6)),
    Case("Pack", lambda x, y: A.pack([x, y], axis=1), r(2, 3), r(2, 3)),
    Case("Unpack", lambda x: A.unpack(x, 2, axis=0), r(2, 3)),
    Case("Slice", lambda x: A._slice(x, [0, 1], [2, 2]), r(3, 4)),
    Case("StridedSlice", lambda x: x[1:, ::2, tf.newaxis, -1], r(3, 4, 5)),
    Case("StridedSlice backwards", lambda x: x[::-1, 1:-1], r(3, 4)),
    Case("Pad", lambda x: A.pad(x, [[1, 0], [2, 1]]), r(2, 3)),
    Case("PadV2", lambda x: A.pad_v2(x, [[1, 0], [2, 1]], 7.0), r(2, 3)),
    Case("MirrorPad", lambda x: A.mirror_pad(x, [[1, 1], [2, 1]], "REFLECT"), r(3, 4)),
    Case("Tile", lambda x: A.tile(x, [2, 3]), r(2, 3)),
    Case("BroadcastTo", lambda x: A.broadcast_to(x, [4, 2, 3]), r(2, 1)),
    Case("Fill", lambda x: A.fill([2, 3], x), v(1.5, shape=())),
    Case("ReverseV2", lambda x: A.reverse_v2(x, [1]), r(2, 3)),
    Case("Gather", lambda x: A.gather(x, const([2, 0, 2])), r(4, 3)),
    Case("GatherV2", lambda x: A.gather_v2(x, const([[2, 0], [2, 1]]), 0), r(4, 3)),
    Case("GatherV2 axis 1", lambda x: A.gather_v2(x, const([2, 0, 2]), 1), r(2, 4)),
    Case("GatherNd", lambda x: A.gather_nd(x, const([[2, 1], [0, 0]])), r(3, 2)),
    Case("ScatterNd", lambda x: A.scatter_nd(const([[3], [1]]), x, const([5, 2])), r(2, 2)),
    Case("DynamicStitch", lambda x, y: D.dynamic_stitch([const([0, 2]), const([1, 3])], [x, y]), r(2, 3), r(2, 3)),
    Case("embedding twice", lambda x: tf.gather(x, const([1, 1])) * tf.gather(x, const([0, 1])), r(3, 2)),
]


def build(case, folder):
    """Writes the case's graph and feeds, and TensorFlow's values; returns the names of feeds and fetches."""
    rng = np.random.default_rng(zlib.crc32(case.name.encode()))
    with tf.Graph().as_default() as graph, tf.Session() as session:
        arrays = [f.array(rng) for f in case.feeds]
        inputs = []
        for i, a in enumerate(arrays):
            # A dynamic case hides all sizes, and so makes TensorFlow compute shapes in the graph.
            shape = a.shape if case.static else [None] * a.ndim
            inputs.append(tf.placeholder(a.dtype, shape, name=f"x{i}"))
        outputs = case.build(*inputs)
        outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        outputs = [o for o in outputs if o.dtype.is_floating]
        feed = dict(zip(inputs, arrays))
        sizes = session.run([tf.shape(o) for o in outputs], feed)
        dys = [
            tf.constant(rng.standard_normal(s).astype(o.dtype.as_numpy_dtype), name=f"dy{i}")
            for i, (s, o) in enumerate(zip(sizes, outputs))
        ]
        wanted = [x for x in inputs if x.dtype.is_floating]
        named = [tf.identity(o, name=f"y{i}") for i, o in enumerate(outputs)]
        (folder / "forward.pb").write_bytes(graph.as_graph_def().SerializeToString())
        grads = tf.gradients(outputs, wanted, grad_ys=dys) if case.gradient else []
        fetches = {o.op.name: o for o in named}
        for x, dx in zip(wanted, grads):
            if dx is not None:
                name = "d" + x.op.name
                fetches[name] = tf.identity(tf.convert_to_tensor(dx), name=name)
        if case.gradient and len(fetches) == len(outputs):
            raise ValueError("no gradient reaches any input")
        (folder / "graph.pb").write_bytes(graph.as_graph_def().SerializeToString())
        for x, a in zip(inputs, arrays):
            np.save(folder / f"{x.op.name}.npy", a)
        values = session.run(fetches, feed)
        for name, value in values.items():
            np.save(folder / f"{name}.want.npy", value)
        return [x.op.name for x in inputs], list(fetches)


def difference(got, want):
    """Largest difference over the largest magnitude; None and a reason where the values can't be compared."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return None, f"{got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}"
    finite = np.isfinite(want)
    if not np.array_equal(finite, np.isfinite(got)) or not np.array_equal(got[~finite], want[~finite], equal_nan=True):
        return None, f"infinities or NaN differ: {got.ravel()[:6]} instead of {want.ravel()[:6]}"
    if not finite.any():
        return 0.0, ""
    scale = float(np.abs(want[finite]).max())
    worst = float(np.abs(got[finite].astype(np.float64) - want[finite]).max())
    return (worst if scale == 0 else worst / scale), ""


def judge(case, folder, values):
    """Complaints about values by name, against TensorFlow's."""
    complaints = []
    for name, got in values.items():
        error, reason = difference(got, np.load(folder / f"{name}.want.npy"))
        if error is None:
            complaints.append(f"{name}: {reason}")
        elif not error <= case.tol:
            complaints.append(f"{name}: relative difference {error:.2e} > {case.tol:.0e}")
    return complaints


def run_program(command):
    """None, or what a failing program said last."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode == 0:
        return None
    lines = (done.stderr or done.stdout).strip().splitlines() or ["(no message)"]
    return f"exit {done.returncode}: {' | '.join(lines[-3:])}"


def compare_inserted(program, case, folder, feeds, fetches):
    """Our gradients of TensorFlow's forward graph, run in TensorFlow."""
    if failure := run_program([program, str(folder / "forward.pb"), str(folder / "inserted.pb")]):
        return [f"insert: {failure}"]
    definition = tf.GraphDef.FromString((folder / "inserted.pb").read_bytes())
    ours = {n.name for n in definition.node} & {"d" + x for x in feeds}
    theirs = set(fetches) & {"d" + x for x in feeds}
    if ours != theirs:
        return [f"insert: gradients {sorted(ours)} instead of {sorted(theirs)}"]
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(definition, name="")
        feed = {f"{x}:0": np.load(folder / f"{x}.npy") for x in feeds}
        values = session.run({name: f"{name}:0" for name in ours}, feed)
    return [f"insert: {c}" for c in judge(case, folder, values)]


def compare(program, case, folder, feeds, fetches):
    """Runs the file here; returns a list of complaints."""
    command = [program, "run", str(folder / "graph.pb")]
    for name in feeds:
        command += ["--feed", f"{name}={folder / name}.npy"]
    for name in fetches:
        command += ["--fetch", name, "--out", str(folder / f"{name}.npy")]
    if failure := run_program(command):
        return [failure]
    return judge(case, folder, {name: np.load(folder / f"{name}.npy") for name in fetches})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", nargs="?", help="path of sluice-graph")
    parser.add_argument("--insert", help="path of insert_gradients")
    parser.add_argument("--oracle", action="store_true", help="TensorFlow's half only")
    parser.add_argument("--only", default="", help="regular expression of case names")
    parser.add_argument("--keep", help="folder for graphs and values")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    cases = [c for c in CASES if re.search(args.only, c.name)]
    if args.list:
        print("\n".join(c.name for c in cases))
        return 0
    if args.program and not os.access(args.program, os.X_OK):
        parser.error(f"{args.program} is no program")
    if not (args.program or args.insert or args.oracle):
        parser.error("nothing to compare with: name sluice-graph, --insert or --oracle")
    assert len({c.name for c in CASES}) == len(CASES), "two cases share a name"

    with tempfile.TemporaryDirectory() as temporary:
        root = pathlib.Path(args.keep or temporary)
        failed, jobs = {}, []
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for case in cases:
                folder = root / re.sub(r"\W+", "_", case.name)
                folder.mkdir(parents=True, exist_ok=True)
                try:
                    names = build(case, folder)
                except Exception as error:  # an op that this TensorFlow refuses is a fault of the table
                    failed[case.name] = [f"TensorFlow: {type(error).__name__}: {error}"]
                    continue
                if args.insert and case.gradient:
                    try:
                        if complaints := compare_inserted(args.insert, case, folder, *names):
                            failed[case.name] = complaints
                    except Exception as error:  # TensorFlow refuses our file, or can't run it
                        failed[case.name] = [f"insert: {type(error).__name__}: {str(error).splitlines()[0]}"]
                if args.program:
                    jobs.append((case, pool.submit(compare, args.program, case, folder, *names)))
            for case, job in jobs:
                if complaints := job.result():
                    failed.setdefault(case.name, []).extend(complaints)
        for name, complaints in failed.items():
            for complaint in complaints:
                print(f"FAILED {name}: {complaint}")
        print(f"{len(cases) - len(failed)} of {len(cases)} cases {'agree' if args.program or args.insert else 'written'}")
        return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
