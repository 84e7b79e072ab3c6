#!/usr/bin/env python3
"""Checks the order of the stages and that tests/ mirrors theseus/.

usage: check_stages.py [ROOT]

A stage is a directory of theseus/. It may include its own headers and those of the stages before it.
"""
import pathlib
import re
import sys

STAGES = ["machine", "base", "cluster", "checkpoint", "update", "data", "model", "gradient", "stats", "maps",
          "transport", "output", "evaluate", "train", "report", "cli"]
# Directories of tests/ that are no stage.
OTHER_TESTS = ["fuzz", "golden", "install", "support", "tools"]


def sources(directory):
    return sorted(path for path in directory.rglob("*") if path.suffix in (".h", ".cpp"))


def wrong_includes(root):
    for path in sources(root / "theseus"):
        name = path.relative_to(root)
        stage = name.parts[1]
        if stage not in STAGES:
            yield f"{name}: '{stage}' is not a stage; the stages are {' '.join(STAGES)}"
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            included = re.match(r'\s*#\s*include\s*["<](theseus|tests)/([^/">]+)', line)
            if not included:
                continue
            tree, other = included.groups()
            if tree == "tests":
                yield f"{name}:{number}: theseus/ may not include tests/"
            elif other not in STAGES:
                yield f"{name}:{number}: there is no stage '{other}'"
            elif STAGES.index(other) > STAGES.index(stage):
                yield f"{name}:{number}: {stage} may not include {other}, a later stage"


def wrong_tests(root):
    present = {path.relative_to(root).parts[1] for path in sources(root / "theseus")}
    for path in sources(root / "tests"):
        directory = path.relative_to(root).parts[1]
        if directory not in OTHER_TESTS and directory not in present:
            yield (f"{path.relative_to(root)}: theseus/{directory}/ does not exist; other tests go to "
                   f"{' '.join(OTHER_TESTS)}")
    for stage in STAGES:
        if stage in present and not list((root / "tests" / stage).glob("*_test.*")):
            yield f"theseus/{stage}/ has no tests/{stage}/*_test.cpp or *_test.py"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    problems = [*wrong_includes(root), *wrong_tests(root)]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
