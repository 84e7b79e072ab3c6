#!/usr/bin/env python3
"""A Llama of 7B's shape to one of 13B's, block by block: time by phase, peak memory beside the plan's.

    bench/llama_7b_13b.py BINARY [--blocks 2 | --whole] [--rows 512] [--what dense lora] [--keep DIR] [theseus options]

Random weights in bfloat16, a shard a block, written as they are needed: neither this script nor theseus ever
holds a model. With 2 blocks the files take 6 GB, and the outputs 4 GB more while they are made. What 32 -> 40
blocks would take is the time of a block of this run times 40; --whole makes all of them, 40 GB without the tuned
model that `dense` needs. Needs numpy.
"""

import argparse
import functools
import json
import multiprocessing
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np

SOURCE = {"width": 4096, "mlp": 11008, "heads": 32, "blocks": 32}
TARGET = {"width": 5120, "mlp": 13824, "heads": 40, "blocks": 40}
VOCABULARY = 1000
DRAWN = 33_554_393  # a prime: no two rows of a weight begin at the same one


def bfloat16(values):
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


@functools.cache
def numbers(scale, tuning):
    """What weights are cut from: drawing billions would take longer than all the rest."""
    value = np.random.default_rng(1).standard_normal(DRAWN, dtype=np.float32) * np.float32(scale)
    if tuning:
        value += np.random.default_rng(2).standard_normal(DRAWN, dtype=np.float32) * np.float32(scale * tuning)
    return bfloat16(value)


def drawn(shape, seed, scale, tuning):
    """The bytes of one tensor, in pieces; `tuning`: so much is added to what is there without it."""
    if len(shape) == 1:  # a gain
        value = 1 + 0.02 * np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
        yield bfloat16(value).tobytes()
        return
    place = int(np.random.default_rng(seed).integers(DRAWN))
    left = int(np.prod(shape))
    while left > 0:
        piece = numbers(scale, tuning)[place : place + left]
        yield piece.tobytes()
        left -= len(piece)
        place = 0


def write_shard(path, shapes, seed, tuning):
    header, offset = {}, 0
    for name, shape in shapes.items():
        size = 2 * int(np.prod(shape))
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for i, (name, shape) in enumerate(shapes.items()):
            change = 0 if "layers." not in name else tuning
            for piece in drawn(shape, 1000 * seed + i, shape[-1] ** -0.5, change):
                file.write(piece)
    return offset


def shapes_of(size, block):
    d, m, name = size["width"], size["mlp"], f"model.layers.{block}."
    return {
        name + "input_layernorm.weight": [d],
        name + "self_attn.q_proj.weight": [d, d],
        name + "self_attn.k_proj.weight": [d, d],
        name + "self_attn.v_proj.weight": [d, d],
        name + "self_attn.o_proj.weight": [d, d],
        name + "post_attention_layernorm.weight": [d],
        name + "mlp.gate_proj.weight": [m, d],
        name + "mlp.up_proj.weight": [m, d],
        name + "mlp.down_proj.weight": [d, m],
    }


def write_model(directory, size, blocks, seed, tuning=0.0):
    directory.mkdir(parents=True)
    d = size["width"]
    config = {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": d,
        "intermediate_size": size["mlp"], "num_attention_heads": size["heads"],
        "num_key_value_heads": size["heads"], "num_hidden_layers": blocks, "hidden_act": "silu",
        "vocab_size": VOCABULARY, "rms_norm_eps": 1e-5, "max_position_embeddings": 4096,
        "torch_dtype": "bfloat16", "tie_word_embeddings": False,
    }  # fmt: skip
    (directory / "config.json").write_text(json.dumps(config))
    outer = {
        "model.embed_tokens.weight": [VOCABULARY, d],
        "model.norm.weight": [d],
        "lm_head.weight": [VOCABULARY, d],
    }
    places, total = {}, 0
    for i, shapes in enumerate([outer] + [shapes_of(size, b) for b in range(blocks)]):
        file = f"model-{i + 1:05d}-of-{blocks + 1:05d}.safetensors"
        total += write_shard(directory / file, shapes, 100 * seed + i, tuning)
        places.update(dict.fromkeys(shapes, file))
    index = {"metadata": {"total_size": total}, "weight_map": places}
    (directory / "model.safetensors.index.json").write_text(json.dumps(index))


def save_float32(path, tensors):
    header, offset = {}, 0
    words = {np.dtype(np.float32): "F32", np.dtype(np.int64): "I64"}
    for name, value in tensors.items():
        end = offset + value.nbytes
        header[name] = {
            "dtype": words[value.dtype], "shape": list(value.shape), "data_offsets": [offset, end],
        }  # fmt: skip
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for value in tensors.values():
            file.write(value.tobytes())


