"""Our optimizers, losses, metrics, schedules and moving averages against tf.compat.v1, value by value.

Ten steps of each optimizer, dense and sparse, on resource and reference variables: names, values and slots of every variable
agree to 1e-5 relative with TensorFlow's, and for those TensorFlow 2 no longer has (AdaMax, AdamW, LARS, LAMB) with a float64
twin written here from the formulas. Usage: train_values.py TRAIN_VALUES
"""
import json
import subprocess
import sys

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
v1.disable_eager_execution()
TOLERANCE = 1e-5
STEPS = 10
ROWS = np.array([3, 0, 3], np.int32)


def x(start, shape):
    n = int(np.prod(shape)) if shape else 1
    return np.array([((start + i) * 37 + 11) % 101 / 50 - 1 for i in range(n)]).astype(np.float32).reshape(shape)


def gradients(step, sparse):
    return (x(200 + 20 * step, [3, 2] if sparse else [5, 2]), x(500 + 20 * step, [3] if sparse else [5]))


def tensorflow_optimizer(name, step):
    t = v1.train
    return {
        "GradientDescent": lambda: t.GradientDescentOptimizer(0.1),
        "Momentum": lambda: t.MomentumOptimizer(0.1, 0.9),
        "Nesterov": lambda: t.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
        "RMSProp": lambda: t.RMSPropOptimizer(0.01, momentum=0.9),
        "RMSPropCentered": lambda: t.RMSPropOptimizer(0.01, momentum=0.9, centered=True),
        "Adam": lambda: t.AdamOptimizer(0.01),
        "Adagrad": lambda: t.AdagradOptimizer(0.1),
        "AdagradDA": lambda: t.AdagradDAOptimizer(0.1, step, l1_regularization_strength=0.001,
                                                  l2_regularization_strength=0.01),
        "Adadelta": lambda: t.AdadeltaOptimizer(1.0),
        "Ftrl": lambda: t.FtrlOptimizer(0.1, l1_regularization_strength=0.01, l2_regularization_strength=0.02),
        "FtrlShrinkage": lambda: t.FtrlOptimizer(0.1, learning_rate_power=-0.6, l1_regularization_strength=0.01,
                                                 l2_shrinkage_regularization_strength=0.1),
        "ProximalGradientDescent": lambda: t.ProximalGradientDescentOptimizer(
            0.1, l1_regularization_strength=0.02, l2_regularization_strength=0.03),
        "ProximalAdagrad": lambda: t.ProximalAdagradOptimizer(
            0.1, l1_regularization_strength=0.02, l2_regularization_strength=0.03),
    }.get(name, lambda: None)()


def run_tensorflow(name, sparse, resource):
    """Values of all variables after ten steps; None where TensorFlow has no such optimizer."""
    with tf.Graph().as_default(), v1.Session() as s:
        def var(n, shape, start):
            return v1.get_variable(n, shape, initializer=v1.constant_initializer(x(start, shape)), use_resource=resource)

        w, b = var("w", [5, 2], 0), var("b", [5], 100)
        gw = v1.placeholder(tf.float32, [3, 2] if sparse else [5, 2])
        gb = v1.placeholder(tf.float32, [3] if sparse else [5])

        def grad(values, shape):
            return tf.IndexedSlices(values, tf.constant(ROWS), tf.constant(shape)) if sparse else values

        step = v1.get_variable("global_step", [], tf.int64, v1.zeros_initializer(), trainable=False,
                               collections=[v1.GraphKeys.GLOBAL_VARIABLES, v1.GraphKeys.GLOBAL_STEP], use_resource=resource)
        opt = tensorflow_optimizer(name, step)
        if opt is None:
            return None
        update = opt.apply_gradients([(grad(gw, [5, 2]), w), (grad(gb, [5]), b)], step)
        s.run(v1.global_variables_initializer())
        for k in range(STEPS):
            dw, db = gradients(k, sparse)
            s.run(update, {gw: dw, gb: db})
        return {v.op.name: s.run(v) for v in v1.global_variables()}


def merged(values, shape):
    """Unique rows and their sums, as an optimizer sees a sparse gradient."""
    rows = np.unique(ROWS)
    sums = np.zeros((len(rows),) + tuple(shape[1:]))
    for row, value in zip(ROWS, values):
        sums[np.searchsorted(rows, row)] += value
    return rows, sums


