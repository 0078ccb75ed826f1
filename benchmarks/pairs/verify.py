"""Checks every pair: equal results, and how much faster the fast version is; writes both into truth.toml.

    python benchmarks/pairs/verify.py [NAME ...] [--rounds 7]

A pair in one file is measured step by step in blocks that take turns; a pair of scripts by the time that each script
prints for its loop, in runs that take turns. torch has one thread, except where a program sets another number.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import statistics
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from pyrometer.workload.loading import load_workload
from pyrometer.workload.target import parse_target
from pyrometer.workload.workload import Session, Workload

HERE = Path(__file__).parent
TRUTH = HERE / "truth.toml"
STEPS_COMPARED = 4
BLOCK_S = 0.15
NUMBER = re.compile(r"-?\d+\.?\d*(?:e-?\d+)?")


def load(name: str, factory: str) -> Workload:
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - programs may draw from the global state
    torch.manual_seed(0)
    return load_workload(parse_target(f"{HERE / name}.py:{factory}"))


def numbers(output: Any) -> list[float]:
    """All numbers of an output, in order."""
    leaves = [leaf for leaf in pytree.tree_leaves(output) if leaf is not None]
    return [value for leaf in leaves for value in torch.as_tensor(leaf).double().flatten().tolist()]


def first_outputs(name: str, factory: str) -> list[float]:
    work = load(name, factory)
    with work.open() as session:
        session.activate()
        return [value for _ in range(STEPS_COMPARED) for value in numbers(session.step(session.prepare()))]


def timed_block(session: Session, steps: int) -> float:
    """Seconds per step."""
    session.activate()
    total_s = 0.0
    for _ in range(steps):
        prepared = session.prepare()
        begin = time.perf_counter()
        session.step(prepared)
        total_s += time.perf_counter() - begin
    return total_s / steps


def measure_factories(name: str, rounds: int) -> tuple[list[float], list[float]]:
    with contextlib.ExitStack() as stack:
        sessions = [stack.enter_context(load(name, factory).open()) for factory in ("slow", "fast")]
        steps = [max(1, round(BLOCK_S / timed_block(session, 3))) for session in sessions]
        blocks = [
            [timed_block(session, count) for session, count in zip(sessions, steps, strict=True)]
            for _ in range(rounds)
        ]
    return [block[0] for block in blocks], [block[1] for block in blocks]


def run_script(path: Path) -> tuple[float, list[float]]:
    """Seconds of the loop, as the script prints them ("… in 1.23 s …"), and the other numbers that it prints."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    printed = subprocess.run(
        [sys.executable, path], env=environment, check=True, capture_output=True, text=True
    ).stdout
    loop = re.search(r"in ([\d.]+) s\b", printed)
    if loop is None:
        raise SystemExit(f"{path.name}: prints no '… in 1.23 s'; it printed {printed[-200:]!r}")
    rest = printed[: loop.start()] + printed[loop.end() :]
    return float(loop[1]), [float(number) for number in NUMBER.findall(rest)]


def check_scripts(name: str, rounds: int) -> tuple[list[float], list[float], list[list[float]]]:
    runs = [[run_script(HERE / f"{name}_{side}.py") for side in ("slow", "fast")] for _ in range(rounds)]
    return [run[0][0] for run in runs], [run[1][0] for run in runs], [runs[0][0][1], runs[0][1][1]]


def difference(slow: list[float], fast: list[float]) -> float:
    """Largest difference in units of the largest number; infinite where the shapes differ."""
    if len(slow) != len(fast):
        return float("inf")
    scale = max((abs(value) for value in slow), default=0.0) or 1.0
    return max((abs(a - b) / scale for a, b in zip(slow, fast, strict=True)), default=0.0)


def check(name: str, tolerance: float, rounds: int) -> tuple[str, float]:
    """How equal the results are and the gain."""
    if (HERE / f"{name}_slow.py").exists():
        slow_s, fast_s, outputs = check_scripts(name, min(rounds, 5))
    else:
        outputs = [first_outputs(name, factory) for factory in ("slow", "fast")]
        slow_s, fast_s = measure_factories(name, rounds)
    apart = difference(*outputs)
    equal = "bits" if apart == 0 else f"within {apart:.1e}" if apart <= tolerance else "DIFFERENT"
    gain = statistics.median(slow_s) / statistics.median(fast_s)
    step_ms = [statistics.median(times) * 1e3 for times in (slow_s, fast_s)]
    mark = "" if gain >= 1.15 and equal != "DIFFERENT" and outputs[0] else f"  <-- mend ({apart:.2g})"
    print(f"{name:28} {gain:6.2f}×  {step_ms[0]:9.2f} → {step_ms[1]:9.2f} ms  {equal}{mark}", flush=True)
    return equal, gain


def rewrite(name: str, equal: str, gain: float) -> None:
    head, _, section = TRUTH.read_text().partition(f"[{name}]\n")
    section = re.sub(r"^equal = .*$", f'equal = "{equal}"', section, count=1, flags=re.MULTILINE)
    section = re.sub(r"^gain = .*$", f"gain = {gain:.2f}", section, count=1, flags=re.MULTILINE)
    TRUTH.write_text(f"{head}[{name}]\n{section}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(1)
    truth = tomllib.loads(TRUTH.read_text())
    for name in options.names or truth:
        equal, gain = check(name, truth[name]["tolerance"], options.rounds)
        rewrite(name, equal, gain)


if __name__ == "__main__":
    main()
