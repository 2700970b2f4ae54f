#!/usr/bin/env python3
"""tests/cases.md tells the truth: every test it names exists, every id has exactly one row that says something.

Exit 0 when all holds; otherwise prints one line a fault and exits 1.
"""
import os
import re
import sys

ROOT = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "../.."))
TABLE = "tests/cases.md"
REFERENCE = re.compile(r"^(\w+): (?:(\w+)\.(\w+)|case (\w+))$")

bad = []
sources = {}


def folder_text(folder):
    if folder not in sources:
        text = ""
        for base, _, names in os.walk(os.path.join(ROOT, "tests", folder)):
            for name in sorted(names):
                if name.endswith((".cpp", ".h")):
                    with open(os.path.join(base, name), encoding="utf-8") as f:
                        text += f.read()
        sources[folder] = text
    return sources[folder]


def check_reference(line, text):
    m = REFERENCE.match(text)
    if not m:
        bad.append(f"{TABLE}:{line}: '{text}' is neither 'folder: Suite.Test' nor 'folder: case NAME'")
        return
    folder, suite, test, case = m.groups()
    if case:
        found = f'.name = "{case}"' in folder_text(folder)
    else:
        found = re.search(r"\bTEST(_F|_P)?\(\s*%s\s*,\s*%s\s*\)" % (suite, test), folder_text(folder))
    if not found:
        bad.append(f"{TABLE}:{line}: tests/{folder} has no {text.split(': ')[1]}")


with open(os.path.join(ROOT, TABLE), encoding="utf-8") as f:
    lines = f.read().split("\n")

ids, rows, inputs, section = [], [], 0, ""
listing = False
for number, line in enumerate(lines, 1):
    if line.startswith("Ids: "):
        listing = True
        line = line[5:]
    listing = listing and bool(line.strip())
    if listing:
        ids += line.split()
    if line.startswith("## "):
        section = line[3:]
    cells = [c.strip() for c in line.strip().strip("|").split("|")]
    if not line.startswith("| ") or cells[0] in ("id", "input"):
        continue
    if section == "Cases":
        rows.append(cells[0])
        tests, decision = cells[2], cells[3]
        if tests == "–":
            if "belongs to" not in decision:
                bad.append(f"{TABLE}:{number}: {cells[0]} has no test and does not say to which work it belongs")
            continue
    else:
        inputs += 1
        tests = cells[1]
    for reference in tests.split(";"):
        check_reference(number, reference.strip())

for name in sorted(set(ids) ^ set(rows)):
    bad.append(f"{TABLE}: {name} is " + ("listed and has no row" if name in ids else "no listed id"))
for name in sorted({n for n in rows if rows.count(n) > 1} | {n for n in ids if ids.count(n) > 1}):
    bad.append(f"{TABLE}: {name} is there twice")
if not rows or not inputs:
    bad.append(f"{TABLE}: a table is empty")

for line in bad:
    print(line)
print(f"cases: {len(rows)} cases, {inputs} inputs, {len(bad)} faults")
sys.exit(1 if bad else 0)
