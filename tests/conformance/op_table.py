#!/usr/bin/env python3
"""The op-case table in TensorFlow: values of every case, and gradients as TensorFlow builds them.

usage: op_table.py OPS_CONFORMANCE [DIR]

1. `OPS_CONFORMANCE export DIR` writes the cases; each runs here by its op name and the outputs must agree.
2. For each case with gradients, tf.gradients is built here, saved as graph.pb, run by `OPS_CONFORMANCE replay`
   (a session of ours over TensorFlow's own gradient ops) and by TensorFlow; the values must agree.
Exit: 0 all agree, 1 some do not, 77 no TensorFlow.
"""
import inspect
import json
import os
import subprocess
import sys
import tempfile

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "1"  # without it TensorFlow's CPU has no gradient of dilated convolutions
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
try:
    import numpy as np
    import tensorflow.compat.v1 as tf
    from tensorflow.python.framework import op_def_registry
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)

tf.disable_v2_behavior()

# Arguments that tf.raw_ops calls otherwise than the op's definition.
RENAMED = {"dim": "axis", "squeeze_dims": "axis", "reduction_indices": "axis", "split_dim": "axis", "t": "x", "e": "y",
           "input": "condition"}


def close(got, want, tolerance):
    """None when they agree, else the reason."""
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return f"shape {list(got.shape)}, not {list(want.shape)}"
    got, want = got.astype(np.float64), want.astype(np.float64)
    with np.errstate(invalid="ignore"):
        same = np.isclose(got, want, rtol=tolerance, atol=tolerance, equal_nan=True)
    if same.all():
        return None
    at = tuple(np.argwhere(~same)[0])
    return f"element {list(at)} is {got[at]}, not {want[at]} ({np.count_nonzero(~same)} differ)"


def attr(value):
    return tf.as_dtype(value["dtype"]) if isinstance(value, dict) else value


def build(case, directory):
    """The op on placeholders feed_<k>; returns (outputs, placeholders, feed values)."""
    feeds, values = [], []

    def value_of(name):
        array = np.load(os.path.join(directory, name))
        values.append(array)
        # Small integers steer shapes: constants, as in people's graphs.
        if array.dtype.kind in "iu" and array.ndim < 2:
            feeds.append(None)
            return tf.constant(array)
        feeds.append(tf.placeholder(array.dtype, array.shape, name=f"feed_{sum(f is not None for f in feeds)}"))
        return feeds[-1]

    arguments = {name: [value_of(v) for v in files] if isinstance(files, list) else value_of(files)
                 for name, files in case["inputs"].items()}
    arguments.update({name: attr(v) for name, v in case["attrs"].items()})
    op = getattr(tf.raw_ops, case["op"])
    known = inspect.signature(op).parameters
    # raw_ops takes no attrs that follow from the inputs' types.
    follows = {a for i in op_def_registry.get(case["op"]).input_arg for a in (i.type_attr, i.type_list_attr, i.number_attr)}
    arguments = {k: v for k, v in arguments.items() if k in known or k not in follows}
    result = op(**{k if k in known else RENAMED.get(k, k): v for k, v in arguments.items()})
    if isinstance(result, tf.Operation):
        result = result.outputs
    outputs = list(result) if isinstance(result, (list, tuple)) else [result]
    return outputs, feeds, values


def compare_values(case, directory):
    with tf.Graph().as_default(), tf.Session() as session:
        outputs, feeds, values = build(case, directory)
        got = session.run(outputs, {f: v for f, v in zip(feeds, values) if f is not None})
    for k in range(min(case["outputs"], len(got))):
        ours = np.load(os.path.join(directory, f"{case['name']}.out_{k}.npy"))
        if case["op"].startswith("FusedBatchNorm") and k >= 3:
            continue  # reserve spaces are each side's own
        why = close(ours, got[k], 4 * case["tolerance"])
        if why:
            return f"output {k}: {why}"
    return None


def write_gradient(case, directory, replay_dir):
    """Saves tf.gradients of a case; returns TensorFlow's values, or None where it has no gradient."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        outputs, feeds, values = build(case, directory)
        ys = [y for y in outputs if y.dtype.is_floating][:1]
        xs = [feeds[k] for k in case["gradient"]]
        if not ys or any(x is None for x in xs):
            return None
        rng = np.random.RandomState(5)
        fed = [(f, v) for f, v in zip(feeds, values) if f is not None]
        y_value = session.run(ys, dict(fed))
        for y in y_value:
            seed = rng.uniform(-1, 1, y.shape).astype(y.dtype)
            fed.append((tf.placeholder(seed.dtype, seed.shape, name=f"feed_{len(fed)}"), seed))
        grads = tf.gradients(ys, xs, [f for f, _ in fed[len(fed) - len(ys):]])
        if any(g is None for g in grads):
            return None
        grads = [tf.identity(tf.convert_to_tensor(g), name=f"gradient_{k}") for k, g in enumerate(grads)]
        target = os.path.join(replay_dir, case["name"])
        os.makedirs(target, exist_ok=True)
        with open(os.path.join(target, "graph.pb"), "wb") as file:
            file.write(graph.as_graph_def().SerializeToString())
        for k, (_, v) in enumerate(fed):
            np.save(os.path.join(target, f"feed_{k}.npy"), v)
        with open(os.path.join(target, "fetches.txt"), "w") as file:
            file.writelines(g.name + "\n" for g in grads)
        return session.run(grads, dict(fed))


def main():
    program = sys.argv[1]
    directory = sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp(prefix="op_table_")
    subprocess.run([program, "export", directory], check=True)
    with open(os.path.join(directory, "cases.json")) as file:
        cases = json.load(file)
    failures, skipped, gradients = [], [], {}
    replay_dir = os.path.join(directory, "gradients")
    for case in cases:
        try:
            why = compare_values(case, directory)
        except (tf.errors.UnimplementedError, tf.errors.NotFoundError, AttributeError) as error:
            skipped.append(f"{case['name']}: {str(error).splitlines()[0][:120]}")
            continue
        except Exception as error:  # pylint: disable=broad-except
            why = f"TensorFlow: {str(error)[:300]}"
        if why:
            failures.append(f"{case['name']}: {why}")
        if case["gradient"]:
            try:
                want = write_gradient(case, directory, replay_dir)
            except (LookupError, tf.errors.UnimplementedError) as error:
                skipped.append(f"{case['name']} gradient: {str(error).splitlines()[0][:120]}")
                continue
            if want is not None:
                gradients[case["name"]] = (want, case["tolerance"])
    ran = subprocess.run([program, "replay", replay_dir], check=False, capture_output=True, text=True)
    if ran.stdout or ran.stderr:
        print(ran.stdout, ran.stderr)
    for name, (want, tolerance) in gradients.items():
        for k, value in enumerate(want):
            path = os.path.join(replay_dir, name, f"out_{k}.npy")
            why = close(np.load(path), value, 8 * tolerance) if os.path.exists(path) else "it did not run here"
            if why:
                failures.append(f"{name}: gradient {k}: {why}")
    print(f"{len(cases)} cases, {len(gradients)} gradients, {len(skipped)} not comparable, {len(failures)} differ")
    for line in skipped:
        print("  not comparable:", line)
    for line in failures:
        print("  DIFFERS:", line)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
