"""tools/demo/widen.py: the wider model computes the same, and is not a copy. And the demo's models."""
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

DEMO = pathlib.Path(__file__).resolve().parents[2] / "tools" / "demo"
sys.dont_write_bytecode = True
sys.path.insert(0, str(DEMO))
import tensors  # noqa: E402

ARGS = {"img_size": 4, "patch_size": 2, "embed_dim": 6, "depth": 2, "num_heads": 2, "mlp_ratio": 2,
        "num_classes": 3}
CONFIG = {"architecture": "vit_tiny_patch16_224", "num_classes": 3, "num_features": 6,
          "model_args": ARGS}


def shapes():
    yield "cls_token", [1, 1, 6]
    yield "pos_embed", [1, 5, 6]
    yield "patch_embed.proj.weight", [6, 3, 2, 2]
    yield "patch_embed.proj.bias", [6]
    layers = [("norm", [6]), ("head", [3, 6])]
    for block in range(2):
        layers += [(f"blocks.{block}.{name}", shape) for name, shape in (
            ("norm1", [6]), ("attn.qkv", [18, 6]), ("attn.proj", [6, 6]), ("norm2", [6]),
            ("mlp.fc1", [12, 6]), ("mlp.fc2", [6, 12]))]
    for name, shape in layers:
        yield name + ".weight", shape
        yield name + ".bias", shape[:1]


def random_model(directory, dtype):
    generator = random.Random(3)
    directory.mkdir()
    (directory / "config.json").write_text(json.dumps(CONFIG))
    tensors.write(directory / "model.safetensors", {
        name: tensors.Tensor.of(dtype, shape, [generator.gauss(0, 0.7)
                                               for _ in range(math.prod(shape))])
        for name, shape in shapes()})


class Vit:
    """The forward pass of timm's ViT on lists, for one image given as its flattened patches."""

    def __init__(self, directory):
        self.args = json.loads((directory / "config.json").read_text())["model_args"]
        self.file = tensors.read(directory / "model.safetensors")
        self.width, self.heads = self.args["embed_dim"], self.args["num_heads"]

    def rows(self, name):
        """The tensor as a matrix: everything behind its first axis is one row."""
        one = self.file[name]
        values, count = one.values(), one.shape[0]
        each = len(values) // count
        return [values[row * each:(row + 1) * each] for row in range(count)]

    def linear(self, name, x):
        weight, bias = self.rows(name + ".weight"), self.file[name + ".bias"].values()
        return [[sum(map(float.__mul__, row, token)) + b for row, b in zip(weight, bias)]
                for token in x]

    def norm(self, name, x):
        gain, bias = self.file[name + ".weight"].values(), self.file[name + ".bias"].values()
        result = []
        for token in x:
            mean = sum(token) / len(token)
            variance = sum((one - mean) ** 2 for one in token) / len(token)
            result.append([(one - mean) / math.sqrt(variance + 1e-6) * g + b
                           for one, g, b in zip(token, gain, bias)])
        return result

    def mix(self, qkv):
        each, result = self.width // self.heads, [[] for _ in qkv]
        for head in range(self.heads):
            q, k, v = ([token[part + head * each:part + (head + 1) * each] for token in qkv]
                       for part in (0, self.width, 2 * self.width))
            for at, query in enumerate(q):
                scores = [math.exp(sum(map(float.__mul__, query, key)) / math.sqrt(each)) for key in k]
                result[at] += [sum(map(float.__mul__, scores, column)) / sum(scores)
                               for column in zip(*v)]
        return result

    def logits(self, patches):
        position = self.file["pos_embed"].values()
        x = [list(self.file["cls_token"].values()), *self.linear("patch_embed.proj", patches)]
        x = [[one + position[at * self.width + i] for i, one in enumerate(token)]
             for at, token in enumerate(x)]
        for block in range(self.args["depth"]):
            name = f"blocks.{block}."
            mix = self.mix(self.linear(name + "attn.qkv", self.norm(name + "norm1", x)))
            x = added(x, self.linear(name + "attn.proj", mix))
            up = self.linear(name + "mlp.fc1", self.norm(name + "norm2", x))
            middle = [[one * (1 + math.erf(one / math.sqrt(2))) / 2 for one in token] for token in up]
            x = added(x, self.linear(name + "mlp.fc2", middle))
        return self.linear("head", self.norm("norm", x)[:1])[0]


