"""How often is a comparison wrong? Ours beside the usual recipes, on programs whose true ratio is known.

    python benchmarks/honesty.py [--trials 100] [--power-trials 40] [--sizes 50us,1ms,30ms] [--effects 0,2,5,10]
        [--threads 1] [--burners 0] [--budget 20] [--alone] [--out honesty.json]

A workload is a hundred equal units of work, and the slower side runs 102, 105 or 110 of them, so that the true
ratio is known by construction and not by another measurement. In an A/A trial both sides are the same hundred.
Every trial of every method runs in this one process, one after the other, on whatever else the machine is doing;
`--burners` adds processes that never rest, and `--threads` lets torch use more of them than there are processors.
Sizes are 50us, 1ms, 30ms, 100ms of matrix products, and `train`, `memory` and `python` of about 30 ms each.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch
from scipy import stats
from torch.utils.benchmark import Timer

import pyrometer as pm

UNITS = 100
THOROUGH_BELOW = 0.05
BUDGET_S = {"50us": 10.0, "1ms": 15.0}
LONG_BUDGET_S = 25.0


def unit_of(size: str) -> Any:
    """One hundredth of a step."""
    if size == "50us":
        return lambda: sum(range(12))
    if size == "python":
        return lambda: sum(i * i for i in range(6_000))
    if size == "memory":
        x = torch.randn(1_000_000)
        return lambda: x * 2
    if size == "train":
        return training_unit()
    width = {"1ms": 56, "30ms": 176, "100ms": 288}[size]
    a, b = torch.randn(width, width), torch.randn(width, width)
    return lambda: torch.tanh(a @ b)


def training_unit() -> Any:
    """A training step of a small perceptron."""
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    x = torch.randn(64, 64)

    def unit() -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    return unit


def step_of(size: str, num_units: int) -> Any:
    """A step of so many units."""
    unit = unit_of(size)

    def step() -> None:
        for _ in range(num_units):
            unit()

    return step


def ours(size: str, num_units: int, seed: int, budget_s: float | None) -> dict[str, Any]:
    """Our verdict."""
    a, b = pm.Call(step_of(size, UNITS), name="A"), pm.Call(step_of(size, num_units), name="B")
    truth = num_units / UNITS
    # Two per cent lie inside the default margin of five: finding them takes the thorough rule with its margin of two.
    thorough = 0 < truth - 1 < THOROUGH_BELOW
    chosen_s = budget_s or BUDGET_S.get(size, LONG_BUDGET_S) * (4 if thorough else 1)
    v = pm.compare(a, b, budget_s=chosen_s, seed=seed, thorough=thorough)
    covered = v.ci_low is None or v.ci_high is None or v.ci_low <= truth <= v.ci_high
    width = None if v.ci_low is None or v.ci_high is None else (v.ci_high - v.ci_low) / 2
    return {
        "outcome": v.outcome,
        "s": v.elapsed_s,
        "covered": covered,
        "half_width": width,
        "metric": v.metric,
    }


def timed(step: Any, n: int = 100) -> np.ndarray:
    """The textbook's samples: n calls in a row after ten warm-up calls."""
    for _ in range(10):
        step()
    times = []
    for _ in range(n):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return np.array(times)