def twin(name, sparse):
    """AdaMax, AdamW, LARS and LAMB in float64 from the formulas."""
    state = {"w": x(0, [5, 2]).astype(float), "b": x(100, [5]).astype(float), "global_step": np.int64(0)}
    slots = {"AdaMax": ["AdaMax", "AdaMax_1"], "AdamW": ["AdamW", "AdamW_1"], "LARS": ["LARSOptimizer"],
             "LAMB": ["LAMB", "LAMB_1"]}[name]
    for n in "wb":
        for slot in slots:
            state[f"{n}/{slot}"] = np.zeros_like(state[n])
    b1, b2 = 0.9, 0.999
    for k in range(STEPS):
        for n, g in zip("wb", gradients(k, sparse)):
            g = g.astype(float)
            v, m = state[n], state[f"{n}/{slots[0]}"]
            s = state[f"{n}/{slots[-1]}"]
            at = slice(None)
            if sparse:
                at, g = merged(g, v.shape)
            if name == "AdaMax":  # rows of a sparse gradient alone
                m[at] = b1 * m[at] + (1 - b1) * g
                s[at] = np.maximum(b2 * s[at], np.abs(g))
                v[at] -= 0.01 / (1 - b1 ** (k + 1)) * m[at] / (s[at] + 1e-8)
            elif name == "LARS":
                rate = 0.5
                if not sparse and n != "b":
                    wn, gn = np.linalg.norm(v), np.linalg.norm(g)
                    rate *= 0.1 * wn / (gn + 0.01 * wn) if wn > 0 and gn > 0 else 1
                    g = g + 0.01 * v
                if sparse:
                    m[at] = 0.9 * m[at] + g
                    v[at] -= rate * m[at]
                else:
                    m[at] = 0.9 * m[at] + rate * g
                    v[at] -= m[at]
            else:
                if name == "AdamW":
                    v[at] -= 0.01 * v[at]
                m *= b1
                s *= b2
                m[at] += (1 - b1) * g
                s[at] += (1 - b2) * g * g
                if name == "AdamW":
                    v -= 0.01 * np.sqrt(1 - b2 ** (k + 1)) / (1 - b1 ** (k + 1)) * m / (np.sqrt(s) + 1e-8)
                else:
                    r = m / (1 - b1 ** (k + 1)) / (np.sqrt(s / (1 - b2 ** (k + 1))) + 1e-6)
                    if n != "b":
                        r = r + 0.1 * v
                    wn, rn = np.linalg.norm(v), np.linalg.norm(r)
                    v -= 0.01 * (wn / rn if wn > 0 and rn > 0 else 1) * r
        state["global_step"] += 1
    if name != "LARS":
        state["beta1_power"] = b1 ** (STEPS + 1)
    if name in ("AdamW", "LAMB"):
        state["beta2_power"] = b2 ** (STEPS + 1)
    return state


def losses():
    with tf.Graph().as_default(), v1.Session() as s:
        p, z = tf.constant(x(0, [4, 3])), tf.constant(x(50, [4, 3]))
        weights, rows = tf.constant([[0.5], [0], [2], [1]], tf.float32), tf.constant([0.5, 0, 2, 1], tf.float32)
        binary, share, classes = tf.cast(z > 0, tf.float32), tf.sigmoid(p), tf.constant([2, 0, 1, 1])
        out, L = {}, v1.losses
        for r in v1.losses.Reduction.all():
            if r not in ("none", "weighted_sum", "weighted_mean", "weighted_sum_by_nonzero_weights",
                         "weighted_sum_over_batch_size"):
                continue
            args = {"weights": weights, "reduction": r}
            out[f"absolute_difference {r}"] = L.absolute_difference(z, p, **args)
            out[f"hinge_loss {r}"] = L.hinge_loss(binary, p, **args)
            out[f"huber_loss {r}"] = L.huber_loss(z, p, delta=0.5, **args)
            out[f"log_loss {r}"] = L.log_loss(binary, share, **args)
            out[f"mean_squared_error {r}"] = L.mean_squared_error(z, p, **args)
            out[f"sigmoid_cross_entropy {r}"] = L.sigmoid_cross_entropy(binary, p, label_smoothing=0.1, **args)
            out[f"cosine_distance {r}"] = L.cosine_distance(z, p, axis=1, **args)
            args["weights"] = rows
            out[f"softmax_cross_entropy {r}"] = L.softmax_cross_entropy(tf.one_hot(classes, 3), p, label_smoothing=0.1, **args)
            out[f"sparse_softmax_cross_entropy {r}"] = L.sparse_softmax_cross_entropy(classes, p, **args)
        out["mean_pairwise_squared_error"] = L.mean_pairwise_squared_error(z, p, weights=weights)
        out["mean_pairwise_squared_error unweighted"] = L.mean_pairwise_squared_error(z, p)
        return s.run(out)


def metrics():
    with tf.Graph().as_default(), v1.Session() as s:
        p, z, w = (v1.placeholder(tf.float32, [6]) for _ in range(3))
        positive, guess, share = z > 0, p > 0, (p + 1) * 0.5
        cls = lambda t: tf.cast(tf.floor((t + 1) * 1.499), tf.int64)
        M, ops = v1.metrics, {}
        for suffix, args in (("", {}), (" weighted", {"weights": w})):
            ops["mean" + suffix] = M.mean(p, **args)
            ops["mean_tensor" + suffix] = M.mean_tensor(p, **args)
            ops["accuracy" + suffix] = M.accuracy(cls(z), cls(p), **args)
            for name in ("mean_absolute_error", "mean_squared_error", "root_mean_squared_error"):
                ops[name + suffix] = getattr(M, name)(z, p, **args)
            for name in ("true_positives", "false_positives", "true_negatives", "false_negatives", "precision", "recall"):
                ops[name + suffix] = getattr(M, name)(positive, guess, **args)
            ops["mean_iou" + suffix] = M.mean_iou(cls(z), cls(p), 3, **args)
            for curve, method in (("ROC", "trapezoidal"), ("PR", "trapezoidal"), ("PR", "careful_interpolation"),
                                  ("ROC", "minoring"), ("ROC", "majoring")):
                ops[f"auc {curve} {method}{suffix}"] = M.auc(positive, share, num_thresholds=50, curve=curve,
                                                            summation_method=method, **args)
        s.run(v1.local_variables_initializer())
        out = {}
        for batch in range(4):
            weights = np.array([(batch + i) % 3 for i in range(6)], np.float32)
            got = s.run({k: u for k, (_, u) in ops.items()},
                        {p: x(6 * batch, [6]), z: x(70 + 6 * batch, [6]), w: weights})
            out.update({f"{k} update {batch}": v for k, v in got.items()})
        out.update({f"{k} value": v for k, v in s.run({k: value for k, (value, _) in ops.items()}).items()})
        return out


