"""Stored jobs become series: the ratio of each commit to the one that was recorded before it, chained.

Times of two moments are never compared. A job measures both commits in turn, so that its ratio holds whatever the machine
did that day; ratios of neighbours multiply to the ratio of the ends. Their errors add up, too, and the intervals say so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from pyrometer.bench.quantiles import normal_quantile
from pyrometer.guard.gate import Gate, GuardReport
from pyrometer.guard.history.record import Point, Series

CONFIDENCE = 0.99
_PRIOR_PAIRS = 8
"""Of all jobs of a series beside the few of one: its own five pairs say little of how much they vary."""


class Recorded(NamedTuple):
    """A stored job."""

    run_id: str
    created: str
    report: GuardReport

    @property
    def ends(self) -> tuple[str, str]:
        """The two commits."""
        assert self.report.base is not None, "a recorded job has two commits"
        assert self.report.head is not None, "a recorded job has two commits"
        return self.report.base.sha, self.report.head.sha


def chain(jobs: Sequence[Recorded]) -> list[Recorded]:
    """The jobs that lead to the newest recorded commit, the oldest first; each begins where the one before it ends.

    Jobs that were not to be trusted are left out; of several of the same commit the newest counts.

    Args:
        jobs: the oldest first.
    """
    trusted = [job for job in jobs if job.report.trusted]
    by_head = {job.ends[1]: job for job in trusted}
    found: list[Recorded] = []
    seen: set[str] = set()
    commit = trusted[-1].ends[1] if trusted else ""
    while commit in by_head and commit not in seen:
        seen.add(commit)
        found.append(by_head[commit])
        commit = found[-1].ends[0]
    return found[::-1]


def all_series(jobs: Sequence[Recorded]) -> list[Series]:
    """Every metric of every benchmark along a chain.

    A commit in which a benchmark was not measured ends its series; the longest end that is whole is kept. One that was renamed
    goes on.
    """
    names = dict.fromkeys((gate.benchmark, gate.metric) for job in jobs for gate in job.report.gates)
    made = (_series(jobs, benchmark, metric) for benchmark, metric in names)
    return [one for one in made if one is not None]


def _series(jobs: Sequence[Recorded], benchmark: str, metric: str) -> Series | None:
    links: list[tuple[Recorded, Gate]] = []
    name = benchmark
    for job in reversed(jobs):
        gate = next((g for g in job.report.gates if (g.benchmark, g.metric) == (name, metric)), None)
        if gate is None or not _is_link(gate):
            break
        links.insert(0, (job, gate))
        name = job.report.renamed.get(name, name)
    if not links:
        return None
    spread = _pooled_spread([gate.log_ratios for _, gate in links])
    points = list(_points(links, spread))
    return Series(benchmark=benchmark, metric=metric, kind=links[-1][1].kind, points=points)


def _is_link(gate: Gate) -> bool:
    return gate.kind != "accuracy" and (len(gate.log_ratios) > 1 or bool(gate.ratio))


def _points(links: Iterable[tuple[Recorded, Gate]], spread: float) -> Iterable[Point]:
    total, variance = 0.0, 0.0
    reach = normal_quantile((1 + CONFIDENCE) / 2)
    for job, gate in links:
        log_ratio, stderr = estimate(gate, spread)
        total, variance = total + log_ratio, variance + stderr**2
        half = reach * math.sqrt(variance)
        base, head = job.ends
        yield Point(
            run_id=job.run_id,
            created=job.created,
            base_sha=base,
            head_sha=head,
            log_ratio=log_ratio,
            stderr=stderr,
            chained=math.exp(total),
            ci_low=math.exp(total - half),
            ci_high=math.exp(total + half),
            shown=gate.head,
        )


def estimate(gate: Gate, spread: float) -> tuple[float, float]:
    """Mean log ratio of a gate and its standard error; the spread of its few pairs leans on that of the series."""
    n = len(gate.log_ratios)
    if n < 2:
        return math.log(gate.ratio or 1.0), 0.0
    own = float(np.var(gate.log_ratios, ddof=1))
    variance = ((n - 1) * own + _PRIOR_PAIRS * spread**2) / (n - 1 + _PRIOR_PAIRS)
    return float(np.mean(gate.log_ratios)), math.sqrt(max(variance, 1e-12) / n)


def _pooled_spread(jobs: Sequence[Sequence[float]]) -> float:
    spreads = [float(np.std(pairs, ddof=1)) for pairs in jobs if len(pairs) > 1]
    return float(np.median(spreads)) if spreads else 0.0
