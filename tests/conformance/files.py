#!/usr/bin/env python3
"""Files cross between TensorFlow and Sluice in both directions: GraphDef (binary and text), MetaGraphDef with its
collections and saver, checkpoints. usage: files.py SLUICE_GRAPH. Exit 0: all agree; 1: something differs; 77: there is
no TensorFlow here."""
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import tensorflow.compat.v1 as tf
    from google.protobuf import text_format
    from tensorflow.core.protobuf import meta_graph_pb2
except ImportError as e:
    print(f"skipped: no TensorFlow here ({e})")
    sys.exit(77)

tf.disable_eager_execution()
tf.logging.set_verbosity(tf.logging.ERROR)
PROGRAM = sys.argv[1]
failures = []


def check(ok, what):
    print(("ok    " if ok else "FAIL  ") + what)
    if not ok:
        failures.append(what)


def sluice(*words, code=0):
    r = subprocess.run([PROGRAM, *words], capture_output=True, text=True)
    if r.returncode != code:
        raise RuntimeError(f"sluice-graph {' '.join(words)}: exit {r.returncode}\n{r.stdout}{r.stderr}")
    return r.stdout


def graph_def(path):
    g = tf.GraphDef()
    with open(path, "rb") as f:
        data = f.read()
    if path.endswith("txt"):
        text_format.Parse(data.decode(), g)
    else:
        g.ParseFromString(data)
    return g


# Attrs newer than TensorFlow 1.15 that Sluice drops while they are at their defaults.
NEWER = {"grad_a", "grad_b", "grad_x", "grad_y", "debug_name", "allowed_devices", "validate_shape", "metadata"}


def same_nodes(a, b):
    """The first difference between two GraphDefs, or None."""
    if [n.name for n in a.node] != [n.name for n in b.node]:
        return "other nodes or another order"
    for x, y in zip(a.node, b.node):
        if (x.op, list(x.input), x.device) != (y.op, list(y.input), y.device):
            return f"{x.name}: op, inputs or device"
        for key in set(x.attr) | set(y.attr):
            if key in NEWER or key == "_output_shapes":
                continue
            if key not in y.attr:
                return f"{x.name}: attr {key} is gone"
            if key not in x.attr:  # a default written out
                continue
            va, vb = x.attr[key], y.attr[key]
            if va.HasField("tensor"):
                p, q = tf.make_ndarray(va.tensor), tf.make_ndarray(vb.tensor)
                if p.dtype != q.dtype or p.shape != q.shape or p.tobytes() != q.tobytes() and p.dtype != object:
                    return f"{x.name}: tensor {key}"
                if p.dtype == object and p.tolist() != q.tolist():
                    return f"{x.name}: strings {key}"
            elif va != vb:
                return f"{x.name}: attr {key}: {va} / {vb}"
    return None


def model():
    x = tf.placeholder(tf.float32, [None, 6], name="x")
    labels = tf.placeholder(tf.int32, [None], name="labels")
    with tf.variable_scope("dense"):
        w = tf.get_variable("w", [6, 8], initializer=tf.constant_initializer(0.1), use_resource=True)
        b = tf.Variable(np.linspace(-1, 1, 8).astype(np.float32), name="b")  # a ref or resource variable, as TF likes
    h = tf.nn.relu(tf.matmul(x, w) + b, name="h")
    w2 = tf.get_variable("w2", initializer=np.sin(np.arange(24, dtype=np.float32)).reshape(8, 3), use_resource=False)
    logits = tf.matmul(h, w2, name="logits")
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits), name="loss")
    step = tf.train.get_or_create_global_step()
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, global_step=step, name="train")
    tf.add_to_collection("losses", loss)
    tf.add_to_collection("numbers", 3)
    tf.add_to_collection("words", "hello")
    return loss, train


def train_and_save(folder):
    with tf.Graph().as_default():
        loss, train = model()
        saver = tf.train.Saver()
        init = tf.global_variables_initializer()
        tf.train.write_graph(tf.get_default_graph(), folder, "g.pb", as_text=False)
        tf.train.write_graph(tf.get_default_graph(), folder, "g.pbtxt")
        rng = np.random.RandomState(0)
        feeds = {"x:0": rng.randn(16, 6).astype(np.float32), "labels:0": rng.randint(0, 3, 16).astype(np.int32)}
        np.save(f"{folder}/x.npy", feeds["x:0"])
        np.save(f"{folder}/labels.npy", feeds["labels:0"])
        with tf.Session() as s:
            s.run(init)
            np.save(f"{folder}/first.npy", s.run(loss, feeds))
            for _ in range(3):
                s.run(train, feeds)
            saver.save(s, f"{folder}/m")
            saved = s.run(loss, feeds)
            losses = [s.run([loss, train], feeds)[0] for _ in range(5)]
            return feeds, saved, losses, s.run(loss, feeds)


