#!/usr/bin/env python3
"""How much of a fine-tune arrives: small ViTs on MNIST or Fashion-MNIST, a table with means and spreads.

    bench/quality.py BINARY --data mnist=DIR [fashion=DIR] --out DIR [--small] [--seeds 5]
                     [--settings 'up,down,same,deeper'] [--tasks noise,rotation,shear,inversion]
                     [--methods WORDS] [--device cuda] [--jobs N]

DIR holds the data set's four idx files. Source and target are trained from different seeds on the images as
they are; the source is fine-tuned on changed images (head and embeddings frozen); 320 of these, without
labels, align the two. Gap recovered = (transported - before) / (fine-tuned target - before), on 1000 changed test
images, at strength 1 and at the best strength on 1000 training images. Everything is made by theseus's
own commands. What is in OUT already is not made again. Needs numpy.

--small is an hour on two cores: 64 -> 96 wide, MNIST, noise and inversion, one seed.
"""
import argparse
import concurrent.futures
import gzip
import json
import math
import os
import pathlib
import shutil
import statistics
import struct
import subprocess
import sys
import threading

try:
    import numpy as np
except ImportError:  # the table needs none
    np = None

ROOT = pathlib.Path(__file__).resolve().parents[1]
INITIAL = ROOT / "tools" / "demo" / "initial.py"
FROZEN = ["cls_token", "pos_embed", "patch_embed.*", "head.*"]
SETTINGS = {  # source, target: width and blocks
    "up": ((128, 4), (192, 4)),
    "down": ((192, 4), (128, 4)),
    "same": ((128, 4), (128, 4)),
    "deeper": ((128, 4), (128, 8)),
}
SMALL = {"up": ((64, 4), (96, 4))}
METHODS = ["procrustes", "stream", "procrustes:center", "procrustes:whiten=0.25",
           "procrustes:mask", "gradient-output", "linear", "linear-ortho", "pinv", "pinv-tikhonov",
           "pinv-ortho", "data-free", "random-transported", "random", "pad"]
SAME_ONLY = ["copy", "permutation", "gradient-mask"]
CALIBRATION = 10  # batches of 32
LIMIT = 1000  # images to choose a strength on, and to measure on


def read_idx(path):
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as file:
        content = file.read()
    axes = content[3]
    shape = struct.unpack(f">{axes}I", content[4:4 + 4 * axes])
    return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape)


def write_idx(path, values):
    header = struct.pack(f">4B{values.ndim}I", 0, 0, 8, values.ndim, *values.shape)
    path.write_bytes(header + values.astype(np.uint8).tobytes())


def moved(images, matrix):
    """Each image seen through `matrix` about its middle, bilinear, black outside."""
    size = images.shape[1]
    middle = (size - 1) / 2
    y, x = np.mgrid[0:size, 0:size] - middle
    at_y, at_x = (row[0] * y + row[1] * x + middle for row in matrix)
    low_y, low_x = np.floor(at_y).astype(int), np.floor(at_x).astype(int)
    padded = np.pad(images.astype(np.float32), ((0, 0), (1, 2), (1, 2)))
    result = np.zeros(images.shape, np.float32)
    for dy in (0, 1):
        for dx in (0, 1):
            weight = np.abs(1 - dy - (at_y - low_y)) * np.abs(1 - dx - (at_x - low_x))
            rows = np.clip(low_y + dy + 1, 0, size + 2)
            columns = np.clip(low_x + dx + 1, 0, size + 2)
            inside = (low_y + dy >= 0) & (low_y + dy < size) & (low_x + dx >= 0) & (low_x + dx < size)
            result += np.where(inside, weight, 0).astype(np.float32) * padded[:, rows, columns]
    return result


def changed(images, task, generator):
    if task == "noise":
        drawn = generator.random(images.shape, np.float32) * 255
        return np.rint(0.6 * images + 0.4 * drawn)
    if task == "rotation":
        half = math.sqrt(0.5)
        return np.rint(moved(images, ((half, -half), (half, half))))
    if task == "shear":
        return np.rint(moved(images, ((1, 0), (0.5, 1))))
    return {"clean": images, "inversion": 255 - images}[task]


