#!/usr/bin/env python3
"""Layering, vendor headers and file sizes, as docs/design and CONTRIBUTING state them. Reads every #include.

Exit 0 when all rules hold; otherwise prints one line a violation and exits 1.
"""
import os
import re
import sys

ROOT = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "../.."))
FOLDERS = ["graph", "passes", "runtime", "kernels", "dsl", "tools", "tests"]
MAY_INCLUDE = {
    "graph": {"graph"},
    "passes": {"passes", "graph"},
    "runtime": {"runtime", "passes", "graph"},
    "kernels": {"kernels", "runtime", "graph"},
    "dsl": {"dsl", "kernels", "runtime", "passes", "graph"},
    "tools": set(FOLDERS),
    "tests": set(FOLDERS),
}
# Vendor header prefix → path prefixes (files or folders) that may include it.
VENDOR = {
    "spdlog/": ["graph/support/"],
    "fmt/": ["graph/support/"],
    "google/protobuf/": ["graph/graphdef", "graph/proto", "runtime/io/", "tests/"],
    "graph/proto/": ["graph/graphdef", "graph/proto", "runtime/io/", "tests/"],
    "oneapi/": ["kernels/cpu/onednn"],
    "dnnl": ["kernels/cpu/onednn"],
    "omp.h": ["kernels/cpu/", "runtime/work_queue_openmp.cpp"],
    "llvm": ["kernels/jit/"],
    "cuda": ["kernels/cuda/", "runtime/cuda/"],
    "jpeglib.h": ["runtime/data/"],
    "png.h": ["runtime/data/"],
    "zlib.h": ["runtime/"],
    "snappy": ["runtime/io/", "tests/"],
    "leveldb/": ["tests/"],
    "boost/": ["tools/", "tests/"],
    "nlohmann/": ["tools/", "tests/"],
    "gtest/": ["tests/"],
    "gmock/": ["tests/"],
    "benchmark/": ["tests/"],
}
HARD_LINES = 800
INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]')

bad = []


def check(path):
    folder = path.split("/")[0]
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        lines = f.read().split("\n")
    if len(lines) > HARD_LINES:
        bad.append(f"{path}: {len(lines)} lines, the limit is {HARD_LINES}")
    if path.endswith(".h") and not any(l.strip() == "#pragma once" for l in lines[:3]):
        bad.append(f"{path}: does not begin with #pragma once")
    for n, line in enumerate(lines, 1):
        m = INCLUDE.match(line)
        if not m:
            continue
        inc = m.group(1)
        top = inc.split("/")[0]
        if top in FOLDERS and top not in MAY_INCLUDE[folder]:
            bad.append(f"{path}:{n}: {folder}/ must not include {inc}")
        for prefix, places in VENDOR.items():
            if inc.startswith(prefix) and not any(path.startswith(p) for p in places):
                bad.append(f"{path}:{n}: {inc} may be included only under {', '.join(places)}")
        if path.endswith(".h") and folder in ("graph", "passes", "runtime", "kernels", "dsl") and any(
                inc.startswith(p) for p in VENDOR if p not in ("graph/proto/",)) and "/detail" not in path:
            if folder != "kernels":
                bad.append(f"{path}:{n}: a vendor header ({inc}) in a header")


for folder in FOLDERS:
    for base, _, names in os.walk(os.path.join(ROOT, folder)):
        for name in sorted(names):
            if name.endswith((".h", ".cpp", ".cu")):
                check(os.path.relpath(os.path.join(base, name), ROOT))

for line in bad:
    print(line)
print(f"layering: {len(bad)} violations")
sys.exit(1 if bad else 0)
