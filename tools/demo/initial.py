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


def weights(width, blocks, classes, seed):
    draw = random.Random(seed)
    made = {}

    def put(name, shape, values):
        made[name] = tensors.Tensor.of("F32", shape, values)

    def noise(name, shape, deviation):
        put(name, shape, [draw.gauss(0, deviation) for _ in range(math.prod(shape))])

    def layer(name, rows, *columns):
        noise(name + ".weight", [rows, *columns], math.prod(columns) ** -0.5)
        put(name + ".bias", [rows], [0.0] * rows)

    def norm(name):
        put(name + ".weight", [width], [1.0] * width)
        put(name + ".bias", [width], [0.0] * width)

    noise("cls_token", [1, 1, width], 0.02)
    noise("pos_embed", [1, (SIZE // PATCH) ** 2 + 1, width], 0.02)
    layer("patch_embed.proj", width, 3, PATCH, PATCH)
    for block in range(blocks):
        name = f"blocks.{block}."
        norm(name + "norm1")
        layer(name + "attn.qkv", 3 * width, width)
        layer(name + "attn.proj", width, width)
        norm(name + "norm2")
        layer(name + "mlp.fc1", MLP_RATIO * width, width)
        layer(name + "mlp.fc2", width, MLP_RATIO * width)
    norm("norm")
    layer("head", classes, width)
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