class Bench:
    def __init__(self, given):
        self.given = given
        self.out = given.out
        # Jobs that wait for others take a thread, and no slot.
        self.pool = concurrent.futures.ThreadPoolExecutor(8 * given.jobs)
        self.slots = threading.Semaphore(given.jobs)
        self.made = {}
        self.threads = max(1, (os.cpu_count() or 1) // given.jobs)

    def once(self, key, work, *needs):
        """A job that runs when those it needs have ended; the same key is one job."""
        if key not in self.made:
            def run():
                for need in needs:
                    need.result()
                with self.slots:
                    return work()
            # Jobs are asked for after what they need, so a waiting one never keeps a needed one out.
            self.made[key] = self.pool.submit(run)
        return self.made[key]

    def theseus(self, *words, out=None):
        """Runs a command; one that writes `out` is left out where that is there."""
        if out is not None and out.exists():
            return None
        log = self.out / "log.txt"
        command = [self.given.binary, *map(str, words), "--device", self.given.device, "--threads",
                   str(self.threads), "--quiet"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            with log.open("a") as file:
                file.write(" ".join(command) + "\n" + done.stderr + "\n")
            raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
        return done.stdout

    def data(self, name, task):
        folder = self.out / "data" / name / str(self.given.images) / task

        def make():
            if (folder / "done").exists():
                return
            folder.mkdir(parents=True, exist_ok=True)
            generator = np.random.default_rng(1)
            source = pathlib.Path(self.given.sets[name])
            for part, most in (("train", self.given.images), ("t10k", 10000)):
                found = {axes: next(path for path in sorted(source.rglob(f"{part}-*idx{axes}-ubyte*")))
                         for axes in (1, 3)}
                images, labels = read_idx(found[3])[:most], read_idx(found[1])[:most]
                write_idx(folder / f"{part}-images-idx3-ubyte", changed(images, task, generator))
                write_idx(folder / f"{part}-labels-idx1-ubyte", labels)
            (folder / "done").touch()

        return folder, self.once(("data", name, task), make)

    def model(self, name, shape, seed, task):
        """Trained on clean images, or from there fine-tuned on changed ones."""
        width, blocks = shape
        trained = f"{self.given.steps}-{self.given.images}"
        folder = self.out / "models" / name / trained / f"{width}x{blocks}-{seed}"
        data, ready = self.data(name, task)
        layout = "mnist:" if name == "mnist" else "fashion_mnist:"
        common = ["--data", layout + str(data), "--batch-size", 128, "--seed", seed, "--validation",
                  "none", "--out", folder / task, "--weight-decay", 0.05]
        if task == "clean":
            def make():
                if not (folder / "initial").exists():
                    subprocess.run([sys.executable, INITIAL, folder / "initial", "--width", str(width),
                                    "--blocks", str(blocks), "--seed", str(seed)], check=True)
                self.theseus("finetune", "--model", folder / "initial", *common, "--steps",
                             self.given.steps, "--lr", 1e-3, out=folder / task)

            return folder / task, self.once((name, shape, seed, task), make, ready)
        base, ready_base = self.model(name, shape, seed, "clean")
        freeze = [word for name in FROZEN for word in ("--freeze", name)]

        def tune():
            self.theseus("finetune", "--model", base, *common, "--steps", self.given.steps // 2, "--lr",
                         5e-4, *freeze, out=folder / task)

        return folder / task, self.once((name, shape, seed, task), tune, ready, ready_base)

    def accuracy(self, model, data, layout):
        """On the very images that compare measures on: it draws them with evaluate's own seed."""
        said = self.theseus("evaluate", "--model", model, "--data", layout + str(data), "--split", "test",
                            "--limit", LIMIT, "--json")
        return json.loads(said)["value"]

    def run(self, name, setting, task, seed):
        """The result file of one setting, task and seed."""
        from_shape, to_shape = self.given.settings[setting]
        trained = f"{self.given.steps}-{self.given.images}"
        folder = self.out / "runs" / name / trained / setting / task / str(seed)
        result = folder / "result.json"
        methods = self.given.methods + (SAME_ONLY if from_shape == to_shape else [])
        rules = ["divided", "whole", "stretch"] if from_shape[1] != to_shape[1] else [""]
        rows = json.loads(result.read_text())["rows"] if result.exists() else {}
        missing = {rule: [method for method in methods
                          if method + (f", {rule}" if rule else "") not in rows]
                   for rule in rules}
        if "imitate" in rows and not any(missing.values()):
            return self.once(("run", name, setting, task, seed), lambda: result)
        source, s = self.model(name, from_shape, seed, "clean")
        tuned, t = self.model(name, from_shape, seed, task)
        target, b = self.model(name, to_shape, seed + 100, "clean")
        ceiling, c = self.model(name, to_shape, seed + 100, task)
        data, _ = self.data(name, task)
        clean, _ = self.data(name, "clean")
        layout = "mnist:" if name == "mnist" else "fashion_mnist:"

        def make():
            folder.mkdir(parents=True, exist_ok=True)
            for rule, usable in missing.items():
                if not usable:
                    continue
                work = folder / f"compared{rule}"
                said = self.theseus(
                    "compare", "--source", source, "--target", target, "--setting", task, tuned,
                    layout + str(data), "--methods", ",".join(usable), "--batches", CALIBRATION,
                    "--validation", "train", "--test", "test", "--limit", LIMIT, "--step", 0.5, "--to",
                    5, "--seed", seed, "--out", work, "--json", *(["--depth", rule] if rule else []))
                for row in json.loads(said)["rows"]:
                    rows[row["method"] + (f", {rule}" if rule else "")] = row["cells"][task]
                shutil.rmtree(work, ignore_errors=True)
            rows["imitate"] = rows.pop("imitate", None) or imitated()
            record = {"before": self.accuracy(target, data, layout),
                      "source": self.accuracy(source, data, layout),
                      "source tuned": self.accuracy(tuned, data, layout),
                      "tuned": self.accuracy(ceiling, data, layout), "rows": rows}
            result.write_text(json.dumps(record, indent=1))
            return result

        def imitated():
            work = folder / "imitated"
            self.theseus("imitate", "--source", source, "--tuned", tuned, "--target", target,
                         "--examples", layout + str(data), "--familiar", layout + str(clean),
                         "--batches", CALIBRATION, "--seed", seed, "--out", work, "--fresh")
            value = self.accuracy(work, data, layout)
            shutil.rmtree(work)
            return {"value": value, "value_at_one": value, "alpha": 1}

        return self.once(("run", name, setting, task, seed), make, s, t, b, c)


def spread(values, digits=2):
    deviation = statistics.stdev(values) if len(values) > 1 else 0
    return f"{statistics.mean(values):.{digits}f} ± {deviation:.{digits}f}"


def recovered(record, value):
    return (value - record["before"]) / (record["tuned"] - record["before"])


def shared(records):
    """Methods that every record has."""
    return [method for method in records[0]["rows"]
            if all(method in record["rows"] for record in records)]


def summary(title, columns):
    """Gap recovered at strength 1 and at the best, a column a task."""
    lines = [f"### {title}", "", "| gap recovered | " + " | ".join(columns) + " |",
             "|---" * (len(columns) + 1) + "|"]
    for key, words in (("before", "target before, %"), ("tuned", "target fine-tuned, %")):
        cells = [spread([100 * record[key] for record in records], 1) for records in columns.values()]
        lines.append(f"| {words} | " + " | ".join(cells) + " |")
    for method in shared([record for records in columns.values() for record in records]):
        cells = []
        for records in columns.values():
            rows = [(record, record["rows"][method]) for record in records]
            one = statistics.mean(recovered(record, row["value_at_one"]) for record, row in rows)
            best = spread([recovered(record, row["value"]) for record, row in rows])
            cells.append(best if method == "imitate" else f"{one:.2f}, {best}")
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return lines + [""]


def table(title, records):
    percent = lambda key: spread([100 * record[key] for record in records])
    lines = [f"### {title}", "",
             f"target before {percent('before')} %, fine-tuned {percent('tuned')} %; source "
             f"{percent('source')} %, fine-tuned {percent('source tuned')} %", "",
             "| method | accuracy at 1 | accuracy at the best strength | strength | gap recovered at 1 | "
             "at the best |", "|---|---|---|---|---|---|"]
    for method in shared(records):
        cells = [(record, record["rows"][method]) for record in records]
        one = [(r, c["value_at_one"]) for r, c in cells]
        best = [(r, c["value"]) for r, c in cells]
        lines.append(" | ".join([
            f"| {method}", spread([100 * v for _, v in one]), spread([100 * v for _, v in best]),
            spread([c["alpha"] for _, c in cells]),
            spread([recovered(*pair) for pair in one]),
            spread([recovered(*pair) for pair in best])]) + " |")
    return lines + [""]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--data", nargs="+", required=True, metavar="NAME=DIR")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=2400)
    parser.add_argument("--images", type=int, default=60000)
    parser.add_argument("--settings", default=",".join(SETTINGS))
    parser.add_argument("--tasks", default="noise,rotation,shear,inversion")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    if np is None:
        parser.error("numpy is missing: install python3-numpy")
    given.sets = dict(word.split("=", 1) for word in given.data)
    given.methods = given.methods.split(",")
    tasks = given.tasks.split(",")
    if given.small:
        given.seeds, given.steps, given.images = 1, 1200, 10000
        given.settings, tasks = SMALL, ["noise", "inversion"]
    else:
        given.settings = {word: SETTINGS[word] for word in given.settings.split(",")}
    given.binary = str(pathlib.Path(given.binary).resolve())
    given.out.mkdir(parents=True, exist_ok=True)
    bench = Bench(given)
    runs = {(name, setting, task): [bench.run(name, setting, task, seed) for seed in range(given.seeds)]
            for name in given.sets for setting in given.settings for task in tasks}
    lines = ["# Quality", ""]
    together = {}
    for (name, setting, task), jobs in runs.items():
        records = [json.loads(job.result().read_text()) for job in jobs]
        (width, blocks), (wide, deep) = given.settings[setting]
        what = f"{width} -> {wide} wide" if blocks == deep else f"{blocks} -> {deep} blocks"
        together.setdefault(f"{name}, {what}, {given.seeds} seeds", {})[task] = records
        lines += table(f"{name}, {task}, {what}, {given.seeds} seeds", records)
        (given.out / "quality.md").write_text("\n".join(lines))
        print("\n".join(lines[-len(shared(records)) - 6:]), flush=True)
    for title, columns in together.items():
        lines += summary(title, columns)
    (given.out / "quality.md").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
