"""The benchmark's networks against TensorFlow, tensor by tensor.

For each model: sluice-bench writes its training graph; TensorFlow imports it and takes our initial values. Logits and loss agree
to 1e-4 relative; for every gradient ||ours - float64|| <= 2 ||TensorFlow's - float64|| + 1e-6 ||g||, where float64 is our reference
loops in double (SLUICE_PLAN=reference64); after one training step the same holds for every variable and slot. Each side's values
are those of a session's first run, so that dropout draws the same numbers.
Usage: models.py SLUICE_BENCH SLUICE_GRAPH [--errors FILE.json] MODEL[:BATCH] …
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
v1.disable_eager_execution()


def call(command, **env):
    r = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **env})
    assert r.returncode == 0, f"{' '.join(command[:6])} …: {r.stderr[-2000:]}"
    return r.stdout


def fetch(tool, pb, names, folder, more, **env):
    """Values of tensors in the first run of a graph; `more`: how it starts and what else it does."""
    os.makedirs(folder, exist_ok=True)
    files = [os.path.join(folder, f"{i}.npy") for i in range(len(names))]
    command = [tool, "run", pb, "--steps", "1"]
    for n, f in zip(names, files):
        command += ["--fetch", n, "--out", f]
    call(command + more, **env)
    return [np.load(f) for f in files]


def norm(x):
    return float(np.linalg.norm(np.asarray(x, np.float64).ravel()))


def compare(model, batch, bench, tool, d):
    pb, start, after_ours, after_exact = (os.path.join(d, f) for f in ("m.pb", "start", "ours", "exact"))
    call([bench, f"--model={model}", f"--batch_size={batch}", "--num_batches=1", "--num_warmup_batches=0", "--device=cpu",
          "--data_format=NHWC", "--optimizer=momentum", "--learning_rate=0.01", "--nowinograd_nonfused",
          f"--graph_file={pb}"])
    graph_def = tf.compat.v1.GraphDef.FromString(open(pb, "rb").read())
    with tf.Graph().as_default() as g:
        tf.import_graph_def(graph_def, name="")
    ops = {o.name: o for o in g.get_operations()}
    assigns = {o.inputs[0].op.name: o for o in ops.values() if o.type == "AssignVariableOp" and o.name.endswith("/Assign")}
    reads = {v: v + "/Read/ReadVariableOp" for v in assigns}
    updates = [o for o in ops.values() if o.type.startswith("ResourceApply")]
    grads = {o.inputs[0].op.name: next(i.name for i, a in zip(o.inputs, o.op_def.input_arg) if a.name == "grad")
             for o in updates}
    loss = next(n for n in ("total_loss", "tower_0/total_loss", "v/tower_0/total_loss") if n in ops) + ":0"
    logits = next(o for o in ops.values() if "xentropy" in o.name and o.type.startswith("Sparse")).inputs[0].name
    names = [logits, loss] + list(grads.values())
    # All start from the same float32 values, images too: an initialiser run in double would give others.
    call([tool, "run", pb, "--init", "init", "--save", start])
    values = tf.train.load_checkpoint(start)
    values = {v: values.get_tensor(v) for v in reads if values.has_tensor(v)}
    restore, step = ["--restore", start], ["--target", "train_op", "--save"]
    ours = fetch(tool, pb, names, os.path.join(d, "f"), restore)
    exact = fetch(tool, pb, names, os.path.join(d, "r"), restore + step + [after_exact], SLUICE_PLAN="reference64")
    call([tool, "run", pb, "--steps", "1"] + restore + step + [after_ours])
    stepped, stepped_exact = (tf.train.load_checkpoint(f) for f in (after_ours, after_exact))
    config = v1.ConfigProto(intra_op_parallelism_threads=2)
    with v1.Session(graph=g, config=config) as s:
        for v, a in assigns.items():
            s.run(a, {a.inputs[1]: values[v]})
        for v, a in assigns.items():  # slots and the step as their initialisers say
            if not s.run(v + "/IsInitialized/VarIsInitializedOp:0"):
                s.run(a)
        theirs = s.run(names + ["train_op"])[:-1]
        after = s.run({v: r + ":0" for v, r in reads.items()})
    rows, bad = [], []
    after = {v: t for v, t in after.items() if stepped.has_tensor(v)}
    stages = [("", what, o, t, e) for what, o, t, e in zip(["logits", "loss"] + list(grads), ours, theirs, exact)]
    stages += [(" after one step", v, stepped.get_tensor(v), t, stepped_exact.get_tensor(v)) for v, t in after.items()]
    for stage, what, o, t, e in stages:
        o, t, e = (np.asarray(x, np.float64) for x in (o, t, e))
        mine, others, size = norm(o - e), norm(t - e), norm(e)
        rows.append({"tensor": what + stage, "ours": mine / (size or 1), "tensorflow": others / (size or 1)})
        close = norm(o - t) <= 1e-4 * size if what in ("logits", "loss") else mine <= 2 * others + 1e-6 * size
        if not close:
            bad.append(f"{what}{stage}: ours {mine:.2e}, TensorFlow's {others:.2e}, norm {size:.2e}")
    worst = max(rows[2:2 + len(grads)], key=lambda r: r["ours"])
    print(f"{model:16} loss {float(ours[1]):.6f} logits {rows[0]['ours']:.1e} worst gradient {worst['ours']:.1e} "
          f"(TensorFlow {worst['tensorflow']:.1e}, {worst['tensor']}) {len(grads)} gradients, {len(after)} variables after a step, {len(bad)} bad", flush=True)
    for line in bad[:20]:
        print("   ", line)
    return rows, not bad


def main():
    args = sys.argv[1:]
    bench, tool = args[0], args[1]
    errors = None
    if args[2] == "--errors":
        errors, args = args[3], args[2:]
    good, report = True, {}
    for word in args[2:]:
        model, _, batch = word.partition(":")
        with tempfile.TemporaryDirectory() as d:
            report[word], ok = compare(model, int(batch or 2), bench, tool, d)
            good &= ok
        if errors:
            with open(errors, "w") as f:
                json.dump(report, f, indent=1)
    sys.exit(0 if good else 1)


main()
