"""What the run would take if part of it took less time, or none: the dependency graph replayed with changed durations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pyrometer.errors import InputError
from pyrometer.trace.analysis.registry import analysis
from pyrometer.trace.dependencies.changes import Scales, changed, unchanged, without_lags
from pyrometer.trace.dependencies.graph import Graph, dependencies
from pyrometer.trace.dependencies.replay import replay, span_of
from pyrometer.trace.dependencies.select import KINDS, WITHOUT_NAME, scales_of
from pyrometer.trace.records.gains import Change, WhatIf
from pyrometer.trace.trace import RankTrace, kept


class Outcome(NamedTuple):
    """Spans of a replay, and its ratio to the record with and without unexplained delays."""

    span_ns: int
    new_span_ns: int
    ratio: float
    ratio_low: float
    ratio_high: float


@analysis("what_if")
def what_if(
    trace: RankTrace,
    *,
    change: Change | str | Sequence[Change | str] = (),
    speedup: float | None = None,
) -> WhatIf:
    """How long the run would be if something were faster or free, as far as all else depends on it.

    Overlapped work brings nothing; a queue that drains earlier brings what the host allows. Host time between calls,
    the order of launches and the durations of all else stay as recorded, and so does what other ranks do.

    Args:
        trace: one rank.
        change: one or several; as text `KIND`, `KIND:REGEX`, or `KIND:REGEX=SPEEDUP`, such as `kernel:gemm=2`.
            With none the record itself is replayed.
        speedup: for changes that do not say one; none means free.

    Raises:
        InputError: a change has no legal kind, speedup or pattern.
    """
    listed = [change] if isinstance(change, Change | str) else list(change)
    changes = [_checked(parse_change(one) if isinstance(one, str) else one, speedup) for one in listed]
    graph = dependencies(trace)
    scales = unchanged(trace.events.height)
    for one in changes:
        scales = scales.times(scales_for(trace, one))
    found = outcome(graph, scales, bases(trace))
    return WhatIf(
        changes=changes,
        span_ns=found.span_ns,
        new_span_ns=found.new_span_ns,
        gain_ns=found.span_ns - found.new_span_ns,
        ratio=found.ratio,
        ratio_low=found.ratio_low,
        ratio_high=found.ratio_high,
        touched_ns=touched(graph, scales),
        notes=list(graph.notes),
    )


def parse_change(text: str) -> Change:
    """A change from text.

    >>> parse_change("kernel:gemm=2")
    Change(kind='kernel', name=None, pattern='gemm', speedup=2.0)
    >>> parse_change("data").pattern
    """
    kind, _, rest = text.partition(":")
    head, sign, tail = (rest or kind).rpartition("=")
    if sign and _is_number(tail):
        speedup, rest_or_kind = float(tail), head
    else:
        speedup, rest_or_kind = None, rest or kind
    if rest:
        return Change(kind=kind, pattern=rest_or_kind, speedup=speedup)
    return Change(kind=rest_or_kind, speedup=speedup)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _checked(change: Change, speedup: float | None) -> Change:
    if change.kind not in KINDS:
        raise InputError(f"{change.kind!r} is no kind of change; there are {', '.join(KINDS)}")
    if change.kind in WITHOUT_NAME and (change.name or change.pattern):
        raise InputError(f"a change of kind {change.kind!r} takes no name; leave it out")
    factor = change.speedup if change.speedup is not None else speedup
    if factor is not None and not factor > 0:
        raise InputError(f"speedup: got {factor}; it must be above 0; leave it out to make the work free")
    try:
        re.compile(change.pattern or "")
    except re.error as error:
        raise InputError(
            f"{change.pattern!r} is not a regular expression: {error}; pass name= to match a name"
        ) from error
    return Change(kind=change.kind, name=change.name, pattern=change.pattern, speedup=factor)


def scales_for(trace: RankTrace, change: Change) -> Scales:
    """What a change leaves of each duration."""
    keep = 0.0 if change.speedup is None else 1.0 / change.speedup
    pattern = change.pattern
    if change.name is not None:
        line = re.fullmatch(r"(.*):(\d+)", change.name) if change.kind == "line" else None
        pattern = f"(^|/){re.escape(line[1])}\\({line[2]}\\): " if line else f"^{re.escape(change.name)}$"
    return scales_of(trace, change.kind, pattern, keep)


@kept
def bases(trace: RankTrace) -> tuple[int, int]:
    """Span of the record, and of its replay without unexplained delays; ns."""
    bare = replayed_span(dependencies(trace), unchanged(trace.events.height), lags=False)
    return trace.activity.span_ns, bare


def outcome(graph: Graph, scales: Scales, base: tuple[int, int]) -> Outcome:
    """Replay a change, with and without unexplained delays."""
    span, bare = base
    new = replayed_span(graph, scales)
    ratio = new / span if span else 1.0
    other = replayed_span(graph, scales, lags=False) / bare if bare else ratio
    return Outcome(span, new, ratio, min(ratio, other), max(ratio, other))


def replayed_span(graph: Graph, scales: Scales, *, lags: bool = True) -> int:
    """Span of a replay under a change, ns."""
    if len(graph) == 1:  # nothing that could be replayed
        return graph.high - graph.low
    durations = changed(graph, scales)
    return span_of(graph, replay(graph, durations if lags else without_lags(durations)))


def touched(graph: Graph, scales: Scales) -> int:
    """How much recorded time a change shortens, over all threads and streams; ns."""
    segments, device = graph.points.segments, graph.device
    if not len(scales.event):
        return 0
    share = np.where(segments.event >= 0, scales.event[segments.event], scales.gap)
    host = (segments.end - segments.start)[share != 1.0].sum()
    work = (device.end - device.start)[scales.event[device.event] != 1.0].sum()
    return int(host + work)
