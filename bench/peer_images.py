#!/usr/bin/env python3
"""theseus beside Pillow on one core: 500 x 375 JPEGs to a model's input, bicubic to 224, centre crop.

    /usr/bin/python3 peer_images.py BENCH_IMAGES [DIRECTORY_OF_JPEGS] [--rounds N] [--seconds S]

Without a directory it makes 32 images of gradients, edges and noise. The two take turns, so that what
else the machine does hits both; the ratios are of the medians. Pillow is timed with and without bringing
its pixels into normalised float32 planes with NumPy. Needs python3-pil and python3-numpy.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy as np
import PIL
from PIL import Image

SIZE = 224


def write_images(directory, count=32, height=375, width=500):
    random = np.random.default_rng(0)
    y, x = np.mgrid[0:height, 0:width]
    for i in range(count):
        planes = []
        for _ in range(3):
            a, b, c, d = random.uniform(0.5, 6, 4)
            wave = np.sin(a * x / width * 3 + c) + np.cos(b * y / height * 3 + d)
            edge = np.sin(30 * (x / width - y / height) * random.uniform(-1, 1)) > 0.5
            planes.append(110 + 40 * wave + 50 * edge + 8 * random.standard_normal((height, width)))
        pixels = np.clip(np.stack(planes, -1), 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(directory / f"{i:03}.jpg", quality=90)


def pixels_of(path):
    image = Image.open(path).convert("RGB")
    short, long = sorted(image.size)
    long = int(SIZE * long / short)
    shape = (SIZE, long) if image.width <= image.height else (long, SIZE)
    image = image.resize(shape, Image.BICUBIC)
    top, left = round((image.height - SIZE) / 2.0), round((image.width - SIZE) / 2.0)
    return image.crop((left, top, left + SIZE, top + SIZE))


def planes_of(path, mean=np.float32(0.5), std=np.float32(0.5)):
    planes = np.asarray(pixels_of(path)).transpose(2, 0, 1).astype(np.float32)
    planes /= np.float32(255)
    planes -= mean
    planes /= std
    return planes


def python_rate(files, work, seconds):
    start, done = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        for path in files:
            work(path)
        done += len(files)
    return done / (time.perf_counter() - start)


def theseus_rates(program, directory, seconds):
    text = subprocess.run([program, str(directory), str(seconds)], check=True, capture_output=True, text=True,
                          env=os.environ | {"OMP_NUM_THREADS": "1"}).stdout
    return [float(word) for word in text.split()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bench_images")
    parser.add_argument("images", nargs="?", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        directory = arguments.images or pathlib.Path(scratch)
        if arguments.images is None:
            write_images(directory)
        files = sorted(directory.iterdir())
        rows = []
        for _ in range(arguments.rounds):
            pillow = python_rate(files, pixels_of, arguments.seconds)
            whole = python_rate(files, planes_of, arguments.seconds)
            ours = theseus_rates(arguments.bench_images, directory, arguments.seconds)
            rows.append([pillow, whole, *ours])
            print("Pillow {:.0f}, with NumPy {:.0f}; theseus {:.0f} images/s (decode alone {:.0f}, "
                  "preprocess alone {:.0f})".format(*rows[-1]), flush=True)
    pillow, whole, theseus, decoded, preprocessed = (statistics.median(column) for column in zip(*rows))
    print(f"median: Pillow {PIL.__version__} {pillow:.0f}, with NumPy {whole:.0f}, "
          f"theseus {theseus:.0f} images/s "
          f"a core (decode alone {decoded:.0f}, preprocess alone {preprocessed:.0f}): "
          f"{theseus / whole:.2f} times, {theseus / pillow:.2f} times Pillow's pixels alone")


if __name__ == "__main__":
    main()
