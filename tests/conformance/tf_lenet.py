"""A LeNet with batch norm, written in TensorFlow: its own gradients, momentum, initialisers and saver nodes.

Our tool loads the graph, initialises it (equal values), trains 20 steps (losses agree to 1e-4), saves; TensorFlow restores the
checkpoint and finds our values. Once with ref variables and once with resource variables.
Usage: tf_lenet.py SLUICE_GRAPH
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
v1.disable_eager_execution()
TOOL = sys.argv[1]
STEPS = 20


def build(use_resource):
    g = tf.Graph()
    with g.as_default():
        v1.set_random_seed(1234)
        x = v1.placeholder(tf.float32, [32, 28, 28, 1], name="x")
        y = v1.placeholder(tf.int32, [32], name="y")
        updates = []

        def var(name, shape, init, trainable=True):
            return v1.get_variable(name, shape, tf.float32, init, trainable=trainable, use_resource=use_resource)

        def conv_bn(h, cout, name):
            with v1.variable_scope(name):
                w = var("kernel", [5, 5, h.shape[-1], cout], v1.truncated_normal_initializer(stddev=0.1, seed=7))
                gamma = var("gamma", [cout], v1.ones_initializer())
                beta = var("beta", [cout], v1.zeros_initializer())
                mean = var("moving_mean", [cout], v1.zeros_initializer(), False)
                variance = var("moving_variance", [cout], v1.ones_initializer(), False)
                h = tf.nn.conv2d(h, w, strides=1, padding="SAME")
                h, m, s = v1.nn.fused_batch_norm(h, gamma, beta, epsilon=1e-3, is_training=True)
                updates.append(v1.assign_sub(mean, (mean - m) * 0.1))
                updates.append(v1.assign_sub(variance, (variance - s) * 0.1))
                return tf.nn.max_pool2d(tf.nn.relu(h), 2, 2, "VALID")

        h = conv_bn(conv_bn(x, 8, "conv1"), 16, "conv2")
        h = tf.reshape(h, [32, 7 * 7 * 16])
        w1 = var("fc1/w", [784, 64], v1.glorot_uniform_initializer(seed=3))
        b1 = var("fc1/b", [64], v1.zeros_initializer())
        h = tf.nn.relu(tf.nn.bias_add(tf.matmul(h, w1), b1))
        w2 = var("fc2/w", [64, 10], v1.random_normal_initializer(stddev=0.05))
        b2 = var("fc2/b", [10], v1.zeros_initializer())
        logits = tf.nn.bias_add(tf.matmul(h, w2), b2)
        xent = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
        loss = tf.add(tf.reduce_mean(xent), 1e-4 * tf.add_n([tf.nn.l2_loss(v) for v in v1.trainable_variables()]), name="loss")
        step = v1.train.get_or_create_global_step()
        train = v1.train.MomentumOptimizer(0.02, 0.9).minimize(loss, step)
        with v1.control_dependencies([train] + updates):
            v1.identity(loss, name="train_loss")
        init = v1.global_variables_initializer()
        saver = v1.train.Saver()
    return g, init.name, saver


def read_node(v):
    """Name of the op that was made with the variable to read it."""
    tensor = v._snapshot if getattr(v, "_snapshot", None) is not None else v._graph_element
    return tensor.op.name


def main():
    rng = np.random.RandomState(0)
    images = rng.uniform(-1, 1, [32, 28, 28, 1]).astype(np.float32)
    labels = rng.randint(0, 10, [32]).astype(np.int32)
    for use_resource in (False, True):
        g, init, saver = build(use_resource)
        with tempfile.TemporaryDirectory() as d:
            meta = os.path.join(d, "m.meta")
            with g.as_default():
                v1.train.export_meta_graph(meta, graph=g, saver_def=saver.as_saver_def())
            np.save(os.path.join(d, "x.npy"), images)
            np.save(os.path.join(d, "y.npy"), labels)
            with v1.Session(graph=g) as s:
                s.run(init)
                variables = {v.op.name: v for v in g.get_collection("variables")}
                start = s.run(variables)
                feed = {"x:0": images, "y:0": labels}
                theirs = [s.run("train_loss:0", feed) for _ in range(STEPS)]
                end = s.run(variables)
            run = subprocess.run(
                [TOOL, "run", meta, "--init", init, "--feed", f"x={d}/x.npy", "--feed", f"y={d}/y.npy", "--steps", str(STEPS),
                 "--fetch", "train_loss", "--save", os.path.join(d, "ckpt")], capture_output=True, text=True)
            assert run.returncode == 0, run.stderr
            ours = [float(line.split()[-1]) for line in run.stdout.splitlines() if "train_loss" in line]
            assert len(ours) == STEPS, run.stdout
            worst = max(abs(a - b) / max(abs(b), 1e-6) for a, b in zip(ours, theirs))
            assert worst < 1e-4, (worst, list(zip(ours, theirs)))
            # Initial values: bit for bit where no transcendental is involved, else to the last places.
            first = subprocess.run([TOOL, "run", meta, "--init", init, "--steps", "1"] + [
                w for i, n in enumerate(variables) for w in ("--fetch", read_node(variables[n]), "--out",
                                                             os.path.join(d, f"v{i}.npy"))], capture_output=True, text=True)
            assert first.returncode == 0, first.stderr
            for i, name in enumerate(variables):
                np.testing.assert_allclose(np.load(os.path.join(d, f"v{i}.npy")), start[name], rtol=2e-6, atol=1e-7,
                                           err_msg=name)
            with v1.Session(graph=g) as s:
                saver.restore(s, os.path.join(d, "ckpt"))
                restored = s.run(variables)
            assert restored["global_step"] == STEPS
            for name, value in end.items():
                np.testing.assert_allclose(restored[name], value, rtol=2e-3, atol=2e-4, err_msg=name)
            print(f"{'resource' if use_resource else 'ref'} variables: {STEPS} losses agree to {worst:.1e}, "
                  f"{theirs[0]:.4f} -> {theirs[-1]:.4f}")


main()
