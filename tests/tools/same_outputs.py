#!/usr/bin/env python3
"""Runs the same jobs with two builds of theseus and compares every tensor that they write by bytes.

usage: same_outputs.py OLD NEW [--only WORD]

OLD and NEW are theseus programs. A program without --examples is given the words that it knows, so
a change of words alone must change nothing. Standard library only; the models are those of the tests.
"""

import argparse
import json
import os
import pathlib
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "cli"))

from digits import DigitsTest  # noqa: E402  (its folder is put on the path above)
from support import (  # noqa: E402
    CASES,
    change_json,
    change_weights,
    read_safetensors,
    tensor,
    write_safetensors,
)

# What programs before --examples say instead.
OLD_WORDS = {
    "--examples": ["--calibration"],
    "--labelled": ["--labels", "--calibration"],
    "stream": ["procrustes", "--stream"],
    "procrustes:center": ["procrustes", "--center"],
    "pinv-tikhonov:ridge=0.1": ["pinv-tikhonov", "--ridge", "0.1"],
    "procrustes:rank=truncate": ["procrustes", "--rank", "truncate"],
    "procrustes:statistics=rows": ["procrustes", "--statistics", "rows"],
    "whole": ["repeat"],
    "stretch": ["interpolate"],
}


def deeper(base, target):
    """The model with each block twice, the second one with a little noise."""
    shutil.copytree(base, target)
    generator = random.Random(1)
    tensors = read_safetensors(target / "model.safetensors")
    result = {}
    for name, one in tensors.items():
        if not name.startswith("blocks."):
            result[name] = one
            continue
        _, block, rest = name.split(".", 2)
        noisy = [value + generator.gauss(0, 0.01) for value in one.values()]
        result[f"blocks.{2 * int(block)}.{rest}"] = one
        result[f"blocks.{2 * int(block) + 1}.{rest}"] = tensor(one.dtype, one.shape, noisy)
    write_safetensors(target / "model.safetensors", result)
    config = json.loads((target / "config.json").read_text())
    change_json(target / "config.json", {"model_args.depth": 2 * config["model_args"]["depth"]})


def tuned(base, target, seed):
    shutil.copytree(base, target, ignore=shutil.ignore_patterns("golden.*"))
    generator = random.Random(seed)

    def tune(tensors):
        for name, one in tensors.items():
            if len(one.shape) == 2 and one.dtype in ("F32", "F16") and "embed" not in name:
                tensors[name] = tensor(
                    one.dtype,
                    one.shape,
                    [value + generator.gauss(0, 0.02) for value in one.values()],
                )

    change_weights(target, tune)


def make_models(folder):
    """The demo's three models, a deeper one, pictures; and small models of other families."""
    DigitsTest.setUpClass()
    shutil.copytree(DigitsTest.models, folder, dirs_exist_ok=True)
    DigitsTest.write_pictures(folder / "noisy", lambda i: "val" if i % 3 == 0 else "train")
    DigitsTest.doClassCleanups()
    deeper(folder / "base", folder / "deep")
    for name, case in (
        ("bert", "bert_bare"),
        ("llama", "mistral"),
        ("t5", "t5_tied_gated_silu"),
        ("clip", "clip_legacy_end"),
    ):
        shutil.copytree(CASES / case, folder / name, ignore=shutil.ignore_patterns("golden.*"))
        tuned(folder / name, folder / f"{name}-tuned", 3)
        golden = read_safetensors(CASES / case / "golden.safetensors")
        write_safetensors(
            folder / f"{name}.safetensors",
            {
                key.removeprefix("input/"): one
                for key, one in golden.items()
                if key.startswith("input/")
            },
        )


def carry(
    models,
    *more,
    command="transport",
    source="base",
    tuned="tuned",
    target="wide",
    examples="images.safetensors",
):
    words = [
        command,
        "--source",
        models / source,
        "--tuned",
        models / tuned,
        "--target",
        models / target,
        *(["--examples", models / examples] if examples else []),
        "--threads",
        "1",
        "--out",
        "OUT",
        *more,
    ]
    if command == "align":
        at = words.index("--tuned")
        del words[at : at + 2]
    return words