def write_adapter(directory, blocks, rank=16):
    directory.mkdir(parents=True)
    config = {
        "peft_type": "LORA", "r": rank, "lora_alpha": 2 * rank, "lora_dropout": 0.0, "bias": "none",
        "target_modules": ["q_proj", "v_proj"], "task_type": "CAUSAL_LM", "fan_in_fan_out": False,
        "base_model_name_or_path": "source",
    }  # fmt: skip
    (directory / "adapter_config.json").write_text(json.dumps(config))
    random, d = np.random.default_rng(5), SOURCE["width"]
    tensors = {}
    for block in range(blocks):
        for layer in ("q_proj", "v_proj"):
            name = f"base_model.model.model.layers.{block}.self_attn.{layer}."
            for part, shape in (("lora_A", (rank, d)), ("lora_B", (d, rank))):
                value = random.standard_normal(shape, dtype=np.float32) * 0.01
                tensors[name + part + ".weight"] = value
    save_float32(directory / "adapter_model.safetensors", tensors)


def write_job(directory, blocks, whole, what, rows, length):
    narrow, wide = (SOURCE["blocks"], TARGET["blocks"]) if whole else (blocks, blocks)
    models = [("source", SOURCE, narrow, 1, 0.0), ("target", TARGET, wide, 2, 0.0)]
    if "dense" in what:
        models.append(("tuned", SOURCE, narrow, 1, 0.05))
    writers = [multiprocessing.Process(target=write_model, args=(directory / name, *how)) for name, *how in models]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        if writer.exitcode != 0:
            sys.exit("a model could not be made")
    write_adapter(directory / "lora", narrow)
    ids = np.random.default_rng(3).integers(0, VOCABULARY, (rows // length, length))
    save_float32(directory / "calibration.safetensors", {"input_ids": ids.astype(np.int64)})


def measured(command):
    """Seconds, seconds of processors, peak bytes of the process, and what it printed."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"failed: {' '.join(command)}")
    return (
        time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024,
        json.loads(output),
    )  # fmt: skip


def report(what, blocks, seconds, processor, peak, record):
    planned = record["schedule"]["peak_memory_bytes"]
    print(f"{what}, {blocks} blocks: {seconds:.1f} s ({processor:.0f} s of processors), peak {peak / 1e9:.2f} GB, "
          f"planned {planned / 1e9:.2f} GB ({100 * (planned / peak - 1):+.0f} %)")
    walked = 0
    for phase, spent in record.get("seconds", {}).items():
        flops = record["schedule"]["flops"].get(phase)
        rate = f", {flops / spent / 1e9:.0f} Gflop/s of {flops:.3g} flop" if flops else ""
        print(f"  {phase:<12} {spent:7.2f} s, {spent / blocks:6.2f} s a block{rate}")
        walked += spent
    print(f"  {'the rest':<12} {seconds - walked:7.2f} s")
    print(f"  {TARGET['blocks']} blocks at this rate: {seconds / blocks * TARGET['blocks'] / 60:.0f} min")
    spaces = record["spaces"]
    factored = [row for row in spaces if "factors" in row]
    print(f"  {len(factored)} of {len(spaces)} maps as factors; worst orthogonality "
          f"{max(row.get('orthogonality', 0) for row in spaces):.1e}, asymmetry "
          f"{max(row.get('asymmetry', 0) for row in spaces):.1e}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("--blocks", type=int, default=2)
    parser.add_argument("--whole", action="store_true", help="32 and 40 blocks")
    parser.add_argument("--rows", type=int, default=512, help="tokens to align by")
    parser.add_argument("--length", type=int, default=64, help="tokens of a sequence")
    parser.add_argument("--what", nargs="+", default=["dense", "lora"], choices=["dense", "lora"])
    parser.add_argument("--scratch", type=pathlib.Path, help="where to make the files")
    parser.add_argument("--keep", type=pathlib.Path, help="make the models here, and keep them")
    arguments, more = parser.parse_known_args()  # more: options for theseus
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        directory = arguments.keep or pathlib.Path(scratch)
        if not (directory / "calibration.safetensors").exists():
            write_job(
                directory, arguments.blocks, arguments.whole, arguments.what, arguments.rows, arguments.length
            )
        for what in arguments.what:
            common = [
                "--source", str(directory / "source"),
                "--tuned", str(directory / ("tuned" if what == "dense" else "lora")),
                "--target", str(directory / "target"),
                "--examples", str(directory / "calibration.safetensors"), "--json", *more,
            ]  # fmt: skip
            seconds, _, peak, plan = measured([arguments.binary, "plan", *common])
            print(f"plan of {what}: {seconds:.1f} s, peak {peak / 1e9:.2f} GB; "
                  f"{plan['disk_bytes'] / 1e9:.1f} GB of disk", flush=True)
            out = ["--out", str(directory / f"out-{what}"), "--fresh"]
            blocks = TARGET["blocks"] if arguments.whole else arguments.blocks
            report(what, blocks, *measured([arguments.binary, "transport", *common, *out]))
            subprocess.run(["rm", "-r", str(directory / f"out-{what}")], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
