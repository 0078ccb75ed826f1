"""What Pyrometer itself costs: start-up, the sampler per step, and the subtracted timer.

python benchmarks/overhead.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pyrometer as pm
from pyrometer.bench.clock import HostClock, timer_overhead
from pyrometer.bench.sampling import StepTimer

ROUNDS = 15
STEPS = 2000


def command_s(*arguments: str) -> list[float]:
    """Wall times of a command."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        subprocess.run(arguments, capture_output=True, check=True)
        times.append(time.perf_counter() - start)
    return times


def show(what: str, values: list[float], unit: str, scale: float) -> None:
    """Median with the range."""
    low, middle, high = (f"{x * scale:.3g}" for x in (min(values), statistics.median(values), max(values)))
    print(f"{what:58} {middle:>6} {unit}  ({low}–{high}, {len(values)} rounds)")


def per_step(run: Callable[[], Any], steps: int) -> float:
    """Wall time per step of a loop."""
    start = time.perf_counter()
    run()
    return (time.perf_counter() - start) / steps


def sampler_s() -> tuple[list[float], list[float]]:
    """A step under the sampler and the same step in a bare loop, in turn."""
    sampled, bare = [], []
    with pm.Call(lambda: None).open() as session:
        timer = StepTimer(session, HostClock(), 0.0)
        timer.first_call()

        def loop() -> None:
            for _ in range(STEPS):
                session.step(session.prepare())

        for _ in range(ROUNDS):
            sampled.append(per_step(lambda: timer.run(STEPS), STEPS))
            bare.append(per_step(loop, STEPS))
    return sampled, bare


def main() -> None:
    """Print every figure."""
    show("python -c pass", command_s(sys.executable, "-c", "pass"), "ms", 1e3)
    helped = (sys.executable, "-c", "from pyrometer.cli.main import main; main(['--help'])")
    show("pyrometer --help", command_s(*helped), "ms", 1e3)
    heavy = "import sys; from pyrometer.cli.main import main; main(['--help']); print('torch' in sys.modules, file=sys.stderr)"
    imported = subprocess.run(
        [sys.executable, "-c", heavy], capture_output=True, text=True, check=True
    ).stderr.strip()
    print(f"{'torch imported by --help':58} {imported}")
    sampled, bare = sampler_s()
    show("an empty step under the sampler", sampled, "ns", 1e9)
    show("an empty step in a bare loop", bare, "ns", 1e9)
    show("the sampler itself, per step", [s - b for s, b in zip(sampled, bare, strict=True)], "ns", 1e9)
    show("two clock readings (subtracted)", [timer_overhead(HostClock()) for _ in range(ROUNDS)], "ns", 1e9)


if __name__ == "__main__":
    main()
