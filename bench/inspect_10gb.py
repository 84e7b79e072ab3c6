#!/usr/bin/env python3
"""Time and peak memory of `theseus inspect` on a sharded Llama of 10 GB (sparse files).

    inspect_10gb.py THESEUS
"""
import json
import os
import pathlib
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import time

CONFIG = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 2560,
          "intermediate_size": 8704, "num_hidden_layers": 54, "num_attention_heads": 32,
          "num_key_value_heads": 8, "head_dim": 80, "vocab_size": 64000, "rms_norm_eps": 1e-5,
          "tie_word_embeddings": False}


def shapes():
    d, m, kv = CONFIG["hidden_size"], CONFIG["intermediate_size"], 8 * 80
    yield "model.embed_tokens.weight", [CONFIG["vocab_size"], d]
    for i in range(CONFIG["num_hidden_layers"]):
        p = f"model.layers.{i}."
        yield p + "input_layernorm.weight", [d]
        yield p + "post_attention_layernorm.weight", [d]
        for name, rows, columns in (("self_attn.q_proj", d, d), ("self_attn.k_proj", kv, d),
                                    ("self_attn.v_proj", kv, d), ("self_attn.o_proj", d, d),
                                    ("mlp.gate_proj", m, d), ("mlp.up_proj", m, d),
                                    ("mlp.down_proj", d, m)):
            yield p + name + ".weight", [rows, columns]
    yield "model.norm.weight", [d]
    yield "lm_head.weight", [CONFIG["vocab_size"], d]


def write(directory, shards=4):
    tensors = list(shapes())
    weight_map, total = {}, 0
    for shard in range(shards):
        name = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        header, size = {}, 0
        for tensor, shape in tensors[shard::shards]:
            count = 2
            for extent in shape:
                count *= extent
            header[tensor] = {"dtype": "BF16", "shape": shape, "data_offsets": [size, size + count]}
            size += count
            weight_map[tensor] = name
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with open(directory / name, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            file.truncate(8 + len(text) + size)
        total += size
    (directory / "config.json").write_text(json.dumps(CONFIG))
    (directory / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": total}, "weight_map": weight_map}))
    return total


def main():
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as scratch:
        directory = pathlib.Path(scratch)
        total = write(directory)
        seconds = []
        for _ in range(11):
            start = time.perf_counter()
            subprocess.run([program, "inspect", directory], check=True, stdout=subprocess.DEVNULL)
            seconds.append(time.perf_counter() - start)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"inspect of {total / 1e9:.1f} GB in 4 shards, {len(list(shapes()))} tensors: "
          f"median {statistics.median(seconds):.3f} s, peak {peak / 1000:.0f} MB")


if __name__ == "__main__":
    main()
