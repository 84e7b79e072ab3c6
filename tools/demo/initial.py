#!/usr/bin/env python3
"""A small vision transformer with random weights, in timm's layout, for images of 28 by 28.

usage: initial.py DIRECTORY [--width 128] [--blocks 4] [--heads 4] [--classes 10] [--seed 0]

Standard library only. The same arguments make the same bytes everywhere.
"""
import argparse
import json
import math
import pathlib
import random

import tensors

SIZE, PATCH, MLP_RATIO = 28, 7, 4


def config(width, blocks, heads, classes):
    return {
        "architecture": "vit_tiny_patch16_224",
        "num_classes": classes,
        "num_features": width,
        "global_pool": "token",
        "model_args": {
            "img_size": SIZE, "patch_size": PATCH, "embed_dim": width, "depth": blocks,
            "num_heads": heads, "mlp_ratio": MLP_RATIO, "num_classes": classes},
        "pretrained_cfg": {
            "input_size": [3, SIZE, SIZE], "mean": [0, 0, 0], "std": [1, 1, 1],
            "interpolation": "bicubic", "crop_pct": 1.0},
    }


def layout(width, blocks, classes):
    """Name, shape and what the values are, in order: a number, or the deviation of noise in a list."""
    def layer(name, rows, *columns):
        yield name + ".weight", [rows, *columns], [math.prod(columns) ** -0.5]
        yield name + ".bias", [rows], 0.0

    def norm(name):
        yield name + ".weight", [width], 1.0
        yield name + ".bias", [width], 0.0

    yield "cls_token", [1, 1, width], [0.02]
    yield "pos_embed", [1, (SIZE // PATCH) ** 2 + 1, width], [0.02]
    yield from layer("patch_embed.proj", width, 3, PATCH, PATCH)
    for block in range(blocks):
        name = f"blocks.{block}."
        yield from norm(name + "norm1")
        yield from layer(name + "attn.qkv", 3 * width, width)
        yield from layer(name + "attn.proj", width, width)
        yield from norm(name + "norm2")
        yield from layer(name + "mlp.fc1", MLP_RATIO * width, width)
        yield from layer(name + "mlp.fc2", width, MLP_RATIO * width)
    yield from norm("norm")
    yield from layer("head", classes, width)


def weights(width, blocks, classes, seed):
    draw = random.Random(seed)
    made = {}
    for name, shape, value in layout(width, blocks, classes):
        count = math.prod(shape)
        values = ([draw.gauss(0, value[0]) for _ in range(count)] if isinstance(value, list)
                  else [value] * count)
        made[name] = tensors.Tensor.of("F32", shape, values)
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=pathlib.Path)
    for name, value in (("width", 128), ("blocks", 4), ("heads", 4), ("classes", 10), ("seed", 0)):
        parser.add_argument("--" + name, type=int, default=value)
    given = parser.parse_args()
    given.directory.mkdir(parents=True, exist_ok=True)
    text = json.dumps(config(given.width, given.blocks, given.heads, given.classes), indent=2)
    (given.directory / "config.json").write_text(text + "\n")
    tensors.write(given.directory / "model.safetensors",
                  weights(given.width, given.blocks, given.classes, given.seed))


if __name__ == "__main__":
    main()