def jobs(models):
    """Name -> commands, one after the other; OUT is the job's own directory."""
    learn = [
        "--data",
        models / "noisy",
        "--steps",
        "20",
        "--batch-size",
        "16",
        "--lr",
        "3e-3",
        "--threads",
        "1",
    ]
    family = lambda name: dict(
        source=name, tuned=f"{name}-tuned", target=name, examples=f"{name}.safetensors"
    )
    labelled = ["--labelled", models / "digits", "--split", "val"]
    result = {
        "procrustes": [carry(models)],
        "stream": [carry(models, "--method", "stream")],
        "centred": [carry(models, "--method", "procrustes:center")],
        "pinv": [carry(models, "--method", "pinv")],
        "ridge": [carry(models, "--method", "pinv-tikhonov:ridge=0.1")],
        "truncated": [carry(models, "--method", "procrustes:rank=truncate")],
        "rows": [carry(models, "--method", "procrustes:statistics=rows", "--draw", "4")],
        "permutation": [carry(models, "--method", "permutation", target="tuned-2")],
        "pad": [carry(models, "--method", "pad")],
        "data-free": [carry(models, "--method", "data-free")],
        "deeper-divided": [carry(models, target="deep")],
        "deeper-whole": [carry(models, "--depth", "whole", target="deep")],
        "deeper-stretch": [carry(models, "--depth", "stretch", target="deep")],
        "shallower-divided": [carry(models, source="deep", tuned="deep-tuned", target="base")],
        "narrower": [carry(models, source="wide", tuned="wide-tuned", target="base")],
        "labels": [carry(models, "--method", "gradient-output", *labelled, examples=None)],
        "mask": [carry(models, "--mask", "normal", *labelled, examples=None)],
        "pictures": [carry(models, examples="digits")],
        "update": [carry(models, "--write", "update", "--alpha", "0.7")],
        "alignment": [
            [word if word != "OUT" else "OUT/maps" for word in carry(models, command="align")],
            [
                "transport",
                "--alignment",
                "OUT/maps",
                "--target",
                models / "wide",
                "--tuned",
                models / "tuned",
                models / "tuned-2",
                "--out",
                "OUT/carried",
                "--threads",
                "1",
            ],
        ],
        "lora": [
            ["finetune", "--model", models / "base", *learn, "--lora", "4", "--out", "OUT/lora"],
            [
                "transport",
                "--source",
                models / "base",
                "--tuned",
                "OUT/lora",
                "--target",
                models / "wide",
                "--examples",
                models / "images.safetensors",
                "--threads",
                "1",
                "--out",
                "OUT/carried",
            ],
        ],
        "finetune": [["finetune", "--model", models / "base", *learn, "--out", "OUT"]],
        "imitate": [carry(models, command="imitate")],
        "compare": [
            [
                "compare",
                "--source",
                models / "base",
                "--target",
                models / "wide",
                "--setting",
                "digits",
                models / "tuned",
                models / "digits",
                "--methods",
                "none,procrustes,pad",
                "--step",
                "1",
                "--to",
                "2",
                "--threads",
                "1",
                "--out",
                "OUT",
            ]
        ],
        "two processes": [carry(models)],
    }
    for name in ("bert", "llama", "t5", "clip"):
        result[name] = [carry(models, **family(name))]
    return result


def known_words(program, words):
    """The words as this program spells them."""
    said = subprocess.run(
        [program, "transport", "--help"], stdout=subprocess.PIPE, text=True, check=True
    )
    if "--examples" in said.stdout:
        return [*map(str, words)]
    result = []
    for word in map(str, words):
        result += OLD_WORDS.get(word, [word])
    return result


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def run(program, words, processes):
    port = free_port()
    started = []
    for rank in range(processes):
        environment = dict(os.environ)
        if processes > 1:
            environment |= {
                "RANK": str(rank),
                "WORLD_SIZE": str(processes),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
                "LOCAL_RANK": str(rank),
                "LOCAL_WORLD_SIZE": str(processes),
            }
        started.append(
            subprocess.Popen(
                [program, *words, "--quiet"],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env=environment,
            )
        )
    said = [one.communicate()[0] for one in started]
    failed = any(one.returncode != 0 for one in started)
    return f"{program} {' '.join(words)} failed:\n{''.join(said)}" if failed else ""


def tensors_below(folder):
    return {
        f"{path.relative_to(folder)}: {name}": one
        for path in sorted(folder.rglob("*.safetensors"))
        for name, one in read_safetensors(path).items()
    }


def differences(old, new):
    left, right = tensors_below(old), tensors_below(new)
    if not left and not list(old.rglob("*.json")):
        return ["nothing was written"]
    return sorted(name for name in left.keys() | right.keys() if left.get(name) != right.get(name))


def same(old, new, name, commands, here):
    """Whether both programs write the same; says so."""
    sides = [
        (old, here / "old" / name.replace(" ", "-")),
        (new, here / "new" / name.replace(" ", "-")),
    ]
    for program, out in sides:
        (out if len(commands) > 1 else out.parent).mkdir(parents=True, exist_ok=True)
        for command in commands:
            words = [re.sub("^OUT", str(out), word) for word in known_words(program, command)]
            error = run(program, words, 2 if name == "two processes" else 1)
            if error:
                print(f"{name}: {error}", flush=True)
                return False
    found = differences(*(out for _, out in sides))
    said = f"{len(found)} differ: {', '.join(found[:3])}" if found else "the same"
    print(f"{name:18} {len(tensors_below(sides[1][1]))} tensors, {said}", flush=True)
    return not found


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    parser.add_argument("--only", default="", help="jobs that have this in their name")
    args = parser.parse_args()
    here = pathlib.Path(tempfile.mkdtemp(prefix="theseus-same-"))
    models = here / "models"
    make_models(models)
    for name, seed in (("tuned-2", 5), ("deep-tuned", 6), ("wide-tuned", 7)):
        tuned(
            models / {"tuned-2": "base", "deep-tuned": "deep", "wide-tuned": "wide"}[name],
            models / name,
            seed,
        )
    failed = 0
    for name, commands in jobs(models).items():
        if args.only in name:
            failed += not same(args.old.resolve(), args.new.resolve(), name, commands, here)
    shutil.rmtree(here)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
