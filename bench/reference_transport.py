#!/usr/bin/env python3
"""The public reference on the job that bench/transport_vit_b.py makes, to be timed beside theseus.

    bench/reference_transport.py REFERENCE JOB [--statistics]

REFERENCE holds src/merge_and_rebase. JOB comes from `transport_vit_b.py BINARY --keep JOB`; --statistics ends
before the maps, which add hardly any memory and most of the time. On the processor, with as many threads as torch
takes. Prints seconds by phase and the peak of memory. Needs torch.
"""
import argparse
import json
import pathlib
import resource
import sys
import time

import torch

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "tools" / "goldens"), str(ROOT / "bench")]
import gradfix  # noqa: E402  its models, and how the reference is loaded


def read_safetensors(path):
    content = memoryview(bytearray(path.read_bytes()))
    length = int.from_bytes(content[:8], "little")
    header = json.loads(bytes(content[8:8 + length]))
    return {name: torch.frombuffer(content, dtype=torch.float32, offset=8 + length + about["data_offsets"][0],
                                   count=(about["data_offsets"][1] - about["data_offsets"][0]) // 4)
            .reshape(about["shape"]) for name, about in header.items()}


def open_model(folder):
    config = json.loads((folder / "open_clip_config.json").read_text())["model_cfg"]
    vision = config["vision_cfg"]
    gradfix.PATCH, gradfix.LAYERS, gradfix.HEAD, gradfix.RATIO = vision["patch_size"], vision["layers"], 64, 4
    model = gradfix.Clip({"width": vision["width"], "image": vision["image_size"], "embed": config["embed_dim"]})
    weights = read_safetensors(folder / "open_clip_model.safetensors")
    visual = {name: value for name, value in weights.items() if name.startswith("visual.")}
    model.load_state_dict(visual | {"logit_scale": weights["logit_scale"]})
    return model.eval(), visual


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("reference", type=pathlib.Path)
    parser.add_argument("job", type=pathlib.Path)
    parser.add_argument("--statistics", action="store_true")
    given = parser.parse_args()
    theseus = gradfix.load_reference(given.reference)[2]
    start = time.monotonic()
    source, base = open_model(given.job / "source")
    target, target_base = open_model(given.job / "target")
    tuned = read_safetensors(given.job / "tuned.safetensors")
    delta = {name: value - base[name] for name, value in tuned.items()}
    images = read_safetensors(given.job / "calibration.safetensors")
    method = theseus.TheseusRebase()
    quiet = {"verbose": False, "show_progress": False}
    loaded = time.monotonic()
    prepared = method.prepare(
        source_model=source, target_model=target, source_dataloader=[images["source/pixel_values"]],
        target_dataloader=[images["target/pixel_values"]], device="cpu",
        **({} if given.statistics else {"target_base": target_base, "delta": delta}), **quiet)
    mapped = time.monotonic()
    seconds = {"load": loaded - start, "statistics" if given.statistics else "statistics and maps": mapped - loaded}
    if not given.statistics:
        carried = method.apply(prepared, target_base=target_base, delta=delta, **quiet)
        result = {name: value + carried.get(name, 0) for name, value in target_base.items()}
        gradfix.write_safetensors(given.job / "reference.safetensors", result)
        seconds["carry and write"] = time.monotonic() - mapped
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print("the reference: " + ", ".join(f"{name} {value:.1f} s" for name, value in seconds.items())
          + f", peak {peak / 2**30:.2f} GiB")


if __name__ == "__main__":
    main()
