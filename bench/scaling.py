#!/usr/bin/env python3
"""Time of a transport in 1, 2 and 4 processes of one thread each, random weights.

    bench/scaling.py BINARY [--processes 1,2,4] [--blocks 8] [--batches 16] [--turns 3]

Needs numpy. Each process has one thread, so that the columns differ in processes alone. The fastest of some turns
counts. `theseus align` and `theseus transport` share out walking and solving; opening, carrying and writing they do not.
"""

import argparse
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

import numpy as np

import transport_vit_b as pair

SIZES = (("source", 1, 384, 96), ("target", 2, 512, 96))  # name, seed, width, image


def write_job(directory, blocks, batches):
    base = {}
    for name, seed, width, image in SIZES:
        tensors = pair.write_model(directory / name, seed, width, image, 128, blocks)
        base = base or tensors
    random = np.random.default_rng(3)
    pair.save(directory / "tuned.safetensors", {
        name: value + random.standard_normal(value.shape, dtype=np.float32) * 0.001
        for name, value in base.items() if name.startswith("visual.transformer.resblocks.")})
    pair.save(directory / "calibration.safetensors", {
        "pixel_values": random.standard_normal((32 * batches, 3, 96, 96), dtype=np.float32)})


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


def run(binary, directory, size):
    """Seconds of the whole, and what the first process spent them on."""
    command = [binary, "transport", "--source", "source", "--tuned", "tuned.safetensors", "--target", "target",
               "--examples", "calibration.safetensors", "--out", "out", "--fresh", "--json", "--quiet",
               "--threads", "1"]
    port = free_port()
    start = time.monotonic()
    processes = [
        subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE, env={
            **os.environ, "RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_WORLD_SIZE": str(size),
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port})
        for rank in range(size)]
    printed = [process.communicate()[0] for process in processes]
    seconds = time.monotonic() - start
    if any(process.returncode for process in processes):
        sys.exit("a process failed")
    return seconds, json.loads(printed[0])["seconds"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary", type=pathlib.Path)
    parser.add_argument("--processes", default="1,2,4")
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--batches", type=int, default=16)
    parser.add_argument("--turns", type=int, default=3)
    arguments = parser.parse_args()
    sizes = [int(word) for word in arguments.processes.split(",")]
    with tempfile.TemporaryDirectory() as scratch:
        directory = pathlib.Path(scratch)
        write_job(directory, arguments.blocks, arguments.batches)
        best = {}
        for _ in range(arguments.turns):  # in turns, as others may use the machine, too
            for size in sizes:
                found = run(arguments.binary.resolve(), directory, size)
                best[size] = min(best.get(size, found), found, key=lambda one: one[0])
    phases = ["forward", "statistics", "exchange", "solve", "carry", "write", "record"]
    print(f"{os.cpu_count()} processors, {arguments.blocks} blocks, {arguments.batches} batches of 32")
    print("| processes | time | times faster |", " | ".join(phases), "|")
    print("|---" * (3 + len(phases)) + "|")
    for size, (seconds, spent) in best.items():
        print(f"| {size} | {seconds:.1f} s | {best[sizes[0]][0] / seconds:.2f} |",
              " | ".join(f"{spent.get(phase, 0):.1f} s" for phase in phases), "|")
    return 0


if __name__ == "__main__":
    sys.exit(main())
