#!/usr/bin/env python3
"""Sluice side by side with a peer on this machine: interleaved runs, ratios of medians.

  tools/compare/compare.py --bench build/release/bin/sluice-bench [--model resnet50_v1.5] [--batch_size 16]
      [--mode train|forward|both] [--rounds 5] [--peer_python PYTHON] [--check_logits] [--json FILE [--append]]

The peer (peer_torch.py) is the same network, layer for layer; --check_logits asserts that both give the same logits for our
variables. Each round runs us and the peer once, in turn, so that neighbours on a shared machine disturb both alike. Speed is
the median step of each run; memory is the peak less what the process held after start-up. --rounds 0 stops after the logits;
--append lets rounds be run one at a time. Needs a Python with PyTorch:
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
        def path(name):
            return os.path.join(tmp, name)

        run([a.bench, f"--model={a.model}", "--batch_size=2", "--num_batches=1", "--num_warmup_batches=0", "--device=cpu",
             "--data_format=NHWC", "--forward_only", f"--graph_file={path('m.pb')}"])
        nodes = json.loads(run([graph_tool, "dump", path("m.pb"), "--format=json"])[0])["nodes"]
        # Where each variable is read, by variable; the network's are under "v/cg/", the images have a variable too.
        reads = {n["inputs"][0].split(":")[0]: n["name"] for n in nodes if n["op"] == "ReadVariableOp"}
        names = [v for v in reads if v.startswith("v/cg/")]
        logits = [n["name"] for n in nodes if n["op"] == "BiasAdd" and n["name"].endswith("/xw_plus_b")][-1]
        fetches = [(reads[v], f"{i}.npy") for i, v in enumerate(names)]
        fetches += [(logits, "logits.npy"), (reads["gpu_cached_images"], "images.npy")]
        command = [graph_tool, "run", path("m.pb"), "--init", "init"]
        for node, file in fetches:
            command += ["--fetch", node, "--out", path(file)]
        run(command, {"SLUICE_PLAN": "reference"} if a.reference_logits else None)
        np.savez(path("w.npz"), **{v: np.load(path(f"{i}.npy")) for i, v in enumerate(names)})
        run([a.peer_python, os.path.join(HERE, "peer_torch.py"), f"--model={a.model}", "--weights", path("w.npz"), "--images",
             path("images.npy"), "--logits", path("peer.npy")])
        x, y = np.load(path("logits.npy")), np.load(path("peer.npy"))
        assert x.shape == y.shape == (2, 1001), (x.shape, y.shape)
        error = np.linalg.norm(x - y) / np.linalg.norm(x)
        print(f"logits: {len(names)} variables carried over, relative difference {error:.2e}", flush=True)
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
    p.add_argument("--reference_logits", action="store_true", help="our side of --check_logits by the reference loops")
    p.add_argument("--json", help="write every round and the medians to this file")
    p.add_argument("--append", action="store_true", help="add to the rounds that --json FILE holds already")
    a = p.parse_args()
    if a.append and not a.json:
        p.error("--append needs --json FILE")
    if a.check_logits:
        check_logits(a)
    if not a.rounds:
        return
    startup = run([a.bench, "--version"])[1]
    report = {}
    if a.append and os.path.exists(a.json):
        with open(a.json) as f:
            report = json.load(f)
    for mode in ["train", "forward"] if a.mode == "both" else [a.mode]:
        mine, theirs = (report.get(mode, {}).get(side, []) for side in ("ours", "peer"))
        for k in range(len(mine), len(mine) + a.rounds):
            mine.append(ours(a, mode == "forward"))
            theirs.append(peers(a, mode == "forward"))
            print(f"{mode} round {k + 1}: ours {mine[-1]['images_per_sec']:.2f}, {theirs[-1]['name']} "
                  f"{theirs[-1]['images_per_sec']:.2f} images/sec, ratio "
                  f"{mine[-1]['images_per_sec'] / theirs[-1]['images_per_sec']:.2f}", flush=True)
        ratio = statistics.median(m["images_per_sec"] / t["images_per_sec"] for m, t in zip(mine, theirs))
        memory = statistics.median((m["peak_mib"] - startup) / t["peak_mib"] for m, t in zip(mine, theirs))
        report[mode] = {"speed_ratio": ratio, "memory_ratio": memory, "ours": mine, "peer": theirs}
        print(f"{mode}: {len(mine)} rounds, median speed ratio {ratio:.2f}, memory ratio {memory:.2f} "
              f"(ours {mine[-1]['peak_mib'] - startup:.0f} MiB, peer {theirs[-1]['peak_mib']:.0f} MiB)")
        if a.json:
            with open(a.json, "w") as f:
                json.dump(report, f, indent=1)


if __name__ == "__main__":
    main()
