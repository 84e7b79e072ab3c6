#!/usr/bin/env python3
"""How near the time that `theseus plan` says comes to what the job takes: ten jobs, each planned and then done.

    plan_time.py BINARY [--shared DIRECTORY] [OPTIONS OF THESEUS]

The jobs are the demo's pair, a ViT-B/16 of two blocks with random weights, and, where DIRECTORY (../shared) has them,
small text models with tunes made by adding noise. Needs numpy; run it on a quiet machine.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import tempfile
import time

import numpy as np
import transport_vit_b

ROOT = pathlib.Path(__file__).resolve().parents[1]


def add_noise(model, out):
    """A copy whose float16 or float32 matrices differ by two percent of their spread."""
    shutil.copytree(model, out)
    path = out / "model.safetensors"
    content = bytearray(path.read_bytes())
    length = int.from_bytes(content[:8], "little")
    random = np.random.default_rng(0)
    for name, about in json.loads(content[8:8 + length]).items():
        if name == "__metadata__" or len(about["shape"]) != 2 or "embed" in name:
            continue
        dtype = {"F16": np.float16, "F32": np.float32}[about["dtype"]]
        first, end = (8 + length + place for place in about["data_offsets"])
        values = np.frombuffer(bytes(content[first:end]), dtype).astype(np.float32)
        changed = values + 0.02 * values.std() * random.standard_normal(values.size, dtype=np.float32)
        content[first:end] = changed.astype(dtype).tobytes()
    path.write_bytes(content)


def pair(source, tuned, target, calibration, *more):
    return ["--source", source, "--tuned", tuned, "--target", target, "--examples", calibration, *more]


def jobs(scratch, shared):
    demo = ROOT / "tools" / "demo" / "models"
    digits = f"mnist:{ROOT / 'tools' / 'demo' / 'digits'}"
    for batches in "10", "60":
        yield f"demo, {batches} batches", pair(demo / "source", demo / "tuned", demo / "target", digits,
                                              "--batches", batches)
    for batches in 1, 4:
        job = scratch / f"vit{batches}"
        transport_vit_b.write_job(job, 2, batches)
        yield f"ViT-B, {batches} batches", pair(job / "source", job / "tuned.safetensors", job / "target",
                                                job / "calibration.safetensors")
    models, texts = shared / "models", shared / "data" / "text"
    tiny, mini, gte = (models / name for name in ("bert-tiny-toxicity", "all-MiniLM-L6-v2", "gte-small"))
    if not gte.exists():
        print(f"{models} is not there: its jobs are left out")
        return
    for model in (tiny, mini, gte):
        add_noise(model, scratch / model.name)
    for source, target, data, batches in (
            (mini, gte, "trec6", "10"), (mini, gte, "ag_news", "10"), (gte, mini, "ag_news", "5"),
            (tiny, mini, "subj", "20"), (mini, tiny, "sst2", "20"), (tiny, gte, "trec6", "30")):
        yield (f"{source.name} -> {target.name}, {data}, {batches} batches",
               pair(source, scratch / source.name, target, texts / f"{data}.train.jsonl",
                    "--batches", batches))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("--shared", type=pathlib.Path, default=ROOT.parent / "shared")
    given, more = parser.parse_known_args()
    within, count = 0, 0
    print("| job | planned | taken | planned / taken |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        for name, words in jobs(scratch, given.shared):
            plan = subprocess.run([given.binary, "plan", *map(str, words), *more, "--json"], check=True,
                                  stdout=subprocess.PIPE)
            planned = json.loads(plan.stdout)["seconds"]
            start = time.monotonic()
            subprocess.run([given.binary, "transport", *map(str, words), *more, "--out",
                            str(scratch / f"out{count}"), "--quiet"], check=True)
            taken = time.monotonic() - start
            within += 0.5 <= planned / taken <= 2
            count += 1
            print(f"| {name} | {planned:.1f} s | {taken:.1f} s | {planned / taken:.2f} |", flush=True)
    print(f"{within} of {count} within a factor of two")


if __name__ == "__main__":
    main()
