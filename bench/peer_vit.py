#!/usr/bin/env python3
"""theseus beside PyTorch in Python: forward of vit_tiny_patch16_224 on 64 images, the same layers.

    peer_vit.py BENCH_FORWARD [MODEL_DIRECTORY] [--rounds N]

Without a model it writes one with random weights. The two take turns, so that what else the machine
does hits both; the ratio is of the medians.
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import struct
import subprocess
import tempfile
import time

import torch
from torch.nn import functional as F

IMAGES, WIDTH, BLOCKS, HEADS = 64, 192, 12, 3
DTYPES = {"F32": torch.float32, "F16": torch.float16}


def read(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            raw = bytearray(data[8 + length + begin:8 + length + end])
            flat = torch.frombuffer(raw, dtype=DTYPES[entry["dtype"]])
            tensors[name] = flat.reshape(entry["shape"]).float()
    return tensors


def write_random(directory):
    shapes = {"cls_token": (1, 1, WIDTH), "pos_embed": (1, 197, WIDTH), "norm.weight": (WIDTH,),
              "norm.bias": (WIDTH,), "patch_embed.proj.weight": (WIDTH, 3, 16, 16),
              "patch_embed.proj.bias": (WIDTH,), "head.weight": (1000, WIDTH), "head.bias": (1000,)}
    for i in range(BLOCKS):
        for name, rows, columns in (("attn.qkv", 3 * WIDTH, WIDTH), ("attn.proj", WIDTH, WIDTH),
                                    ("mlp.fc1", 4 * WIDTH, WIDTH), ("mlp.fc2", WIDTH, 4 * WIDTH)):
            shapes[f"blocks.{i}.{name}.weight"] = (rows, columns)
            shapes[f"blocks.{i}.{name}.bias"] = (rows,)
        for name in ("norm1", "norm2"):
            shapes[f"blocks.{i}.{name}.weight"] = shapes[f"blocks.{i}.{name}.bias"] = (WIDTH,)
    header, data = {}, b""
    for name, shape in shapes.items():
        raw = (0.05 * torch.randn(shape)).numpy().tobytes()
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (directory / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (directory / "config.json").write_text(
        json.dumps({"architecture": "vit_tiny_patch16_224", "num_classes": 1000}))


def forward(w, images):
    """timm's VisionTransformer.forward, layer by layer."""
    x = F.conv2d(images, w["patch_embed.proj.weight"], w["patch_embed.proj.bias"], stride=16)
    x = x.flatten(2).transpose(1, 2)
    x = torch.cat((w["cls_token"].expand(len(x), -1, -1), x), 1) + w["pos_embed"]
    for i in range(BLOCKS):
        def linear(name, y):
            return F.linear(y, w[f"blocks.{i}.{name}.weight"], w[f"blocks.{i}.{name}.bias"])

        def norm(name, y):
            return F.layer_norm(y, (WIDTH,), w[f"blocks.{i}.{name}.weight"],
                                w[f"blocks.{i}.{name}.bias"], 1e-6)

        n, t, _ = x.shape
        qkv = linear("attn.qkv", norm("norm1", x)).reshape(n, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        share = ((q * (1 / math.sqrt(WIDTH // HEADS))) @ k.transpose(-2, -1)).softmax(-1)
        x = x + linear("attn.proj", (share @ v).transpose(1, 2).reshape(n, t, -1))
        x = x + linear("mlp.fc2", F.gelu(linear("mlp.fc1", norm("norm2", x))))
    x = F.layer_norm(x, (WIDTH,), w["norm.weight"], w["norm.bias"], 1e-6)
    return F.linear(x[:, 0], w["head.weight"], w["head.bias"])


def python_rate(w, images, seconds):
    start, runs = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        forward(w, images).sum().item()
        runs += 1
    return runs * IMAGES / (time.perf_counter() - start)


def theseus_rate(program, model, seconds):
    result = subprocess.run(
        [program, "--benchmark_format=json", "--benchmark_filter=/cpu", f"--benchmark_min_time={seconds}"],
        env=os.environ | {"THESEUS_BENCH_MODEL": str(model)}, check=True, capture_output=True)
    return json.loads(result.stdout)["benchmarks"][0]["items_per_second"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bench_forward")
    parser.add_argument("model", nargs="?", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, torch.no_grad():
        model = arguments.model or pathlib.Path(scratch)
        if arguments.model is None:
            write_random(model)
        weights = read(model / "model.safetensors")
        images = torch.randn(IMAGES, 3, 224, 224)
        forward(weights, images)
        python, theseus = [], []
        for _ in range(arguments.rounds):
            python.append(python_rate(weights, images, arguments.seconds))
            theseus.append(theseus_rate(arguments.bench_forward, model, arguments.seconds))
            print(f"python {python[-1]:.1f} images/s   theseus {theseus[-1]:.1f} images/s", flush=True)
    ratio = statistics.median(theseus) / statistics.median(python)
    print(f"median: python (torch {torch.__version__}, {torch.get_num_threads()} threads) "
          f"{statistics.median(python):.1f}, theseus {statistics.median(theseus):.1f} images/s: "
          f"{ratio:.2f} times")


if __name__ == "__main__":
    main()
