"""Latency over time, and the times at which its level changed and stayed.

Change points are those of the segmentation with the least sum of squared deviations of log-latency, each segment paid for by a
penalty. The noise comes from the differences of neighbours, and the penalty grows with the autocorrelation of what the segments
leave: a load that wanders is no series of changes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pyrometer.bench.autocorrelation import autocorrelation_time
from pyrometer.histogram import PER_OCTAVE
from pyrometer.monitor.logs.record import LatencyChange, Shift, TrendPoint, stamp
from pyrometer.monitor.logs.tally import BINS, FEATURES, LEAST_BIN, Counts, Tally

Floats: TypeAlias = npt.NDArray[np.float64]

LEVELS: Floats = (np.arange(BINS) + LEAST_BIN + 0.5) / PER_OCTAVE
"""Binary logarithm of the middle of each bucket, in seconds."""

MOST_POINTS = 300
LEAST_REQUESTS = 30
"""In a stretch whose level is compared; 300 for P99."""

SHORTEST = 5  # stretches between two changes
LEAST_RATIO = 1.03  # less is not worth a line
PENALTY = 4.0  # times the logarithm of the number of stretches, per segment


def quantile_s(counts: Counts, share: float) -> float | None:
    """A quantile of counts per bucket of latency, in seconds; `None` of none."""
    total = int(counts.sum())
    if not total:
        return None
    index = int(np.searchsorted(np.cumsum(counts), share * (total - 1), side="right"))
    return float(2.0 ** ((index + LEAST_BIN + 0.5) / PER_OCTAVE))


def _level_s(counts: Counts) -> float | None:
    total = int(counts.sum())
    return float(2.0 ** (counts @ LEVELS / total)) if total else None


def trend_of(tally: Tally) -> tuple[list[TrendPoint], list[list[int]]]:
    """At most `MOST_POINTS` stretches, and of which stretches of the tally each is made."""
    keys = tally.times.keys()
    if not keys:
        return [], []
    requests = sum(int(tally.times.row(key)[:BINS].sum()) for key in keys)
    fitting = max(min(MOST_POINTS, requests // (2 * LEAST_REQUESTS)), 1)
    step = max(math.ceil((keys[-1] - keys[0] + 1) / fitting), 1)
    if len(keys) <= MOST_POINTS < (keys[-1] - keys[0] + 1) / 4:
        step = 1  # long gaps, or one odd clock, leave few stretches with something in them
    members: dict[int, list[int]] = {}
    for key in keys:
        members.setdefault((key - keys[0]) // step, []).append(key)
    points = []
    for part in members.values():
        counts = sum((tally.times.row(key) for key in part), np.zeros(BINS + 2, np.int64))
        at_s = float(part[0] * tally.stretch_s)
        p50, p95, p99 = (quantile_s(counts[:BINS], share) for share in (0.5, 0.95, 0.99))
        points.append(
            TrendPoint(
                at=stamp(at_s),
                at_s=at_s,
                num_requests=int(counts[:BINS].sum()),
                num_errors=int(counts[BINS]),
                level_s=_level_s(counts[:BINS]),
                p50_s=p50,
                p95_s=p95,
                p99_s=p99,
            )
        )
    return points, list(members.values())


def change_points(
    tally: Tally, points: Sequence[TrendPoint], members: list[list[int]]
) -> list[LatencyChange]:
    """Changes of the level, and those of P99 at other times, in order."""
    found: list[LatencyChange] = []
    for quantile, least in (("level", LEAST_REQUESTS), ("p99", 10 * LEAST_REQUESTS)):
        used = [place for place, point in enumerate(points) if point.num_requests >= least]
        values = np.log([getattr(points[place], f"{quantile}_s") for place in used])
        cuts = [0, *segmentation(values), len(values)]
        for start, cut, end in zip(cuts, cuts[1:], cuts[2:], strict=False):
            before, after = (float(np.exp(np.median(part))) for part in (values[start:cut], values[cut:end]))
            at_s = points[used[cut]].at_s
            reach = (max(cut - SHORTEST, 0), min(cut + SHORTEST, len(used) - 1))
            first, last = (points[used[place]].at_s for place in reach)
            is_known = any(first <= one.at_s <= last and (one.ratio > 1) == (after > before) for one in found)
            if is_known or max(after / before, before / after) < LEAST_RATIO:
                continue
            sides = (
                [key for place in used[start:cut] for key in members[place]],
                [key for place in used[cut:end] for key in members[place]],
            )
            found.append(
                LatencyChange(
                    at=stamp(at_s),
                    at_s=at_s,
                    quantile=quantile,
                    before_s=before,
                    after_s=after,
                    ratio=after / before,
                    together=_together(tally, *sides),
                )
            )
    return sorted(found, key=lambda change: change.at_s)


def segmentation(values: Floats) -> list[int]:
    """Where the level of a series changes; empty where it does not, or is too short to say.

    >>> rng = np.random.default_rng(0)
    >>> segmentation(np.concatenate([rng.normal(0, 1, 60), rng.normal(4, 1, 60)]))
    [60]
    """
    if len(values) < 2 * SHORTEST:
        return []
    noise = 1.4826 * float(np.median(np.abs(np.diff(values)))) / math.sqrt(2)
    variance = max(noise, 0.5 / PER_OCTAVE * math.log(2)) ** 2  # no finer than a bucket of the histogram
    penalty = PENALTY * math.log(len(values)) * variance
    cuts = _least(values, penalty)
    for _ in range(3):  # what looks like changes may be noise with a memory
        rest = values - _levels(values, cuts)
        dependence = float(rest @ rest) / len(rest) / variance * autocorrelation_time(rest)
        again = _least(values, penalty * max(dependence, 1.0))
        if again == cuts:
            break
        cuts = again
    return cuts


def _levels(values: Floats, cuts: list[int]) -> Floats:
    bounds = [0, *cuts, len(values)]
    return np.concatenate([np.full(b - a, values[a:b].mean()) for a, b in itertools.pairwise(bounds)])


def _least(values: Floats, penalty: float) -> list[int]:
    """The cheapest segmentation, by dynamic programming over where the last segment begins."""
    n = len(values)
    sums, squares = (np.concatenate([[0.0], np.cumsum(power)]) for power in (values, values**2))
    best, came = np.full(n + 1, np.inf), np.zeros(n + 1, np.int64)
    best[0] = -penalty
    for end in range(SHORTEST, n + 1):
        starts = np.arange(end - SHORTEST + 1)
        cost = squares[end] - squares[starts] - (sums[end] - sums[starts]) ** 2 / (end - starts)
        total = best[starts] + cost + penalty
        came[end] = int(np.argmin(total))
        best[end] = total[came[end]]
    cuts, end = [], n
    while came[end] > 0:
        end = int(came[end])
        cuts.append(end)
    return cuts[::-1]


def _together(tally: Tally, before: list[int], after: list[int]) -> list[Shift]:
    """Values whose share of the requests changed by a fifth of all or more, the largest change first."""
    shares = [_shares(tally, set(keys)) for keys in (before, after)]
    found = [
        Shift(feature=name, value=value, share_before=shares[0].get((name, value), 0.0), share_after=shares[1].get((name, value), 0.0))
        for name, value in shares[0] | shares[1]
        if value
    ]  # fmt: skip
    found = [one for one in found if abs(one.share_after - one.share_before) >= 0.2]
    return sorted(
        found,
        key=lambda one: (-abs(one.share_after - one.share_before), -one.share_after, one.feature, one.value),
    )[:4]


def _shares(tally: Tally, keys: set[int]) -> dict[tuple[str, str], float]:
    names = {number: name for name, number in tally.names.items()}
    counts: dict[tuple[str, str], float] = {}
    for (key, cell), count in tally.shares.items():
        if key in keys:
            for pair in zip(FEATURES, names[cell], strict=True):
                counts[pair] = counts.get(pair, 0.0) + count
    total = sum(count for (name, _), count in counts.items() if name == FEATURES[0])
    return {pair: count / total for pair, count in counts.items()} if total else {}
