#!/usr/bin/env python3
"""theseus finetune beside PyTorch in Python: speed and memory of training vit_tiny_patch16_224.

    peer_finetune.py THESEUS [--rounds N] [--batch-size N] [--at-a-time N] [--threads N]

The same layers, loss, clipping and AdamW, with gradients added up over parts of a batch. A run of few
steps is taken off a run of more, so that starting and writing do not count; the two programs take turns,
and the ratio is of the medians. Memory is the largest that the process held. With one thread the
processor's seconds tell more than the clock's where other work runs beside.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

import torch
from torch.nn import functional as F

import peer_vit

SHORT, LONG, SIDE = 1, 5, 224


def write_images(folder, count):
    generator = random.Random(1)
    for i in range(count):
        place = folder / f"class {i % 4}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{i}.ppm").write_bytes(
            b"P6 %d %d 255\n" % (SIDE, SIDE) + generator.randbytes(3 * SIDE * SIDE))


def train(model, steps, arguments):
    """What theseus does, in Python."""
    torch.set_num_threads(arguments.threads)
    weights = peer_vit.read(model / "model.safetensors")
    for tensor in weights.values():
        tensor.requires_grad_(True)
    size, some = arguments.batch_size, arguments.at_a_time
    images, labels = torch.randn(size, 3, SIDE, SIDE), torch.randint(4, (size,))
    optimiser = torch.optim.AdamW(weights.values(), lr=1e-5, weight_decay=0.1)
    for _ in range(steps):
        optimiser.zero_grad(set_to_none=True)
        for first in range(0, size, some):
            logits = peer_vit.forward(weights, images[first:first + some])
            (F.cross_entropy(logits, labels[first:first + some], reduction="sum") / size).backward()
        torch.nn.utils.clip_grad_norm_(weights.values(), 1)
        optimiser.step()


def measured(command):
    """Seconds, seconds of processors, and peak bytes of a process."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{command[0]} failed")
    return (time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def per_step(command_of):
    """Of a command that takes a number of steps."""
    short, long = measured(command_of(SHORT)), measured(command_of(LONG))
    return [(long[i] - short[i]) / (LONG - SHORT) for i in range(2)] + [long[2]]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("theseus")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--at-a-time", type=int, default=8)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--python", nargs=2, metavar=("MODEL", "STEPS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.python:
        train(pathlib.Path(arguments.python[0]), int(arguments.python[1]), arguments)
        return
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        model = scratch / "model"
        model.mkdir()
        peer_vit.write_random(model)
        write_images(scratch / "images", arguments.batch_size)
        shared = ["--batch-size", str(arguments.batch_size), "--at-a-time",
                  str(arguments.at_a_time), "--threads", str(arguments.threads)]

        def ours(steps):
            return [arguments.theseus, "finetune", "--model", model, "--data", scratch / "images",
                    "--validation", "none", "--head", "new", "--out", scratch / "out", "--fresh",
                    "--device", "cpu", "--quiet", "--steps", str(steps), *shared]

        def theirs(steps):
            return [sys.executable, __file__, arguments.theseus, "--python", str(model), str(steps),
                    *shared]

        rows = {"python": [], "theseus": []}
        for _ in range(arguments.rounds):
            for name, command in (("python", theirs), ("theseus", ours)):
                rows[name].append(per_step(command))
                seconds, busy, peak = rows[name][-1]
                print(f"{name:8} {seconds:.3f} s/step, {busy:.3f} of processors, "
                      f"peak {peak / 1e6:.0f} MB", flush=True)
    middle = {name: [statistics.median(column) for column in zip(*values)]
              for name, values in rows.items()}
    print(json.dumps({"threads": arguments.threads, "torch": torch.__version__, **middle}))
    python, theseus = middle["python"], middle["theseus"]
    print(f"speed {python[0] / theseus[0]:.2f} times by the clock, {python[1] / theseus[1]:.2f} by "
          f"processors, memory {theseus[2] / python[2]:.2f} times that of Python")


if __name__ == "__main__":
    main()
