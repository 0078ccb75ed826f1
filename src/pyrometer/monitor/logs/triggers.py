"""What goes with recompilations and graph breaks: the first request of a shape, the start of a process, a version."""

from __future__ import annotations

from collections.abc import Iterator

from pyrometer.monitor.logs.appearances import Happened
from pyrometer.monitor.logs.record import ErrorCluster, Shift, Trigger
from pyrometer.monitor.logs.relating import is_unlikely
from pyrometer.monitor.logs.tally import FEATURES, Tally

STARTING_S = 60
NEAR_S = 1  # seconds are all that a first appearance is known to
LEAST_LIFT = 2.0
CHANCE = 0.001
MOST_TRIGGERS = 6

_FIRSTS = {
    "shape": "first request of a shape in a process",
    "batch": "first request of a batch size in a process",
}


def triggers(tally: Tally) -> list[Trigger]:
    """Patterns that hold more events than chance would give, the most telling first."""
    found: list[Trigger] = []
    for column, (event, happened) in enumerate(
        (("recompile", tally.appearances.recompiles), ("graph_break", tally.appearances.breaks)), 1
    ):
        if happened:
            patterns = [*_firsts(tally, event, happened), *_values(tally, event, column)]
            found += sorted(patterns, key=_telling, reverse=True)[: MOST_TRIGGERS // 2]
    return found


def _telling(trigger: Trigger) -> tuple[float, float]:
    return trigger.num_events / trigger.num_all * min(trigger.lift or 1e6, 1e6) ** 0.5, trigger.num_events


def _firsts(tally: Tally, event: str, happened: list[Happened]) -> Iterator[Trigger]:
    seen, total = tally.appearances.first_s, sum(one.count for one in happened)
    for kind, pattern in _FIRSTS.items():
        place = ("process", "shape", "batch").index(kind)
        fit = sum(one.count for one in happened if _is_first(seen, one, place, NEAR_S) and one.keys[place][2])
        number = sum(key[0] == kind for key in seen)
        if fit:
            yield from _told(tally, event, pattern, fit, total, max(number, fit))
    fit = sum(one.count for one in happened if _is_first(seen, one, 0, STARTING_S))
    started = [second for key, second in seen.items() if key[0] == "process"]
    span_s = max(tally.last_s - tally.first_s, 1)
    share = min(len(started) * STARTING_S / span_s / max(len(started), 1), 1.0)
    if fit and span_s > 3 * STARTING_S:
        yield from _told(tally, event, "first minute of a process", fit, total, round(share * tally.lines))


def _is_first(seen: dict[tuple[str, str, str], int], one: Happened, place: int, within_s: int) -> bool:
    key = one.keys[place]
    return key in seen and one.second <= seen[key] + within_s


def _values(tally: Tally, event: str, column: int) -> Iterator[Trigger]:
    table: dict[tuple[str, str], list[int]] = {}
    total = 0
    for name, number in tally.names.items():
        lines, events = int(tally.events.row(number)[0]), int(tally.events.row(number)[column])
        total += events
        for pair in zip(FEATURES, name, strict=True):
            sums = table.setdefault(pair, [0, 0])
            sums[0] += lines
            sums[1] += events
    for (feature, value), (lines, events) in table.items():
        if value and events and lines < tally.lines:
            yield from _told(tally, event, f"{feature} {value}", events, total, lines, tried=len(table))


def _told(
    tally: Tally, event: str, pattern: str, fit: int, total: int, lines: int, *, tried: int = 1
) -> Iterator[Trigger]:
    others, rest = total - fit, tally.lines - lines
    lift = (fit / lines) / (others / rest) if others and rest > 0 and lines else None
    if (lift is None or lift >= LEAST_LIFT) and is_unlikely(fit, lines, total, tally.lines, CHANCE / tried):
        yield Trigger(event=event, pattern=pattern, num_events=fit, num_all=total, num_requests=lines, lift=lift)


def error_clusters(tally: Tally, most: int = 20) -> list[ErrorCluster]:
    """The most frequent errors, each with the values that are more frequent among them than among all lines."""
    lines: dict[tuple[str, str], int] = {}
    for name, number in tally.names.items():
        for pair in zip(FEATURES, name, strict=True):
            lines[pair] = lines.get(pair, 0) + int(tally.events.row(number)[0])
    ranked = sorted(tally.clusters.found.items(), key=lambda item: -item[1].count)
    return [
        ErrorCluster(
            template=template,
            example=cluster.example,
            num_errors=cluster.count,
            first=cluster.first,
            last=cluster.last,
            mostly=[
                Shift(feature=feature, value=value, share_before=usual, share_after=share)
                for (feature, value), count in cluster.values.most_common(20)
                for usual, share in [(lines.get((feature, value), 0) / tally.lines, count / cluster.count)]
                if share >= 0.5
                and share >= 1.5 * usual
                and is_unlikely(count, lines.get((feature, value), 0), cluster.count, tally.lines, CHANCE / 20)
            ][:3],
        )
        for template, cluster in ranked[:most]
    ]
