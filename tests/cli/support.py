"""Runs the theseus binary named by THESEUS_BINARY, and makes files for it to read.

Files are made by hand, byte by byte, so that wrong ones can be made too. Standard library only.
"""
import json
import math
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "golden" / "cases"
SHARED = ROOT.parent / "shared"  # larger cases and real models, where somebody put them
BINARY = os.environ.get("THESEUS_BINARY", "")
# What theseus starts; and the environment without what theseus, the tests or a user may have set for it.
PROGRAM = pathlib.Path(BINARY).parent / "libexec" / "theseus-program"
PREPARED = ("OPENBLAS_CORETYPE", "DNNL_MAX_CPU_ISA", "LD_PRELOAD", "GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
LONGEST = 300  # seconds of a command, which takes some: on a busy machine it may have to wait

FORMATS = {"F32": "f", "F64": "d", "F16": "e", "I64": "q", "I32": "i", "I16": "h", "I8": "b",
           "U8": "B", "BOOL": "?"}


class Tensor:
    """What a safetensors file holds of one tensor: dtype word, shape, bytes."""

    def __init__(self, dtype, shape, data):
        self.dtype, self.shape, self.data = dtype, list(shape), bytes(data)

    def __eq__(self, other):
        return vars(self) == vars(other)

    def values(self):
        if self.dtype == "BF16":  # the upper half of a float32
            halves = struct.unpack(f"<{len(self.data) // 2}H", self.data)
            return list(struct.unpack(f"<{len(halves)}f", struct.pack(
                f"<{len(halves)}I", *(half << 16 for half in halves))))
        width = struct.calcsize(FORMATS[self.dtype])
        return list(struct.unpack(f"<{len(self.data) // width}{FORMATS[self.dtype]}", self.data))

    def changed(self, position, value):
        values = self.values()
        values[position] = value
        return tensor(self.dtype, self.shape, values)


def tensor(dtype, shape, values):
    """`values`: as many as the shape says, or one for all."""
    count = math.prod(shape)
    if not isinstance(values, (list, tuple)):
        values = [values] * count
    return Tensor(dtype, shape, struct.pack(f"<{count}{FORMATS[dtype]}", *values))


def raw_safetensors(path, header, data=b""):
    """`header`: an object, or text that need not be one."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_safetensors(path, tensors):
    header, offset = {}, 0
    for name, one in tensors.items():
        end = offset + len(one.data)
        header[name] = {"dtype": one.dtype, "shape": one.shape, "data_offsets": [offset, end]}
        offset = end
    raw_safetensors(path, header, b"".join(one.data for one in tensors.values()))


def read_safetensors(path):
    content = pathlib.Path(path).read_bytes()
    length, = struct.unpack("<Q", content[:8])
    header = json.loads(content[8:8 + length])
    header.pop("__metadata__", None)
    body = content[8 + length:]
    return {name: Tensor(one["dtype"], one["shape"], body[slice(*one["data_offsets"])])
            for name, one in header.items()}


def inputs_of(golden):
    return {name: one for name, one in read_safetensors(golden).items() if name.startswith("input/")}


def golden_cases(root):
    """(model, golden file, adapter or None) of every case below `root`."""
    for golden in sorted(root.glob("*/golden.safetensors")):
        folder = golden.parent
        if (folder / "adapter_config.json").exists():
            base = folder.name.removesuffix("_adapter")
            model = root / (base if (root / base).exists() else base + "_base")
            yield model, golden, folder
        elif list(folder.glob("*config.json")):
            yield folder, golden, None


def largest_difference(left, right):
    return max((abs(a - b) for a, b in zip(left.values(), right.values())), default=0)


def listing(directory):
    """Everything below it, with what would change if it were touched."""
    return sorted((str(path.relative_to(directory)), path.lstat().st_size, path.lstat().st_mtime_ns)
                  for path in directory.rglob("*"))


def unprepared(**more):
    kept = {name: value for name, value in os.environ.items() if name not in PREPARED}
    return {**kept, **more}


class CommandTest(unittest.TestCase):
    """Each test has an empty directory, `self.here`."""

    def setUp(self):
        self.here = pathlib.Path(tempfile.mkdtemp(prefix="theseus-cli-"))
        self.addCleanup(shutil.rmtree, self.here, ignore_errors=True)

    def theseus(self, *arguments, exit=0, **options):
        """Runs the command; fails unless it ends with `exit`, in time, and not as a bug."""
        done = subprocess.run([BINARY, *map(str, arguments)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, errors="replace", timeout=LONGEST,
                              check=False, cwd=options.pop("cwd", self.here), **options)
        said = f"{arguments}\n{done.stdout}{done.stderr}"
        self.assertEqual(done.returncode, exit, said)
        for word in ("bug in theseus", "Traceback", "terminate called", "Exception raised from"):
            self.assertNotIn(word, said)
        return done

    def refused(self, *arguments, says, exit=2, **options):
        """The command ends with `exit`, its message holds every text of `says`, it prints no result
        (but the error, where --json is given) and it leaves no trace among the files."""
        before = listing(self.here)
        done = self.theseus(*arguments, exit=exit, **options)
        for text in [says] if isinstance(says, str) else says:
            self.assertIn(str(text), done.stderr)
        if "--json" in arguments:
            failure = json.loads(done.stdout)
            self.assertEqual(failure["exit_status"], exit)
            self.assertIn(failure["error"], done.stderr)
        else:
            self.assertEqual(done.stdout, "")
        self.assertEqual(listing(self.here), before)
        return done

    def as_nobody(self):
        """Options of theseus() for a user whom permissions bind, as they do not bind root. Skips the
        test where such a user cannot run the program."""
        if os.geteuid() != 0:
            return {}
        options = {"user": 65534, "group": 65534, "extra_groups": []}
        self.here.chmod(0o755)
        try:
            subprocess.run([BINARY, "--version"], capture_output=True, timeout=60, check=True,
                           **options)
        except (OSError, subprocess.CalledProcessError):
            self.skipTest("another user may not run the program")
        return options

    def model(self, case, name="model"):
        """A copy of a case's model, without its golden file."""
        target = self.here / name
        shutil.copytree(CASES / case, target, ignore=shutil.ignore_patterns("golden.*"))
        for path in [target, *target.iterdir()]:
            path.chmod(0o755 if path.is_dir() else 0o644)
        return target

    def golden(self, case):
        return CASES / case / "golden.safetensors"

    def write(self, name, tensors):
        write_safetensors(self.here / name, tensors)
        return self.here / name

    def forward(self, model, inputs, *arguments, **options):
        """The tensors that `theseus forward` writes. `inputs`: a file, or tensors by name."""
        if isinstance(inputs, dict):
            inputs = self.write("inputs.safetensors", inputs)
        out = self.here / "out.safetensors"
        self.theseus("forward", model, "--inputs", inputs, "--out", out, "--force", *arguments, **options)
        return read_safetensors(out)


def change_json(path, changes):
    """Sets {"a.b": value}; a value of `...` removes the key."""
    document = json.loads(path.read_text())
    for where, value in changes.items():
        *parents, key = where.split(".")
        place = document
        for parent in parents:
            place = place.setdefault(parent, {})
        if value is ...:
            place.pop(key, None)
        else:
            place[key] = value
    path.write_text(json.dumps(document))


def change_weights(model, change):
    """Rewrites model.safetensors by `change`, which edits the dict of its tensors."""
    path = model / "model.safetensors"
    tensors = read_safetensors(path)
    change(tensors)
    write_safetensors(path, tensors)


def main():
    if not BINARY:
        raise SystemExit("set THESEUS_BINARY to the program to test")
    unittest.main()
