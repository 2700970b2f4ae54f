#!/usr/bin/env python3
"""Seen from outside: 10 and 1,010 training steps of `sluice-graph run` make equally many allocations.

  steady_allocations.py SLUICE_GRAPH [STEPS]

Runs a small training graph (convolution, dense layer, momentum) under valgrind's DHAT, which keeps the stack of every block.
Ours must be equally many for both numbers of steps. oneDNN allocates a map of arguments in every dnnl_primitive_execute and
frees it before it returns; those blocks are counted apart, and must be freed. Exits 77, with the reason, without valgrind.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

FLOAT = "{ type: DT_FLOAT }"


def attr(key, value):
    return f" attr {{ key: '{key}' value {value} }}"


def node(name, op, inputs=(), attrs=""):
    return f"node {{ name: '{name}' op: '{op}'" + "".join(f" input: '{i}'" for i in inputs) + attrs + " }\n"


def shape(dims):
    return " ".join(f"dim {{ size: {d} }}" for d in dims)


def constant(name, dims, values, dtype="DT_FLOAT", field="float_val"):
    value = f"{{ tensor {{ dtype: {dtype} tensor_shape {{ {shape(dims)} }} {field}: {values} }} }}"
    return node(name, "Const", (), attr("dtype", f"{{ type: {dtype} }}") + attr("value", value))


def variable(name, dims, value):
    return (node(name, "VarHandleOp", (), attr("dtype", FLOAT) + attr("shape", f"{{ shape {{ {shape(dims)} }} }}") +
                 attr("shared_name", f"{{ s: '{name}' }}")) + constant(f"{name}/value", dims, [value]) +
            node(f"{name}/init", "AssignVariableOp", (name, f"{name}/value"), attr("dtype", FLOAT)) +
            node(f"{name}/read", "ReadVariableOp", (name,), attr("dtype", FLOAT)))


def write_graph(program, folder):
    t = attr("T", FLOAT)
    weights = {"kernel": [3, 3, 3, 4], "dense": [256, 5], "bias": [5]}
    text = node("x", "Placeholder", (), attr("dtype", FLOAT) + attr("shape", f"{{ shape {{ {shape([4, 8, 8, 3])} }} }}"))
    text += "".join(variable(name, dims, 0.02) for name, dims in weights.items())
    text += node("conv", "Conv2D", ("x", "kernel/read"),
                 t + attr("strides", "{ list { i: [1, 1, 1, 1] } }") + attr("padding", "{ s: 'SAME' }"))
    text += node("relu", "Relu", ("conv",), t) + constant("rows", [2], [4, 256], "DT_INT32", "int_val")
    text += node("flat", "Reshape", ("relu", "rows"), t + attr("Tshape", "{ type: DT_INT32 }"))
    text += node("product", "MatMul", ("flat", "dense/read"), t) + node("logits", "BiasAdd", ("product", "bias/read"), t)
    text += node("y", "Tanh", ("logits",), t) + node("loss", "L2Loss", ("y",), t)
    with open(os.path.join(folder, "net.pbtxt"), "w") as f:
        f.write(text)
    made = subprocess.run([program, "pass", "net.pbtxt", "gradients", "--ys", "loss", "--xs",
                           ",".join(f"{w}/read" for w in weights), "--out", "grads.pbtxt", "--json"], cwd=folder, check=True,
                          capture_output=True, text=True).stdout
    grads = json.loads(made)["results"]
    with open(os.path.join(folder, "grads.pbtxt")) as f:
        text = f.read()
    text += constant("rate", [], [0.01]) + constant("momentum", [], [0.9])
    for name, dims in weights.items():
        text += variable(f"{name}_slot", dims, 0.0)
        text += node(f"{name}/train", "ResourceApplyMomentum",
                     (name, f"{name}_slot", "rate", grads[f"{name}/read:0"], "momentum"), t)
    text += node("train", "NoOp", [f"^{name}/train" for name in weights])
    text += node("init", "NoOp", [f"^{v}/init" for name in weights for v in (name, f"{name}_slot")])
    with open(os.path.join(folder, "train.pbtxt"), "w") as f:
        f.write(text)


def allocations(program, folder, steps):
    """(ours, the library's): blocks of a run of so many steps."""
    out = os.path.join(folder, f"dhat{steps}.json")
    ran = subprocess.run(["valgrind", "--tool=dhat", f"--dhat-out-file={out}", program, "run", "train.pbtxt", "--init", "init",
                          "--feed", "x=[4,8,8,3]", "--target", "train", "--steps", str(steps), "--threads", "1"], cwd=folder,
                         capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"{program} failed under valgrind with {ran.returncode}:\n{ran.stderr[-3000:]}")
    with open(out) as f:
        profile = json.load(f)
    frames = profile["ftbl"]
    ours = library = 0
    for point in profile["pps"]:
        stack = [frames[i] for i in point["fs"]]
        if any("libdnnl" in f for f in stack[:5]):
            library += point["tbk"]
        else:
            ours += point["tbk"]
    return ours, library


def main():
    program, steps = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    if not shutil.which("valgrind"):
        print("skipped: valgrind is not installed")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        write_graph(program, folder)
        few, few_library = allocations(program, folder, 10)
        many, many_library = allocations(program, folder, 10 + steps)
    print(f"10 steps: {few} allocations of ours, {few_library} in oneDNN; {10 + steps} steps: {many} of ours, "
          f"{many_library} in oneDNN ({(many_library - few_library) / steps:g} a step)")
    if few != many:
        sys.exit("allocations grow with the number of steps")


if __name__ == "__main__":
    main()