def added(left, right):
    return [[a + b for a, b in zip(*pair)] for pair in zip(left, right)]


class Widen(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.here = pathlib.Path(scratch.name)

    def widen(self, model, wider, *arguments):
        subprocess.run([sys.executable, "-B", DEMO / "widen.py", model, self.here / wider, *arguments],
                       check=True)
        return self.here / wider

    def test_computes_the_same(self):
        generator = random.Random(4)
        for dtype in ("F16", "F32"):
            model = self.here / dtype
            random_model(model, dtype)
            wider = self.widen(model, f"{dtype}-wider")
            for _ in range(3):
                patches = [[generator.gauss(0, 1) for _ in range(12)] for _ in range(4)]
                for narrow, wide in zip(Vit(model).logits(patches), Vit(wider).logits(patches)):
                    self.assertAlmostEqual(narrow, wide, delta=1e-6)  # halves are exact in float32

    def test_sizes(self):
        model = self.here / "model"
        random_model(model, "F16")
        wider = self.widen(model, "wider")
        config = json.loads((wider / "config.json").read_text())
        self.assertEqual(config, CONFIG | {
            "num_features": 12, "model_args": ARGS | {"embed_dim": 12, "num_heads": 4}})
        twice = {6: 12, 12: 24, 18: 36}
        for name, one in tensors.read(wider / "model.safetensors").items():
            narrow = dict(shapes())[name]
            if name == "patch_embed.proj.weight":
                self.assertEqual(one.shape, [12, 3, 2, 2])
            else:
                self.assertEqual(one.shape, [twice.get(extent, extent) for extent in narrow], name)
            self.assertEqual(one.dtype, "F32")

    def test_the_seed_orders(self):
        model = self.here / "model"
        random_model(model, "F32")
        files = [(self.widen(model, f"{seed}-{again}", "--seed", seed) / "model.safetensors")
                 for seed in "01" for again in "ab"]
        first, same, other, _ = (file.read_bytes() for file in files)
        self.assertEqual(first, same)
        self.assertNotEqual(first, other)

    def test_two_models_are_ordered_alike(self):
        """So widening base and tuned alike gives the pair that transport should find."""
        models = []
        for name in ("base", "tuned"):
            wider = self.widen(DEMO / "model" / name, name)
            models.append(tensors.read(wider / "model.safetensors"))
        base, tuned = models
        for name in base:
            if ".attn.proj.weight" not in name and ".mlp.fc" not in name and "qkv" not in name:
                self.assertEqual(base[name].data, tuned[name].data, name)


class Models(unittest.TestCase):
    """tools/demo/model"""

    def test_fine_tuning_changed_the_matrices_of_the_blocks_and_nothing_else(self):
        base, tuned = (tensors.read(DEMO / "model" / name / "model.safetensors")
                       for name in ("base", "tuned"))
        self.assertEqual(list(base), list(tuned))
        changed = {name for name in base if base[name].data != tuned[name].data}
        self.assertEqual(changed, {
            f"blocks.{block}.{layer}.weight" for block in range(4)
            for layer in ("attn.qkv", "attn.proj", "mlp.fc1", "mlp.fc2")})

    def test_small(self):
        files = [path for path in (DEMO / "model").rglob("*") if path.is_file()]
        self.assertLess(sum(path.stat().st_size for path in files), 700_000)

    def test_one_config(self):
        base, tuned = ((DEMO / "model" / name / "config.json").read_text()
                       for name in ("base", "tuned"))
        self.assertEqual(base, tuned)


if __name__ == "__main__":
    unittest.main()
