"""tools/make_tiny_model.py writes a well-formed model, the same every time."""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ITEM_BYTES = {"F32": 4, "I64": 8}


def make(directory):
    subprocess.run([sys.executable, ROOT / "tools" / "make_tiny_model.py", directory], check=True)
    return {str(path.relative_to(directory)): path.read_bytes()
            for path in sorted(pathlib.Path(directory).rglob("*")) if path.is_file()}


def header_of(data):
    length, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__")
    return header, len(data) - 8 - length


class MakeTinyModel(unittest.TestCase):
    def setUp(self):
        with tempfile.TemporaryDirectory() as directory:
            self.files = make(directory)

    def test_the_same_every_time(self):
        with tempfile.TemporaryDirectory() as directory:
            self.assertEqual(make(directory), self.files)

    def test_tensors_fill_the_file_without_gaps(self):
        for name in ("model/model.safetensors", "inputs.safetensors"):
            header, size = header_of(self.files[name])
            end = 0
            for tensor in header.values():
                count = 1
                for extent in tensor["shape"]:
                    count *= extent
                begin, end_here = tensor["data_offsets"]
                self.assertEqual(begin, end)
                self.assertEqual(end_here - begin, count * ITEM_BYTES[tensor["dtype"]])
                end = end_here
            self.assertEqual(end, size)

    def test_inputs_are_in_the_vocabulary(self):
        config = json.loads(self.files["model/config.json"])
        header, size = header_of(self.files["inputs.safetensors"])
        begin, end = header["input_ids"]["data_offsets"]
        body = self.files["inputs.safetensors"][-size:]
        for token, in struct.iter_unpack("<q", body[begin:end]):
            self.assertTrue(0 <= token < config["vocab_size"])


if __name__ == "__main__":
    unittest.main()
