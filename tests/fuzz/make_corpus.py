#!/usr/bin/env python3
"""Writes the seeds in tests/fuzz/corpus from tests/fixtures; run after make_torch_files.py."""
import json
import pathlib
import struct
import zipfile

HERE = pathlib.Path(__file__).parent
TORCH = HERE.parent / "fixtures" / "torch"
ARCHIVES = ["plain", "protocol4", "dtypes", "views", "mixed", "attributes", "nested_two", "tensor_v3",
            "hand_made", "stride_past", "twice", "torchscript"]
PICKLES = ARCHIVES[:8] + ["evil_system", "evil_eval"]


def seed(target, name, content):
    folder = HERE / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def pickle_of(path):
    with zipfile.ZipFile(path) as archive:
        return archive.read(next(n for n in archive.namelist() if n.endswith("/data.pkl")))


def tensor(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def safetensors(header, size):
    text = json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text)) + text + bytes(size)


for stem in ARCHIVES:
    seed("pickle", f"zip_{stem}", b"z" + (TORCH / f"{stem}.pt").read_bytes())
for stem in PICKLES:
    seed("pickle", f"pickle_{stem}", b"p" + pickle_of(TORCH / f"{stem}.pt"))

SEEDS = {
    "empty": ({}, 0),
    "metadata": ({"__metadata__": {"format": "pt"}}, 0),
    "two": ({"a": tensor("F32", [2, 3], 0, 24), "b": tensor("BF16", [], 24, 26)}, 26),
    "zero": ({"a": tensor("I64", [0, 3], 0, 0), "b": tensor("F4", [2], 0, 1)}, 1),
    "overlap": ({"a": tensor("U8", [4], 0, 4), "b": tensor("BOOL", [4], 2, 6)}, 6),
    "overflow": ({"a": tensor("F64", [2**32, 2**32], 0, 8)}, 8),
}
for name, (header, size) in SEEDS.items():
    seed("safetensors", name, safetensors(header, size))

# In the order of fuzz_config.cpp's table.
TARGETS = ["bert_bare/config.json", "adapted_bert/config.json", "clip_legacy_end/config.json",
           "llama3_rope/config.json", "qwen3_bias/config.json", "open_clip_config.json",
           "t5_tied_gated_silu/config.json", "t5_own_head/config.json", "timm_headless/config.json",
           "vit_bare/config.json", "mistral/generation_config.json",
           "llama_bfloat16/model.safetensors.index.json", "adapted_llama_adapter/adapter_config.json"]
for number, target in enumerate(TARGETS):
    folder = HERE.parent / ("golden/cases" if "/" in target else "fixtures/openclip")
    document = json.loads((folder / target).read_text())
    text = json.dumps({key: value for key, value in document.items() if value is not None},
                      separators=(",", ":"))
    seed("config", target.split("/")[0].removesuffix(".json"), f"{chr(ord('a') + number)}{text}\n".encode())
