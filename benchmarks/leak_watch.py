"""What watching for leaks costs per step, and what it finds.

    python benchmarks/leak_watch.py [--rounds 12] [--steps 1000] [--step-ms 10]
    python benchmarks/leak_watch.py --corpus [--only robot]

Cost: a training step of about ten milliseconds is run in blocks, watched in windows, watched always, and not at all, in turn;
a coin decides the order within each round, so that drift of the machine falls on all alike. Reported is the median ratio of a
watched block to the plain block of the same round, minus one, with a 99 % interval from the order statistics, of CPU time,
which other programs disturb least, and of wall time. A block with windows has one window of twenty steps in a thousand, which is
about what a watch chooses by itself.

Corpus: every program of `tests/memory/programs` is watched for sixty steps; printed are verdict, holder and rate, each with
whether it is right.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import random
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from scipy.stats import binom
from torch import nn

from pyrometer.memory.leaks.watch import MemoryWatch, watch_memory
from pyrometer.memory.profile import LeakReport

CONFIDENCE = 0.99
CORPUS = Path(__file__).parent.parent / "tests" / "memory" / "programs" / "corpus.py"
MODELS = {"few large operators": (640, 4), "many small operators": (96, 40)}
"""Name → width and depth; the batch is chosen so that a step takes the time that is asked for."""


def training_step(width: int, depth: int, batch: int) -> Callable[[], None]:
    model = nn.Sequential(*[nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(depth)])
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(batch, width)

    def step() -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    return step


def sized_step(width: int, depth: int, step_s: float) -> Callable[[], None]:
    """A step that takes about so long: the batch is doubled until it does."""
    batch = 1
    while True:
        step = training_step(width, depth, batch)
        times = []
        for _ in range(12):
            begin = time.process_time()
            step()
            times.append(time.process_time() - begin)
        if np.median(times) >= step_s or batch >= 2**16:
            return step
        batch = max(batch + 1, int(batch * 1.25))


def interval(values: np.ndarray) -> tuple[float, float]:
    """Distribution-free interval of the median."""
    ordered = np.sort(values)
    low = int(binom.ppf((1 - CONFIDENCE) / 2, len(ordered), 0.5))
    return float(ordered[low]), float(ordered[len(ordered) - 1 - low])


def timed(run: Callable[[int], None], steps: int) -> tuple[float, float]:
    """CPU and wall time per step."""
    cpu, wall = time.process_time(), time.perf_counter()
    run(steps)
    return (time.process_time() - cpu) / steps, (time.perf_counter() - wall) / steps


def measure_cost(name: str, step: Callable[[], None], rounds: int, steps: int, coin: random.Random) -> None:
    times = {mode: np.empty((rounds, 2)) for mode in ("off", "windows", "always")}
    with MemoryWatch(every=steps, window=20) as watch:  # one for all rounds, as over a long run
        modes: dict[str, Callable[[int], None]] = {
            "off": lambda count: plain(step, count),
            "windows": lambda count: watched(step, count, watch),
            "always": lambda count: watched_always(step, count),
        }
        watched(step, 50, watch)
        for number in range(rounds):
            for mode in coin.sample(sorted(modes), len(modes)):
                times[mode][number] = timed(modes[mode], 100 if mode == "always" else steps)
    for column, clock in enumerate(("CPU time", "wall time")):
        base = times["off"][:, column]
        print(f"{name}, {clock}: {np.median(base) * 1e3:.2f} ms per step unwatched")
        for mode in ("windows", "always"):
            added = times[mode][:, column] / base - 1
            low, high = interval(added)
            print(f"  {mode}: {np.median(added):+.2%} ({low:+.2%} to {high:+.2%})", flush=True)


def plain(step: Callable[[], None], count: int) -> None:
    for _ in range(count):
        step()


def watched(step: Callable[[], None], count: int, watch: MemoryWatch) -> None:
    for _ in range(count):
        step()
        watch.step()


def watched_always(step: Callable[[], None], count: int) -> None:
    with MemoryWatch(every=count, window=count) as watch:
        watched(step, count, watch)


def load_corpus() -> ModuleType:
    spec = importlib.util.spec_from_file_location("corpus", CORPUS)
    assert spec is not None
    assert spec.loader is not None
    corpus = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(corpus)
    return corpus


def print_corpus(only: str) -> None:
    print(f"{'program':34} {'expected':18} {'verdict':18} right holder line rate  answer")
    right: list[tuple[bool, bool, bool]] = []
    for program in load_corpus().load_all():
        if only not in program.name:
            continue
        with program.running() as step, contextlib.redirect_stdout(None):
            report = watch_memory(step)
            del step
        checks = judge(program, report)
        right.append((program.leaks, checks[0], checks[1]))
        text = "".join(f"{'yes' if check else 'NO':>5} " for check in checks)
        print(
            f"{program.name:34} {program.expected['verdict']:18} {report.verdict:18} {text} {report.sentence}"
        )
    found = sum(leaks and verdict and holder for leaks, verdict, holder in right)
    alarms = sum(not leaks and not verdict for leaks, verdict, _ in right)
    leaking = sum(leaks for leaks, _, _ in right)
    print(
        f"{found} of {leaking} leaks with their holder; {alarms} false alarms in {len(right) - leaking} clean programs"
    )


def judge(program: Any, report: LeakReport) -> tuple[bool, bool, bool, bool]:
    """Whether verdict, holder, line and rate are right; what is not expected is."""
    verdict = program.accepts(report.verdict)
    if not program.leaks:
        return verdict, True, True, True
    said = program.expected["bytes_per_step"]
    return (
        verdict,
        any(program.names_holder(f"{site.holder} {' '.join(site.chain)}") for site in report.sites),
        any(program.names_line(site.source or "") for site in report.sites),
        said is None or abs(report.bytes_per_step - said) <= 0.2 * said,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--steps", type=int, default=1000, help="of a round's block, with one window")
    parser.add_argument("--step-ms", type=float, default=10.0)
    parser.add_argument("--corpus", action="store_true")
    parser.add_argument("--only", default="", help="programs whose name contains this")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    if args.corpus:
        print_corpus(args.only)
        return
    for name, (width, depth) in MODELS.items():
        step = sized_step(width, depth, args.step_ms * 1e-3)
        measure_cost(name, step, args.rounds, args.steps, random.Random(0))


if __name__ == "__main__":
    main()
