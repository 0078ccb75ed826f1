"""What goes with recompilations and graph breaks: the first request of a shape, the start of a process, a version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pyrometer.monitor.logs.appearances import Happened
from pyrometer.monitor.logs.clusters import Cluster
from pyrometer.monitor.logs.record import ErrorCluster, Shift, Trigger
from pyrometer.monitor.logs.relating import is_unlikely
from pyrometer.monitor.logs.tally import FEATURES, Tally

STARTING_S = 60
NEAR_S = 1  # seconds are all that a first appearance is known to
LEAST_LIFT = 2.0
CHANCE = 0.001
MOST_TRIGGERS = 6

_FIRSTS = {
    "shape": ("first request of a shape in a process", NEAR_S),
    "batch": ("first request of a batch size in a process", NEAR_S),
    "process": ("first minute of a process", STARTING_S),
}


def triggers(tally: Tally) -> list[Trigger]:
    """Patterns that hold more events than chance would give, the most telling first."""
    found: list[Trigger] = []
    kinds = (("recompile", tally.appearances.recompiles), ("graph_break", tally.appearances.breaks))
    for event, happened in kinds:
        if happened:
            patterns = [
                *_firsts(tally, event, list(happened.values())),
                *_values(tally, event, list(happened.values())),
            ]
            found += sorted(patterns, key=_telling, reverse=True)[: MOST_TRIGGERS // 2]
    return found


def _telling(trigger: Trigger) -> tuple[float, float]:
    return trigger.num_events / trigger.num_all * min(trigger.lift or 1e6, 1e6) ** 0.5, trigger.num_events


def _firsts(tally: Tally, event: str, happened: list[Happened]) -> Iterator[Trigger]:
    """Per pattern: seconds with an event that hold a first appearance, of all seconds that do."""
    seen, seconds = tally.appearances.first_s, max(tally.last_s - tally.first_s + 1, len(happened))
    processes = sum(key[0] == "process" for key in seen)
    seconds *= max(processes, 1)
    for kind, (pattern, within_s) in _FIRSTS.items():
        fit = sum(tally.appearances.is_first(one, kind, within_s) for one in happened)
        number = sum(key[0] == kind and key[2] != "" for key in seen) * (within_s + 1)
        if fit and number < seconds / 2:
            yield from _told(event, pattern, (fit, len(happened)), (max(number, fit), seconds))


def _values(tally: Tally, event: str, happened: list[Happened]) -> Iterator[Trigger]:
    """Per value of a feature: seconds with an event in which it was called, of all lines with it."""
    names = {number: name for name, number in tally.names.items()}
    events: Counter[tuple[str, str]] = Counter()
    for one in happened:
        events.update({pair for cell in one.cells for pair in zip(FEATURES, names[cell], strict=True)})
    lines = lines_per_value(tally)
    telling: dict[str, list[str]] = {}
    for (feature, value), count in sorted(events.items()):
        number = lines.get((feature, value), 0)
        if value and number < tally.lines:
            told = list(
                _told(
                    event,
                    f"{feature} {value}",
                    (count, len(happened)),
                    (number, tally.lines),
                    tried=len(lines),
                )
            )
            telling.setdefault(feature, []).extend(value for _ in told)
            yield from told
    yield from _together(tally, event, happened, lines, telling)


def _together(
    tally: Tally,
    event: str,
    happened: list[Happened],
    lines: Counter[tuple[str, str]],
    telling: dict[str, list[str]],
) -> Iterator[Trigger]:
    """Per feature: its telling values as one pattern, where there are several."""
    names = {number: name for name, number in tally.names.items()}
    for feature, values in telling.items():
        if len(values) < 2:
            continue
        place = FEATURES.index(feature)
        fit = sum(any(names[cell][place] in values for cell in one.cells) for one in happened)
        number = sum(lines[feature, value] for value in values)
        shown = ", ".join(sorted(values, key=lambda value: -lines[feature, value])[:3])
        more = f" and {len(values) - 3} more" if len(values) > 3 else ""
        yield from _told(
            event, f"{feature} {shown}{more}", (fit, len(happened)), (number, tally.lines), tried=len(lines)
        )


def lines_per_value(tally: Tally) -> Counter[tuple[str, str]]:
    """Lines with each value of each feature."""
    lines: Counter[tuple[str, str]] = Counter()
    for name, number in tally.names.items():
        count = int(tally.lines_of.row(number)[0])
        for pair in zip(FEATURES, name, strict=True):
            lines[pair] += count
    return lines


def _told(
    event: str, pattern: str, events: tuple[int, int], chances: tuple[int, int], *, tried: int = 1
) -> Iterator[Trigger]:
    """A trigger, where the pattern holds more of the events than of what could have been one; both with their sum."""
    (fit, total), (lines, all_lines) = events, chances
    others, rest = total - fit, all_lines - lines
    lift = (fit / lines) / (others / rest) if others and rest > 0 else None
    if (lift is None or lift >= LEAST_LIFT) and is_unlikely(fit, lines, total, all_lines, CHANCE / tried):
        yield Trigger(
            event=event, pattern=pattern, num_events=fit, num_all=total, num_chances=lines, lift=lift
        )


def error_clusters(tally: Tally, most: int = 20) -> list[ErrorCluster]:
    """The most frequent errors, each with the values that are more frequent among them than among all lines."""
    lines = lines_per_value(tally)
    ranked = sorted(tally.clusters.found.items(), key=lambda item: (-item[1].count, item[0]))
    return [
        ErrorCluster(
            template=template,
            example=cluster.example,
            num_errors=cluster.count,
            first=cluster.first,
            last=cluster.last,
            mostly=_mostly(cluster, lines, tally.lines),
        )
        for template, cluster in ranked[:most]
    ]


def _mostly(cluster: Cluster, lines: Counter[tuple[str, str]], all_lines: int) -> list[Shift]:
    """Values that most of a cluster's errors have, and far fewer of all lines, the most telling first."""
    found = []
    for (feature, value), count in cluster.values.items():
        usual, share = lines[feature, value] / all_lines, count / cluster.count
        telling = share >= 0.5 and share >= 1.5 * usual
        if telling and is_unlikely(count, lines[feature, value], cluster.count, all_lines, CHANCE / 20):
            found.append(Shift(feature=feature, value=value, share_before=usual, share_after=share))
    return sorted(
        found, key=lambda one: (-one.share_after / max(one.share_before, 1e-9), one.feature, one.value)
    )[:3]