@contextlib.contextmanager
def burners(count: int) -> Iterator[None]:
    """Processes that keep a processor busy each."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def claim(differs: bool, a: float, b: float) -> str:
    """A claim in our words."""
    if not differs:
        return "none"
    return "slower" if b > a else "faster"


def rivals(size: str, num_units: int) -> dict[str, dict[str, Any]]:
    """The usual recipes on the same pair."""
    a, b = step_of(size, UNITS), step_of(size, num_units)
    start = time.perf_counter()
    ta, tb = timed(a), timed(b)
    elapsed = time.perf_counter() - start
    pooled = math.sqrt((ta.var(ddof=1) + tb.var(ddof=1)) / 2)
    d = abs(tb.mean() - ta.mean()) / pooled
    welch = stats.ttest_ind(ta, tb, equal_var=False).pvalue
    mann_whitney = stats.mannwhitneyu(ta, tb).pvalue
    found = {
        "welch p<0.05 and d>0.2": {
            "outcome": claim(welch < 0.05 and d > 0.2, ta.mean(), tb.mean()),
            "s": elapsed,
        },
        "mann-whitney p<0.05": {
            "outcome": claim(mann_whitney < 0.05, np.median(ta), np.median(tb)),
            "s": elapsed,
        },
    }
    start = time.perf_counter()
    ma = Timer("f()", globals={"f": a}).blocked_autorange(min_run_time=0.2)
    mb = Timer("f()", globals={"f": b}).blocked_autorange(min_run_time=0.2)
    medians = ma.median, mb.median  # computes the quartiles too, which are -1 before
    apart = ma._p75 < mb._p25 or mb._p75 < ma._p25  # noqa: SLF001 - the only access to its quartiles
    found["torch.utils.benchmark, IQRs apart"] = {
        "outcome": claim(apart, *medians),
        "s": time.perf_counter() - start,
    }
    return found


def wilson(hits: int, n: int) -> tuple[float, float]:
    """95 % interval of a share."""
    interval = stats.binomtest(hits, n).proportion_ci(0.95, method="wilson")
    return interval.low, interval.high


def show(size: str, effect: int, rows: dict[str, list[dict[str, Any]]]) -> None:
    """One line per method."""
    for method, trials in rows.items():
        n = len(trials)
        outcomes = [t["outcome"] for t in trials]
        wrong = sum(o in ({"faster", "slower"} if effect == 0 else {"faster", "same"}) for o in outcomes)
        right = sum(o in ({"same", "none"} if effect == 0 else {"slower"}) for o in outcomes)
        low, high = wilson(wrong, n)
        text = f"{size:>5} +{effect:>2} %  {method:36} wrong {wrong:3}/{n} ({low:.1%}–{high:.1%})  right {right / n:6.1%}"
        text += f"  median {np.median([t['s'] for t in trials]):.2f} s"
        if "metric" in trials[0]:
            text += f"  by CPU time {sum(t['metric'] == 'cpu' for t in trials)}"
        if "covered" in trials[0]:
            text += f"  undecided {outcomes.count('undecided') / n:.1%}  coverage {np.mean([t['covered'] for t in trials]):.1%}"
        print(text, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--power-trials", type=int, default=40)
    parser.add_argument("--sizes", default="50us,1ms,30ms")
    parser.add_argument("--effects", default="0,2,5,10", help="slowdowns in per cent; 0 is A/A")
    parser.add_argument("--threads", type=int, default=1, help="of torch")
    parser.add_argument("--burners", type=int, default=0, help="competing processes")
    parser.add_argument("--budget", type=float, help="seconds of each of our trials")
    parser.add_argument("--alone", action="store_true", help="without the usual recipes")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    with burners(arguments.burners):
        run(arguments)


def run(arguments: argparse.Namespace) -> None:
    """All sizes and effects."""
    results: dict[str, Any] = {"torch": torch.__version__, "cpus": os.cpu_count(), "rows": []}
    for size in arguments.sizes.split(","):
        typical = float(np.median(timed(step_of(size, UNITS), 30)))
        print(
            f"{size}: a step takes {typical * 1e6:.0f} µs; load {psutil.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs"
        )
        for effect in map(int, arguments.effects.split(",")):
            rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
            for trial in range(arguments.trials if effect == 0 else arguments.power_trials):
                rows["pyrometer"].append(ours(size, UNITS + effect, trial, arguments.budget))
                usual = {} if arguments.alone else rivals(size, UNITS + effect)
                for method, outcome in usual.items():
                    rows[method].append(outcome)
            show(size, effect, rows)
            results["rows"].append(
                {
                    "size": size,
                    "step_s": typical,
                    "effect_percent": effect,
                    "load": psutil.getloadavg()[0],
                    **rows,
                }
            )
            if arguments.out:
                arguments.out.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
