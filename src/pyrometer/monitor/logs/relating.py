"""How latency goes with the features of requests, and what the slowest have in common.

The measure is epsilon squared of the logarithm of latency: the share of its variance between the values of a feature, less what
chance gives for so many values. Beside it stands what the feature explains alone: among requests that are alike in all others.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import stats

from pyrometer.monitor.logs.record import Correlation, ValueLatency
from pyrometer.monitor.logs.tally import BINS, FEATURES, Counts, Tally
from pyrometer.monitor.logs.trend import LEVELS, quantile_s

LEAST_EXPLAINED = 0.005
MOST_VALUES = 8
TAIL = 0.01


def correlations(tally: Tally) -> list[Correlation]:
    """Every feature with more than one value that explains something, the strongest first."""
    cells = {name: tally.cells.row(number) for name, number in _measured(tally).items()}
    if not cells:
        return []
    everything: Counts = sum(cells.values(), np.zeros(BINS, np.int64))
    found = [_of_feature(place, cells, everything) for place in range(len(FEATURES))]
    found.append(_of_hour(tally, everything))
    kept = [one for one in found if one.num_values > 1 and one.explained >= LEAST_EXPLAINED]
    return sorted(kept, key=lambda one: -one.explained)


def _measured(tally: Tally) -> dict[tuple[str, ...], int]:
    there = set(tally.cells.keys())
    return {name: number for name, number in sorted(tally.names.items()) if number in there}


def _of_feature(place: int, cells: dict[tuple[str, ...], Counts], everything: Counts) -> Correlation:
    groups = _by(cells, lambda name: name[place])
    rest = _by(cells, lambda name: name[:place] + name[place + 1 :])
    total, among_rest, within = _squares([everything]), _squares(rest.values()), _squares(cells.values())
    # Where a value of the feature never comes with two settings of the others, or they with two of it, none can be told apart.
    apart = len(cells) > len(rest)
    alone = max((among_rest - within) / total, 0.0) if apart and total else None
    return _correlation(FEATURES[place], groups, everything, alone)


def _of_hour(tally: Tally, everything: Counts) -> Correlation:
    groups: dict[object, Counts] = {
        f"{hour:02d}": tally.hours.row(hour) for hour in sorted(tally.hours.keys())
    }
    return _correlation("hour", groups, everything, None)


def _by(cells: dict[tuple[str, ...], Counts], key: Callable[..., object]) -> dict[object, Counts]:
    groups: dict[object, Counts] = {}
    for name, counts in cells.items():
        there = groups.get(key(name))
        groups[key(name)] = counts if there is None else there + counts
    return groups


def _squares(groups: object) -> float:
    """Sum of squared deviations of log-latency from the mean of each group."""
    total = 0.0
    for counts in groups:  # type: ignore[attr-defined]
        number = counts.sum()
        mean = float(counts @ LEVELS) / number
        total += float(counts @ (LEVELS - mean) ** 2)
    return total


def _correlation(feature: str, groups: dict[object, Counts], everything: Counts, alone: float | None) -> Correlation:  # fmt: skip
    number, total, within = int(everything.sum()), _squares([everything]), _squares(groups.values())
    free = number - len(groups)
    explained = 1 - within / free / (total / (number - 1)) if free > 0 and total > 0 else 0.0
    common = sorted(groups.items(), key=lambda item: (-int(item[1].sum()), str(item[0])))[:MOST_VALUES]
    values = [_value(str(name) or "none", counts, everything) for name, counts in common]
    return Correlation(
        feature=feature,
        explained=max(explained, 0.0),
        alone=alone,
        rank=_rank(groups) if feature == "batch" else None,
        num_values=len(groups),
        values=sorted(values, key=lambda value: (-value.p50_s, value.value)),
    )


def _value(name: str, counts: Counts, everything: Counts) -> ValueLatency:
    beyond = int(np.searchsorted(np.cumsum(everything), (1 - TAIL) * everything.sum(), side="right"))
    slowest = int(everything[beyond:].sum())
    number = int(counts.sum())
    lift = (int(counts[beyond:].sum()) / slowest) / (number / int(everything.sum())) if slowest else 1.0
    p50, p99 = quantile_s(counts, 0.5), quantile_s(counts, 0.99)
    return ValueLatency(value=name, num_requests=number, p50_s=p50 or 0.0, p99_s=p99 or 0.0, tail_lift=lift)


def _rank(groups: dict[object, Counts]) -> float | None:
    """Spearman's correlation of a number with latency, from their counts."""
    numbers = sorted(
        (float(str(name)), counts) for name, counts in groups.items() if str(name).lstrip("-").isdigit()
    )
    if len(numbers) < 2:
        return None
    table = np.stack([counts for _, counts in numbers]).astype(np.float64)
    ranks = [np.cumsum(sums) - (sums - 1) / 2 for sums in (table.sum(axis=1), table.sum(axis=0))]
    weights, total = table, table.sum()
    rows, columns = (rank - (total + 1) / 2 for rank in ranks)
    spread = np.sqrt((weights.sum(1) @ rows**2) * (weights.sum(0) @ columns**2))
    return float(rows @ weights @ columns / spread) if spread > 0 else None


def is_unlikely(events: int, lines: int, all_events: int, all_lines: int, chance: float) -> bool:
    """Whether so many events among these lines are more than chance would put there."""
    return float(stats.binom.sf(events - 1, all_events, lines / all_lines)) < chance
