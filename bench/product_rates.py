#!/usr/bin/env python3
"""How near products inside theseus come to the best kernels that can be had on this machine.

    product_rates.py BINARY [--rounds N]

`theseus doctor` measures a core as the program comes and with every kernel of OpenBLAS that the processor can run,
in turns; the ratio of the best of each is to be at least 0.85. Beside other jobs the figures fall together.
"""
import argparse
import json
import os
import pathlib
import subprocess

PREPARED = ("OPENBLAS_CORETYPE", "DNNL_MAX_CPU_ISA", "LD_PRELOAD", "GOMP_SPINCOUNT")
NEEDS = {"Prescott": "pni", "Sandybridge": "avx", "Haswell": "avx2", "SkylakeX": "avx512vl"}


def measure(binary, environment):
    done = subprocess.run([binary, "doctor", "--json"], stdout=subprocess.PIPE, check=True, text=True,
                          env=environment)
    record = json.loads(done.stdout)
    return record["openblas_kernel"] or "not OpenBLAS", record["rates_of_a_core"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    flags = pathlib.Path("/proc/cpuinfo").read_text().split()
    plain = {name: value for name, value in os.environ.items() if name not in PREPARED}
    ways = {"as theseus comes": plain, "with this environment": dict(os.environ)}
    for kernel, flag in NEEDS.items():
        if flag in flags:
            ways[f"OPENBLAS_CORETYPE={kernel}"] = {**plain, "OPENBLAS_CORETYPE": kernel}
    ways["without a stand-in for MKL"] = {**plain, "LD_PRELOAD": ""}
    best, kernels = {}, {}
    for _ in range(arguments.rounds):
        for way, environment in ways.items():
            kernels[way], rates = measure(arguments.binary, environment)
            before = best.get(way, rates)
            best[way] = {dtype: max(rate, before[dtype]) for dtype, rate in rates.items()}
    print(f"{'products of a core, Gflop/s':40} {'float32':>8} {'float64':>8} {'bfloat16':>9}  kernels")
    for way, rates in best.items():
        numbers = [f"{rates[dtype] / 1e9:.0f}" for dtype in ("float32", "float64", "bfloat16")]
        print(f"{way:40} {numbers[0]:>8} {numbers[1]:>8} {numbers[2]:>9}  {kernels[way]}")
    for dtype in ("float32", "float64", "bfloat16"):
        ratio = best["as theseus comes"][dtype] / max(rates[dtype] for rates in best.values())
        print(f"{dtype}: {ratio:.2f} of the best (wanted: 0.85)")


if __name__ == "__main__":
    main()
