#!/usr/bin/env python3
"""Times two commands in turns, so that a busy machine is as busy for the one as for the other.

    bench/beside.py [--rounds 3] 'OURS ...' 'THEIRS ...'

Prints medians of time, of processor time and of the peak of memory, and their ratios. What the commands print
goes to standard error.
"""
import argparse
import os
import shlex
import statistics
import subprocess
import sys
import time


def measured(words, stdout=sys.stderr):
    """Seconds, processor seconds and peak GiB."""
    start = time.monotonic()
    with subprocess.Popen(words, stdout=stdout) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"exit status {process.returncode}: {' '.join(words)}")
    return time.monotonic() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("ours")
    parser.add_argument("theirs")
    given = parser.parse_args()
    if given.rounds < 1:
        parser.error("--rounds: at least 1")
    ours, theirs = shlex.split(given.ours), shlex.split(given.theirs)
    turns = [(measured(ours), measured(theirs)) for _ in range(given.rounds)]
    print("| | ours | theirs | theirs / ours |\n|---|---|---|---|")
    for i, name in enumerate(("seconds", "processor seconds", "peak GiB")):
        one, other = (statistics.median(turn[who][i] for turn in turns) for who in (0, 1))
        ratios = sorted(turn[1][i] / turn[0][i] for turn in turns)
        between = f" ({ratios[0]:.2f} to {ratios[-1]:.2f})" if len(ratios) > 1 else ""
        print(f"| {name} | {one:.2f} | {other:.2f} | {statistics.median(ratios):.2f}{between} |")


if __name__ == "__main__":
    main()
