#!/usr/bin/env python3
"""How many logits are largest at the right class? Standard library only.

usage: accuracy.py OUTPUTS.safetensors LABELS.json

OUTPUTS holds `logits` [n, classes], as theseus forward writes them; LABELS is a list of n classes.
Prints percent.
"""
import json
import pathlib
import sys

import tensors


def accuracy(logits, labels):
    count, classes = logits.shape
    if count != len(labels):
        raise SystemExit(f"accuracy.py: {count} rows of logits, but {len(labels)} labels")
    values = logits.values()
    right = 0
    for row, label in enumerate(labels):
        scores = values[row * classes:(row + 1) * classes]
        right += scores.index(max(scores)) == label
    return 100 * right / count


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    labels = json.loads(pathlib.Path(sys.argv[2]).read_text())
    print(f"{accuracy(tensors.read(sys.argv[1])['logits'], labels):.1f}")


if __name__ == "__main__":
    main()
