#!/usr/bin/env python3
"""Everything `./run lint` checks: formatting, clang-tidy, stage order, plain text, shell scripts.

usage: lint.py [--quick | FILE ...]   with files, clang-tidy looks only at those; with --quick at none

clang-tidy reads all of libtorch's headers for every source, which takes seconds. A source that passed
is not looked at again until it, a header of ours that it includes, the checks or the tool change:
build/lint/passed/ remembers.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMPILE_COMMANDS = ROOT / "build" / "lint"
PASSED = COMPILE_COMMANDS / "passed"
# Lets clang read libtorch 1.13 as C++20; g++, which wrote the compile commands, does not need it.
CLANG_HEADERS = ROOT / "cmake" / "clang"
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
# Files that other programs wrote, kept as they came.
FOREIGN = ("LICENSE", "tests/golden/cases/", "tests/fixtures/", "tests/fuzz/corpus/")
# Places that exist on somebody's machine only.
MACHINE_PATH = re.compile(r"(?<![\w.])/(home|Users|work|mnt|root|scratch)/\w")


def run(*command):
    done = subprocess.run([str(part) for part in command], cwd=ROOT, capture_output=True, text=True,
                          check=False)
    return done.returncode, done.stdout + done.stderr


def project_files():
    _, text = run("git", "ls-files", "-co", "--exclude-standard")
    return [name for name in text.splitlines() if (ROOT / name).is_file()]


def check_format(names):
    status, text = run("clang-format", "--dry-run", "-Werror", *names)
    return [] if status == 0 else [text + "./run format mends this"]


def check_text(names):
    problems = []
    for name in names:
        data = (ROOT / name).read_bytes()
        if b"\0" in data or name.startswith(FOREIGN):
            continue
        if data and not data.endswith(b"\n"):
            problems.append(f"{name}: the last line does not end")
        for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
            if line != line.rstrip():
                problems.append(f"{name}:{number}: trailing whitespace")
            if MACHINE_PATH.search(line):
                problems.append(f"{name}:{number}: a path of one machine")
    return problems


def check_stages():
    status, text = run(sys.executable, "tools/check_stages.py")
    return [] if status == 0 else [text.rstrip()]


def check_shell(names):
    scripts = [name for name in names if (ROOT / name).read_bytes().startswith(b"#!/usr/bin/env bash")]
    status, text = run("shellcheck", *scripts)
    return [] if status == 0 else [text.rstrip()]


def closure(path, seen):
    """Adds `path` and every file of ours that it includes to `seen`."""
    if path in seen:
        return
    seen.add(path)
    for include in INCLUDE.findall(path.read_text()):
        target = ROOT / include
        if target.is_file():
            closure(target, seen)


def key_of(path, version):
    files = {ROOT / ".clang-tidy", ROOT / "tests" / ".clang-tidy", *CLANG_HEADERS.rglob("*.h")}
    closure(path, files)
    digest = hashlib.sha256(version.encode())
    for file in sorted(files):
        digest.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def tidy(path, version):
    mark = PASSED / key_of(path, version)
    if mark.exists():
        return []
    status, text = run("clang-tidy", "--quiet", "-p", COMPILE_COMMANDS,
                       f"--extra-arg-before=-isystem{CLANG_HEADERS}",
                       "--extra-arg=-Wno-unknown-warning-option", path)  # some are g++'s alone
    if status != 0:
        lines = [line for line in text.splitlines() if not line.endswith("warnings generated.")]
        return ["\n".join(lines)]
    mark.touch()
    return []


def check_tidy(names):
    compiled = {entry["file"] for entry in
                json.loads((COMPILE_COMMANDS / "compile_commands.json").read_text())}
    paths = [ROOT / name for name in names if name.endswith(".cpp") and str(ROOT / name) in compiled]
    _, version = run("clang-tidy", "--version")
    PASSED.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [problem for found in pool.map(lambda path: tidy(path, version), paths)
                for problem in found]


def main():
    everything = project_files()
    cpp = [name for name in everything
           if name.endswith((".cpp", ".h")) and not name.startswith("cmake/")]
    quick = sys.argv[1:] == ["--quick"]
    named = [os.path.relpath(pathlib.Path(name).resolve(), ROOT) for name in sys.argv[1:]]
    checks = [
        ("format", lambda: check_format(cpp)),
        ("text", lambda: check_text(everything)),
        ("stages", check_stages),
        ("shell", lambda: check_shell(everything)),
    ]
    if not quick:
        checks.append(("clang-tidy", lambda: check_tidy(named or cpp)))
    failed = False
    for name, check in checks:
        problems = check()
        failed = failed or bool(problems)
        print(f"{name}: {'failed' if problems else 'ok'}", flush=True)
        for problem in problems:
            print(problem, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
