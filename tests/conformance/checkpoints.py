#!/usr/bin/env python3
"""Checkpoints cross between TensorFlow and Sluice both ways: every type, sharded, sliced, partitioned variables, the
state file, V1 (read only). usage: checkpoints.py CHECKPOINT_TOOL. Exit 0: all agree; 1: something differs; 77: there is
no TensorFlow here."""
import glob
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import tensorflow.compat.v1 as tf
    from tensorflow.core.framework import types_pb2
    from tensorflow.python.checkpoint import checkpoint_management
except ImportError as e:
    print(f"skipped: no TensorFlow here ({e})")
    sys.exit(77)

tf.disable_eager_execution()
tf.logging.set_verbosity(tf.logging.ERROR)
TOOL = sys.argv[1]
failures = []


def check(ok, what):
    print(("ok    " if ok else "FAIL  ") + what)
    if not ok:
        failures.append(what)


def tool(*words):
    r = subprocess.run([TOOL, *words], capture_output=True, text=True)
    if r.returncode:
        raise RuntimeError(f"checkpoint_tool {' '.join(words)}: exit {r.returncode}\n{r.stdout}{r.stderr}")
    return r.stdout


def as_bytes(value, dtype):
    """What `checkpoint_tool list` prints of a value."""
    if dtype == tf.string:
        return "".join(x.hex() + "," for x in np.asarray(value, dtype=object).reshape(-1))
    return np.asarray(value).tobytes().hex()


def same(line, value, dtype):
    name, kind, dims, data = (line.split(" ") + [""])[:4]
    shape = "[" + ",".join(str(d) for d in np.shape(value)) + "]"
    return kind == types_pb2.DataType.Name(dtype.as_datatype_enum)[3:].lower() and dims == shape and data == as_bytes(value, dtype)


def lines_of(prefix):
    return {line.split(" ")[0]: line for line in tool("list", prefix).splitlines()}


def restored(prefix, names, dtypes, specs=None):
    with tf.Graph().as_default(), tf.Session() as s:
        return s.run(tf.raw_ops.RestoreV2(prefix=prefix, tensor_names=names,
                                          shape_and_slices=specs or [""] * len(names), dtypes=dtypes))


def ours_read_by_tensorflow(folder):
    for shards in ("1", "3"):
        prefix = os.path.join(folder, "ours" + shards)
        tool("write", prefix, shards)
        lines = lines_of(prefix)
        reader = tf.train.load_checkpoint(prefix)
        types = reader.get_variable_to_dtype_map()
        names = sorted(types)
        check(names == sorted(lines), f"TensorFlow lists the same tensors, {shards} data files")
        values = restored(prefix, names, [types[n] for n in names])
        bad = [n for n, v in zip(names, values) if not same(lines[n], v, types[n])]
        check(not bad, f"TensorFlow reads every type, {shards} data files ({len(names)} tensors) {bad}")
        part = restored(prefix, ["sliced"], [tf.int32], ["5 4 1,3:1,2"])[0]
        whole = restored(prefix, ["sliced"], [tf.int32])[0]
        check((part == whole[1:4, 1:3]).all(), f"TensorFlow cuts another slice of a sliced tensor, {shards} data files")


def theirs_read_by_us(folder):
    rng = np.random.RandomState(1)
    values = {}
    for t in (tf.float32, tf.float64, tf.int32, tf.uint8, tf.int16, tf.int8, tf.complex64, tf.int64, tf.bool, tf.bfloat16,
              tf.uint16, tf.complex128, tf.float16, tf.uint32, tf.uint64):
        x = rng.randint(0, 100, [3, 2])
        values["t/" + t.name] = (x % 2 == 0 if t == tf.bool else x).astype(t.as_numpy_dtype)
        values["t/" + t.name + "/scalar"] = values["t/" + t.name][0, 0]
        values["t/" + t.name + "/empty"] = np.zeros([0, 4], t.as_numpy_dtype)
    values["s"] = np.array([b"", b"one", b"x" * 400, b"\0\xff"], dtype=object)
    types = {n: tf.string if n == "s" else tf.as_dtype(v.dtype) for n, v in values.items()}
    # Two bundles merged: what a sharded saver writes.
    names = sorted(values)
    halves = [names[::2], names[1::2]]
    prefix = os.path.join(folder, "theirs")
    with tf.Graph().as_default(), tf.Session() as s:
        saves = [tf.raw_ops.SaveV2(prefix=f"{prefix}_temp/part-{k}", tensor_names=h, shape_and_slices=[""] * len(h),
                                   tensors=[tf.constant(values[n], types[n]) for n in h]) for k, h in enumerate(halves)]
        for op in saves:
            s.run(op)
        s.run(tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=[f"{prefix}_temp/part-{k}" for k in range(2)],
                                            destination_prefix=prefix))
    lines = lines_of(prefix)
    bad = [n for n in names if n not in lines or not same(lines[n], values[n], types[n])]
    check(not bad and len(lines) == len(names), f"we read every type, two data files ({len(names)} tensors) {bad}")


