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
