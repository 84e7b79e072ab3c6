#!/usr/bin/env python3
"""Trains the demo's models: how model/base and model/tuned were made. Needs torch; the demo does not.

usage: train.py DIRECTORY [--threads N]

    DIRECTORY/base    a small ViT that reads clean digits
    DIRECTORY/tuned   the same, fine-tuned to read them under noise

Fine-tuning changes the weight matrices of the blocks and nothing else. Weights are rounded to float16
after each of the two trainings, and the accuracies printed are those of the rounded weights. Seeded:
the same torch on the same processor makes the same files. One thread takes some minutes.
"""
import argparse
import json
import pathlib

import torch
from torch.nn.functional import conv2d, cross_entropy, gelu, layer_norm, linear

import digits
import initial
import tensors

WIDTH, BLOCKS, HEADS, CLASSES = 48, 4, 4, 10
PATCH = initial.PATCH
EPS = 1e-6  # timm's
CONFIG = initial.config(WIDTH, BLOCKS, HEADS, CLASSES)
CONFIG.pop("pretrained_cfg")


def initial_weights():
    return {name: torch.randn(shape) * value[0] if isinstance(value, list)
            else torch.full(shape, value)
            for name, shape, value in initial.layout(WIDTH, BLOCKS, CLASSES)}


def logits(weights, images):
    """`images` [n, 28, 28], grey."""
    def of(name):
        return weights[name + ".weight"], weights[name + ".bias"]

    def normed(name, x):
        return layer_norm(x, (WIDTH,), *of(name), EPS)

    def attention(name, x):
        n, t, _ = x.shape
        q, k, v = linear(x, *of(name + "attn.qkv")).view(n, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) * (WIDTH // HEADS) ** -0.5
        mix = (scores.softmax(-1) @ v).transpose(1, 2).reshape(n, t, WIDTH)
        return linear(mix, *of(name + "attn.proj"))

    pixels = images.unsqueeze(1).expand(-1, 3, -1, -1)
    x = conv2d(pixels, *of("patch_embed.proj"), stride=PATCH).flatten(2).transpose(1, 2)
    x = torch.cat([weights["cls_token"].expand(len(x), -1, -1), x], 1) + weights["pos_embed"]
    for block in range(BLOCKS):
        name = f"blocks.{block}."
        x = x + attention(name, normed(name + "norm1", x))
        up = linear(normed(name + "norm2", x), *of(name + "mlp.fc1"))
        x = x + linear(gelu(up), *of(name + "mlp.fc2"))
    return linear(normed("norm", x)[:, 0], *of("head"))


def drawn(count, seed):
    labels, images = [], []
    for label, pixels, _ in digits.labelled(count, seed):
        labels.append(label)
        images.append(pixels)
    return torch.tensor(images).view(-1, digits.SIZE, digits.SIZE), torch.tensor(labels)


def noisy(images):
    return digits.KEPT * images + (1 - digits.KEPT) * torch.rand_like(images)


def clean(images):
    return images


def train(weights, chosen, images, labels, seen, epochs, rate):
    """Changes `weights` at the names `chosen`, on what `seen` makes of the images."""
    batch = 128
    parameters = [weights[name].requires_grad_() for name in chosen]
    optimizer = torch.optim.AdamW(parameters, lr=rate, weight_decay=0.05)
    steps = epochs * (len(images) // batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps)
    for epoch in range(epochs):
        order = torch.randperm(len(images))
        total = 0.0
        for some in order[:len(order) // batch * batch].split(batch):
            loss = cross_entropy(logits(weights, seen(images[some])), labels[some])
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            schedule.step()
            total += loss.item()
        print(f"  epoch {epoch + 1}: loss {total * batch / len(images):.3f}", flush=True)
    return {name: one.detach().half().float() for name, one in weights.items()}


def accuracy(weights, images, labels):
    with torch.no_grad():
        return 100 * (logits(weights, images).argmax(1) == labels).float().mean().item()


def save(weights, directory):
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(CONFIG, indent=2) + "\n")
    tensors.write(directory / "model.safetensors", {
        name: tensors.Tensor.of("F16", one.shape, one.flatten().tolist())
        for name, one in weights.items()})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)

    images, labels = drawn(16000, seed=100)
    test_images, test_labels = drawn(2000, seed=101)
    test_noisy = noisy(test_images)

    def report(name, weights):
        print(f"{name}: {accuracy(weights, test_images, test_labels):.1f} % of clean digits, "
              f"{accuracy(weights, test_noisy, test_labels):.1f} % of noisy ones", flush=True)

    weights = initial_weights()
    base = train(weights, list(weights), images, labels, clean, epochs=10, rate=2e-3)
    report("base", base)
    save(base, arguments.directory / "base")

    matrices = [name for name in base
                if name.startswith("blocks.") and name.endswith(".weight") and ".norm" not in name]
    tuned = train({name: one.clone() for name, one in base.items()}, matrices, images, labels, noisy,
                  epochs=10, rate=1e-3)
    report("tuned", tuned)
    save(tuned, arguments.directory / "tuned")


if __name__ == "__main__":
    main()
