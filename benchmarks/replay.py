"""Comparisons replayed on real series of steps: how many of identical programs are wrong, how many are decided.

    python benchmarks/replay.py record 100ms --seconds 60 [--threads 2] --out tape.npz
    python benchmarks/replay.py judge tape.npz … [--trials 200] [--effects 0,5] [--budget 20] [--seed 0]

A tape is one program's steps in a row on a machine that does other things, too: wall time, CPU time and queueing of each.
A replayed trial is the real one, from warm-up to verdict, on a clock that only the tape advances: both sides take
their steps from it, from a random place on, and the slower one's are longer by the effect. Trials on one tape
share its steps and differ in their coins, so that the intervals are those of the coins.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch
from scipy import stats

from honesty import UNITS, step_of
from pyrometer.bench.clock import HostClock
from pyrometer.bench.comparison.decision import DecisionRule
from pyrometer.bench.comparison.interleaving import Side
from pyrometer.bench.comparison.trial import Trial
from pyrometer.workload.workload import Session

COLUMNS = ("wall_ns", "cpu_ns", "queued_ns")


def record(size: str, threads: int, seconds: float, out: Path) -> None:
    """Run steps for so long and keep what each took."""
    torch.set_num_threads(threads)
    step, clock, rows = step_of(size, UNITS), HostClock(), []
    for _ in range(3):
        step()
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        before = clock.all_queued_ns(), clock.host_ns(), clock.cpu_ns()
        step()
        cpu_ns, wall_ns = clock.cpu_ns() - before[2], clock.host_ns() - before[1]
        rows.append((wall_ns, cpu_ns, max(clock.all_queued_ns() - before[0], 0)))
    tape = np.array(rows, dtype=np.int64)
    np.savez(out, rows=tape, size=size, threads=threads, load=psutil.getloadavg()[0])
    wall_s, cpu_s = np.median(tape[:, :2], axis=0) / 1e9
    print(
        f"{out}: {len(tape)} steps, {wall_s:.3f} s each, {cpu_s:.3f} s of CPU; load {psutil.getloadavg()[0]:.1f}"
    )


@dataclass
class Tape:
    """The series, where it is being read, and the clock that it advances."""

    rows: np.ndarray
    place: int = 0
    now_ns: int = 0
    cpu_now_ns: int = 0
    queued_now_ns: int = 0
    name: str = "wall"

    def advance(self, factor: float) -> None:
        """One step, so many times as long."""
        wall, cpu, queued = self.rows[self.place % len(self.rows)]
        self.place += 1
        self.now_ns += int(wall * factor)
        self.cpu_now_ns += int(cpu * factor)
        self.queued_now_ns += int(queued * factor)

    def mark(self) -> int:
        """Now, as every clock of the host tells it."""
        return self.now_ns

    host_ns = mark

    def cpu_ns(self) -> int:
        """CPU time of all steps so far."""
        return self.cpu_now_ns

    def queued_ns(self) -> int:
        """Of this thread, which runs no step."""
        return 0

    def all_queued_ns(self) -> int:
        """Queueing of all steps so far."""
        return self.queued_now_ns

    def between(self, start: int, end: int) -> float:
        """Seconds from one reading to another."""
        return (end - start) * 1e-9

    def synchronize(self) -> None:
        """Nothing to wait for."""


class Replayed(Session):
    """A program whose steps are those of a tape, each longer by a factor."""

    device = torch.device("cpu")

    def __init__(self, tape: Tape, factor: float) -> None:
        self.tape, self.factor = tape, factor

    def prepare(self) -> None:
        """Nothing to make."""

    def step(self, prepared: None = None) -> None:  # noqa: ARG002 - a tape has no inputs
        """The next one of the tape."""
        self.tape.advance(self.factor)

    def phased_step(self, mark: Any) -> None:  # noqa: ARG002 - nor phases
        """The same."""
        self.step()

    def activate(self) -> None:
        """Nothing to restore."""

    @property
    def units_per_step(self) -> float:
        """One."""
        return 1.0


def outcome_of(rows: np.ndarray, effect: float, budget_s: float, seed: int) -> tuple[str, str, int]:
    """One replayed trial: outcome, metric, blocks."""
    tape = Tape(rows, place=int(np.random.default_rng(seed).integers(len(rows))))
    sides = [Side(name, Replayed(tape, factor), tape) for name, factor in (("A", 1.0), ("B", 1 + effect))]
    trial = Trial(sides, DecisionRule(), budget_s, seed, None, strict=True)
    trial.run()
    decided = trial.decisions.get(1)
    return (decided.outcome if decided else None) or "undecided", trial.blocks.metric, len(trial.blocks.rows)


def exact(hits: int, n: int) -> str:
    """A share with its exact 95 % interval (Clopper and Pearson)."""
    interval = stats.binomtest(hits, n).proportion_ci(0.95)
    return f"{hits}/{n} = {hits / n:.1%} ({interval.low:.1%}–{interval.high:.1%})"


def judge(tapes: list[Path], trials: int, effects: list[float], budget_s: float, seed: int) -> None:
    """A line for each tape and effect, and one for all tapes of an effect."""
    total: dict[float, list[str]] = {effect: [] for effect in effects}
    for path in tapes:
        with np.load(path) as tape:
            rows, size, threads, load = (
                tape["rows"],
                str(tape["size"]),
                int(tape["threads"]),
                float(tape["load"]),
            )
        wall_s, cpu_s = np.median(rows[:, :2], axis=0) / 1e9
        print(
            f"{size}, {threads} threads, load {load:.0f}: {len(rows)} steps of {wall_s:.3f} s, {cpu_s:.3f} s of CPU"
        )
        for effect in effects:
            found = [outcome_of(rows, effect / 100, budget_s, seed + trial) for trial in range(trials)]
            outcomes = [outcome for outcome, _, _ in found]
            total[effect] += outcomes
            by_cpu = sum(metric == "cpu" for _, metric, _ in found)
            blocks = np.median([count for _, _, count in found])
            show(f"  +{effect:g} %", effect, outcomes, f"; {blocks:.0f} blocks, by CPU time {by_cpu}")
    for effect, outcomes in total.items():
        show(f"all +{effect:g} %", effect, outcomes, "")


def show(head: str, effect: float, outcomes: list[str], more: str) -> None:
    """Wrong and decided of so many trials."""
    false = {"faster", "slower"} if effect == 0 else {"faster"}
    n, wrong = len(outcomes), sum(outcome in false for outcome in outcomes)
    decided = sum(outcome != "undecided" for outcome in outcomes)
    same = f", same {outcomes.count('same') / n:.1%}" if effect else ""
    print(f"{head:10} wrong {exact(wrong, n)}, decided {exact(decided, n)}{same}{more}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    recording = verbs.add_parser("record")
    recording.add_argument("size", help="as in honesty.py")
    recording.add_argument("--threads", type=int, default=1)
    recording.add_argument("--seconds", type=float, default=60.0)
    recording.add_argument("--out", type=Path, required=True)
    judging = verbs.add_parser("judge")
    judging.add_argument("tapes", type=Path, nargs="+")
    judging.add_argument("--trials", type=int, default=200)
    judging.add_argument("--effects", default="0,5")
    judging.add_argument("--budget", type=float, default=20.0)
    judging.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if given.verb == "record":
        record(given.size, given.threads, given.seconds, given.out)
    else:
        judge(
            given.tapes,
            given.trials,
            [float(effect) for effect in given.effects.split(",")],
            given.budget,
            given.seed,
        )


if __name__ == "__main__":
    main()
