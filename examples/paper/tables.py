#!/usr/bin/env python3
"""Prints as Markdown what theseus wrote as JSON, where the paper has a table of its own for it.

    tables.py norms COMPARE.json            |carried update| - |update| by method, mean over tasks
    tables.py strengths SWEEP.json...       value by alpha, mean over files
    tables.py scores EVALUATE.json...       value by file, and their mean
    tables.py cosine DIAGNOSE.json...       of activations, before and after the maps
    tables.py cost METHOD/TRANSPORT.json... seconds and memory by width of the target
    tables.py training FINETUNE/theseus.json...  what was measured by step, of each training
    tables.py towers INSPECT.json           blocks and widths, on one line
"""
import json
import pathlib
import sys


def rows(head, lines):
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for line in lines:
        print("| " + " | ".join(line) + " |")
    print()


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def norms(files):
    for file in files:
        record = json.loads(file.read_text())
        rows(["method", "value", "norm error"], [
            [row["method"] + (f", {row['shots']}" if "shots" in row else ""),
             f"{mean(cell['value'] for cell in row['cells'].values()):.4f}",
             f"{mean(cell['norm_error'] for cell in row['cells'].values()):.2e}"]
            for row in record["rows"] if all("norm_error" in cell for cell in row["cells"].values())])


def strengths(files):
    curves = [{point["alpha"]: point["value"] for point in json.loads(file.read_text())["curve"]}
              for file in files]
    shared = sorted(set.intersection(*map(set, curves)))
    rows(["alpha", *(file.stem for file in files), "mean"], [
        [f"{alpha:.3g}", *(f"{curve[alpha]:.4f}" for curve in curves),
         f"{mean(curve[alpha] for curve in curves):.4f}"] for alpha in shared])


def scores(files):
    values = {file.stem: json.loads(file.read_text())["value"] for file in files}
    rows([*values, "mean"], [[*(f"{value:.4f}" for value in values.values()),
                              f"{mean(values.values()):.4f}"]])


def cosine(files):
    lines = []
    for file in files:
        spaces = json.loads(file.read_text())["spaces"]
        before, after = (mean(row[key] for row in spaces) for key in ("before", "after"))
        centred = mean(row["centred"] for row in spaces)
        lines.append([file.stem, f"{before:.4f}", f"{after:.4f}", f"{centred:.4f}",
                      f"{100 * (after / before - 1):+.0f} %" if before > 0 else "-"])
    rows(["task", "before", "after", "after, means taken out", "relative increase"], lines)


def width_of(file):
    """Of the target; only a method that makes maps says it."""
    record = json.loads((file.parent.parent / "procrustes" / file.name).read_text())
    return max(row["target_width"] for row in record["spaces"] if row["space"].endswith("attn_in"))


def cost(files):
    lines = []
    for file in files:
        record = json.loads(file.read_text())
        width = width_of(file)
        lines.append([file.stem, str(width), file.parent.name, f"{record['wall_seconds']:.1f}",
                      f"{record['peak_bytes'] / 1e6:.0f}"])
    rows(["target", "width", "method", "seconds", "peak memory in MB"],
         sorted(lines, key=lambda line: int(line[1])))


def training(files):
    records = [json.loads(file.read_text()) for file in files]
    names = [file.parent.name for file in files]
    metrics = [(record["metric"], "value") for record in records[:1]]
    metrics += [("loss", "loss")] if metrics[0][0] != "loss" else []
    curves = [{point["step"]: point for point in record["curve"]} for record in records]
    shared = sorted(set.intersection(*map(set, curves)))
    rows(["step", *(f"{name}: {metric}" for metric, _ in metrics for name in names)], [
        [str(step), *(f"{curve[step][key]:.4f}" for _, key in metrics for curve in curves)]
        for step in shared])


def towers(files):
    for file in files:
        print(" ".join(f"{tower['name']}:{tower['blocks']}x{tower['width']}/{tower['mlp']}"
                       for tower in json.loads(file.read_text())["towers"]))


def main():
    kinds = {one.__name__: one for one in (norms, strengths, scores, cosine, cost, training, towers)}
    if len(sys.argv) < 3 or sys.argv[1] not in kinds:
        sys.exit(__doc__)
    kinds[sys.argv[1]]([pathlib.Path(word) for word in sys.argv[2:]])


if __name__ == "__main__":
    main()
