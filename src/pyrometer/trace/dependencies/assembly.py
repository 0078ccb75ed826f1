"""Putting the dependency graph together from what each part of a trace tells."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pyrometer.quantity import format_seconds
from pyrometer.trace.dependencies.crossings import Crossings, crossings
from pyrometer.trace.dependencies.graph import Edge, Graph
from pyrometer.trace.dependencies.latencies import Latencies, find_latencies
from pyrometer.trace.dependencies.order import pair, topological
from pyrometer.trace.dependencies.points import Points, Waiting, disjoint, place_points
from pyrometer.trace.dependencies.segments import Segments, host_segments
from pyrometer.trace.dependencies.threads import Threads, threads
from pyrometer.trace.dependencies.waits import Waits, host_waits
from pyrometer.trace.dependencies.work import NEVER, Work, device_work
from pyrometer.trace.kinds import HOST, Kind, is_kind
from pyrometer.trace.linking.tree import NO_PIECES
from pyrometer.trace.naming.patterns import is_step_mark
from pyrometer.trace.rows import IntArray, distinct
from pyrometer.trace.timing.intervals import union
from pyrometer.trace.trace import RankTrace

UNLIMITED = np.iinfo(np.int64).max


class Found(NamedTuple):
    """What was found in a trace, from which the graph is made."""

    low: int
    high: int
    events: pl.DataFrame
    work: Work
    segments: Segments
    waits: Waits
    crossings: Crossings
    threads: Threads
    latencies: Latencies


class Bonds(NamedTuple):
    """Edges in no order; nodes are 0 for the root, then the points, then the device work."""

    source: IntArray
    target: IntArray
    weight: IntArray
    kind: IntArray


def build(trace: RankTrace) -> Graph:
    """Build the dependency graph of a linked trace."""
    hit = _find(trace, trace.events if _is_possible(trace) else trace.events.clear())
    calls, intervals = _waiting_intervals(hit)
    ends = _lane_ends(hit)
    points = _points(hit, intervals, ends)
    bonds = _bonds(hit, points, calls)
    nodes = len(points.time)
    time = np.concatenate([[hit.low], points.time, hit.work.start])
    dur = np.concatenate([np.zeros(1 + nodes, np.int64), hit.work.end - hit.work.start])
    in_call = np.concatenate([np.zeros(1 + nodes, np.int64), hit.work.in_call])
    bonds, lag = _reconcile(bonds, time, dur, in_call, hit.latencies)
    position = topological(time, bonds.source, bonds.target)
    pairs = pair(position, bonds.source, bonds.target)
    node, edge = pairs.node, pairs.edge
    real = ~pairs.is_pass
    return Graph(
        low=hit.low,
        high=hit.high,
        time=time[node],
        dur=np.where(real, dur[node], 0),
        work=np.where(node > nodes, node - nodes - 1, -1),
        point=np.where((node > 0) & (node <= nodes), node - 1, -1),
        is_pass=pairs.is_pass,
        source=pairs.source,
        weight=np.append(bonds.weight, 0)[edge],  # edge -1 leads from a pass
        kind=np.append(bonds.kind, int(Edge.PASS))[edge],
        lag=np.where(real, lag[node], 0),
        ends=_ends(points, points.at(ends[0], np.clip(ends[1], hit.low, hit.high)), node, real),
        points=points,
        device=hit.work,
        waits=hit.waits,
        waiting_calls=calls,
        notes=_notes(hit, int(lag.sum())),
    )


def _is_possible(trace: RankTrace) -> bool:
    """Whether the times of all threads fit into one number; they do not where a clock was broken."""
    return (trace.activity.span_ns + 2) * (trace.tracks.height + 1) < 2**62


def _find(trace: RankTrace, events: pl.DataFrame) -> Found:
    low, high = trace.activity.start_ns, trace.activity.end_ns
    work = device_work(events)
    pieces = trace.links.pieces if events.height else NO_PIECES
    segments = host_segments(events["track"].to_numpy(), pieces, low, high)
    syncs = _sync_records(trace)
    waits = host_waits(events, syncs, work)
    usual = find_latencies(events, work, waits)
    return Found(
        low,
        high,
        events,
        work,
        segments,
        waits,
        crossings(events, syncs, work, usual),
        threads(events, trace.tables["ops"], trace.tracks, segments, trace.sorts),
        usual,
    )


def _sync_records(trace: RankTrace) -> pl.DataFrame:
    """Synchronisation records with the start of their own call and of the call that recorded the awaited event."""
    calls = trace.of_kind(Kind.RUNTIME, Kind.DRIVER).select("correlation", "start_ns")
    recorded = calls.drop_nulls().unique("correlation", keep="first").rename({"start_ns": "recorded_ns"})
    starts = trace.events["start_ns"]
    syncs = trace.detail("syncs").join(
        recorded, left_on="wait_record_correlation", right_on="correlation", how="left"
    )
    return syncs.with_columns(called_ns=starts.gather(syncs["parent"].cast(pl.UInt32)))


def _waiting_intervals(hit: Found) -> tuple[IntArray, Waiting]:
    """Disjoint waiting intervals, and for each candidate the waiting call that it is; -1 for joins and pauses."""
    events, waits, bursts = hit.events, hit.waits, hit.threads.bursts
    held = distinct(waits.of)
    calls = waits.event[held]
    joint = union(bursts.start[bursts.joined], bursts.end[bursts.joined])
    pause = np.flatnonzero(bursts.lane[1:] == bursts.lane[:-1]) if len(bursts.lane) else np.empty(0, np.int64)
    lane = [
        events["track"].cast(pl.Int64).to_numpy()[calls],
        np.full(len(joint.start), hit.threads.main),
        bursts.lane[pause],
    ]
    start = [events["start_ns"].to_numpy()[calls], joint.start, bursts.end[pause]]
    end = [events["end_ns"].to_numpy()[calls], joint.end, bursts.start[pause + 1]]
    clipped = [np.clip(np.concatenate(times), hit.low, hit.high) for times in (start, end)]
    of = np.concatenate([held, np.full(len(joint.start) + len(pause), -1, np.int64)])
    return of, disjoint(np.concatenate(lane), clipped[0], clipped[1])


def _points(hit: Found, waiting: Waiting, ends: tuple[IntArray, IntArray]) -> Points:
    work, bursts, segments = hit.work, hit.threads.bursts, hit.segments
    known = work.call >= 0
    first = np.flatnonzero(np.diff(segments.lane, prepend=-1))
    main, lost = _on_main(hit, bursts.start), _on_main(hit, work.start[_lost(hit)])
    lane = [work.thread[known], segments.lane[first], bursts.lane, bursts.lane, main[0], lost[0], ends[0]]
    time = [work.launched[known], segments.start[first], bursts.start, bursts.end, main[1], lost[1], ends[1]]
    moments = np.clip(np.concatenate(time), hit.low, hit.high)
    return place_points(np.concatenate(lane), moments, waiting, segments, low=hit.low, high=hit.high)


def _on_main(hit: Found, moments: IntArray) -> tuple[IntArray, IntArray]:
    """Lane and moment of the main thread at these moments; its first or last moment, if it is not there."""
    mine = hit.segments.lane == hit.threads.main
    if not mine.any():
        return np.empty(0, np.int64), np.empty(0, np.int64)
    start, end = int(hit.segments.start[mine][0]), int(hit.segments.end[mine][-1])
    return np.full(len(moments), hit.threads.main, np.int64), np.clip(moments, start, end)


def _lost(hit: Found) -> IntArray:
    """Work without a launch that did not queue either: some thread must have launched it just before."""
    work = hit.work
    free = np.where(work.before >= 0, work.end[work.before], NEVER) if len(work) else work.end
    waited = np.where(free > NEVER, work.start - free > hit.latencies.queue.high, True)
    return np.flatnonzero((work.call < 0) & waited)


def _lane_ends(hit: Found) -> tuple[IntArray, IntArray]:
    """The last moment of each thread that counts for the span, by the rule of `Activity`.

    Where none of these is the end of the span, that is a moment of the main thread.
    """
    events = hit.events.select("kind", "name", "track", "end_ns")
    host = events.filter(is_kind(*HOST) & (pl.col("end_ns") <= hit.high))
    ops = host.filter((pl.col("kind") == Kind.CPU_OP.value) & ~is_step_mark())
    counted = ops if ops.height or len(hit.work) else host
    last = counted.drop_nulls("track").group_by("track").agg(pl.col("end_ns").max())
    lane, end = last["track"].to_numpy().astype(np.int64), last["end_ns"].to_numpy()
    if hit.threads.main >= 0 and max(end.max(initial=0), hit.work.end.max(initial=0)) < hit.high:
        lane, end = np.append(lane, hit.threads.main), np.append(end, hit.high)
    return lane, end


def _ends(points: Points, held: IntArray, node: IntArray, real: npt.NDArray[np.bool_]) -> IntArray:
    """The nodes after which a replay may end: the last moments of threads, and all device work."""
    last = np.zeros(1 + len(points.time), bool)
    last[1 + held] = True
    last[0] = True
    return np.flatnonzero(real & ((node >= len(last)) | last[np.minimum(node, len(last) - 1)]))


def _bonds(hit: Found, points: Points, calls: IntArray) -> Bonds:
    parts = [
        *_thread_bonds(hit, points, calls),
        *_burst_bonds(hit, points),
        *_device_bonds(hit, points),
    ]
    parts.append(_wake_bonds(hit, points, calls))
    joined = Bonds(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    loose = np.ones(1 + len(points.time) + len(hit.work), bool)
    loose[joined.target] = False
    loose[0] = False
    target = np.flatnonzero(loose)
    time = np.concatenate([[hit.low], points.time, hit.work.start])
    root = _bond(Edge.ROOT, np.zeros(len(target), np.int64), target, time[target] - hit.low)
    return Bonds(*(np.concatenate(column) for column in zip(joined, root, strict=True)))


def _bond(kind: Edge, source: IntArray, target: IntArray, weight: IntArray) -> Bonds:
    return Bonds(source, target, weight, np.full(len(source), int(kind), np.int64))


def _thread_bonds(hit: Found, points: Points, calls: IntArray) -> list[Bonds]:
    """Each point of a thread follows the one before."""
    after = 1 + np.flatnonzero(points.lane[1:] == points.lane[:-1])
    waits = points.waiting[after]
    call = np.where(waits >= 0, calls[waits], -1) if len(calls) else waits
    own = (
        np.where(call >= 0, hit.latencies.own[call], 0)
        if len(hit.latencies.own)
        else np.zeros(len(call), np.int64)
    )
    passed = points.time[after] - points.time[after - 1]
    works = waits < 0
    return [
        _bond(Edge.PROGRAM, after[works], 1 + after[works], passed[works]),
        _bond(Edge.WAITING, after[~works], 1 + after[~works], np.minimum(own, passed)[~works]),
    ]


def _burst_bonds(hit: Found, points: Points) -> list[Bonds]:
    """The main thread sets others to work, and waits for the backward passes."""
    bursts, main = hit.threads.bursts, hit.threads.main
    lanes, moments = _on_main(hit, bursts.start)
    if not len(lanes):
        return []
    begins, ends = points.at(bursts.lane, bursts.start), points.at(bursts.lane, bursts.end)
    at = points.at(lanes, moments)
    passed = points.time[begins] - points.time[at]
    told = passed >= 0
    joint = union(bursts.start[bursts.joined], bursts.end[bursts.joined])
    inside = np.searchsorted(joint.start, bursts.start[bursts.joined], side="right") - 1
    join = points.at(np.full(len(inside), main), joint.end[inside])
    waited = points.waiting[join] >= 0
    source = ends[bursts.joined][waited]
    return [
        _bond(Edge.HANDOFF, 1 + at[told], 1 + begins[told], passed[told]),
        _bond(Edge.HANDOFF, 1 + source, 1 + join[waited], np.zeros(int(waited.sum()), np.int64)),
    ]


def _device_bonds(hit: Found, points: Points) -> list[Bonds]:
    work, crossed, usual = hit.work, hit.crossings, hit.latencies
    node = 1 + len(points.time) + np.arange(len(work))
    known, behind = np.flatnonzero(work.call >= 0), np.flatnonzero(work.before >= 0)
    launch = points.at(work.thread[known], np.clip(work.launched[known], hit.low, hit.high))
    delay = np.minimum(usual.launch.typical, work.start[known] - points.time[launch])
    gap = np.minimum(usual.queue.typical, work.start[behind] - work.end[work.before[behind]])
    lost = _lost(hit)
    lanes, moments = _on_main(hit, work.start[lost])
    lost = lost[: len(lanes)]
    at = points.at(lanes, moments)
    passed = work.start[lost] - points.time[at]
    told = passed >= 0
    cross = np.minimum(usual.queue.typical, work.start[crossed.work] - work.end[crossed.awaited])
    return [
        _bond(Edge.LAUNCH, 1 + launch, node[known], delay),
        _bond(Edge.STREAM, node[work.before[behind]], node[behind], gap),
        _bond(Edge.EVENT, node[crossed.awaited], node[crossed.work], cross),
        _bond(Edge.HANDOFF, 1 + at[told], node[lost[told]], passed[told]),
    ]


def _wake_bonds(hit: Found, points: Points, calls: IntArray) -> Bonds:
    """Waiting calls go on when the work that they wait for has ended."""
    waits, work = hit.waits, hit.work
    point_of = np.full(len(waits.event), -1, np.int64)
    ends = np.flatnonzero(points.waiting >= 0)
    call = calls[points.waiting[ends]]
    point_of[call[call >= 0]] = ends[call >= 0]
    point = point_of[waits.of]
    late = np.where(point >= 0, points.time[point] - work.end[waits.work], -1) if len(points.time) else point
    fits = late >= 0
    weight = np.minimum(hit.latencies.wake.typical, late[fits])
    return _bond(Edge.WAKE, 1 + len(points.time) + waits.work[fits], 1 + point[fits], weight)


def _reconcile(
    bonds: Bonds, time: IntArray, dur: IntArray, in_call: IntArray, usual: Latencies
) -> tuple[Bonds, IntArray]:
    """Let the edge that held a node up take what is usual for its kind; the rest is the node's lag.

    For a launch it is usual that the work begins when the call has returned, however long that took.
    """
    arrival = time[bonds.source] + dur[bonds.source] + bonds.weight
    order = np.lexsort((bonds.kind, arrival, bonds.target))
    last = order[np.append(bonds.target[order[1:]] != bonds.target[order[:-1]], True)[: len(order)]]
    rest = time[bonds.target[last]] - arrival[last]
    limit = np.full(len(Edge), UNLIMITED)
    limit[[Edge.STREAM, Edge.EVENT]] = usual.queue.high
    limit[Edge.LAUNCH], limit[Edge.WAKE] = usual.launch.high, usual.wake.high
    most = limit[bonds.kind[last]]
    most += np.where(bonds.kind[last] == Edge.LAUNCH, in_call[bonds.target[last]], 0)
    weight = bonds.weight.copy()
    more = np.clip(most - weight[last], 0, rest)
    weight[last] += more
    lag = np.zeros(len(time), np.int64)
    lag[bonds.target[last]] = rest - more
    return bonds._replace(weight=weight), lag


def _notes(hit: Found, lag_ns: int) -> tuple[str, ...]:
    work = hit.work
    orphans = int((work.call < 0).sum())
    said = [
        (
            hit.waits.num_inferred,
            "{} waiting calls have no synchronisation record: what they waited for is inferred",
        ),
        (
            hit.crossings.num_inferred,
            "{} waits between streams are inferred: which event was meant is not recorded",
        ),
        (
            orphans,
            "{} device events have no launch in the trace: they wait for their stream, else follow the main thread's clock",
        ),
        (work.num_early, "{} device events begin before their launch; the launch is ignored"),
        (
            hit.threads.num_joined,
            "{} backward passes are taken to start and to be awaited where the main thread pauses",
        ),
        (
            hit.threads.num_handed,
            "{} stretches of work on other threads are taken to be awaited by the main thread, which is silent meanwhile",
        ),
        (hit.threads.num_followed, "{} other threads are taken to follow the main thread's clock"),
    ]
    notes = [text.format(f"{number:,}") for number, text in said if number]
    if lag_ns:
        notes.append(
            f"{format_seconds(lag_ns * 1e-9)} of delays have no cause in the trace; replays keep them, the interval tells what if "
            "they vanish"
        )
    return tuple(notes)
