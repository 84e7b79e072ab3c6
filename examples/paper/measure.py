#!/usr/bin/env python3
"""Runs a command that prints JSON and adds what it took: wall_seconds and peak_bytes of memory.

    measure.py COMMAND...
"""
import json
import resource
import subprocess
import sys
import time


def main():
    start = time.monotonic()
    done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, check=False)
    seconds = time.monotonic() - start
    if done.returncode != 0:
        sys.exit(done.returncode)
    record = json.loads(done.stdout)
    record["wall_seconds"] = seconds
    # Linux counts in KiB. The one child is the largest there was.
    record["peak_bytes"] = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    json.dump(record, sys.stdout)


if __name__ == "__main__":
    main()
