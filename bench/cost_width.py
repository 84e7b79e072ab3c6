#!/usr/bin/env python3
"""Time and memory of a transport against the target's width, at a source 768 wide, beside the gradient method.

    bench/cost_width.py BINARY [--widths 512,640,768,896,1024,1280] [--blocks 1] [--figure bench/cost.svg] [OPTION...]

ViTs with random weights, one batch of 32 images, as in bench/transport_vit_b.py. The gradient method (GradFix) needs
equal shapes; for other widths its mask goes on top of our maps, so the difference is what its gradients take. Time is of
all processors together, which other work on the machine changes little (on a GPU the clock: --clock). Memory is the
peak beyond that of a program that only opens the target. OPTIONs go to theseus. Needs numpy.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

import beside
import transport_vit_b as job

SOURCE, CLASSES = 768, 10
COLOURS = {"procrustes": "#1f6feb", "with gradients": "#d1242f"}


def measured(command, clock):
    """Seconds and peak GiB."""
    wall, processors, peak = beside.measured(command, subprocess.DEVNULL)
    return wall if clock else processors, peak


def write_models(folder, widths, blocks):
    base = job.write_model(folder / "source", 1, SOURCE, 224, 512, blocks)
    random = np.random.default_rng(3)
    job.save(folder / "tuned.safetensors", {
        name: value + random.standard_normal(value.shape, dtype=np.float32) * 0.001
        for name, value in base.items() if name.startswith("visual.transformer")})
    images = random.standard_normal((32, 3, 224, 224), dtype=np.float32)
    for width in widths:
        job.write_model(folder / str(width), 2, width, 224, 640, blocks)
    job.save(folder / "calibration.safetensors", {
        "labels": random.integers(0, CLASSES, 32),
        "pixel_values": images,
        "source/classes": random.standard_normal((CLASSES, 512), dtype=np.float32),
        "target/classes": random.standard_normal((CLASSES, 640), dtype=np.float32)})


def measure(binary, folder, width, clock, options):
    common = ["--threads", "2"]
    idle = measured([binary, "inspect", str(folder / str(width))], clock)[1]
    command = [binary, "transport", "--source", str(folder / "source"), "--tuned", str(folder / "tuned.safetensors"),
               "--target", str(folder / str(width)), "--examples", str(folder / "calibration.safetensors"), "--write",
               "update", "--out", str(folder / "out"), "--fresh", "--quiet", *common, *options]
    gradients = ["--labelled", str(folder / "calibration.safetensors"), "--vote", "majority"]
    gradients += ["--method", "gradient-mask"] if width == SOURCE else ["--mask", "normal"]
    rows = {}
    for name, more in (("procrustes", []), ("with gradients", gradients)):
        seconds, peak = measured(command + more, clock)
        rows[name] = (seconds, peak - idle)
    return rows


def panel(left, title, points, limit):
    """Lines over widths; `points`: name -> [(width, value)]."""
    widths = [width for width, _ in next(iter(points.values()))]
    low, high = min(widths), max(widths)
    place = lambda width, value: (left + 50 + 260 * (width - low) / max(1, high - low), 210 - 160 * value / limit)
    parts = [f'<text x="{left + 50}" y="30" class="title">{title}</text>',
             f'<path d="M{left + 50},50V210H{left + 310}" class="axis"/>']
    for share in (0, 0.5, 1):
        parts.append(f'<text x="{left + 44}" y="{214 - 160 * share}" text-anchor="end">{limit * share:.3g}</text>')
    for width in widths:
        parts.append(f'<text x="{place(width, 0)[0]}" y="228" text-anchor="middle">{width}</text>')
    for name, line in points.items():
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in line))
        parts.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[name]}" stroke-width="2"/>')
    return parts


def figure(rows, unit):
    lines = {kind: {name: [(width, found[name][i]) for width, found in rows] for name in COLOURS}
             for i, kind in enumerate(("time", "memory"))}
    top = lambda points: 1.1 * max(value for line in points.values() for _, value in line)
    parts = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 270" role="img" '
             'aria-label="Time and memory of a transport against the width of the target">',
             "<style>text{font:12px sans-serif;fill:#57606a}.title{font-weight:bold}.axis{fill:none;stroke:#57606a}"
             "</style>"]
    parts += panel(0, unit, lines["time"], top(lines["time"]))
    parts += panel(360, "GiB beyond an open model", lines["memory"], top(lines["memory"]))
    for i, (name, colour) in enumerate(COLOURS.items()):
        parts.append(f'<text x="{250 + 130 * i}" y="258" style="fill:{colour}">{name}</text>')
    return "\n".join(parts + ["</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--widths", default="512,640,768,896,1024,1280")
    parser.add_argument("--blocks", type=int, default=1)
    parser.add_argument("--clock", action="store_true")
    parser.add_argument("--figure", type=pathlib.Path)
    given, options = parser.parse_known_args()
    widths = [int(word) for word in given.widths.split(",")]
    rows = []
    print("| width | procrustes | with gradients | memory | with gradients |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        write_models(folder, widths, given.blocks)
        for width in widths:
            found = measure(given.binary, folder, width, given.clock, options)
            rows.append((width, found))
            (ours, memory), (theirs, more) = found.values()
            print(f"| {width} | {ours:.1f} s | {theirs:.1f} s | {memory:.2f} GiB | {more:.2f} GiB |", flush=True)
    if given.figure:
        given.figure.write_text(figure(rows, "seconds" if given.clock else "processor seconds"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
