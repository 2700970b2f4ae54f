"""The table of docs/conformance.md from the errors that models.py wrote.

Usage: zoo_table.py ERRORS.json …   (MODEL[:BATCH]: rows of tensor, ours, tensorflow; errors relative to float64)
"""
import json
import sys


def line(model, rows):
    gradients = [r for r in rows[2:] if not r["tensor"].endswith(" after one step")]
    stepped = [r for r in rows[2:] if r["tensor"].endswith(" after one step")]

    def within(some):
        good = sum(r["ours"] <= 2 * r["tensorflow"] + 1e-6 for r in some)
        return f"{good} of {len(some)}"

    worst = max(gradients, key=lambda r: r["ours"])
    theirs = max(gradients, key=lambda r: r["tensorflow"])
    name, _, batch = model.partition(":")
    logits, loss = rows[0], rows[1]
    return (f"| {name} | {batch} | {logits['ours']:.1e} / {logits['tensorflow']:.1e} | {loss['ours']:.1e} / "
            f"{loss['tensorflow']:.1e} | {worst['ours']:.1e} / {theirs['tensorflow']:.1e} | {within(gradients)} | "
            f"{within(stepped)} |")


print("| network | batch | logits | loss | worst gradient | gradients within the bound | variables and slots after a step |")
print("|---|---|---|---|---|---|---|")
for file in sys.argv[1:]:
    with open(file) as f:
        for model, rows in json.load(f).items():
            print(line(model, rows))
