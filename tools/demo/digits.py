#!/usr/bin/env python3
"""Draws digits, 28 by 28 pixels, under heavy noise. Standard library only; the same on every run.

usage: digits.py DIRECTORY

    DIRECTORY/calibration.safetensors   pixel_values [256, 3, 28, 28], digits without labels
    DIRECTORY/test.safetensors          pixel_values [500, 3, 28, 28], other digits
    DIRECTORY/labels.json               which digits those 500 are

A digit is a few strokes, scaled, turned, slanted, moved and drawn with a pen of some width, each at
random. Noise: every pixel keeps a part of its brightness, the rest is uniformly random.
"""
import json
import math
import pathlib
import random
import struct
import sys

import tensors

SIZE = 28
KEPT = 0.45  # of a pixel's brightness, under noise
CALIBRATION_SEED, TEST_SEED = 1, 2  # train.py uses others


def arc(x, y, width, height, begin, end):
    """Points on an ellipse around (x, y); degrees, 0 is right and 90 is down."""
    steps = max(2, round(abs(end - begin) / 30))
    for step in range(steps + 1):
        angle = math.radians(begin + (end - begin) * step / steps)
        yield x + width * math.cos(angle), y + height * math.sin(angle)


SIX = [[(0.70, 0.0), (0.35, 0.28), (0.17, 0.66)], [*arc(0.5, 0.69, 0.33, 0.31, 0, 360)]]
# Strokes in a box from (0, 0), top left, to (1, 1).
STROKES = [
    [[*arc(0.5, 0.5, 0.36, 0.5, 0, 360)]],
    [[(0.28, 0.22), (0.55, 0.0), (0.55, 1.0)]],
    [[*arc(0.5, 0.28, 0.34, 0.28, 190, 390), (0.14, 1.0), (0.88, 1.0)]],
    [[*arc(0.46, 0.25, 0.33, 0.25, 200, 450), *arc(0.46, 0.75, 0.37, 0.25, 270, 520)]],
    [[(0.66, 1.0), (0.66, 0.0), (0.08, 0.68), (0.92, 0.68)]],
    [[(0.82, 0.0), (0.25, 0.0), (0.20, 0.47), *arc(0.47, 0.68, 0.36, 0.32, 220, 500)]],
    SIX,
    [[(0.12, 0.0), (0.88, 0.0), (0.40, 1.0)]],
    [[*arc(0.5, 0.25, 0.29, 0.25, 0, 360)], [*arc(0.5, 0.75, 0.36, 0.25, 0, 360)]],
    [[(1 - x, 1 - y) for x, y in stroke] for stroke in SIX],
]


def draw_line(pixels, begin, end, radius):
    """Raises the brightness of the pixels within `radius` of the line, with a soft edge."""
    (x0, y0), (x1, y1) = begin, end
    dx, dy = x1 - x0, y1 - y0
    length = dx * dx + dy * dy or 1.0
    reach = radius + 0.5
    left, right = max(0, int(min(x0, x1) - reach)), min(SIZE - 1, int(max(x0, x1) + reach) + 1)
    top, bottom = max(0, int(min(y0, y1) - reach)), min(SIZE - 1, int(max(y0, y1) + reach) + 1)
    for row in range(top, bottom + 1):
        for column in range(left, right + 1):
            along = ((column - x0) * dx + (row - y0) * dy) / length
            along = min(1.0, max(0.0, along))
            ink = reach - math.hypot(x0 + along * dx - column, y0 + along * dy - row)
            at = row * SIZE + column
            if ink > pixels[at]:
                pixels[at] = min(1.0, ink)


def draw(digit, generator):
    """Brightness 0 to 1 of every pixel, row by row."""
    def between(low, high):
        return low + (high - low) * generator.random()

    width, height = between(10, 15), between(15, 20)
    turn, slant = between(-0.2, 0.2), between(-0.25, 0.25)
    x_shift, y_shift = between(-2.5, 2.5), between(-2.5, 2.5)
    radius = between(0.7, 1.7)
    cosine, sine = math.cos(turn), math.sin(turn)
    middle = (SIZE - 1) / 2

    def place(point):
        y = (point[1] - 0.5) * height
        x = (point[0] - 0.5) * width - slant * y
        return (middle + x_shift + cosine * x - sine * y, middle + y_shift + sine * x + cosine * y)

    pixels = [0.0] * (SIZE * SIZE)
    for stroke in STROKES[digit]:
        placed = [place(point) for point in stroke]
        for begin, end in zip(placed, placed[1:]):
            draw_line(pixels, begin, end, radius)
    return pixels


def noisy(pixels, generator):
    return [KEPT * pixel + (1 - KEPT) * generator.random() for pixel in pixels]


def labelled(count, seed):
    """(digit, its clean pixels, the generator to draw its noise from), `count` times."""
    generator = random.Random(seed)
    for _ in range(count):
        digit = int(generator.random() * 10)
        yield digit, draw(digit, generator), generator


def write_images(path, images):
    """Grey images, as the three equal channels that vision models expect."""
    data = b"".join(3 * struct.pack(f"<{SIZE * SIZE}f", *image) for image in images)
    shape = [len(images), 3, SIZE, SIZE]
    tensors.write(path, {"pixel_values": tensors.Tensor("F32", shape, data)})


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for name, count, seed in (("calibration", 256, CALIBRATION_SEED), ("test", 500, TEST_SEED)):
        digits, images = [], []
        for digit, pixels, generator in labelled(count, seed):
            digits.append(digit)
            images.append(noisy(pixels, generator))
        write_images(directory / f"{name}.safetensors", images)
    (directory / "labels.json").write_text(json.dumps(digits) + "\n")


if __name__ == "__main__":
    main()
