"""How well histories tell changes: on synthetic histories whose truth is known.

Jobs are drawn as the guard runs them (5, 8 or 12 pairs, looked at as it looks), with pairs of heavy tails, an effect of the whole job, and
now and then a job on a disturbed machine. Nothing in here was used to choose a limit: those in `history/` were chosen on other seeds.

    python benchmarks/guard_history.py [--histories 200] [--seed 1000]
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pyrometer.guard.deciding import LOOKS, judge_family
from pyrometer.guard.gate import Gate, GuardReport, Revision
from pyrometer.guard.history.history import history_of
from pyrometer.guard.history.record import ChangePoint, History
from pyrometer.guard.history.series import Recorded

COMMITS = 100
BENCHMARK, METRIC = "perf_model.py::perf_forward", "median_s"
PATIENCE = 10
"""Commits after a change within which it has to be found."""


@dataclass(frozen=True)
class Noise:
    """How far pairs and jobs scatter, as standard deviations of log ratios."""

    name: str
    pair: float
    job: float
    disturbed: float = 0.05  # share of jobs whose pairs scatter four times as far


NOISES = (
    Noise("quiet machine", 0.005, 0.001, 0.0),
    Noise("shared runner", 0.012, 0.002),
    Noise("noisy runner", 0.025, 0.004),
)


def job(rng: np.random.Generator, base: str, head: str, truth: float, noise: Noise) -> Recorded:
    """A job of two commits whose true log ratio is known."""
    shift = truth + rng.normal(0, noise.job)
    scale = noise.pair * (4 if rng.random() < noise.disturbed else 1)
    pairs = shift + scale * rng.standard_t(5, LOOKS[-1]) / math.sqrt(5 / 3)
    for look in LOOKS:
        values = [float(value) for value in pairs[:look]]
        judged = judge_family({BENCHMARK: values}, {BENCHMARK: 0.05}, decisive=True)[BENCHMARK]
        if judged.outcome is not None:
            break
    gate = Gate(
        benchmark=BENCHMARK, metric=METRIC, kind="time", outcome=judged.outcome or "undecided", ratio=math.exp(judged.mean),
        ci_low=math.exp(judged.low), ci_high=math.exp(judged.high), warning=judged.warning, log_ratios=values,
    )  # fmt: skip
    report = GuardReport(
        trusted=True, gates=[gate], base=Revision(ref=base, sha=base), head=Revision(ref=head, sha=head)
    )
    return Recorded(head, "", report)


def records(rng: np.random.Generator, steps: np.ndarray, noise: Noise) -> list[Recorded]:
    """A job per commit."""
    return [job(rng, f"c{place}", f"c{place + 1}", float(step), noise) for place, step in enumerate(steps)]


def proved(rng: np.random.Generator, jobs: list[Recorded], steps: np.ndarray, noise: Noise) -> History:
    """The history after the jobs that it asked for."""
    proofs: list[Recorded] = []
    while asked := history_of(jobs, proofs).to_prove:
        for one in asked:
            truth = float(np.sum(steps[_at(one.base_sha) : _at(one.head_sha)]))
            proofs.append(job(rng, one.base_sha, one.head_sha, truth, noise))
    return history_of(jobs, proofs)


def unchanged(rng: np.random.Generator, noise: Noise, count: int) -> dict[str, float]:
    """Histories in which nothing happened."""
    found = named = 0
    for _ in range(count):
        steps = np.zeros(COMMITS)
        history = proved(rng, records(rng, steps, noise), steps, noise)
        found += len(history.changes)
        named += sum(change.state == "proved" for change in history.changes)
    return {
        "false_change_points_per_100_commits": found / count,
        "false_proved_per_100_commits": named / count,
    }


def changed(
    rng: np.random.Generator, noise: Noise, count: int, stretch: Callable[[int], np.ndarray]
) -> dict[str, float | None]:
    """Histories with one change; how many are found, how late, and how many are proved and hold the truth."""
    delays, num_proved, exact = [], 0, 0
    for _ in range(count):
        place = int(rng.integers(10, COMMITS - 30))
        own = stretch(place)
        steps = np.zeros(COMMITS)
        steps[place : place + len(own)] = own
        jobs, last = records(rng, steps, noise), place + len(own)
        delay = next(
            (n for n in range(PATIENCE + 1) if _hits(history_of(jobs[: last + n]), place, last)), None
        )
        if delay is None:
            continue
        delays.append(delay)
        history = proved(rng, jobs[: last + delay], steps, noise)
        true = [change for change in history.changes if _overlaps(change.point, place, last)]
        num_proved += any(change.state == "proved" for change in true)
        exact += any((_at(c.point.base_sha), _at(c.point.head_sha)) == (place, last) for c in true)
    return {
        "found": len(delays) / count,
        "proved": num_proved / count,
        "range_exact": exact / count,
        "mean_delay_commits": float(np.mean(delays)) if delays else None,
    }


def _hits(history: History, place: int, last: int) -> bool:
    return any(_overlaps(change.point, place, last) for change in history.changes)


def _overlaps(point: ChangePoint, place: int, last: int) -> bool:
    return _at(point.base_sha) < last and place < _at(point.head_sha)


def _at(commit: str) -> int:
    return int(commit[1:])


def figures(histories: int, seed: int) -> dict[str, dict[str, dict[str, float | None]]]:
    """All figures by noise."""
    creep = np.full(20, math.log1p(0.005))
    cases: dict[str, Callable[[int], np.ndarray]] = {
        "3 % at once": lambda _: np.array([math.log(1.03)]),
        "5 % at once": lambda place: np.array([math.log(1.05) * (-1) ** place]),
        "10 % at once": lambda place: np.array([math.log(1.10) * (-1) ** place]),
        "0.5 % a commit, 20 commits": lambda _: creep,
    }
    result: dict[str, dict[str, dict[str, float | None]]] = {}
    for noise in NOISES:
        rng = np.random.default_rng(seed)
        result[noise.name] = {"nothing": dict(unchanged(rng, noise, histories))}
        for name, stretch in cases.items():
            result[noise.name][name] = changed(rng, noise, histories, stretch)
    return result


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1000)
    asked = parser.parse_args()
    print(json.dumps(figures(asked.histories, asked.seed), indent=1))
