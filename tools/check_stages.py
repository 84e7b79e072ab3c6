#!/usr/bin/env python3
"""Fails when a stage includes a header of a later stage."""
import pathlib
import re
import sys

STAGES = ["base", "checkpoint", "update", "data", "model", "stats", "maps",
          "transport", "output", "train", "evaluate", "report", "cluster", "cli"]

bad = []
for path in sorted(pathlib.Path("theseus").rglob("*.[hc]*")):
    here = STAGES.index(path.parts[1])
    for line_no, line in enumerate(path.read_text().splitlines(), 1):
        hit = re.match(r'#include "theseus/(\w+)/', line)
        if hit and STAGES.index(hit.group(1)) > here:
            bad.append(f"{path}:{line_no}: {path.parts[1]} may not include {hit.group(1)}")
print("\n".join(bad))
sys.exit(bool(bad))
