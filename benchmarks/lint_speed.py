"""What linting costs: 1,000 files of the installed torch package, and where the time goes.

    python benchmarks/lint_speed.py [--files 1000] [--package torch] [--rounds 3] [--libcst-python VENV/bin/python]

Each figure is the best of the rounds, from a process that has imported everything; files are in the system's cache.
`CPU` is processor time, of all processes, which other load on the machine disturbs less.
`lint` is all stable rules without a cache of results; `again` is with one that is filled. Parsing by ast is set beside
libcst's, of an interpreter that has it.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from pyrometer.rules.lint.files import SourceFile, files_of
from pyrometer.rules.lint.result import LintResult
from pyrometer.rules.lint.run import is_worth_parsing, lint_files
from pyrometer.rules.settings import RuleSettings

LIBCST = """
import json, sys, time
import libcst
texts = [open(path, encoding="utf-8").read() for path in json.load(sys.stdin)]
start = time.process_time()
for text in texts:
    libcst.parse_module(text)
print(time.process_time() - start)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--package", default="torch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--libcst-python")
    asked = parser.parse_args()
    settings = RuleSettings()
    files = some_files(asked.package, asked.files, settings)
    result = lint_files(files, settings)
    assert "torch" not in sys.modules
    print(
        f"{len(files)} files of {asked.package}, {result.num_looked_at} with torch, {result.num_lines:,} lines,"
        f" {len(settings.chosen())} rules, {os.cpu_count()} cores"
    )
    for jobs in sorted({1, os.cpu_count() or 1}):
        took = best(lambda jobs=jobs: lint_files(files, settings, jobs), asked.rounds)
        tell(f"lint, {jobs} processes", took, result, len(files))
    with tempfile.TemporaryDirectory() as folder:
        cached = msgspec.structs.replace(settings, root=folder)
        lint_files(files, cached, cache=True)
        took = best(lambda: lint_files(files, cached, cache=True), asked.rounds)
        tell("again", took, result, len(files))
    parsing(files, asked.rounds, asked.libcst_python)
    per_10_000 = len(result.findings) / max(result.num_lines, 1) * 10_000
    print(
        f"{len(result.findings)} findings, {per_10_000:.2f} per 10,000 lines, {len(result.failures)} failures"
    )


def some_files(package: str, count: int, settings: RuleSettings) -> list[SourceFile]:
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations
    files = files_of(spec.submodule_search_locations, settings)
    step = max(1, len(files) // count)
    return files[::step][:count]


def parsing(files: list[SourceFile], rounds: int, libcst_python: str | None) -> None:
    paths = [str(file.path) for file in files if is_worth_parsing(file.path.read_bytes())]
    texts = [Path(path).read_text(encoding="utf-8") for path in paths]
    warnings.simplefilter("ignore")  # of escapes in strings
    took = best(lambda: parse_all(texts), rounds)
    print(f"{'ast.parse alone':<24}{took.wall_s:8.2f} s {took.cpu_s:8.2f} s CPU")
    if libcst_python is not None:
        done = subprocess.run(
            [libcst_python, "-c", LIBCST], input=json.dumps(paths), capture_output=True, text=True, check=True
        )
        other_s = float(done.stdout)
        print(f"{'libcst alone':<24}{'':10} {other_s:8.2f} s CPU, {other_s / took.cpu_s:.1f} times ast's")


def parse_all(texts: list[str]) -> None:
    for text in texts:
        ast.parse(text)  # dropped at once, as when linting


class Took(NamedTuple):
    """Wall-clock and processor time."""

    wall_s: float
    cpu_s: float


def tell(what: str, took: Took, result: LintResult, count: int) -> None:
    per_1000_ms = took.cpu_s / max(result.num_lines, 1) * 1e6
    print(
        f"{what:<24}{took.wall_s:8.2f} s {took.cpu_s:8.2f} s CPU {count / took.wall_s:7,.0f} files/s"
        f" {per_1000_ms:7.2f} ms CPU per 1,000 lines"
    )


def best(run: Callable[[], Any], rounds: int) -> Took:
    times = []
    for _ in range(rounds):
        start, busy = time.perf_counter(), sum(os.times()[:4])
        run()
        times.append(Took(time.perf_counter() - start, sum(os.times()[:4]) - busy))
    return Took(*map(min, zip(*times, strict=True)))


if __name__ == "__main__":
    main()
