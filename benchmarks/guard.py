"""How often the guard alarms without a reason, what it finds of true slowdowns, how long it takes, and whether blame is right.

::

    python benchmarks/guard.py aa --jobs 7        # the same commit on both sides, environments and processes anew
    python benchmarks/guard.py power --jobs 4     # every benchmark 5 % slower
    python benchmarks/guard.py many --jobs 4      # twenty identical benchmarks in one suite
    python benchmarks/guard.py blame --jobs 10    # a regression planted among harmless hunks

Each line is one job, with the load of the machine when it ended; the last sums up. Beside it stands Welch's test (p < 0.05, d > 0.2) against what an earlier job measured, on the
same data: a stored baseline.
"""

from __future__ import annotations

import argparse
import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy import stats

from pyrometer.bench.comparison.textbook import cohen_d
from pyrometer.guard.blaming import blame
from pyrometer.guard.check import GuardOptions, opened_job
from pyrometer.guard.gate import GuardReport
from pyrometer.guard.pairs import Sample

LOOPS = """
import torch
from torch import nn


def perf_loop():
    total = 0
    for i in range({loop}):
        total += i
    return None


def perf_text():
    return [str(i) for i in range({text})] and None


def perf_small():
    a = torch.randn(48, 48)
    def step():
        for _ in range({small}):
            a @ a
    return step


def perf_layer():
    model = nn.Sequential(*[nn.Linear(64, 64) for _ in range({layer})])
    return model, torch.randn(16, 64)


def perf_dict():
    d = {{}}
    for i in range({dict}):
        d[i] = i
"""
LAYERS = [f"layer{number}" for number in range(10)]
LAYER = """
def {name}(x):
{body}    return y
"""
SIZES = {"loop": 8000, "text": 4000, "small": 60, "layer": 20, "dict": 6000}


def repository(folder: Path, sides: list[dict[str, str]]) -> Path:
    """A repository with a commit for each side, the first of which is tagged `before`."""
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    for number, files in enumerate(sides):
        for name, text in files.items():
            (folder / name).write_text(text)
        git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@a"]
        subprocess.run([*git, "add", "--all"], check=True)
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", f"side {number}"], check=True)
        if number == 0:
            subprocess.run([*git, "tag", "before"], check=True)
    return folder


def jobs(
    sides: list[dict[str, str]], number: int
) -> Iterator[tuple[GuardReport, dict[str, list[Sample]], float]]:
    """Reports of so many jobs, with what they measured and how long they took."""
    for job in range(number):
        with tempfile.TemporaryDirectory() as folder:
            root = repository(Path(folder), sides)
            begin = time.monotonic()
            with opened_job(root, GuardOptions(base="before", seed=job, explain=False)) as opened:
                report = opened.run()
                yield report, opened.samples, time.monotonic() - begin


def suite(factor: float = 1.0) -> dict[str, str]:
    """Five benchmarks, slower by a factor."""
    return {"perf_suite.py": LOOPS.format(**{name: round(size * factor) for name, size in SIZES.items()})}


def twenty() -> dict[str, str]:
    """Twenty identical benchmarks."""
    return {
        "perf_twenty.py": "\n".join(
            f"def perf_{i}():\n    return sum(range(20000)) and None" for i in range(20)
        )
    }


def tally(sides: list[dict[str, str]], number: int) -> None:
    """Run jobs and print what they decided."""
    outcomes: Counter[tuple[str, str]] = Counter()
    medians: list[dict[str, tuple[list[float], list[float]]]] = []
    failing = untrusted = 0
    for report, samples, took_s in jobs(sides, number):
        timed = [gate for gate in report.gates if gate.kind in {"time", "memory"}]
        outcomes.update((gate.metric, gate.outcome) for gate in timed)
        failing += any(gate.outcome == "regressed" for gate in timed)
        untrusted += not report.trusted
        medians.append(
            {
                name: ([s.base.median_s for s in own], [s.head.median_s for s in own])
                for name, own in samples.items()
            }
        )
        found = Counter(gate.outcome for gate in timed if gate.metric == "median_s")
        print(
            f"{took_s:6.0f} s  load {os.getloadavg()[0]:4.1f}  {report.num_pairs:2} pairs  trusted {report.trusted}  median_s {dict(found)}",
            flush=True,
        )
    whole = sum(outcomes.values())
    wrong = sum(n for (_, outcome), n in outcomes.items() if outcome in {"regressed", "improved"})
    slower = sum(n for (_, outcome), n in outcomes.items() if outcome == "regressed")
    print(
        f"{whole} gates, {slower} regressed, {wrong} called different; {failing} of {number} jobs fail; {untrusted} untrusted"
    )
    for (metric, outcome), n in sorted(outcomes.items()):
        print(f"    {metric:16} {outcome:10} {n}")
    stored = [
        _welch(before[name][0], after[name][1])
        for before, after in itertools.pairwise(medians)
        for name in before.keys() & after.keys()
    ]
    if stored:
        print(f"Welch on the baseline of the job before: {sum(stored)} of {len(stored)} called different")


def _welch(before: list[float], after: list[float]) -> bool:
    if min(len(before), len(after)) < 2:
        return False
    a, b = np.array(before), np.array(after)
    return bool(stats.ttest_ind(b, a, equal_var=False).pvalue < 0.05 and abs(cohen_d(a, b)) > 0.2)


def blamed(number: int) -> None:
    """Plant a copy in one of ten layers, each of which changes in some harmless way as well."""
    right = 0
    for seed in range(number):
        guilty = seed % len(LAYERS)
        before = "".join(LAYER.format(name=name, body="    y = x * 2.0\n") for name in LAYERS)
        bodies = ["    y = x * 2.0  # as before\n"] * len(LAYERS)
        bodies[guilty] = "    y = (x * 2.0).clone()\n"
        after = "".join(LAYER.format(name=name, body=body) for name, body in zip(LAYERS, bodies, strict=True))
        calls = "".join(f"        x = layers.{name}(x)\n" for name in LAYERS)
        perf = f"import torch\nimport layers\n\n\ndef perf_all():\n    x0 = torch.ones(8, 8)\n    def step():\n        x = x0\n{calls}        return x\n    return step\n"
        with tempfile.TemporaryDirectory() as folder:
            root = repository(
                Path(folder), [{"layers.py": before, "perf_all.py": perf}, {"layers.py": after}]
            )
            found = blame(root, GuardOptions(base="before", budget_s=1e-3), "copies")
        line = next(number for number, text in enumerate(after.splitlines(), 1) if "clone" in text)
        hit = [hunk.place for hunk in found.hunks] == [f"layers.py:{line}"]
        right += hit
        print(
            f"{found.elapsed_s:6.0f} s  load {os.getloadavg()[0]:4.1f}  {found.num_trials} trials of {found.num_hunks} hunks  {'right' if hit else 'wrong'}",
            flush=True,
        )
    print(f"{right} of {number} right")


def main() -> int:
    """Run one of the experiments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["aa", "power", "many", "blame"])
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--slower", type=float, default=0.05)
    given = parser.parse_args()
    if given.what == "blame":
        blamed(given.jobs)
        return 0
    sides = {
        "aa": [suite(), suite()],
        "power": [suite(), suite(1 + given.slower)],
        "many": [twenty(), twenty()],
    }
    tally(sides[given.what], given.jobs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