def partitioned(folder, version):
    """A TensorFlow saver over whole and partitioned variables; returns prefix and values."""
    d = os.path.join(folder, f"run_v{version}")
    os.makedirs(d, exist_ok=True)
    with tf.Graph().as_default():
        w = tf.get_variable("w", initializer=np.arange(6, dtype=np.float32).reshape(3, 2), use_resource=True)
        e = tf.get_variable("emb", [7, 3], partitioner=tf.fixed_size_partitioner(3))
        step = tf.get_variable("global_step", initializer=np.int64(41), trainable=False)
        names = tf.get_variable("names", initializer=np.array([b"a", b"bcd"], dtype=object)) if version == 2 else None
        saver = tf.train.Saver(write_version=version, sharded=version == 2)
        with tf.Session() as s:
            s.run(tf.global_variables_initializer())
            prefix = saver.save(s, os.path.join(d, "m"), 1)
            values = s.run({"w": w, "emb": tf.convert_to_tensor(e), "global_step": step})
        del names
    return d, prefix, values


def savers(folder):
    for version in (2, 1):
        d, prefix, values = partitioned(folder, version)
        lines = lines_of(prefix)
        bad = [n for n, v in values.items() if not same(lines[n], v, tf.as_dtype(v.dtype))]
        check(not bad, f"we read a V{version} saver's variables, partitioned ones whole {bad}")
    d, prefix, values = partitioned(folder, 2)
    # Through our saver, into other parts, and back to TensorFlow.
    out = os.path.join(folder, "back")
    os.makedirs(out)
    ours = tool("save", os.path.join(out, "m"), "2", prefix).split()[0]
    check(ours == os.path.join(out, "m-3"), "our saver names its checkpoint as TensorFlow does")
    check(tf.train.latest_checkpoint(out) == ours, "TensorFlow finds our latest checkpoint")
    moved = out + "_moved"
    os.rename(out, moved)
    check(tf.train.latest_checkpoint(moved) == os.path.join(moved, "m-3"), "and after the directory moved")
    state = tf.train.get_checkpoint_state(moved)
    check(len(state.all_model_checkpoint_timestamps) == 1, "TensorFlow reads our state file's timestamps")
    for parts in (1, 4):
        with tf.Graph().as_default():
            got = {"w": tf.get_variable("w", [3, 2]), "global_step": tf.get_variable("global_step", [], tf.int64)}
            emb = tf.get_variable("emb", [7, 3], partitioner=tf.fixed_size_partitioner(parts))
            with tf.Session() as s:
                tf.train.Saver().restore(s, os.path.join(moved, "m-3"))
                back = s.run(dict(got, emb=tf.convert_to_tensor(emb)))
        bad = [n for n in values if not np.array_equal(back[n], values[n])]
        check(not bad, f"TensorFlow restores ours into {parts} parts, resume state beside {bad}")
    # The state file the other way: TensorFlow goes on where we stopped.
    checkpoint_management.update_checkpoint_state_internal(
        moved, os.path.join(moved, "m-3"), [os.path.join(moved, "m-3")], save_relative_paths=True)
    with open(os.path.join(moved, "checkpoint")) as f:
        check('model_checkpoint_path: "m-3"' in f.read(), "both write relative paths alike")
    # Our graph file carries its saver: TensorFlow runs its nodes.
    with tf.Graph().as_default(), tf.Session() as s:
        saver = tf.train.import_meta_graph(os.path.join(moved, "m-3.meta"))
        saver.restore(s, os.path.join(moved, "m-3"))
        w = s.run("w/Read/ReadVariableOp:0")
        check(np.array_equal(w, values["w"]), "TensorFlow restores by our graph's nodes")
        again = saver.save(s, os.path.join(moved, "again"), write_meta_graph=False)
        lines = lines_of(again)
        check(same(lines["emb"], values["emb"], tf.float32), "TensorFlow saves by our sharded nodes, and we read that")
        check(len(glob.glob(again + ".data-*")) == 2, "as two data files")


def object_based(folder):
    """tf.train.Checkpoint's keys are attribute paths; the names are in its object graph."""
    prefix = os.path.join(folder, "objects")
    rng = np.random.RandomState(2)
    values = {"w": rng.rand(3, 2).astype(np.float32), "global_step": np.int64(7), "emb": rng.rand(7, 3).astype(np.float32)}
    with tf.Graph().as_default(), tf.Session() as s:
        variables = {n: tf.get_variable(n, initializer=v, use_resource=True) for n, v in values.items()}
        s.run(tf.global_variables_initializer())
        prefix = tf.train.Checkpoint(**{"my_" + n: v for n, v in variables.items()}).save(prefix, session=s)
    ours = tool("save", os.path.join(folder, "from_objects"), "2", prefix).split()[0]
    lines = lines_of(ours)
    bad = [n for n, v in values.items() if not same(lines[n], v, tf.as_dtype(v.dtype))]
    check(not bad, f"we restore an object-based checkpoint by variable names {bad}")


with tempfile.TemporaryDirectory() as folder:
    object_based(folder)
    ours_read_by_tensorflow(folder)
    theirs_read_by_us(folder)
    savers(folder)
print(f"{len(failures)} differences")
sys.exit(1 if failures else 0)
