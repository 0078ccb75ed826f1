"""Changed durations: what a replay runs with when some of the work takes less time, or none."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pyrometer.trace.dependencies.graph import Edge, Graph
from pyrometer.trace.dependencies.replay import Durations
from pyrometer.trace.rows import IntArray

FloatArray = npt.NDArray[np.float64]

GONE = -(2**60)
"""Weight of an edge that no longer counts: earlier than anything else."""


@dataclass(frozen=True)
class Scales:
    """What share of its recorded duration each event keeps: 1 all, 0 nothing."""

    event: FloatArray  # per row of `events`: own time of host events, duration of device work
    gap: float = 1.0  # host time between events
    launch: float = 1.0  # delay from a launch to the start of its work on an empty stream
    freed: IntArray | None = None  # waiting calls (rows of `events`) that no longer wait

    def times(self, scales: Scales) -> Scales:
        """One change on top of the other: what both shorten is shortened twice."""
        return Scales(
            self.event * scales.event,
            self.gap * scales.gap,
            self.launch * scales.launch,
            _both(self.freed, scales.freed),
        )

    def least(self, scales: Scales) -> Scales:
        """Both changes side by side: what both shorten is shortened by the stronger."""
        return Scales(
            np.minimum(self.event, scales.event),
            min(self.gap, scales.gap),
            min(self.launch, scales.launch),
            _both(self.freed, scales.freed),
        )


def _both(one: IntArray | None, other: IntArray | None) -> IntArray | None:
    given = [freed for freed in (one, other) if freed is not None]
    return np.concatenate(given) if given else None


def unchanged(num_events: int) -> Scales:
    """Everything takes as long as it took."""
    return Scales(np.ones(num_events))


def changed(graph: Graph, scales: Scales) -> Durations:
    """The durations of a graph under a change.

    A thread's work between two points shrinks by what its segments shrink. A waiting call keeps its own cost in
    proportion, and waits as before unless it is freed or takes no time at all. Overlap of work on one stream shrinks
    with the work. Work whose launching call takes no time at all has no launch delay either. Lags stay.
    """
    weight = graph.weight.copy()
    _shrink_programs(graph, scales, weight)
    _shrink_waits(graph, scales, weight)
    _shrink_launches(graph, scales, weight)
    dur = graph.dur.copy()
    works = graph.work >= 0
    share = np.ones(len(graph))
    share[works] = scales.event[graph.device.event[graph.work[works]]]
    overlap = (graph.kind == Edge.STREAM) & (weight < 0)
    weight[overlap] = _scaled(weight[overlap], share[graph.source[overlap]])
    return Durations(_scaled(dur, share), weight, graph.lag)


def without_lags(durations: Durations) -> Durations:
    """The same, with every unexplained delay left out."""
    return replace(durations, lag=np.zeros_like(durations.lag))


def _scaled(duration: IntArray, share: FloatArray) -> IntArray:
    return np.where(share == 1.0, duration, np.rint(duration * share).astype(np.int64))


def _shrink_programs(graph: Graph, scales: Scales, weight: IntArray) -> None:
    segments, points = graph.points.segments, graph.points
    share = (
        np.where(segments.event >= 0, scales.event[segments.event], scales.gap)
        if len(scales.event)
        else scales.event
    )
    recorded = segments.end - segments.start
    saved = np.concatenate([[0], np.cumsum(recorded - _scaled(recorded, share))]).astype(np.int64)
    by_point = saved[points.stop] - saved[points.first]
    program = graph.kind == Edge.PROGRAM
    target = np.broadcast_to(graph.point, graph.kind.shape)[program]
    weight[program] -= by_point[target]


def _shrink_waits(graph: Graph, scales: Scales, weight: IntArray) -> None:
    calls = graph.waits.event
    if not len(calls) or not len(graph.waiting_calls) or not len(graph.points.time):
        return
    point = np.broadcast_to(graph.point, graph.kind.shape)
    waiting = np.where(point >= 0, graph.points.waiting[point], -1)
    call = np.where(waiting >= 0, graph.waiting_calls[waiting], -1)
    share = np.where(call >= 0, scales.event[calls[call]], 1.0)
    freed = share == 0.0
    if scales.freed is not None:
        freed |= (call >= 0) & np.isin(calls[call], scales.freed)
    own = graph.kind == Edge.WAITING
    weight[own] = np.where(freed[own], 0, _scaled(weight[own], share[own]))
    weight[(graph.kind == Edge.WAKE) & freed] = GONE


def _shrink_launches(graph: Graph, scales: Scales, weight: IntArray) -> None:
    launch = graph.kind == Edge.LAUNCH
    if not launch.any():
        return
    call = graph.device.call[np.broadcast_to(graph.work, graph.kind.shape)[launch]]
    # A copy that its own call waits for is no matter of launching.
    later = np.where(np.isin(call, graph.waits.event), 1.0, scales.launch)
    share = np.where(scales.event[call] == 0.0, 0.0, later)
    weight[launch] = _scaled(weight[launch], share)