def schedules():
    t = v1.train
    with tf.Graph().as_default(), v1.Session() as s:
        step = v1.placeholder(tf.int64, [])
        ops = {}
        for stairs in (False, True):
            suffix = " staircase" if stairs else ""
            for name in ("exponential_decay", "natural_exp_decay", "inverse_time_decay"):
                ops[name + suffix] = getattr(t, name)(0.1, step, 7, 0.9, staircase=stairs)
            ops["polynomial_decay" + (" cycle" if stairs else "")] = t.polynomial_decay(0.1, step, 7, 0.01, 0.5, cycle=stairs)
        ops["piecewise_constant"] = t.piecewise_constant(step, [np.int64(3), np.int64(10)], [1.0, 0.5, 0.1])
        ops["cosine_decay"] = t.cosine_decay(0.1, step, 15, 0.2)
        ops["cosine_decay_restarts"] = t.cosine_decay_restarts(0.1, step, 5, 2.0, 0.5, 0.1)
        ops["cosine_decay_restarts same"] = t.cosine_decay_restarts(0.1, step, 5, 1.0)
        ops["linear_cosine_decay"] = t.linear_cosine_decay(0.1, step, 15, alpha=0.1, beta=0.01)
        ops["noisy_linear_cosine_decay"] = t.noisy_linear_cosine_decay(0.1, step, 15, initial_variance=1e-20, alpha=0.1)
        # Up to 18: TensorFlow folds a division by 7 into a product, by which 21/7 is more than 3.
        return {f"{k} at {n}": v for n in range(0, 19, 3) for k, v in s.run(ops, {step: n}).items()}


def moving_averages():
    with tf.Graph().as_default(), v1.Session() as s:
        v = v1.get_variable("v", [3], initializer=v1.zeros_initializer(), use_resource=True)
        n = v1.get_variable("global_step", [], tf.int64, v1.zeros_initializer(), trainable=False, use_resource=True)
        fed = v1.placeholder(tf.float32, [3], "fed")
        t = tf.multiply(fed, 2.0, "t")
        E = v1.train.ExponentialMovingAverage
        plain, early, unbiased = E(0.9), E(0.9, num_updates=n, name="Early"), E(0.9, zero_debias=True, name="Unbiased")
        with v1.control_dependencies([v1.assign(v, fed)]):
            ops = [plain.apply([v]), early.apply([v]), unbiased.apply([t])]
        with v1.control_dependencies(ops):
            step = v1.assign_add(n, 1)
        s.run(v1.global_variables_initializer())
        for k in range(5):
            s.run(step, {fed: x(30 * k, [3])})
        return {u.op.name: s.run(u) for u in v1.global_variables()}


def expected(case):
    kind, *rest = case.split(" ")
    if kind != "optimizer":
        return {"losses": losses, "metrics": metrics, "schedules": schedules, "moving": moving_averages}[kind]()
    name, gradient, variables = rest
    want = run_tensorflow(name, gradient == "sparse", variables == "resource")
    return twin(name, gradient == "sparse") if want is None else want


def main():
    out = subprocess.run([sys.argv[1]], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    cases, bad, values = 0, [], 0
    for line in out.stdout.splitlines():
        row = json.loads(line)
        case, ours = row["case"], row["values"]
        theirs = expected(case)
        cases += 1
        if set(ours) != set(theirs):
            bad.append(f"{case}: only ours {sorted(set(ours) - set(theirs))}, only theirs {sorted(set(theirs) - set(ours))}")
        for name in sorted(set(ours) & set(theirs)):
            got, want = np.array(ours[name], float), np.asarray(theirs[name], float).ravel()
            values += got.size
            scale = max(1e-3, float(np.abs(want).max())) if want.size else 1
            if got.shape != want.shape or not np.allclose(got, want, rtol=TOLERANCE, atol=TOLERANCE * scale):
                bad.append(f"{case}, {name}: {got.tolist()} is not {want.tolist()}")
    print(f"{cases} cases, {values} values compared, {len(bad)} wrong")
    for line in bad:
        print("  " + line[:600])
    return 1 if bad or cases < 70 else 0


sys.exit(main())
