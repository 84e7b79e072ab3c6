#!/usr/bin/env python3
"""Digits under heavy noise: every pixel becomes 0.6 of itself and 0.4 of a random one.

usage: noisy.py DIGITS OUT

DIGITS and OUT are folders of idx files, as MNIST is distributed. Standard library only; the same input makes
the same bytes everywhere.
"""
import gzip
import pathlib
import random
import shutil
import sys

HEADER = 16  # bytes before the pixels
KEPT = 0.6


def noisy(pixels, seed):
    drawn = random.Random(seed).randbytes(len(pixels))
    own = [KEPT * value for value in range(256)]
    added = [(1 - KEPT) * value + 0.5 for value in range(256)]
    return bytes(int(own[pixel] + added[noise]) for pixel, noise in zip(pixels, drawn))


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__.strip())
    digits, out = map(pathlib.Path, sys.argv[1:])
    out.mkdir(parents=True, exist_ok=True)
    for seed, part in enumerate(("train", "t10k")):
        name = f"{part}-images-idx3-ubyte.gz"
        content = gzip.decompress((digits / name).read_bytes())
        changed = content[:HEADER] + noisy(content[HEADER:], seed)
        (out / name).write_bytes(gzip.compress(changed, 1, mtime=0))
        shutil.copy(digits / f"{part}-labels-idx1-ubyte.gz", out)


if __name__ == "__main__":
    main()
