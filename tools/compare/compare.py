#!/usr/bin/env python3
"""Sluice side by side with a peer on this machine: interleaved runs, ratios of medians.

  tools/compare/compare.py --bench build/release/bin/sluice-bench [--model resnet50_v1.5] [--batch_size 16]
      [--mode train|forward|both] [--rounds 5] [--peer_python PYTHON] [--json FILE]

The peer (peer_torch.py) is the same network, layer for layer; --check_logits asserts that both give the same logits for our
variables. Each round runs us and the peer once, in turn, so that neighbours on a shared machine disturb both alike. Speed is
the median step of each run; memory is the peak less what the process held after start-up. Needs a Python with PyTorch:
`pip install -r tools/compare/requirements.txt` in a virtual environment of its own.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# The peer's tuning: memory once taken is never given back (first touch is what eager frameworks pay for on virtual
# machines), and no foreign BLAS settings.
PEER_ENV = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "100000000000"}


def run(command, env=None):
    """Runs to the end; returns (stdout, peak resident MiB)."""
    full = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    full.update(env or {})
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE, env=full)
        err = child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read().decode()
    if child.returncode:
        sys.exit(f"{' '.join(command)} failed with {child.returncode}:\n{err.decode()[-2000:]}")
    return text, usage.ru_maxrss / 1024


def ours(a, forward):
    command = [a.bench, f"--model={a.model}", f"--batch_size={a.batch_size}", f"--num_batches={a.steps}",
               f"--num_warmup_batches={a.warmup}", "--device=cpu", "--data_format=NHWC", "--optimizer=momentum",
               "--display_every=1", f"--num_intra_threads={a.threads}"] + (["--forward_only"] if forward else [])
    text, peak = run(command)
    # Step lines carry running means; their differences give the single steps back.
    means = [float(m) for m in re.findall(r"^\d+\timages/sec: ([0-9.]+)", text, re.M)]
    total = float(re.search(r"total images/sec: ([0-9.]+)", text).group(1))
    totals = [k / m for k, m in enumerate(means, 1) if m]
    steps = [b - c for b, c in zip(totals, [0] + totals)]
    median = statistics.median(steps) if steps else 1 / total
    return {"images_per_sec": 1 / median if median > 0 else total, "total": total, "peak_mib": peak}


def peers(a, forward):
    command = [a.peer_python, os.path.join(HERE, "peer_torch.py"), f"--model={a.model}", f"--batch_size={a.batch_size}",
               f"--steps={a.steps}", f"--warmup={a.warmup}", f"--threads={a.threads}"] + (
                   ["--forward_only"] if forward else [])
    r = json.loads(run(command, PEER_ENV)[0].strip().splitlines()[-1])
    return {"images_per_sec": r["images_per_sec"], "peak_mib": r["peak_rss_mib"] - r["startup_rss_mib"], "name": r["peer"],
            "first_step": r["first_step_seconds"]}


def check_logits(a):
    """Our variables and images in the peer's network: the logits must agree."""
    import numpy as np
    graph_tool = os.path.join(os.path.dirname(a.bench), "sluice-graph")
    with tempfile.TemporaryDirectory() as tmp:
        pb = os.path.join(tmp, "m.pb")
        run([a.bench, f"--model={a.model}", "--batch_size=2", "--num_batches=1", "--num_warmup_batches=0", "--device=cpu",
             "--data_format=NHWC", "--forward_only", "--nowinograd_nonfused", f"--graph_file={pb}"])
        nodes = json.loads(run([graph_tool, "dump", pb, "--format=json"])[0])["nodes"]
        reads = [n["inputs"][0] for n in nodes if n["op"] == "ReadVariableOp"]
        names = list(dict.fromkeys(r.split(":")[0] for r in reads if "/" in r))
        read_of = {}
        for n in nodes:
            if n["op"] == "ReadVariableOp":
                read_of.setdefault(n["inputs"][0].split(":")[0], n["name"])
        command = [graph_tool, "run", pb, "--init", a.init_node, "--steps", "1"]
        for i, name in enumerate(names):
            command += ["--fetch", read_of[name], "--out", os.path.join(tmp, f"{i}.npy")]
        command += ["--fetch", a.logits_node, "--out", os.path.join(tmp, "logits.npy"),
                    "--fetch", a.images_node, "--out", os.path.join(tmp, "images.npy")]
        run(command)
        arrays = {name: np.load(os.path.join(tmp, f"{i}.npy")) for i, name in enumerate(names)}
        np.savez(os.path.join(tmp, "w.npz"), **arrays)
        run([a.peer_python, os.path.join(HERE, "peer_torch.py"), f"--model={a.model}", "--weights",
             os.path.join(tmp, "w.npz"), "--images", os.path.join(tmp, "images.npy"), "--logits",
             os.path.join(tmp, "peer.npy")])
        x, y = np.load(os.path.join(tmp, "logits.npy")), np.load(os.path.join(tmp, "peer.npy"))
        error = np.linalg.norm(x - y) / np.linalg.norm(x)
        print(f"logits: relative difference {error:.2e}")
        if not error < 1e-4:
            sys.exit("the peer's network is not ours")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bench", required=True)
    p.add_argument("--peer_python", default=os.environ.get("SLUICE_PEER_PYTHON", sys.executable))
    p.add_argument("--model", default="resnet50_v1.5")
    p.add_argument("--batch_size", type=int, default=16)
    p.add_argument("--mode", choices=["train", "forward", "both"], default="both")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--steps", type=int, default=6)
    p.add_argument("--warmup", type=int, default=3)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--check_logits", action="store_true")
    p.add_argument("--init_node", default="init")
    p.add_argument("--logits_node", default="v/cg/affine0/xw_plus_b")
    p.add_argument("--images_node", default="input/images")
    p.add_argument("--json")
    a = p.parse_args()
    if a.check_logits:
        check_logits(a)
    startup = run([a.bench, "--version"])[1]
    report = {}
    for mode in ["train", "forward"] if a.mode == "both" else [a.mode]:
        mine, theirs = [], []
        for k in range(a.rounds):
            mine.append(ours(a, mode == "forward"))
            theirs.append(peers(a, mode == "forward"))
            print(f"{mode} round {k + 1}: ours {mine[-1]['images_per_sec']:.2f}, {theirs[-1]['name']} "
                  f"{theirs[-1]['images_per_sec']:.2f} images/sec, ratio "
                  f"{mine[-1]['images_per_sec'] / theirs[-1]['images_per_sec']:.2f}", flush=True)
        ratio = statistics.median(m["images_per_sec"] / t["images_per_sec"] for m, t in zip(mine, theirs))
        memory = statistics.median((m["peak_mib"] - startup) / t["peak_mib"] for m, t in zip(mine, theirs))
        report[mode] = {"speed_ratio": ratio, "memory_ratio": memory, "ours": mine, "peer": theirs}
        print(f"{mode}: median speed ratio {ratio:.2f}, memory ratio {memory:.2f} "
              f"(ours {mine[-1]['peak_mib'] - startup:.0f} MiB, peer {theirs[-1]['peak_mib']:.0f} MiB)")
    if a.json:
        with open(a.json, "w") as f:
            json.dump(report, f, indent=1)


if __name__ == "__main__":
    main()