def graphs(folder):
    original = graph_def(f"{folder}/g.pb")
    for source in ("g.pb", "g.pbtxt"):
        for target in ("r.pb", "r.pbtxt"):
            sluice("dump", f"{folder}/{source}", "--out", f"{folder}/{target}")
            again = graph_def(f"{folder}/{target}")
            check((d := same_nodes(original, again)) is None, f"{source} → {target}: the same nodes" + (f" ({d})" if d else ""))
            with tf.Graph().as_default():
                tf.import_graph_def(again, name="")
                check(True, f"{source} → {target}: TensorFlow imports it")
    sluice("dump", f"{folder}/r.pbtxt", "--out", f"{folder}/s.pb")
    with open(f"{folder}/r.pb", "rb") as a, open(f"{folder}/s.pb", "rb") as b:
        check(a.read() == b.read(), "pb → pbtxt → pb gives equal bytes")


def constants(folder):
    """Every type, edge values, TensorFlow's compressed forms, and more than 64 MB."""
    with tf.Graph().as_default() as g:
        for t in (tf.float32, tf.float64, tf.float16, tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16,
                  tf.uint32, tf.uint64, tf.bool, tf.complex64, tf.complex128, tf.bfloat16):
            np_type = t.as_numpy_dtype
            tf.constant(np.array([0, 1, 1], dtype=np_type), name=f"c_{t.name}")
            tf.constant(np.array(1, dtype=np_type), name=f"s_{t.name}")
            tf.constant(np.zeros([0, 2], dtype=np_type), name=f"e_{t.name}")
            tf.constant(np.array(1, dtype=np_type), shape=[1000], name=f"r_{t.name}")
        tf.constant(np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45], np.float32), name="edge")
        tf.constant([b"", b"a", b"\x00\xff"], name="strings")
        tf.constant("one", name="string")
        tf.train.write_graph(g, folder, "c.pb", as_text=False)
    for target in ("k.pb", "k.pbtxt"):
        sluice("dump", f"{folder}/c.pb", "--out", f"{folder}/{target}")
        d = same_nodes(graph_def(f"{folder}/c.pb"), graph_def(f"{folder}/{target}"))
        check(d is None, f"constants of every type as {target}" + (f" ({d})" if d else ""))
    with tf.Graph().as_default() as g:
        tf.constant(np.random.RandomState(1).bytes(35 << 20), name="long_string")
        tf.constant(np.random.RandomState(1).randn(35 << 17), name="large")
        tf.train.write_graph(g, folder, "big.pb", as_text=False)
    sluice("dump", f"{folder}/big.pb", "--out", f"{folder}/big2.pb")
    d = same_nodes(graph_def(f"{folder}/big.pb"), graph_def(f"{folder}/big2.pb"))
    check(d is None, "70 MB of constants" + (f" ({d})" if d else ""))
    # Python's text parser takes too long for these: there and back, by us.
    sluice("dump", f"{folder}/big2.pb", "--out", f"{folder}/big.pbtxt")
    sluice("dump", f"{folder}/big.pbtxt", "--out", f"{folder}/big3.pb")
    with open(f"{folder}/big2.pb", "rb") as x, open(f"{folder}/big3.pb", "rb") as y:
        check(x.read() == y.read(), "70 MB of constants through text")


