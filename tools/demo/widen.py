#!/usr/bin/env python3
"""Makes a timm ViT twice as wide; the wider one computes the same. Standard library only.

usage: widen.py MODEL WIDER [--seed N]

MODEL and WIDER are directories with config.json and model.safetensors. Every feature, every head and
every hidden unit appears twice, in an order shuffled by the seed, so that nothing stands where it
stood. A layer whose inputs come twice halves its weights:

    W' = 1/2 P [[W, W], [W, W]] Q       P, Q: the orders of outputs and inputs

What a feature is (biases, norms, embeddings) is repeated as it is.
"""
import argparse
import json
import pathlib
import random

import tensors


class Orders:
    """For each unit of the wider model, the unit that it repeats."""

    def __init__(self, args, hidden, seed):
        self._random = random.Random(seed)
        width, heads = args["embed_dim"], args["num_heads"]
        self.classes = range(args["num_classes"])
        self.features = self._twice(width)
        self.blocks = [(self._by_head(width, heads), self._twice(hidden))
                       for _ in range(args["depth"])]

    def _twice(self, count):
        order = [*range(count)] * 2
        self._random.shuffle(order)
        return order

    def _by_head(self, width, heads):
        each = width // heads
        return [head * each + unit for head in self._twice(heads) for unit in range(each)]

    def of(self, name):
        """(outputs, inputs) of a layer; None where it has no inputs that were repeated."""
        if name == "head":
            return self.classes, self.features
        if not name.startswith("blocks.") or ".norm" in name:
            return self.features, None
        _, block, layer = name.split(".", 2)
        mix, hidden = self.blocks[int(block)]
        width = len(mix) // 2
        return {
            "attn.qkv": ([part * width + unit for part in range(3) for unit in mix], self.features),
            "attn.proj": (self.features, mix),
            "mlp.fc1": (hidden, self.features),
            "mlp.fc2": (self.features, hidden)}[layer]


def widened(name, tensor, orders):
    values, last = tensor.values(), tensor.shape[-1]
    if name in ("cls_token", "pos_embed"):
        shape = [*tensor.shape[:2], len(orders.features)]
        result = [values[token * last + unit]
                  for token in range(shape[1]) for unit in orders.features]
        return tensors.Tensor.of("F32", shape, result)
    layer, kind = name.rsplit(".", 1)
    outputs, inputs = orders.of(layer)
    if kind == "weight" and inputs:
        result = [values[row * last + unit] / 2 for row in outputs for unit in inputs]
        return tensors.Tensor.of("F32", [len(outputs), len(inputs)], result)
    each = len(values) // tensor.shape[0]  # the pixels of a patch, or one
    result = [one for row in outputs for one in values[row * each:(row + 1) * each]]
    return tensors.Tensor.of("F32", [len(outputs), *tensor.shape[1:]], result)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("wider", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    config = json.loads((arguments.model / "config.json").read_text())
    weights = tensors.read(arguments.model / "model.safetensors")
    args = config["model_args"]
    orders = Orders(args, weights["blocks.0.mlp.fc1.weight"].shape[0], arguments.seed)
    wider = {name: widened(name, one, orders) for name, one in weights.items()}

    args["embed_dim"] *= 2
    args["num_heads"] *= 2
    config["num_features"] = args["embed_dim"]
    arguments.wider.mkdir(parents=True, exist_ok=True)
    (arguments.wider / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    tensors.write(arguments.wider / "model.safetensors", wider)


if __name__ == "__main__":
    main()
