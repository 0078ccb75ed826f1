"""Changed durations: what a replay runs with when some of the work takes less time, or none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyrometer.trace.dependencies.graph import Edge, Graph
from pyrometer.trace.dependencies.replay import BoolArray, Durations
from pyrometer.trace.rows import IntArray, among, ranges

FloatArray = npt.NDArray[np.float64]

NOTHING: IntArray = np.empty(0, np.int64)

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
    edges = _edges_of(graph)
    weight = graph.weight.copy()
    flat = weight.reshape(-1)
    _shrink_programs(graph, scales, edges, flat)
    _shrink_waits(scales, edges, flat)
    _shrink_launches(scales, edges, flat)
    kept = scales.event[edges.work_events]
    dur = graph.dur
    if (kept != 1.0).any():
        share = np.ones(len(graph))
        share[edges.works] = kept
        flat[edges.overlaps] = _scaled(flat[edges.overlaps], share[edges.overlap_sources])
        dur = _scaled(dur, share)
    return Durations(dur, weight, graph.lag)


def without_lags(durations: Durations) -> Durations:
    """The same, with every unexplained delay left out."""
    return replace(durations, lag=np.zeros_like(durations.lag))


class Edges(NamedTuple):
    """What a change may touch, found once for all replays of a graph; edges are places in its flattened `weight`."""

    point_of: IntArray  # per segment: the point that it leads to; -1 behind the last one of its thread
    programs: IntArray
    program_points: IntArray  # the point that each leads to
    waits: IntArray  # of calls
    wait_calls: IntArray  # rows of `events`
    wakes: IntArray
    wake_calls: IntArray
    launches: IntArray
    launch_calls: IntArray
    awaited: BoolArray  # of launches: whether the call itself waits for what it launches
    works: IntArray  # nodes of device work
    work_events: IntArray
    overlaps: IntArray  # of work on one stream
    overlap_sources: IntArray


def _edges_of(graph: Graph) -> Edges:
    if "edges" not in graph.kept:
        graph.kept["edges"] = _edges(graph)
    found: Edges = graph.kept["edges"]
    return found


def _edges(graph: Graph) -> Edges:
    kind, nodes = graph.kind.reshape(-1), len(graph)
    programs, launches = np.flatnonzero(kind == Edge.PROGRAM), np.flatnonzero(kind == Edge.LAUNCH)
    waits, wait_calls = _with_calls(graph, np.flatnonzero(kind == Edge.WAITING))
    wakes, wake_calls = _with_calls(graph, np.flatnonzero(kind == Edge.WAKE))
    launch_calls = graph.device.call[graph.work[launches % nodes]] if len(launches) else NOTHING
    works = np.flatnonzero(graph.work >= 0)
    overlaps = np.flatnonzero((kind == Edge.STREAM) & (graph.weight.reshape(-1) < 0))
    held, segment = ranges(graph.points.first, np.maximum(graph.points.stop - graph.points.first, 0))
    point_of = np.full(len(graph.points.segments.lane), -1, np.int64)
    point_of[segment] = held
    return Edges(
        point_of,
        programs,
        graph.point[programs % nodes],
        waits,
        wait_calls,
        wakes,
        wake_calls,
        launches,
        launch_calls,
        among(launch_calls, graph.waits.event),
        works,
        graph.device.event[graph.work[works]] if len(works) else NOTHING,
        overlaps,
        graph.source.reshape(-1)[overlaps],
    )


def _with_calls(graph: Graph, edges: IntArray) -> tuple[IntArray, IntArray]:
    """Those edges that belong to a waiting call, and which."""
    calls = graph.waits.event
    if not len(calls) or not len(graph.waiting_calls) or not len(graph.points.time):
        return NOTHING, NOTHING
    point = graph.point[edges % len(graph)]
    waiting = np.where(point >= 0, graph.points.waiting[point], -1)
    call = np.where(waiting >= 0, graph.waiting_calls[waiting], -1)
    held = call >= 0
    return edges[held], calls[call[held]]


def _scaled(duration: IntArray, share: FloatArray) -> IntArray:
    changes = np.flatnonzero(share != 1.0)
    if not len(changes):
        return duration
    scaled = duration.copy()
    scaled[changes] = np.rint(duration[changes] * share[changes]).astype(np.int64)
    return scaled


def _shrink_programs(graph: Graph, scales: Scales, edges: Edges, weight: IntArray) -> None:
    segments, share = (
        graph.points.segments,
        np.append(scales.event, scales.gap),
    )  # that of no event, -1, is the last
    changes = np.flatnonzero((share != 1.0)[segments.event])
    changes = changes[edges.point_of[changes] >= 0]
    if not len(changes):
        return
    recorded = segments.end[changes] - segments.start[changes]
    saved = np.zeros(len(graph.points.time), np.int64)
    np.add.at(saved, edges.point_of[changes], recorded - _scaled(recorded, share[segments.event[changes]]))
    weight[edges.programs] -= saved[edges.program_points]


def _shrink_waits(scales: Scales, edges: Edges, weight: IntArray) -> None:
    weight[edges.waits] = np.where(
        _freed(scales, edges.wait_calls),
        0,
        _scaled(weight[edges.waits], scales.event[edges.wait_calls]),
    )
    weight[edges.wakes[_freed(scales, edges.wake_calls)]] = GONE


def _freed(scales: Scales, calls: IntArray) -> BoolArray:
    """Which calls no longer wait."""
    freed: BoolArray = scales.event[calls] == 0.0
    return freed if scales.freed is None else freed | among(calls, scales.freed)


def _shrink_launches(scales: Scales, edges: Edges, weight: IntArray) -> None:
    gone = scales.event[edges.launch_calls] == 0.0
    if scales.launch == 1.0 and not gone.any():
        return
    # A copy that its own call waits for is no matter of launching.
    later = np.where(edges.awaited, 1.0, scales.launch)
    share = np.where(gone, 0.0, later)
    weight[edges.launches] = _scaled(weight[edges.launches], share)