def meta_graphs(folder, feeds, saved):
    sluice("dump", f"{folder}/m.meta", "--out", f"{folder}/again.meta")
    m, n = meta_graph_pb2.MetaGraphDef(), meta_graph_pb2.MetaGraphDef()
    for message, name in ((m, "m.meta"), (n, "again.meta")):
        with open(f"{folder}/{name}", "rb") as f:
            message.ParseFromString(f.read())
    check(set(m.collection_def) == set(n.collection_def), f"meta graph: collections {sorted(n.collection_def)}")
    check(m.saver_def == n.saver_def, "meta graph: SaverDef")
    d = same_nodes(m.graph_def, n.graph_def)
    check(d is None, "meta graph: nodes" + (f" ({d})" if d else ""))
    with tf.Graph().as_default():
        saver = tf.train.import_meta_graph(f"{folder}/again.meta")
        with tf.Session() as s:
            saver.restore(s, f"{folder}/m")
            check(np.allclose(s.run("loss:0", feeds), saved), "meta graph: TensorFlow imports it and restores into it")
            names = [v.name for v in tf.trainable_variables()]
            check(names == ["dense/w:0", "dense/b:0", "w2:0"], f"meta graph: trainable variables {names}")
            check(tf.get_collection("numbers") == [3] and tf.get_collection("losses")[0].name == "loss:0",
                  "meta graph: other collections")


def checkpoints(folder, feeds, saved, losses, final):
    fed = ["--feed", f"x={folder}/x.npy", "--feed", f"labels={folder}/labels.npy"]
    value = f"{folder}/loss.npy"
    sluice("run", f"{folder}/m.meta", "--init", "init", *fed, "--fetch", "loss", "--out", value)
    check(np.allclose(np.load(value), np.load(f"{folder}/first.npy"), rtol=1e-5), "initialised: loss agrees")
    sluice("run", f"{folder}/m.meta", "--restore", f"{folder}/m", *fed, "--fetch", "loss", "--out", value)
    check(np.allclose(np.load(value), saved, rtol=1e-5), "restored from TensorFlow's checkpoint: loss agrees")
    out = sluice("run", f"{folder}/m.meta", "--restore", f"{folder}/m", *fed, "--fetch", "loss", "--target", "train",
                 "--steps", "5", "--save", f"{folder}/ours")
    ours = [float(line.split(" = ")[1]) for line in out.splitlines() if "loss:0" in line]
    check(np.allclose(ours, losses, rtol=1e-4), f"five training steps: {ours}")
    check(tf.train.latest_checkpoint(folder) == f"{folder}/ours", "TensorFlow finds our checkpoint by the state file")
    with tf.Graph().as_default():
        saver = tf.train.import_meta_graph(f"{folder}/m.meta")
        with tf.Session() as s:
            saver.restore(s, f"{folder}/ours")
            check(np.allclose(s.run("loss:0", feeds), final, rtol=1e-4), "TensorFlow restores our checkpoint")
    a, b = tf.train.load_checkpoint(f"{folder}/m"), tf.train.load_checkpoint(f"{folder}/ours")
    check(a.get_variable_to_shape_map() == b.get_variable_to_shape_map(), "the same names and shapes")


def direct(folder):
    """Variables of many types without saver nodes: restored and saved again by Sluice itself."""
    values = {}
    with tf.Graph().as_default() as g:
        for t in (tf.float32, tf.float64, tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.bool):
            values[f"v/{t.name}"] = np.arange(6).reshape(2, 3).astype(t.as_numpy_dtype)
        variables = [tf.get_variable(n, initializer=v, use_resource=True) for n, v in values.items()]
        tf.train.write_graph(g, folder, "v.pb", as_text=False)  # before the saver's nodes are there
        saver = tf.train.Saver(variables)
        with tf.Session() as s:
            s.run(tf.global_variables_initializer())
            saver.save(s, f"{folder}/tf/v", write_meta_graph=False)
    sluice("run", f"{folder}/v.pb", "--restore", f"{folder}/tf/v", "--save", f"{folder}/direct")
    for suffix in (".index", ".data-00000-of-00001"):
        with open(f"{folder}/tf/v{suffix}", "rb") as x, open(f"{folder}/direct{suffix}", "rb") as y:
            check(x.read() == y.read(), f"a checkpoint of {len(values)} types, byte for byte: {suffix}")
    r = tf.train.load_checkpoint(f"{folder}/direct")
    check(all((r.get_tensor(n) == v).all() for n, v in values.items()), "TensorFlow reads every value")


with tempfile.TemporaryDirectory() as folder:
    os.mkdir(f"{folder}/tf")
    feeds, saved, losses, final = train_and_save(folder)
    graphs(folder)
    constants(folder)
    meta_graphs(folder, feeds, saved)
    checkpoints(folder, feeds, saved, losses, final)
    direct(folder)
print(f"{len(failures)} differences")
sys.exit(1 if failures else 0)
