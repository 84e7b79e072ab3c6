"""A vision transformer, its fine-tune, a wider one, and inputs for both; made once for a test file.

The models are those of the demo: 4 blocks, 48 and 96 features, images of 28 by 28.
"""
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

import support
from support import ROOT, read_safetensors, tensor, write_safetensors

DEMO = ROOT / "tools" / "demo"
KEY = "blocks.1.attn.proj.weight"  # one that the fine-tune changes


def images(count, size=28, seed=1):
    generator = random.Random(seed)
    return tensor("F32", [count, 3, size, size],
                  [generator.random() for _ in range(count * 3 * size * size)])


def ids(count, length, vocabulary=60, seed=1):
    generator = random.Random(seed)
    return tensor("I64", [count, length],
                  [generator.randrange(3, vocabulary) for _ in range(count * length)])


def files_of(directory):
    return {str(path.relative_to(directory)): path.read_bytes()
            for path in sorted(directory.rglob("*")) if path.is_file()}


class PairTest(support.CommandTest):
    """The models are in `self.models`, which no test may change; outputs go to `self.here`."""

    DEVICE = None  # --device, where a test is of one

    @classmethod
    def setUpClass(cls):
        cls.models = pathlib.Path(tempfile.mkdtemp(prefix="theseus-pair-"))
        cls.addClassCleanup(shutil.rmtree, cls.models, ignore_errors=True)
        for name in ("base", "tuned"):
            shutil.copytree(DEMO / "model" / name, cls.models / name)
        subprocess.run([sys.executable, "-B", DEMO / "widen.py", cls.models / "base",
                        cls.models / "wide"], check=True)
        write_safetensors(cls.models / "images.safetensors", {"pixel_values": images(16)})

    def words(self, command="transport", out="out", **changed):
        """The command with its required options; `changed` replaces one, or leaves it out (None).
        Always one thread: the bytes depend on the number."""
        options = {"source": self.models / "base", "tuned": self.models / "tuned",
                   "target": self.models / "wide",
                   "examples": self.models / "images.safetensors",
                   "out": self.here / out, "threads": 1, "device": self.DEVICE, **changed}
        if command in ("plan", "diagnose"):
            options.pop("out")
        if command == "align":
            options.pop("tuned")
        return [command, *(str(word) for name, value in options.items() if value is not None
                           for word in ("--" + name.replace("_", "-"), value))]

    def carry(self, *more, out="out", command="transport", **changed):
        """Runs it with --quiet; the directory that it wrote."""
        done = self.theseus(*self.words(command, out, **changed), "--quiet", *more)
        self.assertEqual(done.stdout + done.stderr, "")
        self.assertFalse((self.here / f"{out}.partial").exists())
        return self.here / out

    def record(self, out):
        return json.loads((out / "theseus.json").read_text())

    def base(self):
        return read_safetensors(self.models / "base" / "model.safetensors")

    def tuned(self):
        return read_safetensors(self.models / "tuned" / "model.safetensors")

    def assert_same_files(self, left, right):
        ours, theirs = files_of(left), files_of(right)
        self.assertEqual(set(ours), set(theirs))
        for name, content in ours.items():
            self.assertTrue(content == theirs[name], f"{name} differs")
