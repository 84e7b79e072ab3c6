"""Safetensors files with the standard library: what the demo needs of them.

A file is {name: Tensor}. Values are read and written as one flat sequence, the last axis fastest.
"""
import json
import pathlib
import struct

LETTERS = {"F16": "e", "F32": "f", "I64": "q"}


class Tensor:
    def __init__(self, dtype, shape, data):
        self.dtype, self.shape, self.data = dtype, list(shape), bytes(data)

    @classmethod
    def of(cls, dtype, shape, values):
        return cls(dtype, shape, struct.pack(f"<{len(values)}{LETTERS[dtype]}", *values))

    def values(self):
        letter = LETTERS[self.dtype]
        return struct.unpack(f"<{len(self.data) // struct.calcsize(letter)}{letter}", self.data)


def read(path):
    content = pathlib.Path(path).read_bytes()
    length, = struct.unpack_from("<Q", content)
    header = json.loads(content[8:8 + length])
    header.pop("__metadata__", None)
    body = content[8 + length:]
    return {name: Tensor(one["dtype"], one["shape"], body[slice(*one["data_offsets"])])
            for name, one in header.items()}


def write(path, tensors):
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, one in tensors.items():
        end = offset + len(one.data)
        header[name] = {"dtype": one.dtype, "shape": one.shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    body = b"".join(one.data for one in tensors.values())
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + body)
