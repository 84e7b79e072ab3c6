#!/usr/bin/env python3
"""Time and peak memory of a whole transport: ViT-B/16 -> ViT-B/16-plus, random weights, batches of 32.

    bench/transport_vit_b.py BINARY [--blocks 2] [--batches 1] [--keep DIR]

Needs numpy. The public reference, which carries norms like biases, took 66 s and 3.4 GiB
for 2 blocks on two cores.
"""

import argparse
import json
import multiprocessing
import pathlib
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np

REFERENCE_SECONDS, REFERENCE_BYTES = 66.0, 3.4 * 2**30  # for 2 blocks


def save(path, tensors):
    header, offset = {}, 0
    for name, value in tensors.items():
        header[name] = {
            "dtype": {"float32": "F32", "int64": "I64"}[value.dtype.name],
            "shape": list(value.shape),
            "data_offsets": [offset, offset + value.nbytes],
        }
        offset += value.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for value in tensors.values():
            file.write(np.ascontiguousarray(value).tobytes())


def tower(random, prefix, width, blocks):
    def normal(*shape):
        return random.standard_normal(shape, dtype=np.float32) * 0.02

    tensors = {}
    for i in range(blocks):
        name = f"{prefix}transformer.resblocks.{i}."
        for norm in ("ln_1", "ln_2"):
            tensors[name + norm + ".weight"] = 1 + normal(width)
            tensors[name + norm + ".bias"] = normal(width)
        tensors[name + "attn.in_proj_weight"] = normal(3 * width, width)
        tensors[name + "attn.in_proj_bias"] = normal(3 * width)
        tensors[name + "attn.out_proj.weight"] = normal(width, width)
        tensors[name + "attn.out_proj.bias"] = normal(width)
        tensors[name + "mlp.c_fc.weight"] = normal(4 * width, width)
        tensors[name + "mlp.c_fc.bias"] = normal(4 * width)
        tensors[name + "mlp.c_proj.weight"] = normal(width, 4 * width)
        tensors[name + "mlp.c_proj.bias"] = normal(width)
    return tensors


def write_model(directory, seed, width, image, embed, blocks):
    random = np.random.default_rng(seed)

    def normal(*shape):
        return random.standard_normal(shape, dtype=np.float32) * 0.02

    positions = (image // 16) ** 2 + 1
    text = 64
    tensors = {
        "visual.class_embedding": normal(width),
        "visual.positional_embedding": normal(positions, width),
        "visual.conv1.weight": normal(width, 3, 16, 16),
        "visual.ln_pre.weight": 1 + normal(width),
        "visual.ln_pre.bias": normal(width),
        "visual.ln_post.weight": 1 + normal(width),
        "visual.ln_post.bias": normal(width),
        "visual.proj": normal(width, embed),
        "token_embedding.weight": normal(64, text),
        "positional_embedding": normal(8, text),
        "ln_final.weight": 1 + normal(text),
        "ln_final.bias": normal(text),
        "text_projection": normal(text, embed),
        "logit_scale": np.array(4.6, dtype=np.float32),
    }
    tensors.update(tower(random, "visual.", width, blocks))
    tensors.update(tower(random, "", text, 1))
    directory.mkdir(parents=True)
    config = {
        "model_cfg": {
            "embed_dim": embed,
            "vision_cfg": {"image_size": image, "layers": blocks, "width": width, "patch_size": 16},
            "text_cfg": {
                "context_length": 8, "vocab_size": 64, "width": text, "heads": 4, "layers": 1,
            },
        }
    }
    (directory / "open_clip_config.json").write_text(json.dumps(config))
    save(directory / "open_clip_model.safetensors", tensors)
    return tensors


def write_job(directory, blocks, batches):
    base = write_model(directory / "source", 1, 768, 224, 512, blocks)
    write_model(directory / "target", 2, 896, 240, 640, blocks)
    random = np.random.default_rng(3)
    tuned = {
        name: value + random.standard_normal(value.shape, dtype=np.float32) * 0.001
        for name, value in base.items()
        if ".resblocks." in name and name.startswith("visual.") or name == "visual.proj"
    }
    save(directory / "tuned.safetensors", tuned)
    images = {
        f"{side}/pixel_values": random.standard_normal((32 * batches, 3, size, size), dtype=np.float32)
        for side, size in (("source", 224), ("target", 240))
    }
    save(directory / "calibration.safetensors", images)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("--blocks", type=int, default=2)
    parser.add_argument("--batches", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, help="make the models here, and keep them")
    arguments, more = parser.parse_known_args()  # more: options for theseus
    with tempfile.TemporaryDirectory() as scratch:
        directory = arguments.keep or pathlib.Path(scratch)
        if not (directory / "calibration.safetensors").exists():
            # In a process of its own: a child's peak begins with that of the process that started it.
            writer = multiprocessing.Process(target=write_job, args=(directory, arguments.blocks, arguments.batches))
            writer.start()
            writer.join()
        command = [
            arguments.binary, "transport",
            "--source", str(directory / "source"),
            "--tuned", str(directory / "tuned.safetensors"),
            "--target", str(directory / "target"),
            "--examples", str(directory / "calibration.safetensors"),
            "--out", str(directory / "out"), "--fresh", "--json", "--norms", "rotate", "--draw", "all", *more,
        ]  # fmt: skip
        shutil.rmtree(directory / "out", ignore_errors=True)  # or --fresh would be timed, too
        start = time.monotonic()
        result = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        seconds = time.monotonic() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    record = json.loads(result.stdout)
    print(f"{arguments.blocks} blocks, {arguments.batches} batches: {seconds:.1f} s, peak {peak / 2**30:.2f} GiB "
          f"(planned {record['schedule']['peak_memory_bytes'] / 2**30:.2f} GiB)")
    for phase, spent in record.get("seconds", {}).items():
        flops = record["schedule"]["flops"].get(phase)
        rate = f", {flops / spent / 1e9:.0f} Gflop/s of {flops:.3g} flop" if flops else ""
        print(f"  {phase:<12} {spent:7.2f} s{rate}")
    if arguments.blocks == 2 and arguments.batches == 1:
        print(f"the public reference: {REFERENCE_SECONDS:.0f} s, {REFERENCE_BYTES / 2**30:.1f} GiB: "
              f"{REFERENCE_SECONDS / seconds:.1f} times the time, "
              f"{REFERENCE_BYTES / peak:.1f} times the memory")
    return 0


if __name__ == "__main__":
    sys.exit(main())
